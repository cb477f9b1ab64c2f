"""Particle sets of AMUSE in HDF5, of its versions 1 and 2.

A group ``data/0000000001`` (version 1: ``particles``; or the name of a set) for each saved state of
a set has `keys` and, in ``attributes``, an array for each attribute, whose unit is a Python
expression as ``(1e3 * system.get('S.I.').base('length')) * (system.get('S.I.').base('time')**-1)``.
N-body units are those of the system "generic". A set that is saved behind another one looks like a
later state of it: what tells them apart is the timestamp, where there is one, and the keys. Known:
files that AMUSE has written, and amuse/io/store_v2.py.
"""

import ast
import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import HDF5, Floats, Untyped
from grape6py.files.formats import hdf5
from grape6py.files.formats.bodies import Snapshot, joined
from grape6py.files.formats.source import Source
from grape6py.files.storage import output_file
from grape6py.units import Units

_ATTRIBUTES = {"mass": ("mass",), "length": ("x", "y", "z"), "velocity": ("vx", "vy", "vz")}
_CGS = {"mass": 1e3, "length": 1e2, "time": 1.0}  # of the bases of S.I.
_POWERS = {"mass": {"mass": 1}, "length": {"length": 1}, "time": {"time": 1},
           "velocity": {"length": 1, "time": -1}}  # fmt: skip
_LONGEST = 2000  # of an expression
ALL = "all"  # sets of a file, however they are named


class _Unit(NamedTuple):
    """A number times powers of base quantities of a system."""

    factor: float
    powers: dict[str, float]
    systems: frozenset[str]


def read(source: Source, which: int | None, only: str | None = None) -> Snapshot:
    """All sets of one of the moments, or one set; a SnapshotError if moments cannot be told."""
    with hdf5.opened(source) as file:
        sets = hdf5.amuse_states(source, file)
        if not sets:
            raise source.wrong("it has no set of particles")
        if only not in (None, ALL, *sets):
            raise source.wrong(f"it has no set {only!r}; there are: {', '.join(sets)}, and {ALL}")
        chosen = {only: sets[only]} if only in sets else sets
        moments = {
            name: [states] if only == ALL != name else _moments(source, name, states, which)
            for name, states in chosen.items()
        }
        counts = {name: len(of) for name, of in moments.items()}
        n = min(counts.values())
        if n != max(counts.values()):
            each = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise source.wrong(
                f"its sets have different numbers of moments ({each}): --set NAME or set=NAME "
                "chooses one"
            )
        which = -1 if which is None else which
        source.check_which(which, n, "moment")
        groups = [(name, state) for name, of in moments.items() for state in of[which]]
        found = [_snapshot(source, name, group) for name, group in groups]
    made = _together(source, found)
    made.moments = n
    made.sets = [(name, len(part.mass)) for (name, _), part in zip(groups, found, strict=True)]
    return made


def _snapshot(source: Source, name: str, group: HDF5) -> Snapshot:
    """What one saved state of a set has."""
    n = int(hdf5.scalar(group.attrs[hdf5.AMUSE_NUMBER]))
    columns = hdf5.member(source, group, "attributes")
    arrays: dict[str, tuple[Floats, float]] = {}  # each with the scale of its unit
    systems: set[str] = set()
    for dimension, names in _ATTRIBUTES.items():
        datasets: list[Untyped] = [hdf5.member(source, columns, key) for key in names]
        missing = [key for key, found in zip(names, datasets, strict=True) if found is None]
        if missing and (len(missing) < len(names) or "x" in names):
            raise source.wrong(
                f"the particles of the set {name} have no {', '.join(missing)}: --set NAME or "
                "set=NAME chooses another set, if there is one"
            )
        if missing:
            continue
        units = [_unit(source, found.attrs["units"], dimension) for found in datasets]
        scale = 1.0 if "generic" in units[0].systems else units[0].factor
        factors = [unit.factor / scale for unit in units]
        arrays[dimension] = hdf5.columns(source, datasets, n, factors), scale
        systems.update(*(unit.systems for unit in units))
    is_physical = systems == {"S.I."}
    pos, length = arrays["length"]
    if "mass" not in arrays:
        given = source.absent_masses(n, f"{name} attribute mass" + " (in kg)" * is_physical)
        arrays["mass"] = given, 1.0
    if "velocity" not in arrays:  # a second for the time
        arrays["velocity"] = source.absent_velocities(n, f"{name} attributes vx, vy, vz"), length
    (mass, kilograms), (vel, speed) = arrays["mass"], arrays["velocity"]
    made_of = None
    if is_physical:
        made_of = Units.from_cgs(kilograms * 1e3, length * 1e2, speed * 1e2)
    time = None
    if "timestamp" in group.attrs and "timestamp_unit" in group.attrs:
        unit = _unit(source, group.attrs["timestamp_unit"], "time")
        time = hdf5.scalar(group.attrs["timestamp"]) * unit.factor
        if made_of is not None and unit.systems == {"S.I."}:
            time /= made_of.in_cgs("time")
    return Snapshot(mass.reshape(n), pos, vel, time=time, ids=_keys(source, group), units=made_of)


