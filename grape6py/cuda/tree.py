"""The octree on a graphics card: its memory, and the order of its kernels (tree.cu).

Nothing is computed here. Sorting and running sums are CuPy's, which are CUB's. `CardTree` works on
a machine that has arrays (CuPy, or NumPy in tests) and launches kernels by name.
"""

import ctypes
import functools
from dataclasses import dataclass

import numpy as np

from grape6py import errors
from grape6py.cuda import source

GROUP, SUPER, HYPER = 32, 16, 8  # targets, groups, supers: as in csrc/tree.h
IN_SUPER, IN_HYPER = GROUP * SUPER, GROUP * SUPER * HYPER
CELL_BLOCK, CELL_LEVELS, TERMS = 1024, 22, 64
TOP_LEVELS = 4  # of the tree, that one CUDA block does
LIST_BYTES = 96  # a particle, of the lists of groups that are taken at once
PART_SLOTS = 1024  # parts of groups that are taken at once
NO_MEMORY = -29

# Bytes of struct tree_cell, tree_moments, tree_far, tree_place, tree_group, tree_box,
# tree_opening.
CELL, MOMENTS, FAR, PLACE, GROUP_BYTES, BOX, OPENING = 16, 224, 80, 16, 60, 136, 44

_pointer, _int, _float, _double = ctypes.c_void_p, ctypes.c_int32, ctypes.c_float, ctypes.c_double


def _structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


def _pointers(names):
    return [(name, _pointer) for name in names.split()]


Status = _structure(
    "Status",
    ("low", ctypes.c_uint64 * 3),
    ("high", ctypes.c_uint64 * 3),
    ("mass", ctypes.c_uint64),
    ("bad", _int),
    ("cells", _int),
    ("level_first", _int * 24),
    ("need", _int * 4),
    ("parts", _int * 2),
    ("too_long", _int),
    ("close", _int),
    *((name, ctypes.c_uint64) for name in "pairs points locals coincidences".split()),
)
LevelJob = _structure(
    "LevelJob", *_pointers("group local lists count"), ("room", _int * 3), ("padding", _int)
)
Job = _structure(
    "LevelJob", *_pointers("group local lists count"), ("room", _int * 3), ("padding", _int)
)
Opening = _structure(
    "Opening",
    ("by_theta_point", _float),
    ("by_theta_local", _float * 3),
    *((name, _float) for name in "bound_point bound_local size_weight".split()),
    *((name, _float) for name in "least_distance2 passed_on guard".split()),
    ("least_count", _int),
)
Job = _structure(
    "Job",
    *_pointers("x m targets self status box eps2 opening key sorted packed order high low levels"),
    *_pointers("counts summed cell moments far place target_order target_high target_low"),
    *_pointers("target_self rank last_acc"),
    ("level", LevelJob * 4),
    ("part", _pointer * 2),
    *_pointers("far_sum close acc pot last"),
    *((name, _double) for name in "eps2_given theta bound".split()),
    *((name, _int) for name in "n target_count blocks cell_room hypers supers groups".split()),
    *((name, _int) for name in "first_group parts part_room part_slots first_part".split()),
    *((name, _int) for name in "close_room order_of_expansion level_number padding".split()),
)


class Card:
    """CuPy on the current device."""

    def __init__(self):
        import cupy

        self.xp = cupy

    @functools.cached_property
    def _module(self):
        options = source.options("single")
        return self.xp.RawModule(code=source.read("tree.cu"), options=options)

    @functools.cache  # noqa: B019: a card lives as long as the process
    def _kernel(self, name):
        return self._module.get_function(name)

    def launch(self, name, blocks, threads, job):
        """Start a kernel on CuPy's current stream; the job is copied."""
        by_value = np.frombuffer(bytes(job), np.dtype((np.void, ctypes.sizeof(job))))
        self._kernel(name)((blocks,), (threads,), (by_value,))

    def address(self, array):
        return array.data.ptr

    def sort(self, keys):
        """Numbers of the keys in ascending order, equal ones in their own."""
        return self.xp.argsort(keys)


@dataclass
class Counts:
    """What a sum has done: pairs, cells on targets, cells on groups; and pairs left out."""

    pairs: int
    points: int
    locals: int
    coincidences: int


