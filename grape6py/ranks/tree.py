"""What ``Tree(comm=...)`` has in place of a tree of its own: one of the particles of all ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import DeviceArray, Floats, Int64s, Untyped
from grape6py._arrays.modules import lengths, module_of, on_host
from grape6py._lib.tree import PAIR_BY_PAIR, HostTree, are_few
from grape6py.cuda.tree.settings import bound_of
from grape6py.errors import AddressError, ArgumentError, RangeError
from grape6py.ranks.domain_tree import DomainTree, Found, Walk
from grape6py.ranks.domains import Moves, cut_keys, sample_of, whole_of
from grape6py.ranks.stages import Stages
from grape6py.ranks.tree_search import Searches

if TYPE_CHECKING:
    from grape6py._lib.memory_space import Place
    from grape6py.cuda.tree.device_tree import DeviceTree
    from grape6py.ranks.agreement import Agreement
    from grape6py.ranks.ranks import Ranks

_NAMES = {"eps2": "eps^2", "bound": "the bound or accuracy"}  # of settings, in messages
_TARGETS = "whether targets and self_index are given"
_WIDEST = 1.4  # theta, where a bound says how far cells stand for their particles
_PER_POINT, _PER_LOCAL = 3.0, 20.0  # what a cell on a target or on a group costs, in pairs


class SharedTree:
    """A tree of all ranks' particles. All calls are made by all ranks.

    Parameters
    ----------
    ranks : Ranks
    inner : HostTree or DeviceTree
        Of this rank's domain, still to be built.
    options : dict
        Of trees on the host.

    Attributes
    ----------
    first, n_all : int
        Number of this rank's first particle among those of all ranks, and how many these are.
    """

    def __init__(self, ranks: Ranks, inner: HostTree | DeviceTree, options: dict[int, int]) -> None:
        self.ranks, self._inner, self._options = ranks, inner, options
        self.is_open, self._work = True, 0.0
        self._work_before: DeviceArray | None = None
        self._replica: HostTree | None = None
        self._stages = Stages(ranks)
        ranks.connect(getattr(inner, "device", None))

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
        self._particles: tuple[DeviceArray, ...] = tuple(map(self._own_copy, (pos, mass, vel)))
        self.first, self.n_all = ranks.numbered(len(pos))
        timed = self._stages.timed
        with timed("keys", pos, meets=True):
            whole = whole_of(ranks, extent, mass, vel)
            self._whole = whole
            if whole is None:
                return
            some = sample_of(len(pos), module_of(pos))
            keys = self._inner.keys(pos[some], whole)
            share = len(pos) / max(len(keys), 1)
            self._cut = cut_keys(ranks, keys, None if work is None else work[some], share)
            self._way = Moves(ranks, *self._inner.owners(pos, whole, self._cut, ranks.rank))
        with timed("particles", pos, meets=True):
            pos, mass, vel = map(self._way.there, (pos, mass, vel))
        self._domain: DomainTree | None = None
        self._searches: Searches | None = None
        with timed("build", pos), ranks.agreement("Tree()") as agreement:
            is_too_fine = False  # for one box
            try:
                self._inner.build(place, pos, mass, vel, whole)
            except RangeError:
                is_too_fine = True
            some_are_too_fine = agreement.maximum(is_too_fine)
        if not some_are_too_fine.value:
            self._domain = DomainTree(ranks, self._inner, whole, pos, mass, self._stages)

    def _own_copy(self, array: DeviceArray) -> DeviceArray:
        """What the caller may not change: arrays that came to a device are such."""
        is_own = array is None or getattr(self._inner, "of_host", False)
        return array if is_own else array.copy()

    def _of_all(self) -> HostTree:
        """Where no one box resolves the particles, each rank has all of them, on the host."""
        if self._replica is None:
            pos, mass, vel = map(self._all, self._particles)
            replica = HostTree(self._options)
            replica.build(None, pos, mass, vel)
            self._replica = replica
        return self._replica

    def _all(self, rows: DeviceArray) -> Untyped:
        """Those of all ranks, on the host; None of None."""
        return None if rows is None else np.concatenate(self.ranks.gathered(on_host(rows)))

    def _by_replica(self, call: str, *arguments: object, **setting: object) -> tuple[Untyped, ...]:
        """What the tree of all particles says."""
        xp = module_of(self._particles[0])
        given = (on_host(a) if hasattr(a, "shape") else a for a in arguments)
        found = getattr(self._of_all(), call)(*given, **setting)
        return tuple(xp.asarray(a) if isinstance(a, np.ndarray) else a for a in found)

    def particles(self) -> tuple[DeviceArray, ...]:
        """Own positions, masses, and velocities or None, as they were given."""
        if not getattr(self._inner, "of_host", False):
            return self._particles
        return tuple(None if a is None else on_host(a) for a in self._particles)

    def close(self) -> None:
        self.is_open = False
        self._inner.close()
        if self._replica is not None:
            self._replica.close()

    def work(self) -> DeviceArray:
        """What the last sum cost each of this rank's particles, in pairs."""
        pos = self._particles[0]
        xp = module_of(pos)
        if self._whole is None or self._domain is None:
            return xp.ones(len(pos))
        return self._way.back(xp.full(self._way.count, self._work))

    # ---- forces ----------------------------------------------------------------------------------

    def forces(
        self,
        ni: int,
        pos: DeviceArray | None,
        vel: DeviceArray | None,
        number: DeviceArray | None,
        last_acc: DeviceArray | None,
        *,
        momentum: bool,
        **setting: Untyped,
    ) -> Found:
        """Acceleration, potential, jerk or None, and a warning or None."""
        walk = Walk(**setting)
        moving = self._particles[2] is not None
        kinds = (a is not None for a in (pos, vel, number, last_acc))
        with self.ranks.agreement("Tree.forces()") as agreement:
            agreement.same("whether targets, vel, self_index and last_acc are given", *kinds)
            _agree_on(agreement, walk._asdict() | {"momentum": momentum})
            self._check_numbers(number)
        xp = module_of(self._particles[0])
        if self._whole is None:
            zero = xp.zeros((ni, 3)), xp.zeros(ni), xp.zeros((ni, 3)) if moving else None
            return Found(*zero, None)
        if self._domain is None:
            found = self._of_replica(pos, vel, number, last_acc, walk)
        else:
            found = self._of_domains(self._domain, ni, pos, vel, number, last_acc, walk)
        if momentum:
            self._close_system(found.acc)
            if found.jerk is not None:
                self._close_system(found.jerk)
        return found

    def _of_domains(
        self,
        domain: DomainTree,
        ni: int,
        pos: DeviceArray | None,
        vel: DeviceArray | None,
        number: DeviceArray | None,
        last_acc: DeviceArray | None,
        walk: Walk,
    ) -> Found:
        way, targets = self._way, (None, None, None)
        if pos is not None:
            way, targets = self._way_of_targets(pos, vel, number)
        last = way.there(last_acc)
        if walk.theta == 0.0 and are_few(self.n_all):
            walk, last = walk._replace(theta=PAIR_BY_PAIR, bound=0.0), None
        elif walk.theta == 0.0:  # bound is the wanted error
            if last is None:
                first = walk._replace(theta=1.0, bound=0.0, order=min(walk.order, 2))
                last = lengths(domain.sum(first, *targets).acc)
            bound = bound_of(walk.order if walk.method == "fmm" else 0, walk.bound)
            walk = walk._replace(theta=_WIDEST, bound=bound)
        found = domain.sum(walk, *targets, last)
        if pos is None and len(domain.pos):
            pairs, points, locals_ = domain.done
            self._work = (pairs + _PER_POINT * points + _PER_LOCAL * locals_) / len(domain.pos)
        with self._stages.timed("back", found.acc, meets=True):
            acc, pot, jerk = map(way.back, found[:3])
            return Found(acc, pot, jerk, found.warning)

    def _way_of_targets(
        self, pos: DeviceArray, vel: DeviceArray | None, number: DeviceArray | None
    ) -> tuple[Moves, tuple[DeviceArray, ...]]:
        """Of targets to the domains in which they, or the particles that they are, lie."""
        assert self._whole is not None
        xp = module_of(pos)
        rank, left = self._inner.owners(pos, self._whole, self._cut, self.ranks.rank)
        place = xp.full(len(pos), -1, np.int64)
        if number is not None:
            ranks, places = self._way.places()
            own, known = number - self.first, number >= 0
            rank[known], place[known] = ranks[own[known]], places[own[known]]
            left = None
        way = Moves(self.ranks, rank, left)
        return way, (way.there(pos), way.there(vel), way.there(place).astype(np.int32))

    def _check_numbers(self, number: DeviceArray | None) -> None:
        if number is None:
            return
        end = self.first + len(self._particles[0])
        wrong = (number != -1) & ((number < self.first) | (number >= end))
        if wrong.any():
            i = int(wrong.argmax())
            raise AddressError(
                f"self_index[{i}] = {int(number[i])}: the particles of rank {self.ranks.rank} are "
                f"{self.first} to {end - 1}"
            )

    def _of_replica(
        self,
        pos: DeviceArray | None,
        vel: DeviceArray | None,
        number: DeviceArray | None,
        last_acc: DeviceArray | None,
        walk: Walk,
    ) -> Found:
        if pos is None:
            pos, _, vel = self._particles
            number = np.arange(self.first, self.first + len(pos), dtype=np.int32)
        targets = len(pos), pos, vel, number
        if last_acc is None and walk.theta == 0.0 and not are_few(self.n_all):
            first = walk._replace(theta=1.0, bound=0.0)._asdict() | {"momentum": False}
            last_acc = lengths(self._by_replica("forces", *targets, None, **first)[0])
        setting = walk._asdict() | {"momentum": False}
        return Found(*self._by_replica("forces", *targets, last_acc, **setting))

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

    def bound(self, last_acc: DeviceArray | None, *, accuracy: float, **setting: Untyped) -> float:
        """The bound that gives an accuracy."""
        with self.ranks.agreement("Tree.bound()") as agreement:
            agreement.same("whether last_acc is given", last_acc is not None)
            _agree_on(agreement, setting | {"accuracy": accuracy})
        return bound_of(setting["order"] if setting["method"] == "fmm" else 0, accuracy)

    # ---- searches --------------------------------------------------------------------------------

    def within(
        self, ni: int, pos: DeviceArray | None, number: DeviceArray | None, h2: DeviceArray
    ) -> tuple[DeviceArray, DeviceArray]:
        """Neighbours: where rows start, and the rows."""
        with self.ranks.agreement("Tree.neighbours()") as agreement:
            agreement.same(_TARGETS, pos is not None, number is not None)
            self._check_numbers(number)
        pos, number = self._own_if_none(pos, number)
        if self._whole is None:
            xp = module_of(pos)
            return xp.zeros(ni + 1, np.int64), xp.zeros(0, np.int32)
        if self._domain is None:
            return self._by_replica("within", len(pos), pos, number, h2)
        return self._searches_in(self._domain).within(pos, self._placed(number), h2)

    def nearest(
        self, ni: int, pos: DeviceArray | None, number: DeviceArray | None, k: int
    ) -> tuple[DeviceArray, DeviceArray]:
        """Numbers of the k nearest, and how far they are."""
        with self.ranks.agreement("Tree.nearest()") as agreement:
            agreement.same(_TARGETS, pos is not None, number is not None)
            agreement.same("k", k)
            self._check_numbers(number)
        pos, number = self._own_if_none(pos, number)
        if self._whole is None:
            xp = module_of(pos)
            return xp.full((ni, k), -1, np.int32), xp.full((ni, k), np.inf)
        if self._domain is None:
            return self._by_replica("nearest", len(pos), pos, number, k)
        home, _ = self._inner.owners(pos, self._whole, self._cut, self.ranks.rank)
        return self._searches_in(self._domain).nearest(pos, self._placed(number), home, k)

    def _searches_in(self, domain: DomainTree) -> Searches:
        if self._searches is None:
            xp, n = module_of(domain.pos), len(self._particles[0])
            numbers = self._way.there(self.first + xp.arange(n))
            self._searches = Searches(domain, numbers)
        return self._searches

    def _own_if_none(
        self, pos: DeviceArray | None, number: DeviceArray | None
    ) -> tuple[DeviceArray, DeviceArray | None]:
        if pos is not None:
            return pos, number
        pos = self._particles[0]
        xp = module_of(pos)
        return pos, xp.arange(self.first, self.first + len(pos), dtype=np.int32)

    def _placed(self, number: DeviceArray | None) -> tuple[Int64s, Int64s] | None:
        """The ranks that have some own particles, and the places there; -1 of none."""
        if number is None:
            return None
        number = on_host(number)
        ranks, places = map(on_host, self._way.places())
        rank, place = np.full(len(number), -1), np.full(len(number), -1)
        known = number >= 0
        rank[known] = ranks[number[known] - self.first]
        place[known] = places[number[known] - self.first]
        return rank, place


def _agree_on(agreement: Agreement, setting: Mapping[str, Untyped]) -> None:
    """What must be equal on all ranks."""
    for name, value in setting.items():
        if isinstance(value, str):
            agreement.same_contents(f"{name}s", value)
        else:
            agreement.same(_NAMES.get(name, name), value)