def _moments(source: Source, name: str, states: list[HDF5], which: int | None) -> list[list[HDF5]]:
    """Saved states under one name, those of one moment together.

    States of one time that share no key are several sets; without times they may be that, too, or
    one set whose particles have come and gone. Then each is taken for a moment, if one is asked
    for, and else refused.
    """
    moments: list[list[HDF5]] = []
    for state in states:
        times = [_timestamp(one) for one in (moments[-1][0], state)] if moments else [None, None]
        if moments and (times[0] == times[1] or None in times):
            keys, *before = (_keys(source, one) for one in (state, *moments[-1]))
            shared = int(np.isin(keys, np.concatenate(before)).sum())
            if shared == 0 and None not in times:
                moments[-1].append(state)
                continue
            if shared < max(len(keys), *map(len, before)) and which is None:
                raise source.wrong(
                    f"{name} has {len(states)} saved states, and neither times nor keys say if "
                    f"they are sets or moments: set={ALL!r} takes all together, which=K one; "
                    f"grape6 convert has --set {ALL} and --which K"
                )
        moments.append([state])
    return moments


def _keys(source: Source, state: HDF5) -> Untyped:
    n = int(hdf5.scalar(state.attrs[hdf5.AMUSE_NUMBER]))
    return hdf5.ints(source, hdf5.member(source, state, "keys"), n)


def _timestamp(state: HDF5) -> tuple[float, str] | None:
    if "timestamp" not in state.attrs:
        return None
    return hdf5.scalar(state.attrs["timestamp"]), str(state.attrs.get("timestamp_unit"))


def _together(source: Source, found: list[Snapshot]) -> Snapshot:
    """Several sets as one snapshot, in the units of the first."""
    first = found[0]
    for k, part in enumerate(found):
        if (part.units is None) != (first.units is None):
            raise source.wrong("one of its sets is in N-body units, and another is not")
        if first.units is not None:
            found[k] = part = part.in_units(first.units)
        times = [0.0 if of.time is None else of.time for of in (first, part)]
        if abs(times[0] - times[1]) > 1e-12 * max(map(abs, times)):
            raise source.wrong(
                f"its sets are of the times {times[0]!r} and {times[1]!r}: --set NAME or set=NAME "
                "chooses one"
            )
    return joined(found, source.wrong)


def _unit(source: Source, given: object, dimension: str) -> _Unit:
    text = given.decode("ascii", "replace") if isinstance(given, bytes) else str(given)
    try:
        if len(text) > _LONGEST:
            raise ValueError("it is too long")
        unit = _evaluated(ast.parse(text.strip(), mode="eval").body)
        if {name: power for name, power in unit.powers.items() if power} != _POWERS[dimension]:
            raise ValueError(f"it is not one of {dimension}")
        if unit.systems not in ({"S.I."}, {"generic"}) or not 0 < unit.factor < np.inf:
            raise ValueError("it is neither of S.I. nor of N-body units")
    except (ValueError, SyntaxError, RecursionError, OverflowError, MemoryError) as error:
        raise source.wrong(f"the unit {text[:100]!r} is not understood: {error}") from None
    return unit


def _evaluated(node: ast.expr) -> _Unit:
    """Value of an expression of numbers, products, powers, and bases of systems."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return _Unit(float(value), {}, frozenset())
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            unit = _evaluated(operand)
            return unit._replace(factor=-unit.factor)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(_evaluated(left), _evaluated(right), 1.0)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _product(_evaluated(left), _evaluated(right), -1.0)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            power = _evaluated(right)
            if power.powers:
                raise ValueError("its powers are no numbers")
            return _product(_Unit(1.0, {}, frozenset()), _evaluated(left), power.factor)
        case ast.Call(
            func=ast.Attribute(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id="system"), attr="get"),
                    args=[ast.Constant(value=str() as system)],
                ),
                attr="base",
            ),
            args=[ast.Constant(value=str() as base)],
        ):
            return _Unit(1.0, {base: 1.0}, frozenset([system]))
    raise ValueError("it has more than numbers and base units")


def _product(one: _Unit, other: _Unit, power: float) -> _Unit:
    try:
        factor = one.factor * other.factor**power
    except ZeroDivisionError:
        raise ValueError("it divides by zero") from None
    if isinstance(factor, complex):
        raise ValueError("it is complex")
    powers = dict(one.powers)
    for name, exponent in other.powers.items():
        powers[name] = powers.get(name, 0.0) + exponent * power
    return _Unit(factor, powers, one.systems | other.systems)


def write(content: Snapshot, _comment: str) -> Iterator[bytes]:
    """A store of version 2 with one state."""
    texts = {name: _text(content.units, name) for name in ("mass", "length", "velocity", "time")}

    def fill(file: HDF5) -> None:
        file.create_group("AMUSE_INF").attrs["version"] = "2.0"
        group = file.create_group("data/0000000001")
        n = len(content.mass)
        group.attrs.update({"type": "particles", "number_of_particles": n})
        if content.time is not None:
            group.attrs.update({"timestamp": content.time, "timestamp_unit": texts["time"]})
        keys = np.arange(1, n + 1) if content.ids is None else content.ids
        group["keys"] = keys.astype(np.uint64)
        for (dimension, names), array in zip(_ATTRIBUTES.items(), content, strict=True):
            for name, column in zip(names, np.atleast_2d(array.T), strict=True):
                dataset = group.create_dataset(f"attributes/{name}", data=column)
                dataset.attrs["units"] = texts[dimension]

    yield output_file.image(fill)


def _text(units: Units | None, dimension: str) -> str:
    """A unit as AMUSE writes it."""
    system = "generic" if units is None else "S.I."
    bases = [
        f"system.get('{system}').base('{base}')" + f"**{power}" * (power != 1)
        for base, power in _POWERS[dimension].items()
    ]
    if units is not None:
        size = units.in_cgs(dimension)
        for base, power in _POWERS[dimension].items():
            size /= _CGS[base] ** power
        bases.insert(0, repr(size))
    return functools.reduce("({} * {})".format, bases)
