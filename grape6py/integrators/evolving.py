"""Bodies that evolve to a time: blocks, callbacks, events, stars that change, stopping."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Untyped
from grape6py.errors import ArgumentError, CallOrderError
from grape6py.events import Action, AnyEvent, Event, Events, WallTime, described
from grape6py.in_units import converter_of
from grape6py.integrators.stellar import StellarChanges, StellarUpdate
from grape6py.progress import bar, multiples

if TYPE_CHECKING:
    from grape6py.integrators.watch import Sighting

_LONGEST = 2.0**53


class Evolving(StellarChanges):
    """Bodies on their way; see :class:`~.base.Integration`."""

    _face: Callable[[], object] | None = None  # of an InUnits: what the user sees
    SEES_ENCOUNTERS: ClassVar[bool] = True
    _is_evolving = False

    @property
    def events(self) -> list[Event]:
        """What has happened in this object's calls of :meth:`evolve`, in its order."""
        return list(self._events)

    def step(self) -> None:
        """Move the next block of bodies, to the end of its steps.

        Errors are those of :meth:`evolve`.
        """
        with self._lock, self._ranks.agreement("step()"):
            self._be_at(self._time)
            while self._call("advance", self._blocks.sense * math.inf, None, most=1) == 0:
                pass  # a long block
            self._be_at(self._blocks.latest())
        self._after_step()

    def evolve(
        self,
        t: float,
        callback: Callable[[Self], object] | None = None,
        *,
        every: float | None = None,
        events: AnyEvent | Sequence[AnyEvent] = (),
        stars: Callable[[Untyped], StellarUpdate] | None = None,
        progress: bool = False,
    ) -> Event | None:
        """Integrate up to a time.

        Parameters
        ----------
        t : float
            The new :attr:`time`. Block steps that end later are not begun. It may lie in the past
            for a Leapfrog, and for bodies without mass, outside of an `orbit`: they then go back,
            in the field as it was, and what :meth:`save` writes goes on forward.
        callback : callable, optional
            Called with this object after every block step, or as `every` says. It may change
            bodies.
        every : float, optional
            Call at each multiple of this time instead, and at `t`.
        events : Encounter, Escape, EnergyError, WallTime, or a sequence of them
            What is watched for: see :mod:`grape6py.events`; on the way back WallTime alone.
        stars : callable, optional
            Stellar evolution: called with this object at the start, and then at the times that it
            asks for, it gives a :class:`StellarUpdate`. What the changes of masses and the kicks
            add to the energy is in :attr:`energy_change`.
        progress : bool
            Show a bar with the time left on stderr, if that is a terminal.

        Returns
        -------
        Event or None
            The event that has ended it before `t`.

        Raises
        ------
        ArgumentError
            (a ValueError) if `t` lies in the past and they cannot go there, or too far away for
            the step; for a field that gives arrays of another shape.
        NotFiniteError
            (a ValueError) for a field that gives NaN.
        Grape6Error
            Whatever the library reports; the bodies are then left at the last good block.
        """
        given = events if isinstance(events, Sequence) else (events,)
        with self._ranks.agreement("evolve()"):
            with self._ranks.agreement("the arguments") as agreement:
                t = self._end(t)
                every = None if every is None else validate.positive("every", every)
                agreement.same("t", t)
                agreement.same("every", every)
                agreement.same_contents("events", described(given))
                has_callback = agreement.maximum(callback is not None)
            if every is not None and not has_callback.value:
                raise ArgumentError("every says when the callback is called, and there is none")
            if callback is None and has_callback.value:  # of another rank: blocks end alike
                callback = _nothing
            is_within, self._is_evolving = self._is_evolving, True
            self._stopped_by: Event | None = None
            try:
                if (t - self.time) * self._blocks.sense < 0:
                    if is_within:
                        raise CallOrderError("a callback of evolve cannot turn the way in time")
                    self._turn()
                has_others = any(type(event) is not WallTime for event in given)
                if self._blocks.sense < 0 and (has_others or stars is not None):
                    raise ArgumentError("on the way back in time WallTime alone is watched for")
                watched = Events(self, given)
                if watched.by_radii and stars is None and not self.radius.any():
                    raise ArgumentError("Encounter('radii'): no radii are known: give stars=")
                with bar(self.time, t, progress) as shown:
                    for target in [t] if every is None else multiples(self.time, t, every):
                        for goal in self._until(target, stars):
                            self._advance(goal, shown, callback if every is None else None, watched)
                            if self._stopping[0]:
                                break
                        if every is not None and callback is not None and self.time == target:
                            callback(self._as_seen())  # also if stopped in that block
                        if self._stopping[0]:
                            break
            finally:
                self._stopping[0], self._asked_to_stop = 0, False
                self._is_evolving = is_within
        return self._stopped_by

    def stop(self) -> None:
        """Let :meth:`evolve` return after the block under way; for callbacks and signals.

        A long block may be given up in its midst: it is then made anew by the next one.

        Called at another time, it lets the next one return before its first block. With `comm` it
        is enough if one rank calls it.
        """
        self._asked_to_stop = True
        if self._ranks.size == 1:
            self._stopping[0] = 1

    def _is_stopping(self) -> bool:
        """Whether to stop: on all ranks at once, if one of them has been asked to."""
        with self._ranks.agreement("a block") as agreement:
            agreement.same("the time of the bodies", self.time)
            is_asked_to = agreement.maximum(self._asked_to_stop)
        self._stopping[0] |= int(is_asked_to.value)
        return bool(self._stopping[0])

    def _end(self, t: float) -> float:
        """A time to integrate up to, checked."""
        t = validate.number("t", t)
        _, smallest, largest = self._blocks.rule
        if abs(t - self._blocks.epoch) > _LONGEST * smallest:
            raise ArgumentError(
                f"t = {t} is more than 2^{math.log2(_LONGEST * smallest / largest):.0f} steps of "
                f"{largest}, beyond which times are not exact any more; give a larger "
                f"{'dt' if smallest == largest else 'dt_max'}"
            )
        return t

    def _advance(
        self,
        target: float,
        shown: Callable[[float], None],
        callback: Callable[[Self], object] | None,
        events: Events,
    ) -> None:
        if events.by_radii:  # as near as the two largest stars that touch
            self._blocks.watch.closer = 2 * float(self.radius.max(initial=0.0))
        while not self._is_stopping():
            goal = min(target, events.due)
            with self._lock:
                most = int(callback is not None)
                self._be_at(self._time)  # whatever ends the next call: it may be Ctrl-C
                moved = self._call("advance", goal, self._stopping, most=most)
                if moved is None and goal == target and goal < events.due:
                    break
                if moved is None and not self._stopping[0]:
                    self._time = self._later(goal, self.time)
                if moved or moved is None:
                    self._be_at(self.time)
            shown(self._time)
            if moved:
                self._after_step()
            for action, event in events.check() if self.time >= events.due else []:
                self._happen(action, event)
            # What was seen is forgotten if that has changed bodies.
            for action, event in self._first_news(events) if self._blocks.sighted else []:
                self._happen(action, event)
            for action, event in events.look_at_clock():
                self._happen(action, event)
            if moved and callback is not None:
                callback(self._as_seen())
            if moved is None and goal == target:
                break
        if not self._stopping[0] and self._later(target, self.time) != self.time:
            self._be_at(target)  # else a callback has gone farther
            shown(target)

    def _first_news(self, events: Events) -> list[tuple[Action, Event]]:
        """The first event of the block under way that is news; without one, that block goes on."""
        blocks, by_radii = self._blocks, events.by_radii
        watch, passing = blocks.watch, []
        for sighting, who in self._sighted():
            time = max(sighting.time, self.time)
            if sighting.time <= watch.until.get(who, -math.inf):
                passing.append(who)
                continue
            if sighting.other is not None and by_radii and not self._touch(who, time):
                continue  # they may in their next steps
            watch.note(who, sighting.time)
            blocks.look_again()
            self._be_at(time)
            if sighting.other is None:
                assert events.escape is not None
                return [(events.escape.action, Event("escape", sighting.time, who, watch.farther))]
            assert events.encounter is not None
            return [(events.encounter.action, Event("encounter", sighting.time, who, watch.closer))]
        for who in passing:
            watch.note(who, blocks.block_end)
        return []

    def _sighted(self) -> list[tuple[Sighting, tuple[int, ...]]]:
        """What is seen in the block under way, with the ids of its bodies."""
        ids = self._own_ids()
        return [
            (s, tuple(sorted(int(ids[row]) for row in (s.body, s.other) if row is not None)))
            for s in self._blocks.sighted
        ]

    def _happen(self, action: Action, event: Event) -> None:
        self._events.append(event)
        if callable(action):
            seen = self._as_seen()
            converter = converter_of(seen)
            action(seen, event if converter is None else converter.given(event, None))
        elif action == "merge":
            self.merge(event.ids)
        elif action == "remove":
            own = self._own_ids()
            self.remove([k for k in event.ids if np.uint64(k) in own])
        else:
            self._stopping[0], self._stopped_by = 1, event

    def _energy_error(self) -> float:
        """Relative error of the energy since this was called first, or of specific ones."""
        specific = self._specific_error()
        if specific is not None:
            return specific
        energy = self._find_energy()
        total = energy.total - self._energy_change
        if self._first_energy is None:
            self._first_energy = total
        scale = abs(self._first_energy) or energy.kinetic + abs(energy.potential)
        return (total - self._first_energy) / scale if scale else 0.0

    def _as_seen(self) -> Untyped:
        """What the user has: this, or this in units."""
        seen = self._face and self._face()
        return self if seen is None else seen  # without bodies it is false

    def _after_step(self) -> None:
        """What a step may have a word about."""


def _nothing(_: object) -> None:
    """A callback."""
