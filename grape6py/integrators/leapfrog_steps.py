"""Leapfrog steps: the bodies' own times and accelerations, moved all at once or block by block.

The scheme is that of Bedorf, Gaburov & Portegies Zwart (2012, J. Comput. Phys. 231, 2825): bodies
are predicted to the new time, a tree of all of them gives the accelerations of those whose steps
end there, and these correct the velocities. Arrays are never written to: a step makes new ones, so
that whatever stops it leaves the bodies as they were before it or after it.

Of several ranks each has bodies of its own, and moves those: the times of blocks are agreed on, and
forces are those of the bodies of all ranks.
"""

import contextlib
from typing import Self

import numpy as np

from grape6py import _clock
from grape6py._arrays.kinds import Attributes, DeviceArray, Floats, Int32s, State, UInt64s, Untyped
from grape6py.errors import ArgumentError
from grape6py.integrators.blocks import Moment
from grape6py.integrators.external import External
from grape6py.integrators.gravity import Gravity, Sources
from grape6py.integrators.leapfrog_arrays import STATE, Bodies, Rule
from grape6py.integrators.watch import Sighting, Watch
from grape6py.progress import next_multiple

_ESCAPES_EVERY = 16  # largest steps, between two looks for who is beyond the boundary


class Leaps:
    """n bodies, moved block by block.

    `gravity` gives forces (integrators/gravity.py); `rule` is eta of the steps, smallest step,
    largest step. Beyond the radius `boundary` about the origin bodies are taken out.

    Attributes
    ----------
    n, first : int
        Number of bodies, on all ranks, and of this rank's first one among them.
    sighted : list of Sighting
        What is watched for and happens in the block that comes next: ids of bodies.
    """

    sense = 1  # of the time: see backwards.py

    def __init__(
        self,
        gravity: Gravity,
        rule: tuple[float, float, float],
        eps: float,
        boundary: float | None,
        G: float = 1.0,
        external: External | None = None,
    ) -> None:
        self.rule, self.force_seconds, self.epoch = rule, 0.0, 0.0
        self.external, self.watch = external, Watch()
        self.sighted: list[Sighting] = []
        self._looked = False  # at it: it is to be moved all the same
        self._gravity, self._arrays, self._boundary = gravity, gravity.arrays, boundary
        self._ranks, self.n, self.first = gravity.ranks, 0, 0
        eta, smallest, largest = rule
        self._shared = smallest == largest
        self._rule = Rule(0.0 if self._shared else 2 * eta * eps, smallest, largest)
        self._eps, self._G = eps, G
        self._masses: tuple[DeviceArray, Floats] | None = None  # there, and for NumPy
        # Time asked for, bodies looked at, bodies seen then.
        self._seen: tuple[float, Bodies, Bodies] | None = None

    def start(self, bodies: Bodies) -> None:
        """Take bodies over at the epoch: arrays of `gravity`, which must stay as they are."""
        self._take(bodies)
        self._escape()
        with self._arrays.using():
            self._start()

    def _take(self, bodies: Bodies) -> None:
        """Have these bodies, with new ids, and count those of all ranks."""
        self.first, self.n = self._ranks.numbered(len(bodies.mass))
        ids = np.uint64(self.first) + np.arange(len(bodies.mass), dtype=np.uint64)
        self._bodies = bodies if bodies.ids is not None else bodies._replace(ids=ids)

    def _start(self) -> None:
        """Take forces at the epoch, and first steps."""
        bodies = self._bodies
        acc, pot = self._force(bodies, bodies.pos, bodies.vel)
        own: Attributes = {"pot": pot}
        if not self._shared:
            dt = self._arrays.first_steps(acc, self._rule, bodies.eps)
            own |= {"pot": None, "t": self._arrays.xp.zeros(len(bodies.mass)), "dt": dt}
        self._bodies = bodies._replace(acc=acc, **own)

    def put(self, mass: Floats, state: State) -> None:
        """Take over what :meth:`state` gave."""
        with self._ranks.agreement("the bodies") as agreement, self._arrays.using():
            latest = agreement.maximum(state["t"].max(initial=0.0))
            earliest = agreement.minimum(state["t"].min(initial=np.inf))
            given = mass, *(state[name] for name in STATE)
            mass, t, dt, pos, vel, acc = (self._arrays.put(array) for array in given)
        own: Attributes = {} if self._shared else {"t": t, "dt": dt}
        own["eps"] = self._arrays.put(state["eps"]) if "eps" in state else None
        own["are_together"] = self._shared or latest.value <= earliest.value
        self._take(Bodies(latest.value, 0, 0, mass, pos, vel, acc, **own))

    def set_counters(self, steps: int, blocks: int) -> None:
        """Go on counting from there."""
        self._bodies = self._bodies._replace(steps=steps, blocks=blocks)

    def state(self) -> State:
        """Copies of the arrays, by name, for NumPy."""
        bodies, fetch = self._bodies, self._arrays.fetch
        found = {name: fetch(getattr(bodies, name)) for name in ("pos", "vel", "acc")}
        if self._shared:
            n = len(bodies.mass)
            own = {"t": np.full(n, bodies.time), "dt": np.full(n, self.rule[2])}
        else:
            own = {"t": fetch(bodies.t), "dt": fetch(bodies.dt)}
        return own | found

    def replaced(
        self,
        mass: Floats,
        pos: Floats,
        vel: Floats,
        rows: Int32s,
        _: object,
        time: float,
        __: object,
    ) -> Self:
        """The integration of other bodies from a time on, which becomes the epoch."""
        bodies = self._bodies
        if bodies.eps is not None:
            raise ArgumentError("bodies with their own eps stay as they are: make a new Leapfrog")
        new = type(self)(
            self._gravity, self.rule, self._eps, self._boundary, self._G, self.external
        )
        new.epoch, new.watch, new.force_seconds = time, self.watch, self.force_seconds
        with self._arrays.using():
            m, x, v = (self._arrays.put(array) for array in (mass, pos, vel))
            steps, blocks = bodies.steps, bodies.blocks
            new._take(Bodies(0.0, steps, blocks, m, x, v, None))
            new._start()
            if not self._shared and len(rows):  # no body's step is longer than it was
                old = self._arrays.fetch(bodies.dt)
                was = np.where(rows >= 0, old[np.maximum(rows, 0)] if len(old) else 0, np.inf)
                dt = np.minimum(self._arrays.fetch(new._bodies.dt), was)
                new._bodies = new._bodies._replace(dt=self._arrays.put(dt))
        return new

    def mirrored(self, time: float, external: External | None) -> Self:
        """The same bodies from a time on in one that runs the other way, in the mirrored field."""
        seen = self.look(time, pot=self._shared)
        new = type(self)(self._gravity, self.rule, self._eps, self._boundary, self._G, external)
        new.epoch, new.force_seconds = -time, self.force_seconds
        with self.using():
            own: Attributes = {}
            if not self._shared:
                own = {"t": self._arrays.xp.zeros_like(seen.t), "pot": None, "are_together": True}
            new._take(seen._replace(time=0.0, vel=-seen.vel, **own))
        return new

    def using(self) -> contextlib.AbstractContextManager[Untyped]:
        """Context in which arrays are made and used."""
        return self._arrays.using()

    @property
    def mass(self) -> Floats:
        """For NumPy."""
        if self._masses is None or self._masses[0] is not self._bodies.mass:
            self._masses = self._bodies.mass, self._arrays.fetch(self._bodies.mass)
        return self._masses[1]

    @property
    def eps(self) -> Floats | None:
        """Each body's own softening, for NumPy; None: all have one."""
        own = self._bodies.eps
        return None if own is None else self._arrays.fetch(own)

    @property
    def ids(self) -> UInt64s:
        """Numbers of the bodies at the start."""
        ids: UInt64s = self._bodies.ids
        return ids

    @property
    def steps(self) -> int:
        return self._bodies.steps

    @property
    def blocks(self) -> int:
        return self._bodies.blocks

    def set_ids(self, ids: UInt64s) -> None:
        self._bodies = self._bodies._replace(ids=ids)

    def latest(self) -> float:
        """Time of the last block."""
        return self.epoch + self._bodies.time

    @property
    def block_end(self) -> float:
        """End of the next block."""
        return self.epoch + self._next()

    def _next(self) -> float:
        """The same, since the epoch; infinite without bodies."""
        bodies = self._bodies
        if not self.n:
            return np.inf
        if self._shared:
            largest = self.rule[2]
            return (round(bodies.time / largest) + 1) * largest
        with self._ranks.agreement("a block") as agreement, self._arrays.using():
            own = float((bodies.t + bodies.dt).min()) if len(bodies.mass) else np.inf
            earliest = agreement.minimum(own)
        return earliest.value

    def grid(self, time: float) -> float:
        """The first multiple of the largest step after a time."""
        return next_multiple(time, self.rule[2], self.epoch)

    def advance(self, target: float, _: object, *, most: int = 0) -> int | None:
        """Move the next block, and return 1; None if it ends after `target`.

        Returns 0 if something that is watched for happens in it, which `sighted` has. The next call
        moves the block all the same.
        """
        time, self.sighted = self._next(), []
        if time == np.inf or self.epoch + time > target:
            return None
        new = self._step(time)
        if self.watch.farther and not self._looked:
            self.sighted = self._who_leaves(self._bodies, new)
            if self.sighted:
                self._looked = True
                return 0
        self._looked = False
        self._bodies = new
        largest = round(time / self.rule[2])
        if largest * self.rule[2] == time and largest % _ESCAPES_EVERY == 0:
            self._escape()
        return 1

    def external_energy(self, time: float, mass: Floats, pos: Floats, vel: Floats) -> float:
        """Energy of bodies in the field; where the frame moves, above that at its origin."""
        if self.external is None:
            return 0.0
        with self._ranks.agreement("the field"):
            found = mass * self.external.potential(time, pos, vel) if len(mass) else mass
        return self._ranks.total(found)

    def energy_of_work(self, _: float) -> float:
        """The above has all."""
        return 0.0

    def look_again(self) -> None:
        """Let the next call look at the next block once more."""
        self._looked = False

    def _who_leaves(self, old: Bodies, new: Bodies) -> list[Sighting]:
        """Bodies that are outside the watched sphere, which they leave on a straight line."""
        with self._ranks.agreement("a block"):
            when, who = self._own_who_leave(old, new)
        when, who = (np.concatenate(self._ranks.gathered(array)) for array in (when, who))
        leave = zip(when.tolist(), who.tolist(), strict=True)
        return sorted(Sighting(time, body, None) for time, body in leave)

    def _own_who_leave(self, old: Bodies, new: Bodies) -> tuple[Floats, UInt64s]:
        """Times at which own bodies leave, and their ids."""
        xp, watch = self._arrays.xp, self.watch
        with self._arrays.using():
            centre = xp.asarray(np.array(watch.centre))
            far = ((new.pos - centre) ** 2).sum(axis=1) > watch.farther**2
            if not far.any():
                return np.zeros(0), np.zeros(0, np.uint64)
            rows = self._arrays.fetch(self._arrays.numbers(far))
            began = np.full(len(rows), old.time)
            if old.t is not None:
                began = self._arrays.fetch(old.t)[rows]
            here, there = (self._arrays.fetch(b.pos)[rows] - watch.centre for b in (old, new))
        way = there - here
        length, outward = (way * way).sum(axis=1), (here * way).sum(axis=1)
        below = watch.farther**2 - (here * here).sum(axis=1)  # of the square of the radius
        root = np.sqrt(np.maximum(outward**2 + length * below, 0.0))
        share = np.where(below > 0, (root - outward) / np.where(length > 0, length, 1.0), 0.0)
        return self.epoch + (began + np.clip(share, 0, 1) * (new.time - began)), new.ids[rows]

    def _step(self, time: float) -> Bodies:
        """The bodies after the block that ends at a time."""
        bodies, arrays = self._bodies, self._arrays
        with arrays.using():
            if self._shared:
                to, moved = self.rule[2], self.n
                at = arrays.drift(bodies, to)
                acc, pot = self._force(bodies, at, self._predicted(bodies, to), time)
                vel = arrays.kick(bodies, to, acc)
                new = bodies._replace(time=time, pos=at, vel=vel, acc=acc, pot=pot)
            else:
                with self._ranks.agreement("a block"):
                    rows = arrays.numbers(bodies.t + bodies.dt == time)
                    at = arrays.drift(bodies, time)
                _, moved = self._ranks.numbered(len(rows))
                all_move = moved == self.n
                which = None if all_move else rows
                acc, _ = self._force(bodies, at, self._predicted(bodies, time), time, which)
                new = arrays.end_step(bodies, time, rows, at, acc, self._rule)
                new = new._replace(are_together=all_move)
        return new._replace(steps=bodies.steps + moved, blocks=bodies.blocks + 1)

    def _predicted(self, bodies: Bodies, to: float) -> DeviceArray:
        """Velocities at the end of a drift, for fields that depend on them; or None."""
        if self.external is None:
            return None
        return self._arrays.kick(bodies, to, bodies.acc)

    def _force(
        self,
        bodies: Bodies,
        at: DeviceArray,
        vel: DeviceArray,
        time: float = 0.0,
        rows: DeviceArray = None,
    ) -> tuple[DeviceArray, DeviceArray]:
        """Acceleration of and potential at all bodies, or those of some rows, that are there.

        The acceleration has the field at `time` in it, the potential has not.
        """
        mass = bodies.mass if self._G == 1 else bodies.mass * self._G
        began = _clock.seconds()
        with self._arrays.using():
            of = Sources(mass, at, self.first, bodies.acc, bodies.eps)
            acc, pot = self._gravity.forces(of, rows)
            if self.external is not None:
                with self._ranks.agreement("the field"):
                    x, v = (at, vel) if rows is None else (at[rows], vel[rows])
                    if len(x):
                        xp = self._arrays.xp
                        x, v = xp.ascontiguousarray(x), xp.ascontiguousarray(v)
                        self.external.add(self.epoch + time, x, v, acc, None, xp)
        self.force_seconds += _clock.seconds() - began
        return acc, pot

    def _escape(self) -> None:
        """Take out who is beyond the boundary, when all are at one time."""
        if self._boundary is None:
            return
        bodies, arrays, before = self._bodies, self._arrays, self.n
        with self._ranks.agreement("the boundary"), arrays.using():
            inside = (bodies.pos * bodies.pos).sum(axis=1) <= self._boundary**2
            if not inside.all():
                who = arrays.numbers(inside)
                kept = {name: getattr(bodies, name) for name in ("mass", "eps", *STATE)}
                kept = {name: array[who] for name, array in kept.items() if array is not None}
                bodies = bodies._replace(ids=bodies.ids[arrays.fetch(who)], **kept)
        self._take(bodies)
        if self.n < before:
            self._bodies = self._bodies._replace(pot=None)

    # ---- looking ---------------------------------------------------------------------------------

    def look(self, time: float, pot: bool = False) -> Bodies:
        """Bodies at a time, brought there as by :meth:`.Blocks.at`; the potential if asked for."""
        bodies, arrays = self._bodies, self._arrays
        time = bodies.time if time == self.latest() else time - self.epoch
        seen = bodies
        if self._seen is not None and self._seen[0] == time and self._seen[1] is bodies:
            seen = self._seen[2]
        with arrays.using():
            if seen is bodies and not (bodies.time == time and bodies.are_together):
                to = time - bodies.time if self._shared else time
                at = arrays.drift(bodies, to)
                acc, found = self._force(bodies, at, self._predicted(bodies, to), time)
                seen = bodies._replace(pos=at, vel=arrays.kick(bodies, to, acc), acc=acc, pot=found)
            if pot and seen.pot is None:
                seen = seen._replace(pot=self._force(seen, seen.pos, seen.vel, time)[1])
        self._seen = time, bodies, seen
        return seen

    def at(self, time: float) -> Moment:
        """All bodies of :meth:`look`, for NumPy; jerks are not known, and NaN."""
        seen = self.look(time)
        pos, vel, acc = (self._arrays.fetch(array) for array in (seen.pos, seen.vel, seen.acc))
        return Moment(pos, vel, acc, np.full((len(seen.mass), 3), np.nan))
