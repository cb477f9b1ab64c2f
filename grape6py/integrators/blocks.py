"""What block steps share: the setup, the loop's state, and how they go on with other bodies.

:class:`Blocks` is the base of :class:`~.hermite_steps.HostBlocks` and
:class:`~.hermite_device.DeviceBlocks`, which have the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar, cast

import numpy as np

from grape6py import _clock
from grape6py._arrays.kinds import AnyArray, Bools, CData, Floats, Int32s, Shapes, State, Untyped
from grape6py._lib.library import ffi, lib
from grape6py.errors import NotOpenError
from grape6py.integrators.watch import Sighting, Watch
from grape6py.progress import next_multiple
from grape6py.ranks.one_rank import ONE

if TYPE_CHECKING:
    from grape6py._lib.cluster import Board
    from grape6py.integrators.external import External
    from grape6py.ranks.ranks import Ranks

Values = TypeVar("Values", bound=AnyArray)

# Smallest step, as a fraction of the largest. Times are exact in double precision up to
# 2^53 smallest steps, which is 2^23 largest ones.
SMALLEST = 2.0**-30

# Arrays by body, in which the whole state of the integration lies.
STATE: Shapes = {"t": (), "dt": (), "pos": (3,), "vel": (3,), "acc": (3,), "jerk": (3,)}

# Of the bodies of a block, in their first rows; names of the state and of these as the library's.
BLOCK: Shapes = {"xi": (3,), "vi": (3,), "acc": (3,), "jerk": (3,), "pot": ()}
WATCHED: Shapes = {"close": (), "left": ()}
OUTSIDE: Shapes = {"field_acc": (3,), "field_jerk": (3,)}  # in a field

# Of bodies in a field whose frame moves: its work per mass since the epoch, its power and the
# derivative of that at t.
WORK: Shapes = {"work": (), "power": (), "rate": ()}
NAMES = {"t": "t", "dt": "dt", "pos": "x", "vel": "v", "acc": "a", "jerk": "j"}

# Between two calls of the library Ctrl-C works, and the bar moves.
_SECONDS = 0.05
_MOST = 32  # blocks between two looks of several ranks, whose clocks differ
_TO_BE_REPEATED = lib.G6X_HERMITE_PAUSED, lib.G6X_HERMITE_MERGE  # returns within a block

# Error of a pair term, and of a position whose difference is computed as it is, by mode. Where mode
# auto sums in double, the library knows it.
_NOISE = {"grape": (2.0**-24, 0.0), "single": (2.0**-24, 2.0**-24), "double": (2.0**-52, 0.0)}
_NOISE["auto"] = _NOISE["grape"]

# Of blocks, what those that go on from them have, too.
KEPT = "steps", "blocks", "clamped", "clamped_time", "force_seconds", "watch", "epoch", "work_done"

# A body whose acceleration or jerk has changed by more than this when others came, went or changed
# takes its first step anew.
CHANGED = 0.01


def power_of_two(step: float) -> float:
    """The power of two that is not above a step."""
    return 2.0 ** (math.frexp(step)[1] - 1)


class Setup(NamedTuple):
    """What block steps depend on, besides the bodies' places and velocities.

    `rule` is eta of Aarseth's criterion, smallest step, largest step; each of the corrector passes
    has a force call. The session of `board`, in mode `precision`, holds nothing else. All
    `ranks` have the same bodies, and share the sums.
    """

    board: Board
    precision: str
    mass: Floats
    rule: tuple[float, float, float]
    passes: int
    eps: float = 0.0
    G: float = 1.0
    external: External | None = None
    ranks: Ranks = ONE


class Moment(NamedTuple):
    """All bodies at one time; shape (n, 3)."""

    pos: Floats
    vel: Floats
    acc: Floats
    jerk: Floats


class Blocks:
    """n bodies, each at its own time, moved block by block.

    Where the arrays are, and what computes with them, is the subclasses' business. Bodies without
    mass, which do not act, are the last ones there: `_order` are the callers' numbers of the rows,
    `_rows` the rows of the callers' bodies; None if they are equal. Times of the arrays count from
    `epoch`.
    """

    # Of the subclasses: move blocks by the library, and give the board all bodies.
    _evolve: Callable[[CData], int]
    _send: Callable[[], None]
    # Let a function add its field to forces at a time; bring together what the ranks have summed of
    # the block; read the first rows of its arrays by name.
    _add_field: Callable[[External, float, int], None]
    _merge: Callable[[], None]
    _block_rows: Callable[[str, int], Untyped]
    state: Callable[[], State]
    put: Callable[[Mapping[str, Floats]], None]
    _found_at: Callable[[float], Moment]
    _latest_of_all: Callable[[], float]
    _restart: Callable[[Bools, Moment | None, float], None]
    _restart_rows: Callable[[Int32s, float], None]

    def __init__(self, setup: Setup) -> None:
        self.setup, mass, eps = setup, setup.mass, setup.eps
        self.mass, self.rule, self._board = mass, setup.rule, setup.board
        self.external, self._ranks = setup.external, setup.ranks
        self.epoch = 0.0
        self.steps = self.blocks = 0  # bodies and blocks moved
        self.clamped = 0  # steps that the smallest step kept longer than the criterion asked,
        self.clamped_time: float | None = None  # and when the first of them ended
        self.force_seconds = 0.0
        self._sent = False  # whether the board has the bodies as they are
        self._looked: tuple[float, Moment] | None = None  # when, and what was there
        self.watch = Watch()
        self.sighted: list[Sighting] = []  # of the block under way
        frame = None if self.external is None else self.external.frame
        self.arrays = STATE if frame is None else STATE | WORK
        self.block_arrays = BLOCK | WATCHED | ({} if self.external is None else OUTSIDE)
        self.work_done = 0.0  # before the epoch
        self._work = 0.0  # up to the time that was looked at last
        self._eps2 = eps * eps
        self._evolution = ffi.new(
            "struct g6x_evolution *", {"eps2": self._eps2, "passes": setup.passes}
        )
        heavy = mass != 0
        self.acting = int(np.count_nonzero(heavy))
        self._order: Int32s | None = None
        self._rows: Int32s | None = None
        if not heavy[: self.acting].all():
            self._order = np.argsort(~heavy, kind="stable").astype(np.int32)
            self._rows = np.argsort(self._order).astype(np.int32)
        acting = self._in(mass) * setup.G if setup.G != 1 else self._in(mass)
        self._mass = np.ascontiguousarray(acting)
        # The error of a force is that of its terms. Their sum without signs is at least the force,
        # and pot^2 over the mass of the others (Cauchy and Schwarz).
        others = np.maximum(math.fsum(self._mass) - self._mass, 0.0)
        self._noise = _NOISE[setup.precision]
        rounding = np.full(len(mass), self._noise[0])
        self._rounding = np.divide(rounding, others, out=np.zeros(len(mass)), where=others > 0)

    def _in(self, array: Values) -> Values:
        """The callers' array in the order of the rows."""
        return array if self._order is None else cast("Values", array[self._order])

    def _out(self, array: Values) -> Values:
        """Rows in the callers' order."""
        return array if self._rows is None else cast("Values", array[self._rows])

    @property
    def n(self) -> int:
        return len(self.mass)

    def set_counters(self, steps: int, blocks: int) -> None:
        """Go on counting from there."""
        self.steps, self.blocks = steps, blocks

    # ---- times -----------------------------------------------------------------------------------

    def latest(self) -> float:
        """The latest of the bodies' times, at least the epoch."""
        return self.epoch + self._latest_of_all()

    def _since_epoch(self, time: float) -> float:
        """A time as the arrays count it; that of the last block is just that."""
        latest = self._latest_of_all()
        return latest if time == self.epoch + latest else time - self.epoch

    def _end_by(self, target: float) -> float:
        """The latest end of blocks that is not after a time."""
        end = target - self.epoch
        return end if self.epoch + end <= target else math.nextafter(end, -math.inf)

    def grid(self, time: float) -> float:
        """The first multiple of the largest step after a time."""
        return next_multiple(time, self.rule[2], self.epoch)

    # ---- moving ----------------------------------------------------------------------------------

    def advance(self, target: float, stop: CData | None, *, most: int = 0) -> int | None:
        """Move blocks that end by `target`, for a while; at most so many if not 0.

        `stop` is a pointer to an int: the block under way is the last if that is not zero. Returns
        how many blocks were moved, None if the next ends later. Ctrl-C between two calls, and
        errors, leave every body as it was before a block or after it. If something that is watched
        for happens, `sighted` has it, and the next call ends the block all the same.
        """
        e, self.sighted = self._evolution, []
        end = self._end_by(target)
        if self.external is not None and self.n:  # without bodies no block would come
            known = self.external.reach(self.latest(), target, 2 * self.rule[2])
            end = min(end, self._end_by(known))
        if e.ni and e.next > end:  # a block that was left half way, with a later target
            self._sent = False
        self._ready()
        self._sent = False
        e.t_end, e.seconds = end, _SECONDS
        if self._ranks.size > 1:
            e.seconds, most = 0, most or _MOST
        e.most_blocks = most
        e.stop = ffi.NULL if stop is None else stop
        e.pause = self.external is not None and self.external.function is not None
        e.closer, e.farther, e.centre = self.watch.closer, self.watch.farther, self.watch.centre
        goes_on, began = 0, _clock.seconds()
        try:
            with self._ranks.sharing_errors():  # of a rank, while others wait for it
                while (goes_on := self._evolve(e)) in _TO_BE_REPEATED:
                    if goes_on == lib.G6X_HERMITE_MERGE:
                        self._merge()
                    else:
                        self._call_function(self.block_end, e.ni)
                        if self._has_to_return(
                            e, most, began
                        ):  # within the next block, which goes on
                            break
                    e.most_blocks = most and max(most - e.blocks, 1)
        finally:
            moved = self._take_counts()
            self._looked = None if moved else self._looked
        self._sent = True
        if goes_on == lib.G6X_HERMITE_WATCHED:
            self.sighted = self._sightings()
        return moved if moved or goes_on or end < self._end_by(target) else None

    @staticmethod
    def _has_to_return(e: CData, most: int, began: float) -> bool:
        """Whether :meth:`advance` does, though the library would go on."""
        if not e.blocks:
            return False
        is_late = 0 < e.seconds < _clock.seconds() - began
        return is_late or 0 < most <= e.blocks or (e.stop != ffi.NULL and bool(e.stop[0]))

    def _call_function(self, time: float, ni: int) -> None:
        """Let the function of the field add it to the forces on the first rows of the block."""
        external = self.external
        assert external is not None
        with self._ranks.agreement("a field"):  # before any rank moves a body
            self._add_field(external, time, ni)

    def at(self, time: float) -> Moment:
        """All bodies at a time not after the next block's.

        Who is not there yet is brought there by a step of the same scheme, which is then
        forgotten: when one looks does not change what will be seen later. A rank that looks once
        more needs no other.
        """
        if self._looked is None or self._looked[0] != time or self._evolution.ni:
            with self._ranks.sharing_errors():
                self._looked = time, self._found_at(time)
        return self._looked[1]

    def look_again(self) -> None:
        """Let the next call look at the block under way once more."""
        self._evolution.stage = min(self._evolution.stage, lib.G6X_HERMITE_PAUSED)

    @property
    def block_end(self) -> float:
        """End of the block under way."""
        return self.epoch + float(self._evolution.next)

    def _sightings(self) -> list[Sighting]:
        """What has happened in the block under way, in the order of its times."""
        ni = self._evolution.ni
        address = self._block_rows("address", ni)
        number = address if self._order is None else self._order[address]
        found = []
        if self.watch.closer:
            near = self._block_rows("nearest", ni)
            near = near if self._order is None else self._order[near]
            for row in np.flatnonzero(np.isfinite(close := self._block_rows("close", ni))):
                found.append(
                    Sighting(self.epoch + float(close[row]), int(number[row]), int(near[row]))
                )
        if self.watch.farther:
            for row in np.flatnonzero(np.isfinite(left := self._block_rows("left", ni))):
                found.append(Sighting(self.epoch + float(left[row]), int(number[row]), None))
        return sorted(found, key=lambda s: (s.time, s.body, -1 if s.other is None else s.other))

    def _take_counts(self) -> int:
        """Add what the calls have done, and return how many blocks that was."""
        e = self._evolution
        moved: int = e.blocks
        if e.clamped and not self.clamped:
            self.clamped_time = self.epoch + e.clamped_time
        for name in ("blocks", "steps", "clamped", "force_seconds"):
            setattr(self, name, getattr(self, name) + getattr(e, name))
            setattr(e, name, 0)
        return moved

    def _ready(self) -> None:
        if not self._board.is_open:  # its id may be another session's by now
            raise NotOpenError("this integration is closed; make a new Hermite()")
        if not self._sent:
            self._send()
            self._sent = True

    # ---- other bodies ----------------------------------------------------------------------------

    def start(self, eta_start: float) -> None:
        """Take forces at the epoch and choose the first steps."""
        self._restart(np.ones(self.n, bool), None, eta_start)

    def replaced(
        self,
        mass: Floats,
        pos: Floats,
        vel: Floats,
        rows: Int32s,
        changed: Bools,
        time: float,
        eta_start: float,
    ) -> Self:
        """The integration of other bodies from a time on; this one is as it was.

        `rows` are the present numbers of those bodies, -1 for new ones; `changed` are those with
        another mass, place or velocity. If only bodies without mass come, go or change, the others
        keep all that they have. Else all are brought to that time, which becomes the epoch, and
        take forces anew; their steps stay, but for those whose force is another one now.
        """
        setup = self.setup._replace(mass=mass)
        new = type(self)(setup)
        for name in KEPT:
            setattr(new, name, getattr(self, name))
        old, there = self.state(), rows >= 0
        gone = np.setdiff1d(np.arange(self.n), rows)
        acts = bool(self.mass[gone].any() or self.mass[rows[there & changed]].any())
        acts = acts or bool(mass[changed | ~there].any())
        since = self._since_epoch(time)
        fitting = self._fitting_step(since)
        state = {name: np.zeros((len(mass), *shape)) for name, shape in self.arrays.items()}
        for name, array in state.items():
            array[there] = old[name][rows[there]]
        anew = changed | ~there
        if not acts and (fitting is not None or not anew.any()):
            new.epoch = self.epoch
            state["pos"][anew], state["vel"][anew] = pos[anew], vel[anew]
            state["t"][anew], state["dt"][anew] = since, fitting
            new.put(state)
            if anew.any():
                new._restart_rows(np.flatnonzero(anew).astype(np.int32), eta_start)
            return new
        moment = self.at(time)
        before = Moment(*(np.zeros((len(mass), 3)) for _ in range(4)))
        for to, array in zip(before, moment, strict=True):
            to[there] = array[rows[there]]
        new.epoch, new.work_done = time, self._work
        new.put(state | {"pos": pos, "vel": vel, "t": np.zeros(len(mass))})
        new._restart(anew, before, eta_start)
        return new

    def external_energy(self, time: float, mass: Floats, pos: Floats, vel: Floats) -> float:
        """Energy of bodies in the field where the frame is at rest, and that depends on places."""
        if self.external is None or self.external.frame is not None:
            return 0.0
        return math.fsum(mass * self.external.potential(time, pos, vel))

    def energy_of_work(self, time: float) -> float:
        """Where the frame moves: minus the work of the field so far."""
        if self.external is None or self.external.frame is None:
            return 0.0
        self.at(time)
        return -self._work

    def _fitting_step(self, since: float) -> float | None:
        """The largest step that a body can take from a time on, None if it is off the grid."""
        _, smallest, step = self.rule
        if smallest == step:
            return None
        while math.fmod(since, step):
            step /= 2
            if step < smallest:
                return None
        return step


def first_steps(
    acc: Floats,
    jerk: Floats,
    pot: Floats,
    falling: Floats,
    eta_start: float,
    rule: tuple[float, float, float],
) -> Floats:
    """First steps of bodies; `falling` is the time in which the field changes for one that falls.

    A step is the largest power-of-two fraction of the largest step that is not above
    eta_start min(|a| / |da/dt|, sqrt(-pot) / |a|); the second term is for bodies at rest,
    whose da/dt is zero, and is left out without potential; `falling` takes its place if shorter.
    """
    a, j = (np.sqrt((d * d).sum(axis=1)) for d in (acc, jerk))
    with np.errstate(divide="ignore", invalid="ignore"):
        of_rest = np.where(pot != 0, np.sqrt(np.abs(pot)) / a, np.inf)
        of_rest = np.where(j == 0, np.fmin(of_rest, falling), of_rest)
        requested = eta_start * np.fmin(a / j, of_rest)
    _, smallest, largest = rule
    level = np.frexp(np.where(requested < largest, requested, largest) / largest)[1] - 1
    steps: Floats = np.maximum(np.ldexp(largest, np.minimum(level, 0)), smallest)
    return steps
