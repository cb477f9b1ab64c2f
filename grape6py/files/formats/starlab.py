"""Starlab's dyn: a text of nested particles, each with what is told of it.

A node's position and velocity are relative to its parent's, so that those of a star are summed up
to the root. ``(Star`` of the root has the units: a mass of 1 in these is 1 / mass_scale solar
masses, lengths are in 1 / size_scale solar radii. G is 1 in all of Starlab; time_scale, in 1 / Myr,
comes from constants of its own, which are rounded, and is of stellar evolution alone. A file may
have many snapshots. Known: Portegies Zwart and others 2001, MNRAS 321, 199, appendix, and the
files themselves.
"""

import array
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from grape6py._arrays.kinds import Floats
from grape6py.errors import ArgumentError, Grape6Warning
from grape6py.files.formats.bodies import Snapshot, check_g_one
from grape6py.files.formats.source import Source, chosen
from grape6py.files.formats.table import lines_of, number
from grape6py.units import Units

_SECTIONS = (b"Log", b"Dynamics", b"Hydro", b"Star", b"Particle")
_DEEPEST = 64
_SCALES = {b"mass_scale": ("mass", "Msun"), b"size_scale": ("length", "Rsun"),
           b"time_scale": ("time", "Myr")}  # fmt: skip
_LENGTHS = {b"m": 1, b"r": 3, b"v": 3}  # how many numbers a particle's lines have
_ROUNDED = 0.1  # by which Starlab's constants may be off
_ROOT = """(Particle
  N = {n}
(Log
)Log
(Dynamics
  system_time  =  {time!r}
  m  =  {mass!r}
  r  =  0 0 0
  v  =  0 0 0
)Dynamics
(Hydro
)Hydro
(Star
{scales})Star
"""
_BODY = """(Particle
  i = {}
  N = 1
(Log
)Log
(Dynamics
  m  =  {!r}
  r  =  {!r} {!r} {!r}
  v  =  {!r} {!r} {!r}
)Dynamics
(Hydro
)Hydro
(Star
)Star
)Particle
"""


@dataclass(slots=True)
class _Node:
    """A particle of the tree, under way."""

    first: int  # row of the first star in it
    numbers: dict[bytes, list[float]] = field(default_factory=dict)  # of m, r and v
    scales: dict[bytes, float] = field(default_factory=dict)
    id: int | None = None
    time: float | None = None
    is_leaf: bool = True

    def settle(self, source: Source) -> None:
        """Fill in what no line has said of a star or a node in the root."""
        if b"r" not in self.numbers:
            raise source.wrong(f"particle {self.id} has no r")
        if b"v" not in self.numbers:
            self.numbers[b"v"] = source.absent_velocities(1, f"v of particle {self.id}")[0].tolist()
        if b"m" not in self.numbers and self.is_leaf:
            self.numbers[b"m"] = source.absent_masses(1, f"m of particle {self.id}").tolist()


class _Stars:
    """The leaves so far: seven numbers each, and their ids."""

    def __init__(self) -> None:
        self.numbers, self.ids = array.array("d"), array.array("q")

    def __len__(self) -> int:
        return len(self.numbers) // 7

    def add(self, node: _Node) -> None:
        for key in _LENGTHS:
            self.numbers.extend(node.numbers[key])
        if node.id is not None:
            self.ids.append(node.id)  # an OverflowError if it is beyond 64 bits

    def rows(self) -> Floats:
        """The numbers, not copied: none can be added while this lives."""
        return np.frombuffer(self.numbers).reshape(-1, 7)

    def shift(self, node: _Node) -> None:
        """Add place and motion of a node to those of the stars in it."""
        by = [value for key in (b"r", b"v") for value in node.numbers.get(key, (0.0,) * 3)]
        if any(by):
            self.rows()[node.first :, 1:] += by


def recognises(source: Source) -> bool:
    """Whether a text begins with a particle."""
    return source.head.lstrip().startswith(b"(Particle")


def read(source: Source, which: int) -> Snapshot:
    """The stars of one of the snapshots."""
    return chosen(source, _trees(source), which, lambda found: _snapshot(source, *found))


