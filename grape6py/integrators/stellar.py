"""Stars that change on the way: their masses, radii and kicks come from another code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from grape6py import kepler
from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Numbers, State, Untyped
from grape6py.errors import ArgumentError
from grape6py.in_units import converter_of
from grape6py.integrators.blocks import Blocks
from grape6py.integrators.changes import Changes
from grape6py.integrators.leapfrog_steps import Leaps


class StellarUpdate(NamedTuple):
    """What ``stars`` of :meth:`Hermite.evolve` gives: the stars at the time at which it is called.

    Attributes
    ----------
    mass : array_like, shape (n,)
        Of all bodies (of this rank), in the order of :attr:`Hermite.ids`.
    next : float or array_like, shape (k,)
        The time at which to ask again, the earliest of several; infinite for never.
    kick : array_like, shape (n, 3), optional
        What is added to velocities, as in supernovae.
    radius : array_like, shape (n,), optional
        For ``Encounter("radii")``.
    """

    mass: Numbers
    next: Numbers = math.inf
    kick: Numbers | None = None
    radius: Numbers | None = None


class StellarChanges(Changes):
    """Bodies on their way that are stars; see :class:`~.base.Integration`."""

    _stars_due = -math.inf  # when to ask
    _radius: Floats | None = None

    @property
    def radius(self) -> Floats:
        """Radii of the stars, as `stars` of :meth:`evolve` has given them last; shape (n,)."""
        return self._shown(
            np.zeros(len(self._blocks.mass)) if self._radius is None else self._radius
        )

    def _until(
        self, target: float, stars: Callable[[Untyped], StellarUpdate] | None
    ) -> Iterator[float]:
        """Times to evolve to, one after the other: those at which stars change, and the target."""
        while stars is not None and self._stars_due <= target:
            if self._stars_due > self.time:
                yield self._stars_due
            self._update(stars)
        yield target

    def _update(self, stars: Callable[[Untyped], StellarUpdate]) -> None:
        """Ask for the stars at the present time, and take that over."""
        seen: Untyped = self._as_seen()
        with self._ranks.agreement("stars"):
            found, converter = stars(seen), converter_of(seen)
        with self._lock, self._ranks.agreement("an update of stars") as agreement:
            if not isinstance(found, StellarUpdate):
                raise ArgumentError(f"stars gave {type(found).__name__}, not a StellarUpdate")
            if converter is not None:
                found = converter.numbers("stars", found, None)
            mass, pos, vel = self._bodies()
            n = len(mass)
            new = validate.floats("stars: mass", found.mass, (n,))
            if (new < 0).any():
                raise ArgumentError(f"stars: mass {new.min()} is below zero")
            kick = np.zeros((n, 3)) if found.kick is None else found.kick
            kick = validate.floats("stars: kick", kick, (n, 3))
            due = float(np.min(validate.reals("stars: next", found.next), initial=math.inf))
            if not due > self.time:
                raise ArgumentError(
                    f"stars gave next = {due}, which is not after the time {self.time}: that "
                    "would never end"
                )
            if found.radius is not None:
                if not self.SEES_ENCOUNTERS:
                    raise ArgumentError("stars: radius is for encounters, which Leapfrog has not")
                self._radius = validate.floats("stars: radius", found.radius, (n,)).copy()
                if (self._radius < 0).any():
                    raise ArgumentError(f"stars: radius {self._radius.min()} is below zero")
            earliest = agreement.minimum(due)
            which = np.flatnonzero((new != mass) | (kick != 0).any(axis=1))
            changes = agreement.maximum(len(which))
        if changes.value:
            self._change_some(new, pos, vel + kick, which)
        self._stars_due = earliest.value

    def _change(self, *bodies: Untyped) -> None:
        super()._change(*bodies)
        if self._radius is not None:  # those of the bodies that were there; new ones have none
            rows = bodies[4]
            self._radius = np.where(rows >= 0, self._radius[rows], 0.0)

    def _extra(self, blocks: Blocks | Leaps) -> State:
        found = super()._extra(blocks)
        if self._stars_due > -math.inf:
            found["stars_due"] = np.array(self._stars_due)
        return found if self._radius is None else found | {"radius": self._radius}

    def _take_stars(self, extra: State) -> None:
        """What :meth:`_extra` gave."""
        self._stars_due = float(extra.get("stars_due", -math.inf))
        if "radius" in extra:
            self._radius = validate.floats("radius", extra["radius"], (len(self._blocks.mass),))

    def _touch(self, ids: tuple[int, ...], time: float) -> bool:
        """Whether two stars that are near each other come closer than the sum of their radii.

        Their orbit is that of the two alone.
        """
        if self._radius is None:
            return False
        rows = self._numbers(list(ids))
        moment, mass = self._call("at", time), self._G * self._blocks.mass[rows].sum()
        apart, motion = (np.diff(array[rows], axis=0) for array in (moment.pos, moment.vel))
        near, nearest = self._radius[rows].sum(), float(np.sqrt((apart * apart).sum()))
        if mass > 0:
            a, e, *_ = kepler.elements(np.array([mass]), apart, motion)
            if (apart * motion).sum() < 0 or a[0] > 0:
                nearest = min(nearest, float(a[0] * (1 - e[0])))
        return nearest <= float(near)
