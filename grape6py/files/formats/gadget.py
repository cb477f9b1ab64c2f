"""Gadget's binary snapshots, of its formats 1 and 2: blocks with their lengths around them.

The header has the numbers and masses of six types of particles, all of which are read; the blocks
are positions, velocities, ids and those masses that the header has not. In format 2 a label stands
before each. A snapshot may be in several files. Known: Springel 2005, MNRAS 364, 1105, and the
user guide of GADGET-2.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from grape6py._arrays.kinds import AnyArray, Floats
from grape6py.errors import ArgumentError
from grape6py.files.formats import parts
from grape6py.files.formats.bodies import Snapshot, narrowed_pieces
from grape6py.files.formats.source import Source, of_this_machine

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


class _Blocks(NamedTuple):
    """Where the data of blocks begin, and how many bytes they have, by the labels of blocks."""

    source: Source
    swapped: bool
    found: dict[str, tuple[int, int]]

    def header(self) -> np.void:
        kind = of_this_machine(_HEADER, self.swapped)
        found: np.void = self.source.values(self.found["HEAD"][0], kind, 1, "the header")[0]
        return found

    def numbers(self, name: str, count: int, first: int, *kinds: str) -> tuple[int, np.dtype[Any]]:
        """Where the first one wanted of `count` numbers is, and which of some kinds they are."""
        begin, size = self.found.get(name, (0, 0))
        sizes = [count * np.dtype(kind).itemsize for kind in kinds]
        if size not in sizes:
            raise self.source.wrong(f"the block {name} has {size} bytes, for {count} numbers")
        kind = of_this_machine(kinds[sizes.index(size)], self.swapped)
        return begin + first * kind.itemsize, kind

    def floats(self, name: str, count: int, first: int, shape: tuple[int, ...]) -> Floats:
        offset, kind = self.numbers(name, count, first, "f4", "f8")
        return self.source.floats(offset, kind, shape, name)


def recognises(source: Source, *, has_labels: bool = False) -> bool:
    """Whether a record of 256 bytes begins the file, in format 2 after a label HEAD."""
    return _begun(source) in (("<", has_labels), (">", has_labels))


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
    blocks = _blocks(source)
    found = blocks.header()
    is_marked = found["ours"] == _OURS
    universe = found["time"], found["redshift"], found["omega"][0], found["hubble"]
    return parts.Head(
        name=source.name,
        counts=tuple(found["npart"].tolist()),
        totals=tuple(found["total"].tolist()),
        files=int(found["files"]),
        time=float(found["time"]),
        units=None,
        has_ids="ID" in blocks.found,
        expansion=parts.expansion(source, *map(float, universe)),
        mark=parts.mark(found["digest"].tobytes(), int(found["number"])) if is_marked else "",
    )


def rows(source: Source, begin: int, end: int) -> Snapshot:
    """Particles of all types, in the file's order, from one number to another."""
    blocks = _blocks(source)
    header = blocks.header()
    counts = header["npart"].tolist()
    n, of_all = end - begin, sum(counts)
    pos = blocks.floats("POS", 3 * of_all, 3 * begin, (n, 3))
    if "VEL" in blocks.found:
        vel = blocks.floats("VEL", 3 * of_all, 3 * begin, (n, 3))
    else:
        vel = source.absent_velocities(n, "block VEL")
    ids = None
    if "ID" in blocks.found:
        ids = source.ints(*blocks.numbers("ID", of_all, begin, "u4", "i8"), n, "ID")
        ids = ids.view(np.uint64) if ids.min() < 0 else ids
    return Snapshot(_masses(blocks, counts, header["mass"], begin, end), pos, vel, ids=ids)


LAYOUT = parts.Layout(head, rows)


def _blocks(source: Source) -> _Blocks:
    begun = _begun(source)
    if begun is None:
        raise source.wrong("it does not begin with the header of a Gadget file")
    order, has_labels = begun
    found: dict[str, tuple[int, int]] = {}
    offset, names, label = 0, iter(["HEAD", *_BLOCKS]), ""
    while offset < source.size and (has_labels or len(found) <= len(_BLOCKS)):
        size, at = source.record(offset, order + "I", "block", f"the block {label}")
        if has_labels and not label:
            if size != _LABEL:
                raise source.wrong(f"at byte {offset} no label of a block stands")
            label = source.read(at, 4, "a label").decode("latin-1").strip()
        else:
            found.setdefault(label if has_labels else next(names), (at, size))
            label = ""
        offset += size + 8
    if "HEAD" not in found:
        raise source.wrong("there is no block HEAD")
    return _Blocks(source, order == ">", found)


def _masses(
    blocks: _Blocks, counts: Sequence[int], table: AnyArray, begin: int, end: int
) -> Floats:
    """Those of the block, which are of the types without one in the header, and of the header."""
    own = [0 if mass else n for n, mass in zip(counts, table, strict=True)]
    found = []
    for of_type, some in parts.overlap(counts, begin, end):
        n = some.stop - some.start
        if own[of_type] and "MASS" in blocks.found:
            found.append(blocks.floats("MASS", sum(own), sum(own[:of_type]) + some.start, (n,)))
        elif mass := float(table[of_type]):
            found.append(np.full(n, mass))
        else:
            found.append(blocks.source.absent_masses(n, "block MASS"))
    return found[0] if len(found) == 1 else np.concatenate(found)


def write(
    content: Snapshot, _comment: str, place: parts.Place | None = None, *, has_labels: bool = False
) -> Iterator[bytes]:
    """A file of format 1, or of format 2, in single precision as all readers know it."""
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
    for label, array, dtype in (
        ("HEAD", header, _HEADER), ("POS ", content.pos, "<f4"), ("VEL ", content.vel, "<f4"),
        ("ID  ", ids, "<u8" if largest >= 2**32 else "<u4"), ("MASS", content.mass, "<f4"),
    ):  # fmt: skip
        size = array.size * np.dtype(dtype).itemsize
        mark = struct.pack("<I", size)
        if has_labels:
            yield struct.pack("<I4sII", _LABEL, label.encode(), size + 8, _LABEL)
        yield mark
        yield from narrowed_pieces(array, dtype, label.strip())
        yield mark
