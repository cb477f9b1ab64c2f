"""Walks through the j particles in calls of few i particles are foreseen, and no bit tells so."""

import re
from dataclasses import replace

import numpy as np
import pytest

import capi
from fake_device import fail
from on_gpu import bits, fill, on_gpu
from particles import cloud

N, BLOCK, TIME = 2100, 48, 0.25
pytestmark = pytest.mark.backends("cpu gpu")


def shared_step(seed=7):
    """J particles that all hold at TIME."""
    return replace(cloud(N, seed, moving=True), t=np.full(N, TIME))


SOURCE = shared_step()
LATER = shared_step(seed=8)


@pytest.fixture
def make(new_session):
    return lambda source=SOURCE, **options: fill(new_session(**options), source, TIME)


def arguments(rows, source=SOURCE):
    return N, source.x[rows], source.v[rows], source.index[rows]


def rows_of(session, rows, **options):
    return session.force(*arguments(rows), **options)


def walk(session, source=SOURCE, block=BLOCK, **options):
    return session.force(*arguments(slice(None), source), block=block, **options)


@pytest.mark.backends("cpu cuda:grape gpu")
@pytest.mark.parametrize("mode", ["grape", "double", "single"])
def test_walks_have_the_bits_of_one_call(make, mode):
    session = make(precision=mode)
    whole = bits(walk(session, block=N, eps2=1e-4))
    for block in (48, 48, 100, 7):
        assert bits(walk(session, block=block, eps2=1e-4)) == whole, block
    assert session.put_cloud(LATER) == 0
    expected = bits(walk(make(LATER, precision=mode), LATER, block=N, eps2=1e-4))
    for block in (48, 1000):
        assert bits(walk(session, LATER, block=block, eps2=1e-4)) == expected, block


@pytest.mark.backends("cpu cuda gpu")
def test_what_is_asked_for_later_is_computed_then(make):
    session, alone = make(), make()
    walk(session)
    for first in range(0, 6 * BLOCK, BLOCK):
        h2 = np.linspace(0, 0.2, BLOCK) * (first + 1) / 100
        found = []
        for each in (session, alone):
            rows = slice(first, first + BLOCK)
            force = rows_of(each, rows, h2=h2, nearest=first % 96 == 0)
            lists = [each.neighbours(pipe) for pipe in range(BLOCK)]
            found.append((bits(force), lists, each.partial(BLOCK).tolist(), each.neighbours(BLOCK)))
        assert found[0] == found[1]
        assert found[0][-1][0] < 0


@pytest.mark.backends("auto")
def test_a_gpu_that_fails_at_the_lists_of_a_call_that_was_foreseen_gives_way_to_the_cpu(make):
    session, alone = make(), make()
    for first in range(0, 12 * BLOCK, BLOCK):
        found = []
        for each in (session, alone):
            force = rows_of(each, slice(first, first + BLOCK), h2=np.full(BLOCK, 0.3))
            fail(int(each is session and first == 6 * BLOCK))
            found.append((force.acc, [each.neighbours(pipe) for pipe in range(BLOCK)]))
        assert found[0][1] == found[1][1]
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-5, abs=1e-6)
        assert on_gpu(session) == (first < 6 * BLOCK)


CHANGES = {"a write": lambda s: s.put(5, 5, 3.0, [0.1, 0.2, 0.3], tj=TIME),
           "another time": lambda s: s.set_ti(TIME + 1 / 64),
           "no jerk": lambda s: s.set_int("G6X_JERK", 0),
           "double": lambda s: s.set_int("G6X_PRECISION", capi.MODES["double"])}  # fmt: skip


def test_any_call_has_the_bits_of_a_session_that_foresees_nothing(make):
    """Calls of a walk, among them such as were not foreseen, wrong ones, and changes that count
    from the next first half on."""
    session = make()
    oddities = ["eps2", *"x v index nj order fewer again nan size".split(), *CHANGES]
    for odd in [*oddities, *reversed(oddities)]:
        walk(session)
        rows_of(session, slice(0, BLOCK))
        rows = np.arange(BLOCK, 2 * BLOCK)
        rows = {"order": rows[::-1], "fewer": rows[:5]}.get(odd, rows)
        x, v, index = (getattr(SOURCE, f)[rows].copy() for f in ("x", "v", "index"))
        if odd in ("x", "v"):
            changed = x if odd == "x" else v
            changed[-1, 2] = np.nextafter(changed[-1, 2], 9.0)
        index[3] = -5 if odd == "index" else index[3]
        x -= 9.0 * (odd == "again")
        x[4, 1] = np.nan if odd == "nan" else x[4, 1]
        call = N - (odd == "nj"), x, v, index
        fresh = make()
        expected = fresh.force(*call, eps2=1e-3 * (odd == "eps2"))
        assert session.first(*call, eps2=1e-3 * (odd == "eps2")) == expected.code
        for each in (session, fresh) if odd in CHANGES else ():
            assert CHANGES[odd](each) == 0
        if odd == "size":
            found = session.last(*arguments(slice(0, 2 * BLOCK)))
            assert found.code == capi.CONSTANTS["G6X_E_MISMATCH"]
            assert np.isnan(found.acc[:BLOCK]).all()
        else:
            found = session.last(*call)
            assert found.code == expected.code
            assert bits(found) == bits(expected)
        later = slice(2 * BLOCK, 3 * BLOCK)
        assert bits(rows_of(session, later)) == bits(rows_of(fresh, later))
        if odd in CHANGES:  # as it was
            session = make()


SCRIPT = """
from test_ahead import SOURCE, TIME, N, walk, rows_of, np
from capi import Session
s = Session(0)
s.put_cloud(SOURCE)
s.set_ti(TIME)
"""
WALKS = "for _ in range(10): walk(s); s.put_cloud(SOURCE)"
AT_REST = """
for step in range(10):
    for a in range(N):
        s.put(a, a, 1.0, SOURCE.x[a], tj=TIME)
    s.force(N, SOURCE.x, np.zeros((N, 3)), SOURCE.index, block=48)
"""
BREAKING_OFF = """
rng = np.random.default_rng(2)
for step in range(60):
    for k in range(rng.integers(2, 43)):
        rows_of(s, slice(48 * k, 48 * k + 48))
    s.put_cloud(SOURCE)
"""
OTHERS = """
order = np.random.default_rng(1).permutation(N)
for k in range(0, N, 48): rows_of(s, order[k : k + 48])
for k in range(40): rows_of(s, slice(0, 48))
s.set_ti(TIME + 1 / 64)
for _ in range(3): walk(s)
"""


@pytest.mark.parametrize(("script", "least", "most"), [
    (WALKS, 440 - 17, 440), (AT_REST, 440 - 17, 440),  # from the second walk on, but its first call
    (BREAKING_OFF, 0, 180),  # a share of 1/128 is summed for nothing, after the first
    (OTHERS, 0, 0),
], ids="walks at-rest breaking-off others".split())  # fmt: skip
def test_calls_are_summed_ahead_where_they_can_be_foreseen(script, least, most):
    done = capi.run_python(SCRIPT + script, GRAPE6_LOG="info", GRAPE6_BACKEND="cpu")
    calls, count = re.search(r"(\d+) force calls.* (\d+) summed ahead", done.stderr).groups()
    assert least <= int(count) <= most
    assert most != 440 or int(calls) == 440
