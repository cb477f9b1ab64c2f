"""Callbacks and events of clusters in quantities."""

import numpy as np
import pytest
from astropy import units as u

from grape6py import Hermite, events
from in_quantities import is_close, is_in, made
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


def escaping(action):
    """A body that passes the distance of 1 pc after 0.5 Myr."""
    cluster = Hermite([1.0, 1.0] * u.Msun, [[0, 0, 0], [0.5, 0, 0]] * u.pc,
                      [[0, 0, 0], [1, 0, 0]] * u.pc / u.Myr, dt=1 * u.kyr)  # fmt: skip
    return cluster, events.Escape(1.0 * u.pc, action)


def test_the_event_that_ends_an_integration_has_a_time_with_a_unit():
    cluster, escape = escaping("stop")
    found = cluster.evolve(2 * u.Myr, events=escape)
    assert found.kind == "escape"
    assert is_in(found.time, u.Myr)
    assert found.time.value == pytest.approx(0.5, rel=0.02)
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
    assert event.value == 1 * u.pc
