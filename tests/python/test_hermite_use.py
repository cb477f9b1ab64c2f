"""``Hermite`` in a program: callbacks, stopping, errors on the way, closing, memory."""

import contextlib
import doctest
import gc
import math
import resource
import threading

import numpy as np
import pytest

import grape6py
from grape6py import Hermite, Leapfrog, plummer
from grape6py.errors import ArgumentError, Grape6Error
from runs import cluster_of as make


def same(one, other):
    states = one.state(), other.state()
    return all(np.array_equal(states[0][k], states[1][k]) for k in states[0])


@pytest.mark.parametrize("every", [0.25, 0.3, 0.1, 1.0, 7.0])
def test_callbacks_come_at_each_multiple_and_at_the_end(every):
    cluster, times = make(), []
    cluster.evolve(1.0, lambda c: times.append(c.time), every=every)
    wanted = [k * every for k in range(1, 20) if k * every < 1] + [1.0]
    assert times == wanted
    cluster.evolve(1.55, lambda c: times.append(c.time), every=every)
    assert times[len(wanted) :] == [
        k * every for k in range(1, 20) if 1 < k * every < 1.55
    ] + [1.55]  # fmt: skip


def test_another_thread_may_look_meanwhile():
    cluster, whole = (Hermite(*plummer(300, 5), eps=0.02) for _ in range(2))
    thread = threading.Thread(target=cluster.evolve, args=(1.0,))
    thread.start()
    while thread.is_alive():
        assert np.isfinite(cluster.pos).all()
        cluster.state()
    thread.join()
    whole.evolve(1.0)
    assert same(cluster, whole)


def test_callbacks_come_after_every_block_otherwise():
    cluster, times = make(), []
    cluster.evolve(0.5, lambda c: times.append(c.time))
    assert len(times) == cluster.blocks
    assert (np.diff(times) > 0).all()


def test_a_callback_that_raises_leaves_a_usable_object():
    cluster, whole, calls = make(), make(), []

    def fail(_):
        calls.append(1)
        if len(calls) % 5 == 0:
            raise ZeroDivisionError

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            cluster.evolve(1.0, fail)
    with pytest.raises(ZeroDivisionError):
        cluster.evolve(1.0, fail, every=0.1)
    assert 0 < cluster.time < 1
    cluster.evolve(1.0)
    whole.evolve(1.0)
    assert same(cluster, whole)
    assert cluster.steps == whole.steps


def test_a_stop_before_a_failing_callback_does_not_outlive_it():
    cluster = make()

    def stop_and_fail(c):
        c.stop()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cluster.evolve(1.0, stop_and_fail)
    cluster.evolve(1.0)
    assert cluster.time == 1


def test_a_callback_can_stop():
    cluster, whole = make(), make()
    cluster.evolve(1.0, lambda c: c.stop() if c.blocks == 7 else None)
    assert cluster.blocks == 7
    assert 0 < cluster.time < 1
    cluster.evolve(1.0, lambda c: c.stop(), every=0.75)
    assert cluster.time == 0.75
    cluster.evolve(1.0)
    whole.evolve(1.0)
    assert same(cluster, whole)
    assert np.array_equal(cluster.pos, whole.pos)


def test_another_thread_can_stop():
    cluster = make(256)
    timer = threading.Timer(0.2, cluster.stop)
    timer.start()
    cluster.evolve(1000.0)
    timer.join()
    assert 0 < cluster.time < 1000
    blocks = cluster.blocks
    cluster.evolve(cluster.time + 0.01)
    assert cluster.blocks >= blocks


def test_a_stop_in_the_block_that_ends_in_time_loses_no_callback(monkeypatch):
    """Or the last output of a run that a signal meets in its last block would be missing."""
    cluster, times = make(dt=1 / 8), []
    advance = cluster._blocks.advance

    def stopped(*arguments, **options):
        moved = advance(*arguments, most=1)
        if cluster.time in (0.5, 1.0):
            cluster.stop()
        return moved

    monkeypatch.setattr(cluster._blocks, "advance", stopped)
    cluster.evolve(1.0, lambda c: times.append(c.time), every=0.25)
    assert times == [0.25, 0.5]
    cluster.evolve(1.0, lambda c: times.append(c.time), every=0.25)
    assert times == [0.25, 0.5, 0.75, 1.0]


