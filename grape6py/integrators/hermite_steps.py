"""Block steps: the bodies' own times and derivatives, moved one block at a time.

Forces come from a session of the library (``grape6.py``). :class:`HostBlocks` keeps the bodies in
NumPy arrays; the loop over blocks is the library's ``g6x_hermite_evolve`` (csrc/session/hermite.c).
For bodies on a CUDA device see ``hermite_device.py``.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays.kinds import Bools, CData, Floats, Int32s, Shapes, State, Untyped
from grape6py._lib.library import check, ffi, lib, pointer
from grape6py.errors import NotOpenError
from grape6py.integrators.watch import Sighting, Watch

if TYPE_CHECKING:
    from grape6py._lib.cluster import Board
    from grape6py.integrators.external import External

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
_PAUSED, _WATCHED = 2, 3  # what a call returns within a block

# Error of a pair term, by mode.
_ROUNDING = {"grape": 2.0**-24, "single": 2.0**-24, "double": 2.0**-52}

# Of blocks, what those that go on from them have, too.
KEPT = "steps", "blocks", "clamped", "clamped_time", "force_seconds", "watch", "epoch", "work_done"

# A body whose acceleration or jerk has changed by more than this when others came, went or changed
# takes its first step anew.
_CHANGED = 0.01


def power_of_two(step: float) -> float:
    """The power of two that is not above a step."""
    return 2.0 ** (math.frexp(step)[1] - 1)


class Setup(NamedTuple):
    """What block steps depend on, besides the bodies' places and velocities.

    `rule` is eta of Aarseth's criterion, smallest step, largest step; each of the corrector passes
    has a force call. The session of `board`, in mode `precision`, holds nothing else.
    """

    board: Board
    precision: str
    mass: Floats
    rule: tuple[float, float, float]
    passes: int
    eps: float = 0.0
    G: float = 1.0
    external: External | None = None


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
    # Add a function's field to the forces of the block; read the first rows of its arrays by name.
    _add_function: Callable[[], None]
    _block_rows: Callable[[str, int], Untyped]
    state: Callable[[], State]
    put: Callable[[Mapping[str, ArrayLike]], None]
    at: Callable[[float], Moment]
    _latest_of_all: Callable[[], float]
    _restart: Callable[[Bools, Moment | None, float], None]
    _restart_rows: Callable[[Int32s, float], None]

    def __init__(self, setup: Setup) -> None:
        self.setup, mass, eps = setup, setup.mass, setup.eps
        self.mass, self.rule, self._board = mass, setup.rule, setup.board
        self.external = setup.external
        self.epoch = 0.0
        self.steps = self.blocks = 0  # bodies and blocks moved
        self.clamped = 0  # steps that the smallest step kept longer than the criterion asked,
        self.clamped_time: float | None = None  # and when the first of them ended
        self.force_seconds = 0.0
        self._sent = False  # whether the board has the bodies as they are
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
        # The error of a force is that of its terms. Their sum without signs is at least pot^2
        # over the mass of the others (Cauchy and Schwarz).
        others = np.maximum(math.fsum(self._mass) - self._mass, 0.0)
        rounding = np.full(len(mass), _ROUNDING[setup.precision])
        self._rounding = np.divide(rounding, others, out=np.zeros(len(mass)), where=others > 0)

    def _in(self, array: Floats) -> Floats:
        """The callers' array in the order of the rows."""
        return array if self._order is None else array[self._order]

    def _out(self, array: Floats) -> Floats:
        """Rows in the callers' order."""
        return array if self._rows is None else array[self._rows]

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
        largest = self.rule[2]
        return self.epoch + (math.floor(self._since_epoch(time) / largest) + 1) * largest

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
        if self.external is not None:
            known = self.external.reach(self.latest(), target, 2 * self.rule[2])
            end = min(end, self._end_by(known))
        if e.ni and e.next > end:  # a block that was left half way, with a later target
            self._sent = False
        self._ready()
        self._sent = False
        e.t_end, e.most_blocks, e.seconds = end, most, _SECONDS
        e.stop = ffi.NULL if stop is None else stop
        e.pause = self.external is not None and self.external.function is not None
        e.closer, e.farther, e.centre = self.watch.closer, self.watch.farther, self.watch.centre
        goes_on, began = 0, clock.perf_counter()
        try:
            while (goes_on := self._evolve(e)) == _PAUSED:
                self._add_function()
                if self._is_over(e, most, stop, began):  # within the next block, which goes on
                    break
        finally:
            moved = self._take_counts()
        self._sent = True
        if goes_on == _WATCHED:
            self.sighted = self._sightings()
        return moved if moved or goes_on or end < self._end_by(target) else None

    @staticmethod
    def _is_over(e: CData, most: int, stop: CData | None, began: float) -> bool:
        """Whether :meth:`advance` is to return though the library would go on."""
        if not e.blocks:
            return False
        stops = stop is not None and bool(stop[0])
        return stops or 0 < most <= e.blocks or clock.perf_counter() - began > _SECONDS

    def look_again(self) -> None:
        """Let the next call look at the block under way once more."""
        self._evolution.stage = min(self._evolution.stage, 1)

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
                found.append(Sighting(self.epoch + close[row], int(number[row]), int(near[row])))
        if self.watch.farther:
            for row in np.flatnonzero(np.isfinite(left := self._block_rows("left", ni))):
                found.append(Sighting(self.epoch + left[row], int(number[row]), None))
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
        """Energy of bodies in the field, if it depends on their places: where the frame is at rest."""
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
    acc: Floats, jerk: Floats, pot: Floats, eta_start: float, rule: tuple[float, float, float]
) -> Floats:
    """First steps of bodies.

    A step is the largest power-of-two fraction of the largest step that is not above
    eta_start min(|a| / |da/dt|, sqrt(-pot) / |a|); the second term is for bodies at rest,
    whose da/dt is zero, and is left out without potential.
    """
    a, j = (np.sqrt((d * d).sum(axis=1)) for d in (acc, jerk))
    with np.errstate(divide="ignore", invalid="ignore"):
        of_rest = np.where(pot != 0, np.sqrt(np.abs(pot)) / a, np.inf)
        requested = eta_start * np.fmin(a / j, of_rest)
    _, smallest, largest = rule
    level = np.frexp(np.where(requested < largest, requested, largest) / largest)[1] - 1
    steps: Floats = np.maximum(np.ldexp(largest, np.minimum(level, 0)), smallest)
    return steps


