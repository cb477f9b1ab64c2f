"""Callbacks and events of clusters in quantities."""

import numpy as np
import pytest
from astropy import units as u

from grape6py import (
    Hermite,
    events,
)
from grape6py.errors import ArgumentError
from in_quantities import KMS, assert_alike, both, by_hand, is_close, is_in, made
from runs import here  # noqa: F401 (fixture)


def test_callbacks_see_quantities():
    cluster, seen = made(), []
    cluster.evolve(0.1 * u.Myr, seen.append, every=40 * u.kyr)
    assert all(one is cluster for one in seen)
    times = []
    cluster.evolve(0.21 * u.Myr, lambda c: times.append(c.time), every=40 * u.kyr)
    assert all(is_in(t, u.Myr) for t in times)
    assert is_close([t.value for t in times], [0.12, 0.16, 0.2, 0.21], 1e-12)


@pytest.mark.parametrize(("end", "every", "count"), [
    (0.2 * u.Myr, 40 * u.kyr, 5), (0.1 * u.Myr, 0.01 * u.Myr, 10), (30 * u.kyr, 3000 * u.yr, 10),
])  # fmt: skip
def test_a_multiple_that_is_the_end_is_not_called_twice(end, every, count):
    """As it is of numbers, if the last digit of a conversion lets it be just before the end."""
    times = []
    made().evolve(end, lambda c: times.append(c.time.to_value(every.unit)), every=every)
    assert is_close(times, every.value * np.arange(1, count + 1), 1e-12)


def test_a_callback_without_every_comes_after_each_block():
    cluster, times = made(), []
    cluster.evolve(10.5 * u.kyr, lambda c: times.append(c.time.to_value(u.kyr)))
    assert is_close(times, [2, 4, 6, 8, 10], 1e-12)


def test_callbacks_change_bodies_in_quantities():
    cluster, plain = both()

    def change(c):
        c.kick(0, [0.1, 0, 0] * KMS)
        c.set_mass(1, c.mass[1] * 2)

    def change_plain(c):
        c.kick(0, [0.1, 0, 0])
        c.set_mass(1, c.mass[1] * 2)

    cluster.evolve(40 * u.kyr, change, every=20 * u.kyr)
    plain.evolve(by_hand(40 * u.kyr), change_plain, every=by_hand(20 * u.kyr))
    assert_alike(cluster, plain, 1e-8)


def escaping(action):
    """A body that passes the distance of 1 pc after 0.5 Myr."""
    cluster = Hermite([1.0, 1.0] * u.Msun, [[0, 0, 0], [0.5, 0, 0]] * u.pc,
                      [[0, 0, 0], [1, 0, 0]] * u.pc / u.Myr, dt=1 * u.kyr)  # fmt: skip
    return cluster, events.Escape(1.0, action)


def test_the_event_that_ends_an_integration_has_a_time_with_a_unit():
    cluster, escape = escaping("stop")
    found = cluster.evolve(2 * u.Myr, events=escape)
    assert found.kind == "escape"
    assert is_in(found.time, u.Myr)
    assert found.time.value == pytest.approx(0.5, rel=0.02)


def test_events_that_are_remembered_have_times_with_a_unit():
    cluster, escape = escaping("stop")
    found = cluster.evolve(2 * u.Myr, events=escape)
    assert len(cluster.events) == 1
    assert is_in(cluster.events[0].time, u.Myr)
    assert cluster.events == [found]


def test_functions_that_are_called_for_events_see_quantities():
    seen = []
    cluster, escape = escaping(lambda c, event: seen.append((c, c.time, event)))
    cluster.evolve(0.7 * u.Myr, events=[escape])
    ((who, time, event),) = seen
    assert who is cluster
    assert is_in(time, u.Myr)
    assert event.kind == "escape"
    assert is_in(event.time, u.Myr)


@pytest.mark.parametrize(("make", "word"), [
    (lambda: events.Encounter(1 * u.pc), "radius"), (lambda: events.Escape(1 * u.pc), "radius"),
    (lambda: events.Escape(1.0, factor=1 * u.pc), "factor"),
    (lambda: events.Escape(1.0, centre=[0, 0, 0] * u.pc), "centre"),
    (lambda: events.EnergyError(1 * u.J), "bound"),
    (lambda: events.EnergyError(1e-3, every=1 * u.Myr), "every"),
    (lambda: events.WallTime(1 * u.s), "seconds"),
])  # fmt: skip
def test_events_take_quantities_or_refuse_them_by_name(make, word):
    """They do not know the bodies' units when they are made."""
    with pytest.raises(ArgumentError, match=word):
        make()


def test_an_event_may_take_bodies_out():
    cluster, escape = escaping("remove")
    cluster.evolve(1 * u.Myr, events=escape)
    assert len(cluster) == 1
    assert cluster.time.value == pytest.approx(1, rel=1e-12)
    assert is_in(cluster.energy_change, u.Msun * (u.pc / u.Myr) ** 2)
