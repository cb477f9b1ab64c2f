"""Particle sets of AMUSE in HDF5, of its versions 1 and 2.

A group ``data/0000000001`` (version 1: ``particles``) for each saved state of a set has `keys` and,
in ``attributes``, an array for each attribute, whose unit is a Python expression as
``(1000.0 * system.get('S.I.').base('length')) * (system.get('S.I.').base('time')**-1)``. N-body
units are those of the system "generic". Known: files that AMUSE has written, and
amuse/io/store_v2.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import h5py
import numpy as np

from grape6py._arrays.kinds import HDF5
from grape6py._io import output_file
from grape6py.formats import hdf5
from grape6py.formats.bodies import Snapshot
from grape6py.formats.source import Source
from grape6py.units import Units

_TOGETHER = (("mass",), ("x", "y", "z"), ("vx", "vy", "vz"))  # in one unit
_ATTRIBUTES = tuple(name for names in _TOGETHER for name in names)
_CGS = {"mass": 1e3, "length": 1e2, "time": 1.0}  # of the bases of S.I.
_POWERS = {"mass": {"mass": 1}, "length": {"length": 1}, "time": {"time": 1},
           "velocity": {"length": 1, "time": -1}}  # fmt: skip
_LONGEST = 2000  # of an expression


class _Unit(NamedTuple):
    """A number times powers of base quantities of a system."""

    factor: float
    powers: dict[str, float]
    systems: frozenset[str]


def recognises(source: Source) -> bool:
    """Whether it is a store of AMUSE's."""
    return hdf5.kind(source) == "amuse"


def read(source: Source, which: int) -> Snapshot:
    """One of the saved states of the one set of particles."""
    with hdf5.opened(source) as file:
        states = _states(source, file)
        if not -len(states) <= which < len(states):
            raise source.wrong(f"it has {len(states)} states of a set, and not number {which}")
        group = states[which]
        n = int(hdf5.scalar(group.attrs["number_of_particles"]))
        columns = hdf5.member(source, group, "attributes")
        attributes = {
            name: found
            for name in _ATTRIBUTES
            if (found := hdf5.member(source, columns, name)) is not None
        }
        for names in _TOGETHER:
            missing = [name for name in names if name not in attributes]
            if missing and (len(missing) < len(names) or "x" in names):
                raise source.wrong(f"its particles have no {', '.join(missing)}")
        units = {
            name: _unit(source, found.attrs["units"], _dimension(name))
            for name, found in attributes.items()
        }
        scales = [_scale(units, names) for names in _TOGETHER]
        is_physical = {system for unit in units.values() for system in unit.systems} == {"S.I."}
        mass, pos, vel = (
            hdf5.columns(
                source,
                [attributes[name] for name in names],
                n,
                [units[name].factor / scale for name in names],
            )
            if scale
            else None
            for names, scale in zip(_TOGETHER, scales, strict=True)
        )
        assert pos is not None
        if mass is None:
            mass = source.absent_masses(n, "attribute mass" + " (in kg)" * is_physical)
        if vel is None:
            vel = source.absent_velocities(n, "attributes vx, vy, vz")
        made_of = None
        if is_physical:
            speed = scales[2] or scales[1]  # without velocities: a second for the time
            made_of = Units.from_cgs((scales[0] or 1.0) * 1e3, scales[1] * 1e2, speed * 1e2)
        time = None
        if "timestamp" in group.attrs and "timestamp_unit" in group.attrs:
            unit = _unit(source, group.attrs["timestamp_unit"], "time")
            time = hdf5.scalar(group.attrs["timestamp"]) * unit.factor
            if made_of is not None and unit.systems == {"S.I."}:
                time /= made_of.in_cgs("time")
        ids = hdf5.ints(source, hdf5.member(source, group, "keys"), n)
    return Snapshot(mass.reshape(n), pos, vel, time=time, ids=ids, units=made_of)


def _states(source: Source, file: HDF5) -> list[HDF5]:
    """Groups of the saved states, in their order."""
    sets = {}
    for name, group in hdf5.members(source, file):
        if name != "AMUSE_INF" and isinstance(group, h5py.Group):
            states = [
                state
                for _, state in sorted(hdf5.members(source, group))
                if isinstance(state, h5py.Group) and "number_of_particles" in state.attrs
            ]
            if states:
                sets[name] = states
    if len(sets) != 1:
        raise source.wrong(f"it has {len(sets)} sets of particles ({', '.join(sets)}), not one")
    return next(iter(sets.values()))


def _dimension(name: str) -> str:
    return "mass" if name == "mass" else "velocity" if "v" in name else "length"


def _scale(units: dict[str, _Unit], names: tuple[str, ...]) -> float:
    """The factor of the first of some attributes, in which all are put; 0 if there is none."""
    for name in names:
        if name in units:
            return 1.0 if "generic" in units[name].systems else units[name].factor
    return 0.0


def _unit(source: Source, given: object, dimension: str) -> _Unit:
    text = given.decode("ascii", "replace") if isinstance(given, bytes) else str(given)
    try:
        if len(text) > _LONGEST:
            raise ValueError("it is too long")
        unit = _evaluated(ast.parse(text.strip(), mode="eval").body)
        powers = {name: power for name, power in unit.powers.items() if power}
        if powers != _POWERS[dimension]:
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


def write(content: Snapshot, comment: str) -> Iterator[bytes]:
    """A store of version 2 with one state."""
    del comment
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
        columns = [content.mass, *content.pos.T, *content.vel.T]
        for name, column in zip(_ATTRIBUTES, columns, strict=True):
            dataset = group.create_dataset(f"attributes/{name}", data=column)
            dataset.attrs["units"] = texts[_dimension(name)]

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
    text = bases[0]
    for base in bases[1:]:
        text = f"({text} * {base})"
    return text
