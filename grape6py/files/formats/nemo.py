"""NEMO's snapshots: structured binary files, of items with a type, a tag and dimensions.

An item is a magic number of two bytes, which also tells the order of bytes; its type and tag, each
ended by a zero byte; the dimensions and a zero, if it has such; its data. A set of type ``(`` holds
items up to one of type ``)``. Known: Barnes, Hut and Teuben, NEMO, filestruct(3NEMO) and
snapshot(5NEMO); a file may have many snapshots.

    SnapShot
      Parameters:  Nobj (int), Time (double)
      Particles:   CoordSystem (int), Mass [n], PhaseSpace [n][2][3], Key [n] (int)
                   or Position [n][3] and Velocity [n][3]
"""

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import AnyArray, Floats, Untyped
from grape6py.files.formats.bodies import Snapshot
from grape6py.files.formats.source import Source, chosen, copy_columns, of_this_machine

_SINGLE, _PLURAL = 0o011 << 8 | 0o222, 0o013 << 8 | 0o222
_MAGIC = {struct.pack(order + "H", magic) for magic in (_SINGLE, _PLURAL) for order in "<>"}
_TYPES = {"a": "u1", "c": "u1", "b": "u1", "s": "i2", "h": "u2", "i": "i4", "l": "i8", "f": "f4",
          "d": "f8"}  # fmt: skip
_BEGIN, _END = "([", ")]"
_DEEPEST = 8
_CARTESIAN = 0o201402  # CSCode(Cartesian, 3, 2) of snapshot.h
_PIECE = 1 << 16  # bodies written at a time


class _Item(NamedTuple):
    """One item: where its data are, or what is in it."""

    tag: str
    kind: str
    dims: tuple[int, ...]
    offset: int
    swapped: bool
    items: dict[str, list[Untyped]]

    @property
    def dtype(self) -> np.dtype[np.void]:
        return of_this_machine(_TYPES[self.kind], self.swapped)

    @property
    def values(self) -> int:
        return math.prod(self.dims)


def recognises(source: Source) -> bool:
    """Whether a file begins with a magic number."""
    return source.head[:2] in _MAGIC and source.head[2:3] in [b"c", b"(", b"s", b"i"]


def read(source: Source, which: int) -> Snapshot:
    """One of the snapshots that have particles."""
    return chosen(source, _snapshots(source), which, lambda found: _snapshot(source, *found))


def _snapshots(source: Source) -> Iterator[tuple[_Item, _Item | None]]:
    """Those with particles, each with its masses, which may stand in an earlier one alone."""
    mass, offset = None, 0
    while offset < source.size:
        item, offset = _item(source, offset, 0)
        if item.tag == "SnapShot" and "Particles" in item.items:
            particles = item.items["Particles"][0].items
            mass = particles["Mass"][0] if "Mass" in particles else mass
            yield item, mass


def _snapshot(source: Source, item: _Item, mass_item: _Item | None) -> Snapshot:
    particles = item.items["Particles"][0].items
    parameters = item.items["Parameters"][0].items if "Parameters" in item.items else {}
    time = _number(source, parameters["Time"][0]) if "Time" in parameters else None
    stated = int(_number(source, parameters["Nobj"][0])) if "Nobj" in parameters else None
    if stated == 0:
        return Snapshot(np.empty(0), np.empty((0, 3)), np.empty((0, 3)), time=time)
    n = mass_item.values if mass_item is not None else stated
    if n is None or n < 0 or stated not in (None, n):
        raise source.wrong(f"Nobj is {stated}, and there are {n} masses")
    if "PhaseSpace" in particles:
        both = particles["PhaseSpace"][0]
        _check(source, both, (n, 2, 3), "fd")
        pos, vel = np.empty((n, 3)), np.empty((n, 3))
        for some, values in source.pieces(both.offset, np.dtype((both.dtype, 6)), n, "PhaseSpace"):
            copy_columns((pos, vel), some, values)
    elif "Position" in particles:
        pos = _array(source, particles["Position"][0], (n, 3))
        if "Velocity" in particles:
            vel = _array(source, particles["Velocity"][0], (n, 3))
        else:
            vel = source.absent_velocities(n, "PhaseSpace or Velocity")
    else:
        raise source.wrong("a snapshot has neither PhaseSpace nor Position")
    if mass_item is not None:
        mass = _array(source, mass_item, (n,))
    else:
        mass = source.absent_masses(n, "Mass, in any snapshot")
    ids = None
    if "Key" in particles:
        key = particles["Key"][0]
        _check(source, key, (n,), "silb")
        ids = source.ints(key.offset, key.dtype, n, "Key")
    return Snapshot(mass, pos, vel, time=time, ids=ids)


