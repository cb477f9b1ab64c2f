"""Parts of trees, from one rank to another (csrc/shared/tree_share.h, tree/share.cu): how they are
packed, and joined to another rank's tree for a sum.

Arrays are those of the tree's device. What is found out here are numbers of cells and of particles,
and where they lie.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grape6py._arrays.kinds import AnyArray, DeviceArray, Floats
from grape6py._lib import codes
from grape6py.cuda.job import Job, pieces
from grape6py.cuda.tree.build import double_of, ffi, numbers

if TYPE_CHECKING:
    from grape6py.cuda.launcher import TreeLauncher
    from grape6py.cuda.tree.build import TreeCells

# Fields of a job that a part has a piece of, with the bytes of a row, in their order.
CELLS = {
    "cell": ffi.sizeof("struct tree_cell"),
    "far": ffi.sizeof("struct tree_cell_multipole"),
    "place": ffi.sizeof("struct tree_cell_centre"),
    "motion": ffi.sizeof("struct tree_motion"),
}
PARTICLES = {"high": 16, "low": 16, "velocity": 16}
MOVING = "motion", "velocity"
HEADER = ffi.sizeof("struct subtree_header")
MOST = 2**31 - 65  # cells, or particles, that have numbers


def keys_of(gpu: TreeLauncher, pos: DeviceArray, whole: Floats) -> DeviceArray:
    """Hilbert keys, uint64, of positions in the box of all ranks' particles.

    `pos`, shape (n, 3), is contiguous and of float64; `whole` are the 12 numbers of a
    struct tree_whole.
    """
    job = Job(gpu, ffi, "tree_device_job", target_count=len(pos))
    key = gpu.xp.empty(len(pos), np.uint64)
    job.set(targets=pos, key=key, whole=gpu.put(np.array(whole, np.float64)))
    job.launch("tree_whole_keys", len(pos), 256)
    return key


def extent_of(gpu: TreeLauncher, pos: DeviceArray, mass: DeviceArray) -> Floats:
    """Corners of the box of some particles, and their largest |mass|: shape (7,). Not all finite if
    a particle is not."""
    n = len(mass)
    if not n:
        return np.zeros(7)
    job = Job(gpu, ffi, "tree_device_job", n=n)
    status = ffi.new("struct tree_status *", {"low": [2**64 - 1] * 3})
    job.set(x=pos, m=mass, status=gpu.put(np.frombuffer(ffi.buffer(status), np.uint8)))
    job.launch("tree_extent", min(n, 1 << 18), 256)
    found = ffi.from_buffer("struct tree_status *", gpu.read(job.arrays["status"]))
    if found.bad:
        return np.full(7, np.nan)
    return np.array([*map(double_of, [*found.low, *found.high, found.mass])])


def regions_in(tree: TreeCells, last_acc: DeviceArray) -> DeviceArray:
    """Where the tree's own particles are, and their least last accelerations: shape (m, 7)."""
    count = pieces(tree.n, numbers.IN_LEVEL1)
    tree.set(region=tree.xp.empty((count, 7), np.float64), last=last_acc)
    tree.launch("tree_regions", 128 * count)
    found = tree.arrays["region"]
    tree.drop("region last")
    return found


# ---- packing ----------------------------------------------------------------------------------


def packed(tree: TreeCells) -> DeviceArray:
    """The bytes of a part: of the cells that are `opened`, and those in them."""
    xp, count = tree.xp, tree.cells
    tree.set(in_part=xp.zeros(count, np.int32), in_leaf=xp.zeros(count, np.int32))
    tree.launch("subtree_cells", count, 256)
    sums = [xp.cumsum(tree.arrays[name], dtype=np.int32) for name in ("in_part", "in_leaf")]
    ends = tree.gpu.read(xp.concatenate([each[-1:] for each in sums]))
    cells, particles = np.frombuffer(ends, np.int32).tolist()
    part = xp.empty(_bytes_of(cells, particles, bool(tree.fields.v)), np.uint8)
    tree.set(in_part=sums[0], in_leaf=sums[1], part=part)
    tree.launch("tree_pack", count, 256)
    tree.drop("in_part in_leaf part")
    return part


def _together(tree: TreeCells, arrays: Sequence[DeviceArray]) -> DeviceArray:
    """Arrays of bytes one after the other."""
    all_of_them = tree.xp.empty((sum(map(len, arrays)), *arrays[0].shape[1:]), np.uint8)
    at = 0
    for array in arrays:
        all_of_them[at : at + len(array)] = array
        at += len(array)
    return all_of_them


# ---- joining ----------------------------------------------------------------------------------


