"""An integration in a program: callbacks, stops, errors on the way, closing, memory, refusals."""

import contextlib
import doctest
import re
import threading

import numpy as np
import pytest

import capi
import grape6py
from grape6py import Hermite, Leapfrog, Units, plummer
from grape6py.errors import ArgumentError, NotOpenError
from integrations import BOTH, TREES, assert_same, each, evolve
from integrations import made as make


@pytest.mark.parametrize("every", [0.25, 0.3, 0.1, 1.0, 7.0, None])
def test_callbacks_come_at_each_multiple_and_at_the_end_or_after_every_block(every):
    cluster, times = make(), []
    for start, end in ((0, 1.0), (1, 1.55)):
        cluster.evolve(end, lambda c: times.append(c.time), every=every)
        if every:
            wanted = [k * every for k in range(1, 20) if start < k * every < end] + [end]
            assert times[-len(wanted) :] == wanted
    assert len(times) == cluster.blocks or every
    assert (np.diff(times) > 0).all()


def test_another_thread_may_look_meanwhile_and_stop():
    cluster, whole = make(n=300), make(n=300)
    thread = threading.Thread(target=cluster.evolve, args=(1000.0,))
    thread.start()
    while cluster.blocks < 200:
        assert np.isfinite(cluster.pos).all()
        cluster.state()
    cluster.stop()
    thread.join()
    assert 0 < cluster.time < 1000
    whole.evolve(cluster.time)
    assert_same(cluster, whole)


def test_a_callback_may_raise_or_stop_and_nothing_is_lost():
    cluster, whole, calls = make(), make(), []

    def fail(c):
        calls.append(1)
        c.stop()  # which does not outlive the error
        if len(calls) % 5 == 0:
            raise ZeroDivisionError

    for every in (None, 0.1):
        for _ in range(4):
            cluster.evolve(1.0, fail, every=every)
        with pytest.raises(ZeroDivisionError):
            cluster.evolve(1.0, fail, every=every)
    assert 0 < cluster.time < 1
    evolve((cluster, whole), 1.0)
    assert_same(cluster, whole)


def test_a_stop_ends_this_call_or_the_next():
    cluster, whole = make(), make()
    cluster.stop()
    cluster.evolve(1.0)
    assert cluster.time == 0
    cluster.evolve(1.0, lambda c: c.stop() if c.blocks == 7 else None)
    assert cluster.blocks == 7
    assert 0 < cluster.time < 1
    cluster.evolve(1.0, lambda c: c.stop(), every=0.75)
    assert cluster.time == 0.75
    evolve((cluster, whole), 1.0)
    assert_same(cluster, whole)


@each([*BOTH, TREES[0]])
@pytest.mark.parametrize("end", [1 / 4, 0.3])
def test_a_closed_object_tells_what_it_knows_and_goes_no_farther(kind, options, end):
    closed, unseen, whole = (make(kind, **options) for _ in range(3))
    with closed, unseen:
        evolve((closed, unseen), end)
        pos, energy = closed.pos, closed.energy()
    later = make(kind, **options)  # which may have the session id of a closed one
    assert (closed.time, unseen.time) == (end, end)
    assert np.array_equal(closed.pos, pos)
    assert closed.energy() == energy
    assert "32 bodies" in repr(closed)
    if kind is Hermite and end == 0.3:
        with pytest.raises(NotOpenError, match="closed"):
            _ = unseen.pos
    with pytest.raises(NotOpenError, match="closed"):
        closed.evolve(1.0)
    closed.close()
    evolve((later, whole), 0.5)
    assert_same(later, whole)


@each([BOTH[0], TREES[0]])
def test_what_is_given_out_are_copies_and_what_is_given_in_may_change(kind, options):
    given = plummer(100, 1)
    cluster, whole, other = make(kind, particles=given, **options), *(
        make(kind, n=n, **options) for n in (100, 64))  # fmt: skip
    for array in given:
        array[...] = 9
    evolve((cluster, other), 0.1)
    for array in (cluster.pos, cluster.vel, cluster.mass, cluster.step_sizes, cluster.potential(),
                  *cluster.particles(), *cluster.state().values()):  # fmt: skip
        with contextlib.suppress(ValueError):  # most of them are read-only
            array[...] = 77
    cluster.settings["eta"] = 5
    evolve((other, cluster, whole), 0.4)
    assert_same(cluster, whole)


@pytest.mark.parametrize("kind", [Hermite, Leapfrog, Units])
def test_the_package_offers_the_class_and_its_example_is_true(kind):
    found = doctest.DocTestFinder().find(getattr(grape6py, kind.__name__), globs={})
    runner = doctest.DocTestRunner()
    assert sum(runner.run(test).attempted for test in found) > 3
    assert runner.summarize().failed == 0


@each([BOTH[0], TREES[1]])
def test_the_bits_do_not_depend_on_the_threads(kind, options):
    one, two = (make(kind, n=600, threads=k, **options) for k in (1, 2))
    evolve((one, two), 0.25)
    assert_same(one, two)