def test_a_stop_called_outside_lets_the_next_evolve_return_at_once():
    cluster = make()
    cluster.stop()
    cluster.evolve(1.0)
    assert cluster.time == 0
    cluster.evolve(1.0)
    assert cluster.time == 1


@pytest.mark.parametrize("end", [1 / 4, 0.3])
def test_a_closed_object_still_tells_what_it_knows(end):
    with make() as cluster:
        cluster.evolve(end)
        pos, energy = cluster.pos, cluster.energy()
    assert cluster.time == end
    assert np.array_equal(cluster.pos, pos)
    assert cluster.energy() == energy
    assert "64 bodies" in repr(cluster)
    with pytest.raises(Grape6Error, match="closed"):
        cluster.evolve(1.0)
    cluster.close()


def test_a_closed_object_keeps_its_hands_off_a_later_one():
    """The later one may have the session id of the closed one."""
    closed, whole = make(), make()
    closed.evolve(0.1)
    closed.close()
    later = make()
    with pytest.raises(Grape6Error, match="closed"):
        closed.evolve(0.3)
    later.evolve(0.5)
    whole.evolve(0.5)
    assert same(later, whole)


def test_a_closed_object_nobody_looked_at_says_so():
    with make() as cluster:
        cluster.evolve(0.3)
    with pytest.raises(Grape6Error, match="closed"):
        _ = cluster.pos
    assert cluster.time == 0.3


def test_many_objects_and_calls_take_no_more_memory():
    def work(n):
        for _ in range(n):
            with make(256) as cluster:
                for k in range(1, 6):
                    cluster.evolve(k / 300)
                    assert cluster.energy().total < 0
        gc.collect()

    work(20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work(60)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4000  # KiB


def test_objects_do_not_disturb_each_other():
    alone, one, two = make(), make(), make(100)
    for k in range(1, 11):
        one.evolve(k / 20)
        two.evolve(k / 20)
    alone.evolve(0.5)
    assert np.array_equal(one.pos, alone.pos)


@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {}), (Leapfrog, {"dt": 1 / 64, "backend": "cpu-tree"})
])  # fmt: skip
def test_what_is_given_out_are_copies(kind, options):
    cluster, whole = (kind(*plummer(100, 1), eps=1 / 16, **options) for _ in range(2))
    cluster.evolve(0.1)
    for array in (cluster.pos, cluster.vel, cluster.mass, cluster.step_sizes, cluster.potential(),
                  *cluster.particles(), *cluster.state().values()):  # fmt: skip
        with contextlib.suppress(ValueError):  # most of them are read-only
            array[...] = 77
    cluster.settings["eta"] = 5
    for each in (cluster, whole):
        each.evolve(0.4)
    assert same(cluster, whole)


@pytest.mark.parametrize("kind", [Hermite, Leapfrog])
def test_the_package_offers_the_class_and_its_example_is_true(kind):
    found = doctest.DocTestFinder().find(getattr(grape6py, kind.__name__), globs={})
    runner = doctest.DocTestRunner()
    assert sum(runner.run(test).attempted for test in found) > 3
    assert runner.summarize().failed == 0


@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {}), (Leapfrog, {"dt_max": 1 / 8, "eta": 0.01, "backend": "cpu-tree"})
])  # fmt: skip
def test_the_bits_do_not_depend_on_the_threads(kind, options):
    one, two = (kind(*plummer(600, 1), eps=0.05, threads=k, **options) for k in (1, 2))
    one.evolve(0.25)
    two.evolve(0.25)
    assert same(one, two)


def test_a_long_way_of_short_shared_steps_is_allowed():
    """2^23 largest steps is the limit of block steps, whose smallest is 2^30 times shorter."""
    cluster = make(dt=2.0**-20)
    cluster.evolve(20.0, lambda c: c.stop())
    assert cluster.time == 2.0**-20
    with pytest.raises(ArgumentError, match="dt_max"):
        make(dt_max=2.0**-20).evolve(20.0)
    with pytest.raises(ArgumentError, match="dt"):
        make(dt=2.0**-20).evolve(2.0**34)


def test_one_pass_more_makes_each_block_one_force_call_dearer_and_more_accurate():
    errors = []
    for passes in (1, 3):
        cluster = make(dt=1 / 32, passes=passes, precision="double")
        start = cluster.energy().total
        cluster.evolve(1.0)
        errors.append(abs(cluster.energy().total / start - 1))
    assert errors[1] < errors[0]
    assert math.isfinite(errors[1])
