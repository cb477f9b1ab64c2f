"""What :meth:`Hermite.evolve` may watch for, and do when it happens.

``cluster.evolve(10, events=[Encounter(1e-3, on_encounter="merge"), Escape(20)])``

What happens in the step of a body is seen when that step ends. The time of the integration is then
that of the event, unless bodies are farther already, by less than that step: at the end of the last
block, which may be later where a body has a long step, or of the last call, as a step that ends
after the end of one call is seen by the next.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self, TypeAlias

import numpy as np

from grape6py import _clock, diagnostics
from grape6py._arrays import quantities, validate
from grape6py._arrays.closed import Closed
from grape6py.errors import ArgumentError, meant
from grape6py.in_units import ARGUMENTS
from grape6py.progress import next_multiple
from grape6py.units import Units

if TYPE_CHECKING:
    from grape6py._arrays.kinds import Floats, Numbers, Untyped
    from grape6py._arrays.quantities import Converter
    from grape6py.integrators.evolving import Evolving

Action: TypeAlias = "str | Callable[[Untyped, Event], object]"
AnyEvent: TypeAlias = "Encounter | Escape | EnergyError | WallTime"
_CGS = quantities.Converter(Units("g", "cm", time="s"))


class Event(NamedTuple):
    """Something that has happened.

    Attributes
    ----------
    kind : {"encounter", "escape", "energy", "wall time"}
    time : float
        When: within the step of a body, interpolated. The bodies' time may be later, by less than
        that step.
    ids : tuple of int
        Of the bodies that it happened to.
    value : float
        The distance of the two; the radius that was left; the energy error; seconds. Lengths are
        quantities where the bodies are.
    """

    kind: str
    time: float
    ids: tuple[int, ...]
    value: float


class _Watched(Closed):
    """What is watched for. `radius`, `centre` and `every` are numbers or quantities."""

    def in_numbers(self, converter: Converter | None) -> Self:
        """The same for bodies in units, or for plain ones."""
        made = copy.copy(self)
        for name, value in vars(self).items():
            if name not in ("radius", "centre", "every") or value is None:
                continue
            if converter is None:
                found = quantities.number(name, value)
            else:
                found = converter.numbers(name, value, ARGUMENTS[name])
            vars(made)[name] = np.asarray(found, float) if np.ndim(found) else found
        return made


def _checked(
    name: str, value: Untyped, check: Callable[..., Untyped] = validate.positive
) -> Untyped:
    """What `check` makes of numbers; a quantity of the right dimension as it is."""
    if not quantities.holds_quantity(value):
        return check(name, value)
    check(name, _CGS.numbers(name, value, ARGUMENTS[name]))
    return value


class Encounter(_Watched):
    """Two bodies come closer than a radius.

    Each body is looked at with its nearest neighbour between the ends of its step: their paths are
    the cubics that have positions and velocities there. Its force gives that neighbour for nothing;
    bodies without mass are searched as if they had some.

    Parameters
    ----------
    radius : float or quantity, or "radii"
        "radii" is the sum of the two stars' :attr:`Hermite.radius`, by the pericentre of the orbit
        of the two alone: the event comes when they are within twice the largest radius of all.
    on_encounter : {"stop", "merge"} or callable
        "stop" ends :meth:`Hermite.evolve` there; "merge" makes one body of the two; a function is
        called as f(cluster, event) and may change bodies. A pair that stays close is one event.
    """

    radius: float | None  # None: by the stars' radii
    action: Action

    def __init__(self, radius: Untyped, on_encounter: Action = "stop") -> None:
        action = _action("on_encounter", on_encounter, ("stop", "merge"))
        by_radii = isinstance(radius, str) and radius == "radii"
        vars(self).update(radius=None if by_radii else _checked("radius", radius), action=action)


class Escape(_Watched):
    """A body goes farther from the centre than a radius.

    Parameters
    ----------
    radius : float or quantity, or "tidal"
        "tidal" is the tidal radius of the total mass on its orbit in the field
        (:func:`grape6py.tidal_radius`).
    factor : float
        Times this; 2 is usual for "tidal" (Portegies Zwart and others 2001, MNRAS 321, 199).
    centre : "origin", "density" or array_like or quantity, shape (3,)
        "density" is the density centre (:func:`grape6py.diagnostics.density_centre`). It and the
        tidal radius are found at the start and at each multiple of the largest step.
    on_escape : {"remove", "stop"} or callable
        As in :class:`Encounter`; "remove" takes the body out, with its energy.
    """

    radius: float | None
    factor: float
    action: Action
    centre: Floats | None  # None: the density's

    def __init__(
        self,
        radius: Untyped,
        on_escape: Action = "remove",
        *,
        factor: float = 1.0,
        centre: str | Numbers = "origin",
    ) -> None:
        is_tidal = isinstance(radius, str) and radius == "tidal"
        vars(self).update(
            radius=None if is_tidal else _checked("radius", radius),
            factor=validate.positive("factor", factor),
            action=_action("on_escape", on_escape, ("remove", "stop")),
            centre=validate.choice("centre", centre, {"origin": np.zeros(3), "density": None})
            if isinstance(centre, str)
            else _checked("centre", centre, functools.partial(validate.floats, shape=(3,))),
        )

    @property
    def changes(self) -> bool:
        """Whether radius or centre do."""
        return self.radius is None or self.centre is None

    def sphere(self, cluster: Evolving) -> tuple[float, Floats]:
        """Radius and centre for the present bodies."""
        centre = self.centre
        if centre is None:
            bodies = cluster.particles()
            centre = diagnostics.density_centre(bodies.mass, bodies.pos, ranks=cluster._owners)
        if self.radius is not None:
            return self.radius * self.factor, centre
        external = cluster._blocks.external
        if external is None:
            raise ArgumentError("Escape('tidal') needs a field: give Hermite field= and orbit=")
        from grape6py.models.tidal import tidal_radius

        pos, vel = cluster.origin
        mass = cluster._owners.total(cluster._blocks.mass)
        found = tidal_radius(
            external.alone().values, mass, pos, vel, time=cluster.time, G=cluster.G
        )
        return float(found) * self.factor, centre


class EnergyError(_Watched):
    """The energy differs by more than a share of it from that at the start.

    Looked at at each multiple of `every`, which is the largest step by default; changes of bodies
    are accounted for.

    Parameters
    ----------
    bound : float
    on_error : "stop" or callable
    every : float or quantity, optional
    """

    bound: float
    action: Action
    every: float | None

    def __init__(self, bound: float, on_error: Action = "stop", *, every: Untyped = None) -> None:
        vars(self).update(
            bound=validate.positive("bound", bound),
            action=_action("on_error", on_error, ("stop",)),
            every=None if every is None else _checked("every", every),
        )


class WallTime(_Watched):
    """The call has taken so many seconds.

    Parameters
    ----------
    seconds : float or quantity
    on_time : "stop" or callable
    """

    seconds: float
    action: Action

    def __init__(self, seconds: float, on_time: Action = "stop") -> None:
        if quantities.holds_quantity(seconds):
            seconds = _CGS.numbers("seconds", seconds, "time")
        vars(self).update(
            seconds=validate.number("seconds", seconds, negative=False),
            action=_action("on_time", on_time, ("stop",)),
        )


def _action(name: str, value: Action, known: Sequence[str]) -> Action:
    if callable(value):
        return value
    validate.choice(name, value, dict.fromkeys(known, 0))
    return value


def described(given: Sequence[AnyEvent]) -> str:
    """What is watched for, in words that are equal where that is, on any rank."""
    found: list[object] = []
    for event in given:
        found.append(type(event).__name__)
        for name, value in sorted(getattr(event, "__dict__", {}).items()):
            shown = value.tolist() if type(value) is np.ndarray else value
            found.append((name, "a function" if callable(shown) else shown))
    return repr(found)


class Events:
    """The events that one call watches for: at most one of each kind.

    Attributes
    ----------
    due : float
        Time at which :meth:`check` is to be called next.
    """

    def __init__(self, cluster: Evolving, given: Sequence[AnyEvent]) -> None:
        self._cluster = cluster
        found: dict[type, Untyped] = {}
        for event in given:
            if type(event) not in (Encounter, Escape, EnergyError, WallTime):
                raise ArgumentError(f"events: {event!r} is none of grape6py.events")
            if type(event) in found:
                raise ArgumentError(
                    f"events: {type(event).__name__} is given twice: give that of the larger "
                    "bound, and let its action tell"
                )
            found[type(event)] = event.in_numbers(None)
        self.encounter: Encounter | None = found.get(Encounter)
        self.escape: Escape | None = found.get(Escape)
        self._energy: EnergyError | None = found.get(EnergyError)
        self._wall: WallTime | None = found.get(WallTime)
        self._began = _clock.seconds()
        if self.encounter is not None and not cluster.SEES_ENCOUNTERS:
            raise ArgumentError(
                f"{type(cluster).__name__} does not look for encounters: its bodies are softened; "
                "Hermite does"
            )
        watch = cluster._blocks.watch
        watch.closer = (self.encounter and self.encounter.radius) or 0.0
        self.by_radii = self.encounter is not None and self.encounter.radius is None
        if self.escape is None:
            watch.farther = 0.0
        elif not self.escape.changes or not watch.farther:  # else as at the last multiple
            self._aim(self.escape)
        if self._energy is not None:
            cluster._energy_error()
        self.due = self._next_check()

    def _aim(self, escape: Escape) -> None:
        """Set radius and centre for those who escape."""
        watch = self._cluster._blocks.watch
        watch.farther, centre = escape.sphere(self._cluster)
        watch.centre = float(centre[0]), float(centre[1]), float(centre[2])

    def _next_check(self) -> float:
        blocks, now, times = self._cluster._blocks, self._cluster.time, [np.inf]
        if self.escape is not None and self.escape.changes:
            times.append(blocks.grid(now))
        if self._energy is not None:
            every = self._energy.every
            times.append(blocks.grid(now) if every is None else next_multiple(now, every))
        return float(min(times))

    def check(self) -> list[tuple[Action, Event]]:
        """What has happened at the time `due`, with what is to be done."""
        cluster, energy = self._cluster, self._energy
        self.due = self._next_check()
        if self.escape is not None and self.escape.changes:
            self._aim(self.escape)
        if energy is None:
            return []
        error = cluster._energy_error()
        if abs(error) <= energy.bound:
            return []
        return [(energy.action, Event("energy", cluster.time, (), error))]

    def look_at_clock(self) -> list[tuple[Action, Event]]:
        wall = self._wall
        if wall is None:
            return []
        taken = _clock.seconds() - self._began
        with self._cluster._ranks.agreement("the clock") as agreement:  # those of ranks differ
            latest = agreement.maximum(taken)
        if latest.value < wall.seconds:
            return []
        self._wall = None  # it happens once
        return [(wall.action, Event("wall time", self._cluster.time, (), latest.value))]


def __getattr__(name: str) -> NoReturn:
    hint = "" if name[0] == "_" else meant(name, ("Encounter", "Escape", "EnergyError", "WallTime"))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