class HostBlocks(Blocks):
    """Bodies in NumPy arrays, by the names of STATE: each at its time t."""

    t: Floats
    dt: Floats
    pos: Floats
    vel: Floats
    acc: Floats
    jerk: Floats

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        n, (eta, smallest, largest) = self.n, self.rule
        for name, shape in self.arrays.items():
            setattr(self, name, np.zeros((n, *shape)))
        self._everybody = np.arange(n, dtype=np.int32)
        block = {name: np.zeros((n, *shape)) for name, shape in self.block_arrays.items()}
        nearest = self._everybody.copy()
        self._block = SimpleNamespace(**block, address=self._everybody.copy(), nearest=nearest)
        self._radii = np.full(n, -1.0)  # no neighbour lists
        arrays = {NAMES.get(name, name): getattr(self, name) for name in self.arrays}
        arrays |= {"mass": self._mass, "rounding": self._rounding} | vars(self._block)
        self._pointers = {name: pointer(array) for name, array in arrays.items()}  # keeps them
        self._hermite = ffi.new("struct g6x_hermite *", {"n": n, "eta": eta, "dtmin": smallest})
        self._hermite.dtmax, self._hermite.massless = largest, n - self.acting
        if self.external is not None:
            self._hermite.field = self.external.c
        for name, address in self._pointers.items():
            setattr(self._hermite, name, address)

    def _evolve(self, evolution: CData) -> int:
        if self.external is not None:
            self.external.epoch = self.epoch
        return self._board.check(
            lib.g6x_hermite_evolve(self._board.cluster, self._hermite, evolution)
        )

    def _add_function(self) -> None:
        self._call_function(self.block_end, self._evolution.ni)

    def _call_function(self, time: float, ni: int) -> None:
        b, external = self._block, self.external
        assert external is not None
        b.field_acc[:ni], b.field_jerk[:ni] = 0.0, 0.0
        arrays = (array[:ni] for array in (b.xi, b.vi, b.field_acc, b.field_jerk))
        external.add(time, *arrays)

    def _block_rows(self, name: str, ni: int) -> Untyped:
        return getattr(self._block, name)[:ni]

    def state(self) -> State:
        """Copies of the arrays, by name."""
        found = {name: self._out(getattr(self, name)).copy() for name in self.arrays}
        return found | ({"work_done": np.array(self.work_done)} if self.work_done else {})

    def put(self, state: Mapping[str, ArrayLike]) -> None:
        """Take arrays over, by name."""
        for name in self.arrays:
            if name in state:
                getattr(self, name)[:] = self._in(np.asarray(state[name]))
        self.work_done = float(state.get("work_done", self.work_done))
        self._sent = False

    def _latest_of_all(self) -> float:
        return float(self.t.max(initial=0.0))

    def _restart(self, anew: Bools, before: Moment | None, eta_start: float) -> None:
        """Take forces at the epoch, where all bodies are; first steps for those that begin anew,
        and for those whose force is another one than `before`."""
        self._send()
        block = self._block
        self._block.address[:] = self._everybody
        self._predict(self.n, 0.0)
        self._force(self.n, 0.0)
        self.acc[:], self.jerk[:] = block.acc, block.jerk
        first = first_steps(self.acc, self.jerk, block.pot, eta_start, self.rule)
        takes_first = self._in(anew).copy()
        if before is not None:
            for new, old in ((self.acc, before.acc), (self.jerk, before.jerk)):
                change, size = ((d * d).sum(axis=1) for d in (new - self._in(old), self._in(old)))
                takes_first |= (change > _CHANGED**2 * size) & (first < self.dt)
        self.dt[:] = np.where(takes_first, first, self.dt)
        self._begin_work(self.n, 0.0)
        self._sent = False

    def _restart_rows(self, bodies: Int32s, eta_start: float) -> None:
        """Take forces on some bodies, at their times; their steps are at most what they have."""
        rows = np.sort(bodies if self._rows is None else self._rows[bodies])
        time, count = float(self.t[rows[0]]), len(rows)
        self._send()
        b = self._block
        b.address[:count] = rows
        self._predict(count, time)
        self._force(count, time)
        self.acc[rows], self.jerk[rows] = b.acc[:count], b.jerk[:count]
        first = first_steps(b.acc[:count], b.jerk[:count], b.pot[:count], eta_start, self.rule)
        self.dt[rows] = np.minimum(first, self.dt[rows])
        self._begin_work(count, time)
        self._sent = False

    def _begin_work(self, ni: int, time: float) -> None:
        """Of the first rows of the block, from a time on."""
        if "work" in self.arrays:
            check(lib.g6x_hermite_work(self._hermite, ni, time, ffi.NULL))

    def at(self, time: float) -> Moment:
        """All bodies at a time not after the next block's.

        Who is not there yet is brought there by a step of the same scheme, which is then
        forgotten: when one looks does not change what will be seen later.
        """
        time = self._since_epoch(time)
        if not (self.t == time).all():
            if self._evolution.ni:  # of a block that was left half way
                self._sent = False
            self._ready()
            b = self._block
            b.address[:] = self._everybody
            self._predict(self.n, time)
            self._force(self.n, time)
            found = b.acc.copy(), b.jerk.copy()  # which may be those of the corrected block
            self._correct_all(time)
            moment = b.xi, b.vi, *found
        else:
            moment = self.pos, self.vel, self.acc, self.jerk
        if "work" in self.arrays:
            self._work = self.work_done + self._work_until(time)
        return Moment(*(self._out(array).copy() for array in moment))

    def _work_until(self, time: float) -> float:
        """Since the epoch, when all bodies have been brought to a time."""
        mass = self._in(self.mass)
        if (self.t == time).all():
            return math.fsum(mass * self.work)
        work = np.zeros(self.n)
        check(lib.g6x_hermite_work(self._hermite, self.n, time, pointer(work)))
        return math.fsum(mass * work)

    def _predict(self, ni: int, time: float) -> None:
        """The first rows of the block."""
        h = self._hermite
        state = h.t, h.x, h.v, h.a, h.j
        check(lib.g6x_hermite_predict(ni, h.address, time, *state, h.xi, h.vi))

    def _force(self, ni: int, time: float) -> None:
        """All forces on the first rows of the block."""
        h, board = self._hermite, self._board
        began = clock.perf_counter()
        board.set_time(time)
        for rows in board.chunks(ni, self.acting):
            k, radii = rows.start, pointer(self._radii[rows])
            call = board.cluster, self.acting, rows.stop - k, h.address + k, h.xi + k, h.vi + k
            sums = h.acc + k, h.jerk + k, h.pot + k
            board.check(lib.g6calc_firsthalf(*call, *sums, self._eps2, radii))
            board.check(lib.g6calc_lasthalf(*call, self._eps2, radii, *sums))
        self.force_seconds += clock.perf_counter() - began
        external = self.external
        if external is None:
            return
        external.reach(self.epoch + time)
        external.epoch = self.epoch
        if external.function is not None:
            self._call_function(self.epoch + time, ni)
        check(lib.g6x_hermite_add_field(h, ni, time))

    def _correct_all(self, time: float) -> None:
        """To xi and vi; the bodies stay where they are, so that no error of acc is asked for."""
        h = self._hermite
        state = h.t, ffi.NULL, h.x, h.v, h.a, h.j
        forces = h.acc, h.jerk, ffi.NULL
        check(
            lib.g6x_hermite_correct(h.n, h.address, time, *self.rule, *forces, *state, h.xi, h.vi)
        )

    def _send(self) -> None:
        """Send everybody who acts, after a start or an interruption."""
        self._evolution.ni = self._evolution.stage = 0
        nj = self.acting
        derivatives = None, self.jerk[:nj] / 6, self.acc[:nj] / 2
        self._board.write(
            None, None, self.t[:nj], self._mass[:nj], *derivatives, self.vel[:nj], self.pos[:nj]
        )
