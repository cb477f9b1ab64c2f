"""Block steps: bodies moved one block at a time by the library, and how they go on with others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar, cast

import numpy as np

from grape6py import _clock
from grape6py._arrays.kinds import AnyArray, Bools, CData, Floats, Int32s, State, Untyped
from grape6py._lib.library import ffi, lib
from grape6py.errors import ArgumentError, NotOpenError
from grape6py.integrators.hermite_arrays import HostArrays, Setup
from grape6py.integrators.hermite_start import begin_all, begin_some
from grape6py.integrators.watch import Sighting, Watch
from grape6py.progress import next_multiple
from grape6py.ranks.one_rank import ONE

if TYPE_CHECKING:
    from grape6py.integrators.external import External

Values = TypeVar("Values", bound=AnyArray)

# Smallest step, as a fraction of the largest. Times are exact in double precision up to
# 2^53 smallest steps, which is 2^23 largest ones.
SMALLEST = 2.0**-30

# Between two calls of the library Ctrl-C works, and the bar moves.
_SECONDS = 0.05
_MOST = 32  # blocks between two looks of several ranks, whose clocks differ
_TO_BE_REPEATED = lib.G6X_HERMITE_PAUSED, lib.G6X_HERMITE_MERGE  # returns within a block

# Of blocks, what those that go on from them have, too.
KEPT = "steps", "blocks", "clamped", "clamped_time", "force_seconds", "watch", "epoch", "work_done"


def power_of_two(step: float) -> float:
    """The power of two that is not above a step."""
    return 2.0 ** (math.frexp(step)[1] - 1)


class Moment(NamedTuple):
    """All bodies at one time; shape (n, 3)."""

    pos: Floats
    vel: Floats
    acc: Floats
    jerk: Floats


class Blocks:
    """n bodies, each at its own time, moved block by block.

    Where they are, and what computes with them there, is the business of `bodies`, of the class
    `kind`. Bodies without mass, which do not act, are the last ones there: `_order` are the
    callers' numbers of the rows, `rows` the rows of the callers' bodies; None if they are equal.
    Times of the arrays count from `epoch`.
    """

    sense = 1  # of the time: see backwards.py

    def __init__(self, setup: Setup, kind: type[HostArrays] = HostArrays) -> None:
        self.setup, mass = setup, setup.mass
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
        self.work_done = 0.0  # before the epoch
        self._work = 0.0  # up to the time that was looked at last
        self._evolution = ffi.new(
            "struct g6x_evolution *", {"eps2": setup.eps * setup.eps, "passes": setup.passes}
        )
        heavy = mass != 0
        self.acting = int(np.count_nonzero(heavy))
        self._order: Int32s | None = None
        self.rows: Int32s | None = None
        if not heavy[: self.acting].all():
            self._order = np.argsort(~heavy, kind="stable").astype(np.int32)
            self.rows = np.argsort(self._order).astype(np.int32)
        acting = self.to_rows(mass)
        self.bodies = kind(setup, acting * setup.G if setup.G != 1 else acting, self.acting)

    def to_rows(self, array: Values) -> Values:
        """The callers' array in the order of the rows."""
        return array if self._order is None else cast("Values", array[self._order])

    def _to_callers(self, array: Values) -> Values:
        """Rows in the callers' order."""
        return array if self.rows is None else cast("Values", array[self.rows])

    @property
    def n(self) -> int:
        return len(self.mass)

    def set_counters(self, steps: int, blocks: int) -> None:
        """Go on counting from there."""
        self.steps, self.blocks = steps, blocks

    def state(self) -> State:
        """Copies of the arrays, by name, for NumPy; a BackendError if nothing can be read."""
        own, fetch = self.bodies.own, self.bodies.fetch
        found = {name: self._to_callers(fetch(array)) for name, array in own.items()}
        if self.work_done:
            found["work_done"] = np.array(self.work_done)
        if len(subsystems := self.bodies.subsystems):
            found["subsystems"] = subsystems
        return found

    def step_sizes(self) -> Floats:
        """Of bodies: members of a subsystem have its step."""
        carrier, _ = self.bodies.find_subsystems()
        return self._to_callers(self.bodies.fetch(self.bodies.own["dt"])[carrier])

    def subsystems(self) -> list[tuple[list[int], Floats]]:
        """Numbers of the bodies of each subsystem, ascending, and its elements."""
        carrier, elements = self.bodies.find_subsystems()
        found = []
        for row in np.flatnonzero(np.isfinite(elements[:, 2])):
            members = np.flatnonzero(carrier == row)
            numbers = members if self._order is None else self._order[members]
            found.append((sorted(map(int, numbers)), elements[row, :3]))
        return found

    def put(self, state: Mapping[str, Floats]) -> None:
        """Take NumPy's arrays over, by name."""
        names = state.keys() & self.bodies.own.keys()
        self.bodies.put({name: self.to_rows(np.asarray(state[name], float)) for name in names})
        self.work_done = float(state.get("work_done", self.work_done))
        if "subsystems" in state:
            self.bodies.subsystems = state["subsystems"]
        self._sent, self._looked = False, None

    def on_host(self) -> Blocks:
        """The same integration in NumPy's arrays, whose sums are not shared; this one, if it is."""
        if type(self.bodies) is HostArrays:
            return self
        host = Blocks(self.setup._replace(ranks=ONE))
        host.put(self.state())
        for name in KEPT:
            setattr(host, name, getattr(self, name))
        return host

    # ---- times -----------------------------------------------------------------------------------

    def latest(self) -> float:
        """The latest of the bodies' times, at least the epoch."""
        return self.epoch + self.bodies.latest

    def _since_epoch(self, time: float) -> float:
        """A time as the arrays count it; that of the last block is just that."""
        latest = self.bodies.latest
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
        if self.external is not None:
            self.external.set_epoch(self.epoch)
        e.closer, e.farther, e.centre = self.watch.closer, self.watch.farther, self.watch.centre
        goes_on, began = 0, _clock.seconds()
        try:
            with self._ranks.sharing_errors():  # of a rank, while others wait for it
                while (goes_on := self.bodies.evolve(e)) in _TO_BE_REPEATED:
                    if goes_on == lib.G6X_HERMITE_MERGE:
                        self.bodies.merge(e)
                    else:
                        self._call_function(self.block_end, e.ni)
                        is_late = 0 < e.seconds < _clock.seconds() - began
                        is_asked_to = e.stop != ffi.NULL and e.stop[0]
                        if e.blocks and (is_late or 0 < most <= e.blocks or is_asked_to):
                            break  # within the next block, which goes on
                    e.most_blocks = most and max(most - e.blocks, 1)
        finally:
            moved = int(e.blocks)
            if e.clamped and not self.clamped:
                self.clamped_time = self.epoch + e.clamped_time
            for name in ("blocks", "steps", "clamped", "force_seconds"):
                setattr(self, name, getattr(self, name) + getattr(e, name))
                setattr(e, name, 0)
            self._looked = None if moved else self._looked
        self._sent = True
        if goes_on == lib.G6X_HERMITE_WATCHED:
            self.sighted = self._sightings()
        return moved if moved or goes_on or end < self._end_by(target) else None

    def _call_function(self, time: float, ni: int) -> None:
        """Let the function of the field add it to the forces on the first rows of the block."""
        external, bodies = self.external, self.bodies
        assert external is not None
        with self._ranks.agreement("a field"), bodies.using():  # before any rank moves a body
            names = "xi", "vi", "field_acc", "field_jerk"
            pos, vel, acc, jerk = (bodies.block[name][:ni] for name in names)
            acc[...], jerk[...] = 0.0, 0.0
            external.add(time, pos, vel, acc, jerk, bodies.xp)

    def force(self, ni: int, time: float) -> None:
        """Find all forces on the first rows of the block."""
        external, began = self.external, _clock.seconds()
        self.bodies.sums(ni, time)
        self.force_seconds += _clock.seconds() - began
        if external is not None:
            external.reach(self.epoch + time)
            external.set_epoch(self.epoch)
            if external.function is not None:
                self._call_function(self.epoch + time, ni)
            self.bodies.add_field(ni, time)

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

    def _found_at(self, time: float) -> Moment:
        bodies = self.bodies
        if "work" in bodies.own and type(bodies) is not HostArrays:  # which is summed there
            host, self._sent = self.on_host(), False
            moment = host.at(time)
            self._work, self.force_seconds = host._work, host.force_seconds
            return moment
        time, rows = self._since_epoch(time), bodies.carriers
        if (bodies.fetch(bodies.own["t"][rows]) == time).all():
            found = [bodies.fetch(bodies.own[name][rows]) for name in Moment._fields]
        else:
            found = self._brought_to(rows, time)
        found = bodies.unfold(rows, time, found)
        if "work" in bodies.own:
            work = math.fsum(self.to_rows(self.mass) * bodies.work_until(time))
            self._work = self.work_done + work
        return Moment(*map(self._to_callers, found))

    def _brought_to(self, rows: AnyArray, time: float) -> list[Floats]:
        """Arrays of a Moment, of some rows."""
        bodies, external, fetch = self.bodies, self.external, self.bodies.fetch
        if self._evolution.ni:  # of a block that was left half way
            self._sent = False
        self._ready()
        ni = bodies.choose(rows)
        bodies.predict(ni, time)
        self.force(ni, time)
        # The derivatives may be those of the corrected block.
        found = [fetch(bodies.block[name][:ni]) for name in ("xi", "vi", "acc", "jerk")]
        if bodies.corrector_adds_field and external is not None and external.function is None:
            external.add(self.epoch + time, *found)
        bodies.correct(ni, time)
        found[:2] = (fetch(bodies.block[name][:ni]) for name in ("xi", "vi"))
        return found

    def look_again(self) -> None:
        """Let the next call look at the block under way once more."""
        self._evolution.stage = min(self._evolution.stage, lib.G6X_HERMITE_PAUSED)

    @property
    def block_end(self) -> float:
        """End of the block under way."""
        return self.epoch + float(self._evolution.next)

    def _sightings(self) -> list[Sighting]:
        """What has happened in the block under way, in the order of its times."""
        ni, bodies = self._evolution.ni, self.bodies

        def rows(name: str) -> AnyArray:
            return bodies.fetch(bodies.block[name][:ni])

        address, order = rows("address"), self._order
        number = address if order is None else order[address]
        found = []
        if self.watch.closer:
            near, (_, elements) = rows("nearest"), bodies.find_subsystems()
            for row in np.flatnonzero(np.isfinite(close := rows("close"))):
                pair, inner = (address[row], near[row]), elements[address[row]]
                if math.isfinite(inner[3]) and bodies.own["t"][pair[0]] + inner[3] == close[row]:
                    pair = inner[4:].astype(int)
                one, other = (int(q if order is None else order[q]) for q in pair)
                found.append(Sighting(self.epoch + float(close[row]), one, other))
        if self.watch.farther:
            for row in np.flatnonzero(np.isfinite(left := rows("left"))):
                found.append(Sighting(self.epoch + float(left[row]), int(number[row]), None))
        return sorted(found, key=lambda s: (s.time, s.body, -1 if s.other is None else s.other))

    def _ready(self) -> None:
        if not self._board.is_open:  # its id may be another session's by now
            raise NotOpenError("this integration is closed; make a new Hermite()")
        if not self._sent:
            self._send()
            self._sent = True

    def _send(self) -> None:
        """Give the board all bodies, after a start or an interruption."""
        self._evolution.ni = self._evolution.stage = 0
        self.bodies.send()

    # ---- other bodies ----------------------------------------------------------------------------

    def start(self, eta_start: float) -> None:
        """Take forces at the epoch and choose the first steps."""
        self._begin(begin_all, np.ones(self.n, bool), None, eta_start)

    def _begin(self, how: Callable[..., None], *arguments: Untyped) -> None:
        """Let bodies begin, as hermite_start.py does it on the host."""
        host = self.on_host()
        host._send()
        how(host, *arguments)
        host._sent = False
        if host is not self:
            self.force_seconds = host.force_seconds
            self.put(host.state())

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
        new = type(self)(self.setup._replace(mass=mass), type(self.bodies))
        for name in KEPT:
            setattr(new, name, getattr(self, name))
        old, there = self.state(), rows >= 0
        gone, anew = np.setdiff1d(np.arange(self.n), rows), changed | ~there
        masses = self.mass[gone], self.mass[rows[there & changed]], mass[anew]
        acts = "subsystems" in old or any(some.any() for some in masses)
        since = self._since_epoch(time)
        fitting = self._fitting_step(since)
        state = {name: np.zeros((len(mass), *old[name].shape[1:])) for name in self.bodies.own}
        for name, array in state.items():
            array[there] = old[name][rows[there]]
        if not acts and (fitting is not None or not anew.any()):
            new.epoch = self.epoch
            state["pos"][anew], state["vel"][anew] = pos[anew], vel[anew]
            state["t"][anew], state["dt"][anew] = since, fitting
            new.put(state)
            if anew.any():
                new._begin(begin_some, np.flatnonzero(anew).astype(np.int32), eta_start)
            return new
        moment = self.at(time)
        before = Moment(*(np.zeros((len(mass), 3)) for _ in range(4)))
        for to, array in zip(before, moment, strict=True):
            to[there] = array[rows[there]]
        new.epoch, new.work_done = time, self._work
        new.put(state | {"pos": pos, "vel": vel, "t": np.zeros(len(mass))})
        inside = np.isin(rows, [member for members, _ in self.subsystems() for member in members])
        new._begin(begin_all, anew | inside, before, eta_start)
        return new

    def mirrored(self, time: float, external: External | None) -> Self:
        """The same bodies from a time on in one that runs the other way, in the mirrored field."""
        if self.acting:
            raise ArgumentError(
                f"t is before the present time {time}: Hermite goes back with bodies without mass "
                "alone, Leapfrog with all"
            )
        moment, steps = self.at(time), self.state()["dt"]
        new = type(self)(self.setup._replace(external=external), type(self.bodies))
        for name in KEPT:
            setattr(new, name, getattr(self, name))
        new.epoch, new.watch = -time, Watch()
        own = {"t": np.zeros(self.n), "dt": steps, "pos": moment.pos, "acc": moment.acc}
        new.put(own | {"vel": -moment.vel, "jerk": -moment.jerk})
        return new

    def external_energy(self, time: float, mass: Floats, pos: Floats, vel: Floats) -> float:
        """Energy of bodies in the field where the frame is at rest, and that depends on places."""
        if self.external is None or self.external.orbit_frame is not None:
            return 0.0
        return math.fsum(mass * self.external.potential(time, pos, vel))

    def energy_of_work(self, time: float) -> float:
        """Where the frame moves: minus the work of the field so far."""
        if self.external is None or self.external.orbit_frame is None:
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
