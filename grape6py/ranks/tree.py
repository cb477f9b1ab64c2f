"""What ``Tree(comm=...)`` has in place of a tree of its own: one of the particles of all ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import DeviceArray, Floats, Untyped
from grape6py._arrays.modules import lengths, mapped, module_of, on_host
from grape6py._lib.tree import Replica, are_few, by_bound, check_last_acc
from grape6py._lib.tree_setting import Found, Setting, Targets
from grape6py.errors import AddressError, ArgumentError, RangeError
from grape6py.ranks.domain_tree import DomainTree
from grape6py.ranks.domains import Moves, cut_keys, sample_of, whole_of
from grape6py.ranks.stages import Stages
from grape6py.ranks.tree_search import Searches

if TYPE_CHECKING:
    from grape6py._lib.memory_space import Place
    from grape6py._lib.tree import HostTree
    from grape6py.cuda.tree.device_tree import DeviceTree
    from grape6py.ranks.ranks import Ranks

_PER_POINT, _PER_LOCAL = 3.0, 20.0  # what a cell on a target or on a group costs, in pairs


@dataclass(eq=False, repr=False)
class SharedTree:
    """A tree of all ranks' particles. All calls are made by all ranks."""

    ranks: Ranks
    _inner: HostTree | DeviceTree  # of this rank's domain, still to be built
    _options: dict[int, int]  # of trees on the host
    first: int = 0  # number of this rank's first particle among those of all ranks
    is_open: bool = True
    _work: float = 0.0
    _work_before: DeviceArray | None = None
    _domain: DomainTree | None = None
    _searches: Searches | None = None
    _replica: Replica | None = None

    def __post_init__(self) -> None:
        self._stages = Stages(self.ranks)
        self.ranks.connect(self._inner.device)

    def __len__(self) -> int:
        return self._n_all

    @property
    def seconds(self) -> dict[str, float]:
        """How long each stage has taken, by its name (ranks/stages.py)."""
        return self._stages.seconds

    @contextlib.contextmanager
    def using(self, given: Mapping[str, object]) -> Iterator[Place]:
        """As of this rank's own kind of tree; an error of one rank is one of all."""
        with self.ranks.agreement("a call"), self._inner.using(given) as place:
            yield place

    def work_before(self, work: Floats) -> None:
        """What each particle's forces cost, before the tree is built."""
        if (work < 0).any():
            raise ArgumentError(f"work[{int((work < 0).argmax())}] is negative")
        self._work_before = work

    def build(
        self, place: Place, pos: DeviceArray, mass: DeviceArray, vel: DeviceArray | None
    ) -> None:
        """Share out the particles, and make the trees."""
        ranks, work, self._work_before = self.ranks, self._work_before, None
        with ranks.agreement("Tree()") as agreement:
            agreement.same("whether vel and work are given", vel is not None, work is not None)
            extent = self._inner.extent(pos, mass)
            if not np.isfinite(extent).all():
                place.check()
        self._particles: tuple[DeviceArray, ...] = pos, mass, vel
        if not self._inner.of_host:  # the caller may not change those: arrays from the host are own
            self._particles = mapped(lambda a: a.copy(), self._particles)
        self.first, self._n_all = ranks.numbered(len(pos))
        timed = self._stages.timed
        with timed("keys", pos, meets=True):
            whole = whole_of(ranks, extent, mass, vel)
            if whole is None:
                return
            some = sample_of(len(pos), module_of(pos))
            keys = self._inner.keys(pos[some], whole)
            share = len(pos) / max(len(keys), 1)
            cut = cut_keys(ranks, keys, None if work is None else work[some], share)
            way = Moves(ranks, self._inner.owners(pos, whole, cut))
        with timed("particles", pos, meets=True):
            pos, mass, vel = map(way.there, (pos, mass, vel))
        with timed("build", pos), ranks.agreement("Tree()") as agreement:
            is_too_fine = False  # for one box
            try:
                self._inner.build(place, pos, mass, vel, whole)
            except RangeError:
                is_too_fine = True
            some_are_too_fine = agreement.maximum(is_too_fine)
        if not some_are_too_fine.value:
            given = whole, cut, way, pos, self._stages
            self._domain = DomainTree(ranks, self.first, self._inner, *given)

    def _by_replica(self, call: str, *arguments: object) -> Untyped:
        """What a tree of all particles gives: where no one box resolves them, or there are none,
        each rank has all of them, on the host."""
        if self._replica is None:
            xp, ranks = module_of(self._particles[0]), self.ranks
            own = mapped(on_host, self._particles)
            all_of_them = mapped(lambda rows: np.concatenate(ranks.gathered(rows)), own)
            self._replica = Replica(xp, self._options, *all_of_them)
        return self._replica.ask(call, *arguments)

    def particles(self) -> tuple[DeviceArray, ...]:
        """Own positions, masses, and velocities or None, as they were given."""
        if not self._inner.of_host:
            return self._particles
        particles: tuple[DeviceArray, ...] = mapped(on_host, self._particles)
        return particles

    def close(self) -> None:
        self.is_open = False
        self._inner.close()
        if self._replica is not None:
            self._replica.close()

    def work(self) -> DeviceArray:
        """What the last sum cost each of this rank's particles, in pairs."""
        xp = module_of(self._particles[0])
        if self._domain is None:
            return xp.ones(len(self._particles[0]))
        way = self._domain.way
        return way.back(xp.full(way.count, self._work))

    # ---- forces ----------------------------------------------------------------------------------

    def forces(self, setting: Setting, targets: Targets) -> Found:
        """Forces on targets, or on this rank's particles."""
        what = "whether targets, vel, self_index and last_acc are given"
        self._agree("Tree.forces()", setting, targets, what, *targets)
        of_any = self._of_replica if self._domain is None else self._of_domains
        found = of_any(setting.replaced(momentum=False), targets)
        for forces in (found.acc, found.jerk) if setting.momentum else ():
            if forces is not None:
                self._close_system(forces)
        return found

    def _agree(
        self, call: str, setting: Setting, targets: Targets, what: str, *given: object
    ) -> None:
        """What must be equal on all ranks; and each checks its targets."""
        with self.ranks.agreement(call) as agreement:
            agreement.same(what, *(a is not None for a in given))
            agreement.same("eps^2", setting.eps2)
            agreement.same_contents("methods", "fmm" if setting.order else "bh")
            agreement.same("theta", setting.theta)
            agreement.same("order", setting.order)
            agreement.same("the bound or accuracy", setting.bound or setting.accuracy)
            agreement.same("momentum", setting.momentum)
            self._check(targets)

    def _of_domains(self, setting: Setting, targets: Targets) -> Found:
        assert self._domain is not None
        domain, last_acc = self._domain, targets.last_acc
        way, is_of_own = domain.way, targets.pos is None
        if not is_of_own:
            way, targets = self._way_of_targets(domain, targets)
        last = way.there(last_acc)
        if setting.accuracy and are_few(len(self)):
            setting, last = setting.pair_by_pair(), None
        elif setting.accuracy:
            if last is None:
                first = setting.replaced(theta=1.0, accuracy=0.0, order=min(setting.order, 2))
                last = lengths(domain.sum(first, targets).acc)
            setting = by_bound(setting)
        found = domain.sum(setting, targets._replace(last_acc=last))
        if is_of_own and len(domain.pos):
            pairs, points, locals_ = found.done
            self._work = (pairs + _PER_POINT * points + _PER_LOCAL * locals_) / len(domain.pos)
        with self._stages.timed("back", found.acc, meets=True):
            acc, pot, jerk = map(way.back, found[:3])
            return found._replace(acc=acc, pot=pot, jerk=jerk)

    def _way_of_targets(self, domain: DomainTree, targets: Targets) -> tuple[Moves, Targets]:
        """Of targets to the domains in which they, or the particles that they are, lie."""
        pos, vel, number, _ = targets
        xp = module_of(pos)
        rank = domain.owners(pos)
        place = xp.full(len(pos), -1)
        if number is not None:
            own, place = domain.places(number)
            rank = xp.where(own >= 0, own, rank)
        way = Moves(self.ranks, rank)
        places = way.there(place).astype(np.int32)
        return way, Targets(way.there(pos), way.there(vel), places)

    def check(self, targets: Targets) -> None:
        """Each call does, so that all ranks hear of what is wrong."""

    def _check(self, targets: Targets) -> None:
        check_last_acc(targets.last_acc)
        if (number := targets.number) is None:
            return
        end = self.first + len(self._particles[0])
        wrong = (number != -1) & ((number < self.first) | (number >= end))
        if wrong.any():
            i = int(wrong.argmax())
            raise AddressError(
                f"self_index[{i}] = {int(number[i])}: the particles of rank {self.ranks.rank} are "
                f"{self.first} to {end - 1}"
            )

    def _of_replica(self, setting: Setting, targets: Targets) -> Found:
        targets = self._with_positions(targets)
        if targets.last_acc is None and setting.accuracy and not are_few(len(self)):
            acc = self._by_replica("forces", setting.replaced(theta=1.0, accuracy=0.0), targets).acc
            targets = targets._replace(last_acc=lengths(acc))
        found: Found = self._by_replica("forces", setting, targets)
        return found

    def _with_positions(self, targets: Targets) -> Targets:
        """Targets; own particles as such."""
        if targets.pos is not None:
            return targets
        pos, _, vel = self._particles
        number = module_of(pos).arange(self.first, self.first + len(pos), dtype=np.int32)
        return Targets(pos, vel, number, targets.last_acc)

    def _close_system(self, acc: DeviceArray) -> None:
        """Let forces add up to zero over all ranks: csrc/shared/tree_net_force.h."""
        mass = self._particles[1]
        xp, size = module_of(acc), lengths(acc)
        unit = self.ranks.largest(np.array([float(size.max()) if len(size) else 0.0]))[0] or 1.0
        net = np.zeros(4)
        net[:3] = on_host((mass[:, None] * (acc / unit)).sum(axis=0))
        net[3] = float((xp.abs(mass) * (size / unit)).sum())
        net = self.ranks.summed(net)
        if net[3] > 0:
            acc -= (xp.copysign(size, mass) / net[3])[:, None] * xp.asarray(net[:3])

    def check_bound(self, setting: Setting, last_acc: DeviceArray) -> None:
        """What :meth:`Tree.bound` is given."""
        what = "whether last_acc is given"
        self._agree("Tree.bound()", setting, Targets(last_acc=last_acc), what, last_acc)

    # ---- searches --------------------------------------------------------------------------------

    def within(self, targets: Targets, h2: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """Neighbours: where rows start, and the rows."""
        return self._found("within", "Tree.neighbours()", targets, h2)

    def nearest(self, targets: Targets, k: int) -> tuple[DeviceArray, DeviceArray]:
        """Numbers of the k nearest, and how far they are."""
        return self._found("nearest", "Tree.nearest()", targets, k, k=k)

    def _found(
        self, search: str, call: str, targets: Targets, how: Untyped, **equal: int
    ) -> tuple[DeviceArray, DeviceArray]:
        """What a search gives; `equal`: what has to be the same on all ranks."""
        with self.ranks.agreement(call) as agreement:
            is_given = targets.pos is not None, targets.number is not None
            agreement.same("whether targets and self_index are given", *is_given)
            self._check(targets)
            for name, value in equal.items():
                agreement.same(name, value)
        targets = self._with_positions(targets)
        found: tuple[DeviceArray, DeviceArray]
        if self._domain is None:
            found = self._by_replica(search, targets, how)
        else:
            if self._searches is None:
                self._searches = Searches(self._domain, len(self._particles[0]))
            found = getattr(self._searches, search)(targets, how)
        return found
