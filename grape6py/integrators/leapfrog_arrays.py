"""Bodies of a leapfrog integration in NumPy arrays, and what a step does with them.

Of a GPU's arrays leapfrog_device.py has the same. Arrays are never written to.
"""

import contextlib
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import AnyArray, Bools, DeviceArray, Floats, Int32s, Shapes, Untyped
from grape6py._lib import memory_space

# Arrays by body, in which the whole state of the integration lies.
STATE: Shapes = {"t": (), "dt": (), "pos": (3,), "vel": (3,), "acc": (3,)}


class Rule(NamedTuple):
    """What steps may be: at most sqrt(scale / |a|), with scale = 2 eta eps, and limits; of bodies
    with their own eps, sqrt(scale eps / |a|), with scale = 2 eta."""

    scale: float
    smallest: float
    largest: float


class Bodies(NamedTuple):
    """Bodies at the time of a block.

    Arrays have shape (n,) or (n, 3); each body is at its own time.
    """

    time: float
    steps: int  # bodies moved so far, of all ranks
    blocks: int
    mass: DeviceArray
    pos: DeviceArray
    vel: DeviceArray
    acc: DeviceArray
    pot: DeviceArray = None  # at `pos`, if it is known: shared steps only
    t: DeviceArray = None  # own times; None with shared steps, as
    dt: DeviceArray = None
    ids: DeviceArray = None  # uint64, for NumPy
    eps: DeviceArray = None  # if each has its own
    are_together: bool = True  # whether the own times of all, on all ranks, are `time`


class HostArrays:
    """NumPy's arrays, and what a step does with them.

    `to` is where bodies go: with shared steps so much farther, else to that time.
    """

    xp = np

    def using(self) -> contextlib.AbstractContextManager[None]:
        """Context in which arrays are made and used."""
        return contextlib.nullcontext()

    def place(self) -> memory_space.HostPlace:
        """Place of the arguments that bodies are made of: see memory_space.py."""
        return memory_space.HostPlace(None)

    def put(self, host: AnyArray) -> AnyArray:
        """A copy of NumPy's array."""
        return np.array(host)

    def fetch(self, array: AnyArray) -> AnyArray:
        """NumPy's copy of an array."""
        return array.copy()

    @staticmethod
    def _span(bodies: Bodies, to: float) -> Untyped:
        return to if bodies.t is None else (to - bodies.t)[:, None]

    def drift(self, bodies: Bodies, to: float) -> Floats:
        """Positions x + v h + a/2 h^2."""
        h = self._span(bodies, to)
        pos: Floats = bodies.pos + h * (bodies.vel + h / 2 * bodies.acc)
        return pos

    def kick(self, bodies: Bodies, to: float, acc: Floats) -> Floats:
        """Velocities v + (a + acc) h/2 where the new accelerations are known."""
        vel: Floats = bodies.vel + self._span(bodies, to) / 2 * (bodies.acc + acc)
        return vel

    def first_steps(self, acc: Floats, rule: Rule, eps: Floats | None) -> Floats:
        """The first steps of bodies with these accelerations."""
        return _halved(np.full(len(acc), rule.largest), _criterion_step(acc, rule, eps), rule)

    def end_step(
        self, bodies: Bodies, time: float, rows: Int32s, at: Floats, acc: Floats, rule: Rule
    ) -> Bodies:
        """Bodies when those of some rows have ended their steps.

        A step is halved as often as the criterion asks, and doubled once where the time is a
        multiple of the doubled step.
        """
        t, dt, pos, vel, a = (getattr(bodies, name).copy() for name in STATE)
        eps = None if bodies.eps is None else bodies.eps[rows]
        step, criterion = bodies.dt[rows], _criterion_step(acc, rule, eps)
        t[rows], pos[rows], a[rows] = time, at[rows], acc
        vel[rows] += step[:, None] / 2 * (bodies.acc[rows] + acc)
        twice = 2 * step
        longer = (twice <= criterion) & (twice <= rule.largest) & (np.fmod(time, twice) == 0)
        dt[rows] = np.where(longer, twice, _halved(step, criterion, rule))
        return bodies._replace(time=time, t=t, dt=dt, pos=pos, vel=vel, acc=a)

    def numbers(self, which: Bools) -> Int32s:
        """Numbers of the rows that are true."""
        return np.flatnonzero(which).astype(np.int32)


def _criterion_step(acc: Floats, rule: Rule, eps: Floats | None) -> Floats:
    """Steps that bodies want (Springel 2005, MNRAS 364, 1105, equation 34)."""
    with np.errstate(divide="ignore"):
        scale = rule.scale * (1.0 if eps is None else eps)
        steps: Floats = np.sqrt(scale / np.sqrt((acc * acc).sum(axis=1)))
        return steps


def _halved(step: Floats, criterion: Floats, rule: Rule) -> Floats:
    while (long := ~(step <= criterion) & (step > rule.smallest)).any():
        step = np.where(long, step / 2, step)
    return step