def _trees(source: Source) -> Iterator[tuple[_Node, _Stars]]:
    source.file.seek(0)
    stack: list[_Node] = []
    section = b""
    stars = _Stars()
    for line_number, line in enumerate(source.file, 1):
        text = line.strip()
        if section == b"Log" and text != b")Log":
            continue
        if text == b"(Particle" and not section:
            if stack:
                stack[-1].is_leaf = False
            if len(stack) == _DEEPEST:
                raise source.wrong(f"line {line_number}: nodes in nodes, more than {_DEEPEST} deep")
            stack.append(_Node(len(stars)))
        elif text == b")Particle" and stack and not section:
            node = stack.pop()
            if stack:
                node.settle(source)
            if node.is_leaf and stack:
                stars.add(node)
            else:
                stars.shift(node)
            if not stack:
                yield node, stars
                stars = _Stars()
        elif text.startswith(b"(") and text[1:] in _SECTIONS and stack and not section:
            section = text[1:]
        elif text.startswith(b")") and section and text[1:] == section:
            section = b""
        elif stack:
            try:
                _take(stack[-1], section, text)
            except (ValueError, OverflowError) as error:
                raise source.wrong(f"line {line_number}: {error}") from None
        elif text:
            raise source.wrong(
                f"line {line_number} stands outside of all particles: {_shown(text)}"
            )
    if stack or section:
        what = section.decode() or "a particle"
        raise source.wrong(f"{what} is not ended: the file is incomplete")


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))


def _take(node: _Node, section: bytes, text: bytes) -> None:
    """What a line says of a particle."""
    key, is_story, value = text.partition(b"=")
    key = key.rstrip()
    if not is_story:
        if text and not section:
            raise ValueError(f"it is no part of a particle: {_shown(text)}")
    elif section == b"Dynamics":
        if key in _LENGTHS:
            node.numbers[key] = _numbers(key, value, _LENGTHS[key])
        elif key == b"system_time":
            node.time = _time(value)
    elif section == b"Star" and key in _SCALES:
        (node.scales[key],) = _numbers(key, value, 1)
    elif not section and key == b"i":
        node.id = int(value)
        if not -(2**63) <= node.id < 2**63:
            raise ValueError("a particle's number i is beyond 64 bits")


def _time(value: bytes) -> float:
    """A time, also of extended precision: the whole part, and 2^64 times the rest in base 16."""
    words = value.split()
    if len(words) == 2:
        return int(words[0]) + int(words[1], 16) / 2**64
    return _numbers(b"system_time", value, 1)[0]


def _numbers(key: bytes, value: bytes, count: int) -> list[float]:
    words = value.split()
    if len(words) != count:
        raise ValueError(f"{len(words)} numbers instead of {count}")
    return [number(key.decode(), word.decode("utf-8", "replace")) for word in words]


def _snapshot(source: Source, root: _Node, stars: _Stars) -> Snapshot:
    rows = stars.rows()
    is_numbered = len(rows) > 0 and len(stars.ids) == len(rows)
    mass, pos, vel = (
        np.ascontiguousarray(part) for part in (rows[:, 0], rows[:, 1:4], rows[:, 4:])
    )
    ids = np.array(stars.ids, np.int64) if is_numbered else None
    return Snapshot(mass, pos, vel, time=root.time, ids=ids, units=_units(source, root.scales))


def _units(source: Source, scales: dict[bytes, float]) -> Units | None:
    mass, length, time = (scales.get(name, -1.0) for name in _SCALES)
    if mass <= 0 or length <= 0 or mass == length == time == 1 or mass == length == -time == 1:
        return None  # 1 is what they are before a program of Starlab sets them
    try:
        units = Units(f"{1 / mass!r} Msun", f"{1 / length!r} Rsun")
    except ArgumentError as error:
        raise source.wrong(str(error)) from None
    if time > 0 and abs(1 / time / units.value("time", "Myr") - 1) > _ROUNDED:
        warnings.warn(
            f"{source.name}: by mass_scale and size_scale, and G = 1 as in all of Starlab, a time "
            f"of 1 is {units.value('time', 'Myr'):.6g} Myr: time_scale, by which it is "
            f"{1 / time:.6g} Myr, is left out",
            Grape6Warning,
            stacklevel=2,
        )
    return units


def write(content: Snapshot, _comment: str) -> Iterator[bytes]:
    """The lines of a file; the root lies at the origin."""
    check_g_one(content.units, "Starlab")
    scales = "".join(
        f"  {name.decode()}  =  {1 / content.units.value(*of)!r}\n" for name, of in _SCALES.items()
    ) if content.units else ""  # fmt: skip
    n = len(content.mass)
    total = float(np.sum(content.mass))
    yield _ROOT.format(n=n, time=content.time or 0.0, mass=total, scales=scales).encode()
    yield from lines_of(content, lambda number_, row: _BODY.format(number_, *row))
    yield b")Particle\n"
