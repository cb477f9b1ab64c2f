"""Gadget's binary snapshots, of its formats 1 and 2: blocks with their lengths around them.

The header has the numbers and masses of six types of particles, all of which are read; the blocks
are positions, velocities, ids and those masses that the header has not. In format 2 a label stands
before each. A snapshot may be in several files. Known: Springel 2005, MNRAS 364, 1105, and the
user guide of GADGET-2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import AnyArray
from grape6py.errors import ArgumentError
from grape6py.formats import parts
from grape6py.formats.bodies import Snapshot, narrowed
from grape6py.formats.source import Source, of_this_machine

_HEADER = np.dtype([
    ("npart", "<i4", 6), ("mass", "<f8", 6), ("time", "<f8"), ("redshift", "<f8"),
    ("flags", "<i4", 2), ("total", "<u4", 6), ("cooling", "<i4"), ("files", "<i4"),
    ("box", "<f8"), ("omega", "<f8", 2), ("hubble", "<f8"), ("more", "<i4", 2),
    ("high", "<u4", 6), ("flags_of_others", "V16"),
    ("ours", "S4"), ("digest", "V8"), ("number", "<u4"),  # in Gadget's unused bytes: parts.Place
    ("rest", "V32"),
])  # fmt: skip
_OURS = b"gr6p"  # before the mark of one of several files
_BLOCKS = "POS VEL ID MASS".split()
_LABEL = 8  # bytes in the record before a block
_TYPE = 1  # of what is written: dark matter
_PIECE = 1 << 16  # bodies written at a time


class _Block(NamedTuple):
    offset: int
    size: int


def recognises(source: Source) -> bool:
    """Whether a record of 256 bytes begins the file."""
    return _begun(source) in (("<", False), (">", False))


def recognises_labelled(source: Source) -> bool:
    """Whether a label HEAD begins the file, and then such a record."""
    return _begun(source) in (("<", True), (">", True))


def _begun(source: Source) -> tuple[str, bool] | None:
    """Order of bytes, and whether blocks have labels, if the file begins with a header."""
    head = source.head
    for order in "<>":
        mark = struct.pack(order + "i", 256)
        if head[:4] == mark == head[260:264]:
            return order, False
        label = struct.pack(order + "i", _LABEL)
        if head[:4] == label == head[12:16] and head[4:8] == b"HEAD" and head[16:20] == mark:
            return order, True
    return None


def head(source: Source) -> parts.Head:
    """What a file says of itself and of its snapshot."""
    blocks, swapped = _blocks(source)
    found = _header(source, blocks, swapped)
    is_marked = found["ours"] == _OURS
    universe = found["time"], found["redshift"], found["omega"][0], found["hubble"]
    return parts.Head(
        name=source.name,
        counts=_integers(found["npart"]),
        totals=_integers(found["total"]),
        files=int(found["files"]),
        time=float(found["time"]),
        units=None,
        has_ids="ID" in blocks,
        expansion=parts.expansion(source, *map(float, universe)),
        mark=parts.mark(found["digest"].tobytes(), int(found["number"])) if is_marked else "",
    )


def _header(source: Source, blocks: dict[str, _Block], swapped: bool) -> np.void:
    kind = of_this_machine(_HEADER, swapped)
    found: np.void = source.values(blocks["HEAD"].offset, kind, 1, "the header")[0]
    return found


def _integers(values: AnyArray) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def rows(source: Source, begin: int, end: int) -> Snapshot:
    """Particles of all types, in the file's order, from one number to another."""
    blocks, swapped = _blocks(source)
    found = _header(source, blocks, swapped)
    counts = _integers(found["npart"])
    n, some = sum(counts), slice(begin, end)
    pos = _vectors(source, blocks, "POS", n, some, swapped)
    if "VEL" in blocks:
        vel = _vectors(source, blocks, "VEL", n, some, swapped)
    else:
        vel = source.absent_velocities(end - begin, "block VEL")
    ids = None
    if "ID" in blocks:
        size = blocks["ID"].size
        if size not in (4 * n, 8 * n):
            raise source.wrong(f"the block ID has {size} bytes, for {n} particles")
        kind = of_this_machine("u4" if size == 4 * n else "i8", swapped)
        offset = blocks["ID"].offset + size // n * begin
        ids = source.ints(offset, kind, end - begin, "ID")
        ids = ids.view(np.uint64) if ids.min() < 0 else ids
    mass = _masses(source, blocks, counts, found["mass"], some, swapped)
    return Snapshot(mass, pos, vel, ids=ids)


LAYOUT = parts.Layout(head, rows)


