"""Walks through the j particles in calls of few i particles are foreseen, and no bit tells so."""

import re

import numpy as np
import pytest

import capi
from particles import Cloud, cloud

N, BLOCK, TIME = 2100, 48, 0.25
pytestmark = pytest.mark.backends("cpu cuda gpu")


def shared_step(seed=7):
    """J particles that all hold at TIME."""
    made = cloud(N, seed, moving=True)
    return Cloud(
        *[np.full(N, TIME) if f == "t" else getattr(made, f) for f in made.__annotations__]
    )


SOURCE = shared_step()
LATER = shared_step(seed=8)


@pytest.fixture
def make(new_session):
    def filled(source=SOURCE, **options):
        session = new_session(**options)
        assert session.put_cloud(source) == 0
        assert session.set_ti(TIME) == 0
        return session

    return filled


def arguments(rows, source=SOURCE):
    return N, source.x[rows], source.v[rows], source.index[rows]


def rows_of(session, rows, **options):
    return session.force(*arguments(rows), **options)


def walk(session, source=SOURCE, block=BLOCK, **options):
    return session.force(*arguments(slice(None), source), block=block, **options)


def bits(force):
    return [part.tobytes() for part in (force.acc, force.jerk, force.pot, force.nearest)]


@pytest.mark.parametrize("mode", ["grape", "double", "single"])
def test_walks_have_the_bits_of_one_call(make, mode):
    session = make(precision=mode)
    whole = bits(walk(session, block=N, eps2=1e-4))
    for block in (48, 48, 48, 100, 7):
        assert bits(walk(session, block=block, eps2=1e-4)) == whole, block
    assert session.put_cloud(LATER) == 0
    expected = bits(walk(make(LATER, precision=mode), LATER, block=N, eps2=1e-4))
    for block in (48, 1000):
        assert bits(walk(session, LATER, block=block, eps2=1e-4)) == expected, block


def test_what_is_asked_for_later_is_computed_then(make):
    """Lists, nearest neighbours and partial sums of rows that were summed before."""
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


CHANGES = {
    "a write": lambda s: s.put(5, 5, 3.0, [0.1, 0.2, 0.3], tj=TIME),
    "another time": lambda s: s.set_ti(TIME + 1 / 64),
    "no jerk": lambda s: s.set_int("G6X_JERK", 0),
    "double": lambda s: s.set_int("G6X_PRECISION", capi.MODES["double"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts_from_the_next_first_half_on(make, change):
    session, fresh = make(), make()
    walk(session)
    for k in range(2):
        rows_of(session, slice(k * BLOCK, (k + 1) * BLOCK))
    now, later = (slice(k * BLOCK, (k + 1) * BLOCK) for k in (2, 3))
    assert session.first(*arguments(now)) == 0
    expected = bits(rows_of(fresh, now))
    for each in (session, fresh):
        assert CHANGES[change](each) == 0
    assert bits(session.last(*arguments(now))) == expected
    assert bits(rows_of(session, later)) == bits(rows_of(fresh, later))


@pytest.mark.parametrize("name", ["x", "v", "index", "eps2", "nj", "order", "fewer", "again"])
def test_a_call_that_was_not_foreseen_gets_its_own(make, name):
    session, fresh = make(), make()
    walk(session)
    rows_of(session, slice(0, BLOCK))
    rows = np.arange(BLOCK, 2 * BLOCK)
    rows = {"order": rows[::-1], "fewer": rows[:5]}.get(name, rows)
    x, v, index = (getattr(SOURCE, f)[rows].copy() for f in ("x", "v", "index"))
    if name in ("x", "v"):
        changed = x if name == "x" else v
        changed[-1, 2] = np.nextafter(changed[-1, 2], 9.0)
    index[3] = -5 if name == "index" else index[3]
    x -= 9.0 * (name == "again")
    for _ in range(2):
        call = N - (name == "nj"), x, v, index, 1e-3 * (name == "eps2")
        assert bits(session.force(*call)) == bits(fresh.force(*call))
    assert bits(walk(session)) == bits(walk(fresh, block=N))


def test_faults_among_foreseen_calls_stay_theirs(make):
    session, fresh = make(), make()
    walk(session)
    rows_of(session, slice(0, BLOCK))
    nj, x, v, index = arguments(slice(BLOCK, 2 * BLOCK))
    x = x.copy()
    x[7, 1] = np.nan
    codes = [s.force(nj, x, v, index).code for s in (session, fresh)]
    assert codes == [capi.CONSTANTS["G6X_E_I_NAN"]] * 2
    assert bits(rows_of(session, slice(96, 144))) == bits(rows_of(fresh, slice(96, 144)))
    walk(session)
    assert session.first(*arguments(slice(0, BLOCK))) == 0
    found = session.last(*arguments(slice(0, 2 * BLOCK)))  # of a wrong size
    assert found.code == capi.CONSTANTS["G6X_E_MISMATCH"]
    assert np.isnan(found.acc[:BLOCK]).all()


# ---- that it happens, and where it does not -----------------------------------------------


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
for step in range(200):
    for k in range(rng.integers(2, 43)):
        rows_of(s, slice(48 * k, 48 * k + 48))
    s.put_cloud(SOURCE)
"""
ANOTHER_ORDER = """
order = np.random.default_rng(1).permutation(N)
for k in range(0, N, 48): rows_of(s, order[k : k + 48])
"""
ANOTHER_TIME = "s.set_ti(TIME + 1 / 64)\nfor _ in range(3): walk(s)"
THE_SAME_AGAIN = "for k in range(40): rows_of(s, slice(0, 48))"


@pytest.mark.backends("cpu")
@pytest.mark.parametrize(("script", "least", "most"), [
    (WALKS, 440 - 17, 440), (AT_REST, 440 - 17, 440),  # from the second walk on, but its first call
    (BREAKING_OFF, 0, 600),  # a share of 1/128 is summed for nothing, after the first
    (ANOTHER_ORDER, 0, 0), (ANOTHER_TIME, 0, 0), (THE_SAME_AGAIN, 0, 0),
], ids="walks at-rest breaking-off another-order another-time again".split())  # fmt: skip
def test_calls_are_summed_ahead_where_they_can_be_foreseen(script, least, most):
    done = capi.run_python(SCRIPT + script, GRAPE6_LOG="info", GRAPE6_BACKEND="cpu")
    calls, count = re.search(r"(\d+) force calls.* (\d+) summed ahead", done.stderr).groups()
    assert least <= int(count) <= most
    assert most != 440 or int(calls) == 440