class Part(NamedTuple):
    """Pieces of a part, (rows, bytes of a row), by the names of fields; NumPy's or the device's."""

    cells: int
    particles: int
    pieces: dict[str, AnyArray]


def parts_of(tree: TreeCells, given: Sequence[AnyArray]) -> list[Part]:
    """Parts of other ranks' trees, without those that are empty. Raises ArgumentError."""
    found = [_part_of(tree, number, bytes_of) for number, bytes_of in enumerate(given)]
    parts = [part for part in found if part.cells]
    for have, more in (
        (tree.cells, sum(part.cells for part in parts)),
        (tree.n, sum(part.particles for part in parts)),
    ):
        if have + more > MOST:
            raise codes.from_code("MEMORY", "more than 2^31 cells or particles on one rank")
    return parts


def _part_of(tree: TreeCells, number: int, given: AnyArray) -> Part:
    if not len(given):
        return Part(0, 0, {})
    is_host = isinstance(given, np.ndarray)
    head = given[:HEADER].tobytes() if is_host else tree.gpu.read(given[:HEADER])
    if len(head) == HEADER:
        header = ffi.from_buffer("struct subtree_header *", head)
        cells, particles, moving = header.cells, header.particles, bool(header.moving)
        is_whole = header.bytes == len(given) == _bytes_of(cells, particles, moving)
        if is_whole and (moving or not tree.fields.v or not cells):
            return Part(cells, particles, _pieces(given, cells, particles, moving))
    raise codes.from_code("ARGUMENT", f"part {number} is none of a tree like this one")


def _pieces(given: AnyArray, cells: int, particles: int, moving: bool) -> dict[str, AnyArray]:
    pieces, at = {}, HEADER
    for rows, widths in (cells, CELLS), (particles, PARTICLES):
        for name, width in widths.items():
            if moving or name not in MOVING:
                pieces[name] = given[at : at + rows * width].reshape(rows, width)
                at += rows * width
    return pieces


def _bytes_of(cells: int, particles: int, moving: bool) -> int:
    """Of a part."""
    still = 0 if moving else CELLS["motion"] * cells + PARTICLES["velocity"] * particles
    all_pieces: int = sum(CELLS.values()) * cells + sum(PARTICLES.values()) * particles
    return int(HEADER) + all_pieces - still


@contextlib.contextmanager
def joined(tree: TreeCells, parts: Sequence[Part], place: str) -> Iterator[None]:
    """For a while, the arrays of a tree have those of the parts behind their own, and walks begin
    with all roots. `place`: the field with the cells' centres that the walk takes."""
    if not parts:
        yield
        return
    job = tree.fields
    cells = tree.cells + np.cumsum([0, *(part.cells for part in parts)])
    particles = tree.n + np.cumsum([0, *(part.particles for part in parts)])
    moved = [
        _renumbered(part.pieces["cell"].view(np.int32), int(cell), int(particle))
        for part, cell, particle in zip(parts, cells, particles, strict=False)
    ]
    fields = {"cell": "cell", "far": "far", place: "place", "high": "high", "low": "low"}
    fields |= {name: name for name in MOVING if job.v}
    own = {field: tree.arrays[field] for field in fields}
    longer = {}
    for field, piece in fields.items():
        more = moved if piece == "cell" else [part.pieces[piece] for part in parts]
        array = own[field]
        rows = array.view(np.uint8).reshape(len(array), more[0].shape[1] * more[0].itemsize)
        longer[field] = _together(tree, [rows, *_there(tree, [a.view(np.uint8) for a in more])])
    roots = np.array([*([0] if tree.cells else []), *cells[:-1]], np.int32)
    tree.set(**longer, roots=tree.gpu.put(roots))
    job.root_count = len(roots)
    job.joined_n, job.joined_cells = int(particles[-1]), int(cells[-1])
    try:
        yield
    finally:
        tree.set(**own, roots=None)
        job.root_count = job.joined_n = job.joined_cells = 0


def _renumbered(cell: AnyArray, cells: int, particles: int) -> AnyArray:
    """Cells of a part that has so many cells and particles before it."""
    is_inner = cell[:, 2:3] >= 0
    moved = cell.copy()
    moved[:, :2] = cell[:, :2] + particles
    moved[:, 2:] = cell[:, 2:] + is_inner * np.int32(cells)
    return moved


def _there(tree: TreeCells, pieces: Sequence[AnyArray]) -> list[DeviceArray]:
    """The same on the device, as few arrays."""
    if all(isinstance(piece, np.ndarray) for piece in pieces):
        return [tree.gpu.put(np.concatenate(pieces))]
    return [tree.gpu.put(piece) if isinstance(piece, np.ndarray) else piece for piece in pieces]