def _array(source: Source, item: _Item, shape: tuple[int, ...]) -> Floats:
    _check(source, item, shape, "fd")
    return source.floats(item.offset, item.dtype, shape, item.tag)


def _number(source: Source, item: _Item) -> float:
    _check(source, item, (1,), "silfd")
    value: AnyArray = source.values(item.offset, item.dtype, 1, item.tag)
    if not np.isfinite(value[0]):
        raise source.wrong(f"{item.tag} is {value[0]}")
    return float(value[0])


def _check(source: Source, item: _Item, shape: tuple[int, ...], kinds: str) -> None:
    if item.kind not in kinds or item.values != math.prod(shape):
        raise source.wrong(
            f"{item.tag} is {item.dims} of type {item.kind!r}, not {shape} of {kinds!r}"
        )


def _item(source: Source, offset: int, depth: int) -> tuple[_Item, int]:
    """The item that begins somewhere, with all in it, and where it ends."""
    magic = source.read(offset, 2, "an item")
    swapped = struct.unpack("<H", magic)[0] not in (_SINGLE, _PLURAL)
    number = struct.unpack(">H" if swapped else "<H", magic)[0]
    if number not in (_SINGLE, _PLURAL):
        raise source.wrong(f"at byte {offset} no item of NEMO begins")
    kind, offset = _word(source, offset + 2)
    tag = ""
    if kind not in _END:
        tag, offset = _word(source, offset)
    dims: list[int] = []
    while number == _PLURAL:
        size = int(source.values(offset, ">i4" if swapped else "<i4", 1, "dimensions")[0])
        offset += 4
        if size == 0:
            break
        if size < 0 or len(dims) == 8:
            raise source.wrong(f"{tag} has the dimensions {[*dims, size]}")
        dims.append(size)
    item = _Item(tag, kind, tuple(dims) or (1,), offset, swapped, {})
    if kind in _BEGIN:
        if depth == _DEEPEST:
            raise source.wrong(f"sets in sets, more than {_DEEPEST} deep")
        while True:
            inner, offset = _item(source, offset, depth + 1)
            if inner.kind in _END:
                return item, offset
            item.items.setdefault(inner.tag, []).append(inner)
    if kind not in _END:
        if kind not in _TYPES:
            raise source.wrong(f"{tag} is of the unknown type {kind!r}")
        size = item.values * item.dtype.itemsize
        source.check(offset, size, tag)
        offset += size
    return item, offset


def _word(source: Source, offset: int) -> tuple[str, int]:
    """A text that a zero byte ends."""
    data = source.read(offset, min(64, source.size - offset), "a name")
    word, is_ended, _ = data.partition(b"\0")
    if not is_ended or not word:
        raise source.wrong(f"at byte {offset} is no name")
    return word.decode("latin-1"), offset + len(word) + 1


def write(content: Snapshot, comment: str) -> Iterator[bytes]:
    """A file of one snapshot; of this machine's order of bytes."""
    n = len(content.mass)
    if comment:
        text = comment.encode() + b"\0"
        yield _head("c", "Headline", len(text)) + text
    yield _head("(", "SnapShot") + _head("(", "Parameters")
    yield _head("i", "Nobj") + struct.pack("i", n)
    yield _head("d", "Time") + struct.pack("d", content.time or 0.0) + _head(")")
    yield _head("(", "Particles") + _head("i", "CoordSystem") + struct.pack("i", _CARTESIAN)
    if n:
        yield _head("d", "Mass", n) + np.ascontiguousarray(content.mass).tobytes()
        yield _head("d", "PhaseSpace", n, 2, 3)
        for first in range(0, n, _PIECE):
            some = slice(first, first + _PIECE)
            yield np.stack([content.pos[some], content.vel[some]], axis=1).tobytes()
        if content.ids is not None:
            kind = "l" if content.ids.max() >= 2**31 or content.ids.min() < -(2**31) else "i"
            yield _head(kind, "Key", n) + content.ids.astype(_TYPES[kind]).tobytes()
    yield _head(")") + _head(")")


def _head(kind: str, tag: str = "", *dims: int) -> bytes:
    """What stands before the data of an item."""
    head = struct.pack("H", _PLURAL if dims else _SINGLE) + kind.encode() + b"\0"
    head += tag.encode() + b"\0" if tag else b""
    return head + struct.pack(f"{len(dims) + 1}i", *dims, 0) if dims else head
