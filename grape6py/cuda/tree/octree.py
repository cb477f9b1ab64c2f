"""The octree on a GPU: its sums' memory, and the order of their kernels (tree.cu).

Nothing is computed here. Sorting and running sums are CuPy's, which are CUB's. `Octree` works on
a machine that has arrays (CuPy, or NumPy in tests) and launches kernels by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import AnyArray, CData, DeviceArray, Floats
from grape6py._lib import codes
from grape6py._lib.tree_setting import Targets
from grape6py.cuda.job import pieces
from grape6py.cuda.tree import distant, kernels, share
from grape6py.cuda.tree.build import TreeCells, Unresolved, ffi, numbers
from grape6py.cuda.tree.settings import Capacities, Counts, is_soft, longer, width_of
from grape6py.cuda.tree.softened import LEAST_EXTENT, MOST_EXTENT, softened_rows, term_of

if TYPE_CHECKING:
    from grape6py._lib.tree_setting import Setting
    from grape6py.cuda.launcher import TreeLauncher

OTHER_BYTES = 58  # a particle, that a sum needs beside the lists of groups
# Of the lists of groups that are taken at once, and of those of level-2 and level-1 groups: a
# particle, and at least.
LIST_BYTES, LEAST_LISTS = 32, 256 << 20
MOST_BYTES = 256  # a particle, of those lists, that are there to begin with
SLOT_LISTS = 40 << 20  # at least, of long groups and parts of groups taken at once,
LEAST_SLOTS = 256  # which are as many at least
FEW = 8  # one target of so many particles, or fewer: their groups lie too far apart to share walks
BLOCKS = 8192  # of so many groups, or fewer, each has a CUDA block, as all parts of groups have
MOST_EPS2 = 1e56  # of that of BARE_EPS: eps of 1e18 extents, which single precision does not hold
AGAIN_CAPACITY = 65536  # of them, and of targets that are summed again, to begin with
PARTS = numbers.LONG_GROUPS, numbers.EIGHTS, numbers.SINGLES  # each what the one before left
OWN = Targets()


class Octree(TreeCells):
    """An octree of particles in a GPU's memory.

    Arrays are contiguous, of float64, n > 0; they have to stay as they are. Without velocities
    there is no jerk. If it is `unresolved`, no one box resolves the particles: there are no sums,
    and searches could take long.

    `whole`, the 13 numbers of a struct tree_whole (csrc/shared/tree_share.h), describes the
    particles of all ranks: the trees of all have one box then, can have `parts` of each other's in
    a sum, and n may be 0. `eps`: each particle's own softening.
    """

    def __init__(
        self,
        gpu: TreeLauncher,
        pos: DeviceArray,
        mass: DeviceArray,
        vel: DeviceArray = None,
        whole: Floats | None = None,
        eps: DeviceArray = None,
    ) -> None:
        n = len(mass)
        lists = max(LIST_BYTES * n, min(LEAST_LISTS, MOST_BYTES * n))
        super().__init__(gpu, pos, mass, vel, lists + OTHER_BYTES * n, whole)
        self.fields.close_capacity, self._mass = AGAIN_CAPACITY, mass  # the caller's
        self.set(own_eps=eps)

    def forces(
        self, setting: Setting, targets: Targets = OWN, imports: Sequence[AnyArray] = ()
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, Counts]:
        """Acc, pot and jerk, and Counts, of the particles themselves, or on targets.

        Without last accelerations, those for a bound are estimated. `imports`: parts of other
        ranks' trees, on the host or the device, which act as well; forces then do not add up to
        zero. Raises Unresolved.
        """
        if self.sites:
            acc, pot, jerk, counts = self.sites.forces(self._sums, setting, targets)
        else:
            acc, pot, jerk, counts = self._sums(setting, targets, imports)
        if setting.momentum and counts.too_large is None and not len(imports):
            self._remove_net_force(acc, jerk)
        return acc, pot, jerk, counts

    def _sums(
        self, setting: Setting, targets: Targets, imports: Sequence[AnyArray] = ()
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, Counts]:
        """Forces of all that is in the tree, and of distant particles."""
        if not self.distant:
            return self.near_forces(setting, targets, imports)
        return distant.forces(self, setting, targets)

    def near_forces(
        self,
        setting: Setting,
        targets: Targets,
        imports: Sequence[AnyArray] = (),
        add_others: Callable[[], None] | None = None,
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray, Counts]:
        """Forces of the particles in the box, and of what `add_others` adds to their results."""
        job = self.fields
        if self.unresolved or (self.n > 1 and setting.eps2 > MOST_EPS2 * self._least_eps2):
            raise Unresolved
        self._follow(setting)
        if setting.spline or job.own_eps:
            job.term = term_of(setting)
        if job.term and (
            self.distant or self.sites or not LEAST_EXTENT < self._extent < MOST_EXTENT
        ):
            raise Unresolved  # the host's tree sums what a double holds, too
        eps2 = self._own_eps2 if job.own_eps else setting.eps2
        job.soft = (
            not setting.spline
            and eps2 > 0
            and is_soft(setting, eps2, self.smallest_side, bool(job.v))
        )
        job.target_count = ni = self.near if targets.pos is None else len(targets.pos)
        job.rows = rows = self.n if targets.pos is None else ni
        self.set(acc=self._new((rows, 3), np.float64), pot=self._new(rows, np.float64))
        self.set(jerk=self._new((rows, 3), np.float64) if job.v else None)
        others = share.parts_of(self, imports)
        if ni == 0 or not (self.cells or others):
            for result in ("acc", "pot", "jerk") if ni else ():
                if self.arrays[result] is not None:
                    self.arrays[result][:] = 0
            return *self._results(), Counts(0, 0, 0, 0)
        last_acc = targets.last_acc
        self.set(targets=targets.pos, self=targets.number, last=last_acc, target_v=targets.vel)
        self.set(last_acc=self._new(ni, np.float32) if setting.bound else None)
        self._few = FEW * ni <= self.n
        order = self._order if job.order_of_expansion else ""
        jerk = self._terms if job.jerk else None
        with_targets, by_bound = bool(job.targets), bool(job.last_acc)
        self.gpu.prepare(kernels.of_sums(order, self._near, jerk, with_targets, by_bound))
        self._take_targets()
        job.again_capacity = max(AGAIN_CAPACITY, ni // 8 + 1024)
        job.from_root = self._few or not setting.order
        by_bound = bool(setting.bound and setting.order)
        kind = self._few, bool(job.term)
        which = width_of(setting), setting.order, by_bound, *kind, ni.bit_length()
        self._capacities = self.gpu.capacities.setdefault(which, Capacities.of(setting, *kind))
        with share.joined(self, others, "place" if setting.order else "barnes_hut"):
            status = None
            while status is None:
                try:
                    status = self._sum()
                except MemoryError:  # grown, perhaps: the next sum asks for less
                    self.gpu.capacities.pop(which, None)
                    raise
            most = self._entries(LEAST_LISTS)
            self._capacities.lengthen(
                pieces(ni, numbers.TREE_GROUP),
                status.again[numbers.LONG_GROUPS],
                status.need_long,
                most,
            )
            if status.close:
                if job.term:
                    softened_rows(self, status.close)
                else:
                    self.launch("tree_close_rows", 256 * status.close, 256)
                if job.jerk and not job.term:
                    self.launch("tree_close_jerks", 256 * status.close, 256)
                status = self._read_status()
                self._check_resolved(status)
            if add_others:
                add_others()
                status = self._read_status()
                self._check_resolved(status)
        done = np.frombuffer(ffi.buffer(status.done), np.uint64).reshape(-1, 4).sum(axis=0).tolist()
        self.drop("targets self last last_acc target_order target_high target_low target_self")
        self.drop("rank barnes_hut target_v target_velocity")
        if job.term:
            self.drop("target_eps2 source_eps2 cell_eps2 reach")
        self.arrays["singles"] = None
        if done[3] != ni:
            raise codes.from_code(
                "RUNTIME", f"a GPU gave forces on {done[3]} targets of a tree, {ni} were asked for"
            )
        too_large = rows - status.too_large if status.too_large else None
        return *self._results(), Counts(done[0], done[1], done[2], status.zero_distances, too_large)

    def parts(self, setting: Setting, regions: Sequence[DeviceArray]) -> list[DeviceArray]:
        """What other ranks need of this tree, for each of them the bytes of a part, on the device.

        `regions`, one array of shape (m, 7) for each, are its struct tree_region, where its targets
        are; of one without, an empty array. Raises Unresolved.
        """
        job, xp = self.fields, self.xp
        if self.unresolved:
            raise Unresolved
        self._follow(setting)
        self.launch("tree_begin", 1, 32)  # which makes the opening of it
        self._take_places()
        found = []
        for given in regions:
            count = len(given) if self.cells else 0
            if count:
                self.set(opened=xp.zeros(self.cells, np.uint8))
                is_host = isinstance(given, np.ndarray)
                self.set(region=self.gpu.put(np.array(given, np.float64)) if is_host else given)
                job.region_count = count
                self.launch("tree_mark", 32 * count)
            found.append(share.packed(self) if count else xp.empty(0, np.uint8))
        self.drop("opened region barnes_hut")
        return found

    def _follow(self, setting: Setting) -> None:
        job = self.fields
        job.theta, job.order_of_expansion = setting.theta, setting.order
        job.eps2_given, job.bound, job.soft, job.term = setting.eps2, setting.bound, False, 0

    def _remove_net_force(self, acc: DeviceArray, jerk: DeviceArray) -> None:
        """From accelerations and jerks."""
        self.fields.n, mass = self.n, self.arrays["m"]
        self.set(acc=acc, jerk=jerk, m=self._mass)
        self.set(momenta=self._new((numbers.FLOW_PIECES, 4), np.float64))
        for name in ("acc", "jerk") if self.fields.jerk else ("acc",):
            self.fields.vectors = getattr(self.fields, name)
            self.launch("tree_net_force", 256 * numbers.FLOW_PIECES, 256)
            self.launch("tree_close_system", self.n, 256)
        self.fields.n = self.near
        self.set(m=mass)
        self.drop("momenta acc jerk")

    def _results(self) -> list[DeviceArray]:
        """Acc, pot and jerk, which are the caller's from now on."""
        results = [self.arrays[name] for name in ("acc", "pot", "jerk")]
        self.drop("acc pot jerk")
        return results

    def _take_targets(self) -> None:
        """What is known of the targets, in the order of their keys."""
        job, ni = self.fields, self.fields.target_count
        if self.arrays["self"] is not None and not self._few:
            self.set(rank=self._new(self.n, np.int32))
            self.launch("tree_ranks", self.n, 256)
        if job.targets:
            self.set(key=self._new(ni, np.uint64), target_self=self._new(ni, np.int32))
            self.set(target_high=self._new((ni, 4), np.float32))
            self.set(target_low=self._new((ni, 4), np.float32))
            self.launch("tree_target_keys", ni, 256)
            self.set(target_order=self.gpu.sort(self.arrays["key"]))
            self.launch("tree_gather_targets", ni, 256)
            self.drop("key")
        self._take_places()
        if job.term:
            self._take_softening()
        if job.last_acc:
            self._find_pulls()
        if job.jerk:
            self._take_velocities()

    def _find_pulls(self) -> None:
        """The targets' last accelerations or, if they are not known, how strong the field is at
        each group."""
        ni = self.fields.target_count
        if self.fields.last:
            self.launch("tree_gather_last", ni, 256)
        else:
            self.launch("tree_begin", 1, 32)  # which makes the opening
            self.launch("tree_pulls", 32 * pieces(ni, numbers.TREE_GROUP), 128)
        self.set(momenta=self._new(numbers.FLOW_PIECES, np.float64))
        self.launch("tree_least_pull", 256 * numbers.FLOW_PIECES, 256)
        self.launch("tree_raise_pulls", ni, 256)
        self.drop("momenta")

    def _take_places(self) -> None:
        """The cells' centres and sizes for Barnes and Hut's walk."""
        job = self.fields
        if not job.order_of_expansion and job.bound:  # which goes by radii, as in all estimates
            self.set(barnes_hut=self.arrays["place"])
        elif not job.order_of_expansion:
            self.set(barnes_hut=self.structures("tree_cell_centre", self.cells))
            self.launch("tree_barnes_hut", self.cells)

    @functools.cached_property
    def _own_eps2(self) -> float:
        """Of pairs, in the mean."""
        return 2 * float((self.arrays["own_eps"] ** 2).mean())

    def _take_softening(self) -> None:
        """That of targets and particles, and how far cells are to be away for it."""
        job = self.fields
        self.launch("tree_begin", 1, 32)  # which makes the box's units of what is given
        self.set(target_eps2=self._new(job.target_count, np.float32))
        self.launch("tree_target_eps2", job.target_count, 256)
        self.set(source_eps2=self._new(self.n, np.float32) if job.own_eps else None)
        if job.own_eps:
            self.launch("tree_source_eps2", self.n, 256)
        self.set(cell_eps2=self.structures("tree_cell_eps2", self.cells))
        self.set(reach=self._new(self.cells, np.float32))
        ends = [*self._level_first[1 : numbers.CELL_LEVELS], self.cells]
        for job.cell_level in reversed(range(numbers.CELL_LEVELS)):
            self.launch("tree_cell_eps2", ends[job.cell_level] - self._level_first[job.cell_level])

    def _take_velocities(self) -> None:
        """The targets' velocities, in a unit that holds all."""
        job, ni = self.fields, self.fields.target_count
        if job.targets and job.target_v:
            self.launch("tree_target_speeds", min(ni, 1 << 18), 256)
        self.launch("tree_widen_frame", 1, 32)
        if job.targets:
            self.set(target_velocity=self._new((ni, 4), np.float32))
            self.launch("tree_gather_target_velocities", ni, 256)

    def _check_resolved(self, status: CData) -> None:
        if status.unresolved:
            self.unresolved = True
            raise Unresolved

    def _is_enough(self, status: CData) -> bool:
        """Whether the lists were long enough; if not, they will be. Raises Unresolved."""
        job = self.fields
        self._check_resolved(status)
        enough = max(status.again) <= job.again_capacity and status.close <= job.close_capacity
        if not enough:  # else kernels to come would take them for longer than they are
            job.again_capacity = max(job.again_capacity, 2 * max(status.again))
            job.close_capacity = max(job.close_capacity, 2 * status.close)
        self._capacities.enlarge(status.need_large)
        wants = zip(status.need_large, job.level[0].capacity, strict=True)
        return enough and all(want <= capacity for want, capacity in wants)

    def _entries(self, least_bytes: int) -> int:
        """Of lists that are there at once."""
        return max(LIST_BYTES * self.n, least_bytes) // 4

    def _sum(self) -> CData | None:
        """The status in the end, or None if lists were too short: they are longer from now on."""
        job, ni = self.fields, self.fields.target_count
        groups, large = pieces(ni, numbers.TREE_GROUP), 0 if job.from_root else ni
        level2, level1 = pieces(large, numbers.IN_LEVEL2), pieces(large, numbers.IN_LEVEL1)
        capacities = self._capacities
        wide, small, longest = capacities.large, capacities.groups, capacities.longest
        batch = min(groups, self._entries(LEAST_LISTS) // sum(small) + 1)
        in_each = numbers.TREE_LEVEL2 + 1  # lists of a level-2 group and its level-1 groups
        at_once = min(level2, self._entries(LEAST_LISTS) // (in_each * sum(wide)) + 1)
        job.slots = min(ni, max(self._entries(SLOT_LISTS) // sum(longest), LEAST_SLOTS))
        entries = [wide, wide, small, longest]
        counts = [level2, level1, groups, job.slots]
        lists = [at_once, at_once * numbers.TREE_LEVEL2, batch, job.slots]
        wanted = {"far_sum": 16 * ni, "far_jerk": 16 * ni if job.jerk else 0}
        wanted |= {"close": 4 * job.close_capacity, "again": 4 * numbers.KINDS * job.again_capacity}
        for level in range(4):
            sizes = self._level_bytes(level, counts[level], lists[level], entries[level])
            wanted |= {f"{name}_{level}": size for name, size in sizes.items()}
        # Lists of groups have served when those of other kinds are made.
        wanted["lists_2"] = max(wanted["lists_2"], wanted.pop("lists_3"))
        at = self._workspace.cut(**wanted)
        at["lists_3"] = at["lists_2"]
        self.point(job, **{name: at[name] for name in ("far_sum", "far_jerk", "close")})
        again = ffi.cast("int32_t *", at["again"])
        job.again = [again + job.again_capacity * kind for kind in range(numbers.KINDS)]
        for level in range(4):
            self._point_level(level, {n: at[f"{n}_{level}"] for n in sizes}, entries[level])
        self._done = [0] * numbers.KINDS
        self.launch("tree_begin", 1, 32)
        if job.from_root:
            self._batches(0, groups, batch)
            return self._parts()
        self.launch("tree_groups", 256 * level2, 256)
        in_level2 = numbers.TREE_LEVEL1 * numbers.TREE_LEVEL2
        status = None
        for first in range(0, level2, at_once):
            job.first_level2, job.level2_groups = first, min(at_once, level2 - first)
            left = level1 - numbers.TREE_LEVEL2 * first
            job.level1_groups = min(numbers.TREE_LEVEL2 * job.level2_groups, left)
            for name, count in ("level2", job.level2_groups), ("level1", job.level1_groups):
                self.launch(f"{self._walk}_{name}", 32 * count)
                self.launch(f"tree_expand_{name}_{self._order}", 128 * count)
                if job.jerk:
                    self.launch(f"tree_rate_{name}_{self._order}", 128 * count)
            self._batches(in_level2 * first, min(groups, in_level2 * (first + at_once)), batch)
            status = self._parts()  # which need the lists of their level-1 groups
            if status is None:
                break
        return status

    def _batches(self, first: int, end: int, batch: int) -> None:
        """Groups of 32: so many at once."""
        job = self.fields
        job.kind, job.first_slot = numbers.GROUPS, 0
        for job.first_group in range(first, end, batch):
            job.groups = min(batch, end - job.first_group)
            if job.from_root:
                self._slots_of_kind(job.groups)
            else:
                self._small_groups(job.groups)

    @property
    def _order(self) -> str:
        """Of the names of kernels that make expansions; empty: there are none."""
        job = self.fields
        kind = "_soft" if job.soft else ""
        return f"{job.order_of_expansion or ''}{kind}{'_own' if job.term else ''}"

    @property
    def _walk(self) -> str:
        return "tree_traverse_own" if self.fields.term else "tree_traverse"

    @property
    def _near(self) -> str:
        is_apart = self.fields.term or self.fields.eps2_given > self._least_eps2
        return self._terms + ("" if is_apart else "_bare")

    @property
    def _terms(self) -> str:
        """Of the names of those of cells on targets."""
        own = "_own" if self.fields.term else ""
        if not self.fields.order_of_expansion:
            return f"_bh{own}"
        return f"_soft{own}" if self.fields.soft else own

    def _small_groups(self, count: int) -> None:
        """Walk, far and near terms of the groups that the job names."""
        job = self.fields
        parts, size = job.kind >= numbers.EIGHTS, kernels.SIZES[job.kind]
        by_block = parts or pieces(job.target_count, numbers.TREE_GROUP) <= BLOCKS
        which, threads = ("blocks", 128 * count) if by_block else ("groups", 32 * count)
        self.launch(f"{self._walk}_{which}", threads)
        if job.order_of_expansion:
            self.launch(f"tree_expand_{which}_{self._order}", threads)
        if parts:
            self.launch(f"tree_near{self._near}_{size}", 32 * count)
        else:
            self.launch(f"tree_near{self._near}_{which}", threads)
        if job.jerk:
            if job.order_of_expansion:
                self.launch(f"tree_rate_groups_{self._order}", 32 * count)
            self.launch(f"tree_jerk{self._terms}_{size}", 32 * count)

    def _slots_from(self, first: int, end: int) -> None:
        """Groups of the job's kind, as many at once as there are slots."""
        job, slots = self.fields, self.fields.slots
        for job.first_slot in range(first, end, slots):
            self._slots_of_kind(min(slots, end - job.first_slot))

    def _slots_of_kind(self, count: int) -> None:
        """Groups of the job's kind: at most so many."""
        self.launch("tree_groups_of_kind", 32 * count)
        self._small_groups(count)

    def _parts(self) -> CData | None:
        """What the groups so far have left to other kinds. As _sum."""
        job = self.fields
        # From the root, lists are long enough for nearly all: to ask takes less than three passes.
        tried = 0 if job.from_root else job.slots
        for job.kind in PARTS if tried else ():
            job.first_slot = self._done[job.kind]
            self._slots_of_kind(tried)
        status = self._read_status()
        for kind in PARTS:  # as many as there were when they were tried, at least
            self._done[kind] = min(status.again[kind], self._done[kind] + tried)
        for job.kind in PARTS:
            if not self._is_enough(status):
                return None
            count, done = status.again[job.kind], self._done[job.kind]
            self._done[job.kind] = count
            self._slots_from(done, count)
            if count > done:
                status = self._read_status()
        if not self._is_enough(status):
            return None
        if (count := status.again[numbers.LONG_SINGLES]) > self._done[numbers.LONG_SINGLES]:
            self._long_singles(count, longer(self._capacities.longest, status.need_singles))
            status = self._read_status()
        return status if self._is_enough(status) else None

    def _long_singles(self, count: int, capacity: Sequence[int]) -> None:
        """Single targets whose lists need such capacities, up to number `count`."""
        job = self.fields
        usual, usual_slots = ffi.new("struct tree_level_job *", job.level[3]), job.slots
        job.kind = numbers.LONG_SINGLES
        slots = job.slots = min(job.slots, max(SLOT_LISTS // (4 * sum(capacity)), 32))
        sizes = self._level_bytes(3, slots, slots, capacity)
        lists = self.arrays["singles"] = {name: self._new(size) for name, size in sizes.items()}
        self._point_level(3, {name: self.gpu.address(lists[name]) for name in sizes}, capacity)
        self._slots_from(self._done[job.kind], count)
        self._done[job.kind] = count
        job.level[3], job.slots = usual[0], usual_slots

    def _point_level(
        self, level: int, addresses: Mapping[str, int], capacity: Sequence[int]
    ) -> None:
        to = self.fields.level[level]
        to.capacity = capacity
        self.point(to, **addresses)

    def _level_bytes(
        self, level: int, groups: int, lists: int, capacity: Sequence[int]
    ) -> dict[str, int]:
        """Of groups of one size, `lists` of which have lists at a time."""
        expansions = lists if level < 2 else 0
        return {
            "group": ffi.sizeof("struct tree_group") * groups,
            "local": 4 * numbers.LOCAL_TERMS * expansions,
            "rate": 4 * numbers.RATE_TERMS * expansions if self.fields.jerk else 0,
            "lists": 4 * sum(capacity) * lists,
            "count": 16 * lists,
        }