def _blocks(source: Source) -> tuple[dict[str, _Block], bool]:
    """Where the blocks are, by their labels, and whether bytes are swapped."""
    begun = _begun(source)
    if begun is None:
        raise source.wrong("it does not begin with the header of a Gadget file")
    order, has_labels = begun
    found: dict[str, _Block] = {}
    offset, names, label = 0, iter(["HEAD", *_BLOCKS]), ""
    while offset < source.size and (has_labels or len(found) <= len(_BLOCKS)):
        (size,) = struct.unpack(order + "I", source.read(offset, 4, "a block"))
        source.check(offset + 4, size + 4, f"the block {label}")
        after = source.read(offset + 4 + size, 4, "a block")
        if struct.unpack(order + "I", after)[0] != size:
            raise source.wrong(f"the block at byte {offset} has two different lengths")
        if has_labels and not label:
            if size != _LABEL:
                raise source.wrong(f"at byte {offset} no label of a block stands")
            label = source.read(offset + 4, 4, "a label").decode("latin-1").strip()
        else:
            name = label if has_labels else next(names)
            found.setdefault(name, _Block(offset + 4, size))
            label = ""
        offset += size + 8
    if "HEAD" not in found:
        raise source.wrong("there is no block HEAD")
    return found, order == ">"


def _vectors(
    source: Source, blocks: dict[str, _Block], name: str, n: int, rows: slice, swapped: bool
) -> AnyArray:
    block = blocks.get(name, _Block(0, 0))
    if block.size not in (12 * n, 24 * n):
        raise source.wrong(f"the block {name} has {block.size} bytes, for {n} particles")
    kind = of_this_machine("f4" if block.size == 12 * n else "f8", swapped)
    offset = block.offset + block.size // n * rows.start
    return source.floats(offset, kind, (rows.stop - rows.start, 3), name)


def _masses(
    source: Source,
    blocks: dict[str, _Block],
    counts: Sequence[int],
    table: AnyArray,
    rows: slice,
    swapped: bool,
) -> AnyArray:
    """Those of the block, which are of the types without one in the header, and of the header."""
    own = [0 if mass else n for n, mass in zip(counts, table, strict=True)]
    k, block = sum(own), blocks.get("MASS")
    if k and block is not None and block.size not in (4 * k, 8 * k):
        raise source.wrong(f"the block MASS does not have the masses of {k} particles")
    found = []
    for of_type, some in parts.overlap(counts, rows.start, rows.stop):
        n = some.stop - some.start
        if table[of_type] or block is None:
            of_header = float(table[of_type])
            found.append(
                np.full(n, of_header) if of_header else source.absent_masses(n, "block MASS")
            )
            continue
        kind = of_this_machine("f4" if block.size == 4 * k else "f8", swapped)
        first = sum(own[:of_type]) + some.start
        found.append(source.floats(block.offset + first * kind.itemsize, kind, (n,), "MASS"))
    return found[0] if len(found) == 1 else np.concatenate(found)


def write(content: Snapshot, comment: str, place: parts.Place | None = None) -> Iterator[bytes]:
    """A file of format 1, in single precision as all readers know it."""
    del comment
    yield from _written(content, place, has_labels=False)


def write_labelled(
    content: Snapshot, comment: str, place: parts.Place | None = None
) -> Iterator[bytes]:
    """A file of format 2."""
    del comment
    yield from _written(content, place, has_labels=True)


def _written(content: Snapshot, place: parts.Place | None, has_labels: bool) -> Iterator[bytes]:
    n = len(content.mass)
    if 12 * n >= 2**31:
        raise ArgumentError(f"{n} bodies are too many for a block of a Gadget file: take HDF5")
    ids = np.arange(1, n + 1) if content.ids is None else content.ids
    header = np.zeros(1, _HEADER)
    header["npart"][0, _TYPE] = header["total"][0, _TYPE] = n
    header["time"], header["files"], header["hubble"] = content.time or 0.0, 1, 1.0
    largest = ids.max(initial=0)
    if place is not None:
        largest = place.largest_id
        header["files"], header["ours"], header["number"] = place.files, _OURS, place.number
        header["digest"] = np.void(place.digest)
        header["total"][0, _TYPE], header["high"][0, _TYPE] = place.total % 2**32, place.total >> 32
    kind = "<u8" if largest >= 2**32 else "<u4"
    arrays = [("POS ", content.pos, "<f4"), ("VEL ", content.vel, "<f4"), ("ID  ", ids, kind),
              ("MASS", content.mass, "<f4")]  # fmt: skip
    for label, array, dtype in [("HEAD", header, _HEADER.str), *arrays]:
        size = array.nbytes if label == "HEAD" else array.size * np.dtype(dtype).itemsize
        mark = struct.pack("<I", size)
        if has_labels:
            yield struct.pack("<I4sII", _LABEL, label.encode(), size + 8, _LABEL)
        yield mark
        if label == "HEAD":
            yield header.tobytes()
        else:
            for first in range(0, len(array), _PIECE):
                yield narrowed(array[first : first + _PIECE], dtype, label.strip()).tobytes()
        yield mark