@pytest.mark.parametrize(("kind", "wrong", "words"), [
    *((Hermite, wrong, [*wrong][-1]) for wrong in (
        {"eps": -1}, {"eta": 0}, {"passes": 0}, {"dt": -0.1}, {"dt_max": np.inf}, {"eta_start": -1},
        {"eta": "much"}, {"dt": 0.1, "dt_max": 1}, {"precision": "half"})),
    (Leapfrog, {"dt": None}, "give dt"), (Leapfrog, {"dt_max": 0.1}, "give dt"),
    (Leapfrog, {"dt": 0.0}, "dt"), (Leapfrog, {"dt": None, "dt_max": -1.0}, "dt_max"),
    (Leapfrog, {"dt": None, "dt_max": 0.1, "eps": 0.0}, "eps = 0"),
    (Leapfrog, {"eps": -1.0}, "eps"), (Leapfrog, {"eta": 0.0}, "eta"),
    (Leapfrog, {"theta": 2.0}, "theta"),
    (Leapfrog, {"theta": 0.5, "accuracy": 1e-3}, "theta or accuracy"),
    (Leapfrog, {"order": 9}, "order"), (Leapfrog, {"method": "direct"}, "method"),
    (Leapfrog, {"backend": "abacus"}, "backend"), (Leapfrog, {"precision": "double"}, "precision"),
    (Leapfrog, {"backend": "cpu", "theta": 0.5}, "theta is a tree's"),
    (Leapfrog, {"boundary": 0.0}, "boundary"),
    *((kind, wrong, words) for kind in (Hermite, Leapfrog) for wrong, words in (
        ({"mass": np.ones(9)}, "pos has shape"), ({"mass": np.array(1.0)}, "mass has shape"),
        ({"mass": 1.0}, "mass has shape"), ({"pos": np.ones((10, 2))}, "pos has shape"),
        ({"vel": np.ones(10)}, "vel has shape"), ({"vel": np.ones((9, 3))}, "vel has shape"),
        ({"ids": [1, 2]}, "shape"), *(({"ids": [*ids, *range(10, 17)]}, words) for ids, words in (
            ([5, 6, 5], "5 is the number of two"), ([5, -6, 7], r"ids\[1\] = -6"),
            ([1, 2, 2**64], "18446744073709551616"), (["1", "2", "3"], "not integers"),
            ([1.0, 2.0, 3.5], "float64, not integers"))))),
], ids=str)  # fmt: skip
def test_wrong_arguments_are_refused_by_name(kind, wrong, words):
    given = dict(zip(("mass", "pos", "vel"), plummer(10, 1), strict=True))
    if kind is Leapfrog:
        given |= {"dt": 0.1, "eps": 0.05, "backend": "cpu-tree"}
    with pytest.raises(ArgumentError, match=words):
        kind(**given | wrong)


# Every integrator, backend of the host and kind of event; a frame, whose path is looked ahead; a
# field that is a function; calls that the library sums ahead.
SCRIPT = """
import hashlib, itertools, os
import numpy as np
import grape6py._clock
from grape6py import Grape6, Hermite, Leapfrog, fields, plummer
from grape6py.events import EnergyError, Encounter, Escape

if "GRAPE6_TEST_CLOCK" in os.environ:
    random, looks = np.random.default_rng(int(os.environ["GRAPE6_TEST_CLOCK"])), itertools.count()
    ahead = itertools.accumulate(random.choice([0, 0.001, 0.1, 10]) for _ in looks)
    grape6py._clock.seconds = ahead.__next__
built_in = fields.nfw(5, 1)
function = lambda t, pos, vel: built_in(t, pos, vel)
orbit = [4, 0, 0.3, 0, 1, 0]
model = plummer(32, seed=1)
watched = [Encounter(0.02, lambda c, e: c.kick(e.ids[0], [0, 0, 0.01])), Escape(2), EnergyError(9)]
frames = [{}, {"field": built_in}, {"field": built_in, "orbit": orbit},
          {"field": function, "orbit": orbit}]
made = [(Hermite, frame) for frame in [*frames, {"field": function, "passes": 2}]]
made += [(Leapfrog, frames[-1] | more | {"backend": backend})
         for more in ({"dt": 1 / 64}, {"dt_max": 1 / 16}) for backend in ("auto", "cpu-tree")]
made += [(Leapfrog, {"dt_max": 1 / 16, "accuracy": 1e-3, "backend": "cpu-tree"})]
for kind, options in made:
    for events in ([], watched) if kind is Hermite else ([], watched[1:]):
        cluster = kind(*model, eps=0.01, **options)
        cluster.evolve(0.07, events=events)
        cluster.evolve(0.13, lambda c: None)
        found = cluster.time, cluster.steps, cluster.pos, cluster.vel, *cluster.origin, cluster.ids
        text = b"".join(np.ascontiguousarray(a).tobytes() for a in found)
        text += repr(cluster.events).encode()
        print(kind.__name__, list(options), len(events), hashlib.sha256(text).hexdigest())
with Grape6() as grape:
    grape.set_particles(*model)
    rows = [grape.forces(model.pos[k : k + 4], model.vel[k : k + 4]) for k in range(0, 32, 4)]
    print(hashlib.sha256(b"".join(each.acc.tobytes() for each in rows)).hexdigest())
"""


@pytest.mark.slow
def test_a_clock_that_jumps_changes_no_bit(variants):
    env = {"GRAPE6_TEST_LIBRARY": str(variants["counted"].library)}
    plain = capi.run_python(SCRIPT, **env).stdout
    assert len(plain.splitlines()) > 20
    assert capi.run_python(SCRIPT, **env, GRAPE6_TEST_CLOCK="1").stdout == plain


PYTHON_CLOCK = r"time\.(time|monotonic|perf_counter)(_ns)?\b|from time import|datetime"
C_CLOCK = r"\b(clock_gettime|gettimeofday|clock|time|rdtsc\w*|timespec_get)\("
ALLOWED = {"_clock.py", "clock.c", "clock.h"}


@pytest.mark.parametrize(
    ("folder", "pattern", "call"), [("grape6py", "*.py", PYTHON_CLOCK), ("csrc", "*.[ch]", C_CLOCK)]
)
def test_the_clock_is_read_in_one_place(folder, pattern, call):
    paths = [path for path in (capi.ROOT / folder).rglob(pattern) if path.name not in ALLOWED]
    assert [p.name for p in paths if re.search(call, p.read_text())] == []