def _pieces(n, size):
    return -(-n // size)


class CardTree:
    """An octree of particles in a card's memory.

    Parameters
    ----------
    card : Card
    pos : array of float64, shape (n, 3)
    mass : array of float64, shape (n,)
    """

    def __init__(self, card, pos, mass):
        self._card, self._xp = card, card.xp
        self._pos, self._mass = pos, mass
        self.n = len(mass)
        self._cell_room = self.n // 6 + 4096
        # of lists: of hypers and supers, groups, parts of groups
        self._rooms = [4096, 0, 4096], [1024, 512, 512], [2048, 4096, 2048]
        self._build()

    def _new(self, shape, dtype=np.uint8):
        return self._xp.empty(shape, dtype)

    def _bytes(self, count, size):
        return self._new(max(count, 1) * size)

    def _set(self, job, **arrays):
        """Point fields of a job to arrays, which are kept."""
        for name, array in arrays.items():
            setattr(job, name, None if array is None else self._card.address(array))
            self._kept[name] = array

    def _read_status(self):
        words = self._kept["status"]
        return Status.from_buffer_copy(bytes(words.get() if hasattr(words, "get") else words))

    def _build(self):
        xp, card, n = self._xp, self._card, self.n
        self._kept = {}
        self._job = job = Job(n=n, blocks=n // CELL_BLOCK + 1, part_room=65536, close_room=65536)
        status = Status(low=(2**64 - 1,) * 3)
        self._set(
            job,
            x=self._pos,
            m=self._mass,
            status=xp.array(np.frombuffer(bytes(status), np.uint8)),
            box=self._new(BOX),
            eps2=self._new(1, np.float32),
            opening=self._new(OPENING),
            packed=self._new((n, 8), np.float32),
            key=self._new(n, np.uint64),
            sorted=self._new(n, np.uint64),
            high=self._new((n, 4), np.float32),
            low=self._new((n, 4), np.float32),
            levels=self._new(n, np.uint16),
            counts=self._new(CELL_LEVELS * job.blocks, np.int32),
        )
        card.launch("tree_extent", min(1024, _pieces(n, 256)), 256, job)
        card.launch("tree_make_box", 1, 32, job)
        card.launch("tree_keys", _pieces(n, 256), 256, job)
        self._set(job, order=card.sort(self._kept["key"]))
        card.launch("tree_gather", _pieces(n, 256), 256, job)
        card.launch("tree_count", job.blocks, CELL_BLOCK, job)
        self._set(job, summed=xp.cumsum(self._kept["counts"], dtype=np.int32))
        self._make_cells()

    def _make_cells(self):
        job, room = self._job, self._cell_room
        job.cell_room = room
        self._set(
            job,
            cell=self._bytes(room, CELL),
            moments=self._bytes(room, MOMENTS),
            far=self._bytes(room, FAR),
            place=self._bytes(room, PLACE),
        )
        self._card.launch("tree_cells", job.blocks, CELL_BLOCK, job)
        self._card.launch("tree_leaf_moments", _pieces(room, 128), 128, job)
        for job.level_number in range(CELL_LEVELS - 2, TOP_LEVELS - 1, -1):
            inside = min(8**job.level_number, self.n // 32 + 1)  # cells of the level, at most
            self._card.launch("tree_level_moments", min(1024, _pieces(inside, 128)), 128, job)
        job.level_number = TOP_LEVELS - 1
        self._card.launch("tree_top_moments", 1, 512, job)

    def forces(self, *, theta, order, eps2=0.0, bound=0.0):
        """Acc and pot of the particles themselves, in their order.

        Parameters
        ----------
        theta : float
        order : int
            Of expansions, 2 to 6; 0 for Barnes and Hut's walk.
        eps2 : float
        bound : float
            Of the error of a term as a share of the last acceleration; 0 for none.

        Returns
        -------
        acc, pot : arrays of float64
        Counts
        """
        job = self._job
        job.theta, job.order_of_expansion = theta, order
        job.eps2_given, job.bound = eps2, bound
        self._sum()
        status = self._read_status()
        while not self._enough_room(status):
            self._sum()
            status = self._read_status()
        if status.too_long or max(status.parts) > PART_SLOTS:
            status = self._parts_again(status)
        names = "pairs points locals coincidences".split()
        counts = Counts(*(getattr(status, name) for name in names))
        return self._kept["acc"], self._kept["pot"], counts

    def _enough_room(self, status):
        """Whether the cells and the lists of large groups did fit; if not, there is more now."""
        job, (large, small, _) = self._job, self._rooms
        if status.bad:
            raise errors.from_code(-6, f"particle {self.n - status.bad} is not finite")
        if status.parts[0] > job.groups // 16:  # short lists cost more than long ones
            small[:] = [2 * room for room in small]
        if status.cells > self._cell_room:
            self._cell_room = status.cells + status.cells // 16
            self._build()
            return False
        if status.need[0] <= large[0] and max(status.parts) <= job.part_room:
            return True
        large[0] = large[2] = max(large[0], status.need[0] * 5 // 4)
        job.part_room = max(job.part_room, 2 * max(status.parts))
        self._reset(status)
        return False

    def _parts_again(self, status):
        """All parts of groups, with lists that are long enough, a share of them at a time."""
        job, rooms = self._job, self._rooms[2]
        while True:
            rooms[:] = map(max, rooms, [need * 5 // 4 for need in status.need[1:]])
            self._level(3, PART_SLOTS)
            kept = status.parts[0]
            self._reset(status)
            status.parts[0] = kept
            self._write_status(status)
            for job.parts in (1, 2):
                count = self._read_status().parts[job.parts - 1]
                for job.first_part in range(0, min(count, job.part_room), PART_SLOTS):
                    self._part_groups()
            job.parts = job.first_part = 0
            status = self._read_status()
            if status.parts[1] > job.part_room:
                raise errors.from_code(NO_MEMORY, "the lists of too many targets are too long")
            if not status.too_long:
                return status

    def _part_groups(self):
        self._card.launch("tree_part_groups", PART_SLOTS // 4, 128, self._job)
        self._groups(PART_SLOTS)

    def _write_status(self, status):
        self._kept["status"][:] = self._xp.array(np.frombuffer(bytes(status), np.uint8))

    def _reset(self, status):
        """Clear what a sum counts."""
        for name in "too_long close pairs points locals coincidences".split():
            setattr(status, name, 0)
        status.need[:], status.parts[:] = (0, 0, 0, 0), (0, 0)
        self._write_status(status)

    def _sum(self):
        job, n = self._job, self.n
        order = job.order_of_expansion
        job.target_count = n
        sizes = [_pieces(n, IN_HYPER), _pieces(n, IN_SUPER), _pieces(n, GROUP), PART_SLOTS]
        job.hypers, job.supers, job.groups, job.part_slots = sizes
        self._set(job, far_sum=self._new((n, 4), np.float32), acc=self._new((n, 3), np.float64))
        self._set(job, pot=self._new(n, np.float64), close=self._new(job.close_room, np.int32))
        self._kept["part"] = [self._new(job.part_room, np.int32) for _ in range(2)]
        job.part[:] = [self._card.address(array) for array in self._kept["part"]]
        for level, count in enumerate(sizes):
            self._level(level, count)
        self._card.launch("tree_make_box", 1, 32, job)  # for eps2
        self._card.launch("tree_groups", sizes[0], 256, job)
        if order:
            for name, count in (("hypers", sizes[0]), ("supers", sizes[1])):
                blocks = _pieces(count, 4)
                self._card.launch(f"tree_walk_{name}", blocks, 128, job)
                self._card.launch(f"tree_expand_{name}_{order}", count, 128, job)
        batch = self._batch(sizes[2])
        for first in range(0, sizes[2], batch):
            job.first_group, job.groups = first, min(batch, sizes[2] - first)
            self._groups(job.groups)
        for job.parts in (1, 2):
            self._part_groups()
        job.parts = 0

    def _groups(self, count):
        """Walk, far and near terms of the groups that the job names."""
        job, order = self._job, self._job.order_of_expansion
        blocks = _pieces(count, 4)
        self._card.launch("tree_walk_groups", blocks, 128, job)
        if order:
            self._card.launch(f"tree_shift_groups_{order}", _pieces(count, 128), 128, job)
            self._card.launch(f"tree_expand_groups_{order}", blocks, 128, job)
        near = "tree_near" if order else "tree_near_bh"
        bare = "" if job.eps2_given > 0 else "_bare"
        size = ("groups", "eights", "singles")[job.parts]
        self._card.launch(f"{near}{bare}_{size}", blocks, 128, job)

    def _batch(self, groups):
        """Groups whose lists are kept at once."""
        room = 4 * sum(self._rooms[1])
        return min(groups, max(LIST_BYTES * self.n // room, 4096))

    def _level(self, level, count):
        job = self._job.level[level]
        lists = self._batch(count) if level == 2 else count
        rooms = self._rooms[max(level - 1, 0)]
        job.room[:] = rooms
        kept = {
            "group": self._bytes(count, GROUP_BYTES),
            "local": self._new((lists, TERMS), np.float32),
            "lists": self._new((lists, sum(rooms)), np.int32),
            "count": self._new((lists, 4), np.int32),
        }
        for name, array in kept.items():
            setattr(job, name, self._card.address(array))
        self._kept[f"level {level}"] = kept
