"""Starlab's dyn: a text of nested particles, each with what is told of it.

A node's position and velocity are relative to its parent's, so that those of a star are summed up
to the root. ``(Star`` of the root has the units: a mass of 1 in these is 1 / mass_scale solar
masses, lengths are in 1 / size_scale solar radii, times in 1 / time_scale Myr. A file may have many
snapshots. Known: Portegies Zwart and others 2001, MNRAS 321, 199, appendix, and the files
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grape6py.errors import ArgumentError
from grape6py.formats.bodies import Snapshot
from grape6py.formats.source import Source
from grape6py.formats.table import number
from grape6py.units import Units

_SECTIONS = ("Log", "Dynamics", "Hydro", "Star", "Particle")
_DEEPEST = 64
_SCALES = {"mass_scale": ("mass", "Msun"), "size_scale": ("length", "Rsun"),
           "time_scale": ("time", "Myr")}  # fmt: skip
_LINES = 4096  # of bodies written at a time
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


class _Node:
    """A particle of the tree, under way."""

    def __init__(self) -> None:
        self.mass = 0.0
        self.pos, self.vel = np.zeros(3), np.zeros(3)
        self.id: int | None = None
        self.scales: dict[str, float] = {}
        self.time: float | None = None
        self.is_leaf = True
        self.first = 0  # row of the first star in it


def recognises(source: Source) -> bool:
    """Whether a text begins with a particle."""
    return source.head.lstrip().startswith(b"(Particle")


def read(source: Source, which: int) -> Snapshot:
    """The stars of one of the snapshots."""
    found = []
    for snapshot in _snapshots(source):
        found.append(snapshot)
        if which >= 0 and len(found) > which:
            return snapshot
        if which < 0 and len(found) > -which:
            del found[0]
    if which >= 0 or len(found) < -which:
        raise source.wrong(f"it has {len(found)} snapshots, and not number {which}")
    return found[which]


def _snapshots(source: Source) -> Iterator[Snapshot]:
    source.file.seek(0)
    stack: list[_Node] = []
    section = ""
    rows: list[tuple[float, np.ndarray, np.ndarray, int | None]] = []
    for line_number, line in enumerate(source.file, 1):
        text = line.decode("utf-8", "replace").strip()
        if section == "Log" and text != ")Log":
            continue
        if text == "(Particle" and not section:
            if stack:
                stack[-1].is_leaf = False
            if len(stack) == _DEEPEST:
                raise source.wrong(f"line {line_number}: nodes in nodes, more than {_DEEPEST} deep")
            stack.append(_Node())
            stack[-1].first = len(rows)
        elif text == ")Particle" and stack and not section:
            node = stack.pop()
            if node.is_leaf and stack:
                rows.append((node.mass, node.pos, node.vel, node.id))
            else:
                for _, pos, vel, _ in rows[node.first :]:
                    pos += node.pos
                    vel += node.vel
            if not stack:
                yield _snapshot(source, node, rows)
                rows = []
        elif text.startswith("(") and text[1:] in _SECTIONS and stack and not section:
            section = text[1:]
        elif text.startswith(")") and section and text[1:] == section:
            section = ""
        elif stack:
            _take(source, line_number, stack[-1], section, text)
        elif text:
            raise source.wrong(f"line {line_number} stands outside of all particles: {text[:40]!r}")
    if stack or section:
        raise source.wrong(f"{section or 'a particle'} is not ended: the file is incomplete")


def _take(source: Source, line_number: int, node: _Node, section: str, text: str) -> None:
    """What a line says of a particle."""
    key, is_story, value = text.partition("=")
    key, words = key.strip(), value.split()
    if not is_story:
        if text and not section:
            raise source.wrong(f"line {line_number} is no part of a particle: {text[:40]!r}")
        return
    try:
        if section == "Dynamics":
            if key == "m":
                node.mass = number(key, *_words(words, 1))
            elif key in ("r", "v"):
                vector = node.pos if key == "r" else node.vel
                vector[:] = [number(key, word) for word in _words(words, 3)]
            elif key == "system_time":
                node.time = _time(words)
        elif section == "Star" and key in _SCALES:
            node.scales[key] = number(key, *_words(words, 1))
        elif not section and key == "i":
            node.id = int(*_words(words, 1))
    except ValueError as error:
        raise source.wrong(f"line {line_number}: {error}") from None


def _time(words: list[str]) -> float:
    """A time, also of extended precision: the whole part, and 2^64 times the rest in base 16."""
    if len(words) == 2:
        return int(words[0]) + int(words[1], 16) / 2**64
    return number("system_time", *_words(words, 1))


def _words(words: list[str], count: int) -> list[str]:
    if len(words) != count:
        raise ValueError(f"{len(words)} numbers instead of {count}")
    return words


def _snapshot(
    source: Source,
    root: _Node,
    rows: list[tuple[float, np.ndarray, np.ndarray, int | None]],
) -> Snapshot:
    mass, pos, vel, numbers = zip(*rows, strict=True) if rows else ((), (), (), ())
    n = len(mass)
    ids = None
    if n and None not in numbers:
        ids = np.array(numbers, dtype=object)
        if (ids < -(2**63)).any() or (ids >= 2**63).any():
            raise source.wrong("a particle's number i is beyond 64 bits")
        ids = ids.astype(np.int64)
    scales = [root.scales.get(name, -1.0) for name in _SCALES]
    units = None
    if min(scales) > 0:
        sizes = [f"{1 / s!r} {name}" for s, (_, name) in zip(scales, _SCALES.values(), strict=True)]
        try:
            units = Units(sizes[0], sizes[1], time=sizes[2])
        except ArgumentError as error:
            raise source.wrong(str(error)) from None
    return Snapshot(np.array(mass, float), np.array(pos, float).reshape(n, 3),
                    np.array(vel, float).reshape(n, 3), time=root.time, ids=ids,
                    units=units)  # fmt: skip


def write(content: Snapshot, comment: str) -> Iterator[bytes]:
    """The lines of a file; the root lies at the origin."""
    del comment
    scales = "".join(
        f"  {name}  =  {1 / content.units.value(*of)!r}\n" for name, of in _SCALES.items()
    ) if content.units else ""  # fmt: skip
    n = len(content.mass)
    total = float(np.sum(content.mass))
    yield _ROOT.format(n=n, time=content.time or 0.0, mass=total, scales=scales).encode()
    ids = np.arange(1, n + 1) if content.ids is None else content.ids
    for first in range(0, n, _LINES):
        some = slice(first, first + _LINES)
        table = np.column_stack([content.mass[some], content.pos[some], content.vel[some]])
        bodies = zip(ids[some].tolist(), table.tolist(), strict=True)
        yield "".join(_BODY.format(number_, *row) for number_, row in bodies).encode()
    yield b")Particle\n"
