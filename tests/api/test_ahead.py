"""Walks through the j particles in calls of few i particles are foreseen, and no bit tells so."""

import re

import numpy as np
import pytest

import capi
from particles import Cloud, cloud

N, BLOCK, TIME = 2100, 48, 0.25
pytestmark = pytest.mark.backends("cpu cuda gpu")


def shared_step(seed=7, n=N):
    """J particles that all hold at TIME."""
    made = cloud(n, seed, moving=True)
    return Cloud(
        *[np.full(n, TIME) if f == "t" else getattr(made, f) for f in made.__annotations__]
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


def rows_of(session, rows, source=SOURCE, nj=N, **options):
    return session.force(nj, source.x[rows], source.v[rows], source.index[rows], **options)


def walk(session, source=SOURCE, block=BLOCK, **options):
    return rows_of(session, slice(None), source, len(source), block=block, **options)


def bits(force):
    return [part.tobytes() for part in (force.acc, force.jerk, force.pot, force.nearest)]


@pytest.mark.parametrize("mode", ["grape", "double", "single"])
def test_walks_have_the_bits_of_one_call(make, mode):
    session = make(precision=mode)
    whole = bits(walk(session, block=N, eps2=1e-4))
    for block in (48, 48, 48, 100, 7):
        assert bits(walk(session, block=block, eps2=1e-4)) == whole, block
    assert session.put_cloud(LATER) == 0
    other = make(LATER, precision=mode)
    expected = bits(walk(other, LATER, block=N, eps2=1e-4))
    for block in (48, 1000):
        assert bits(walk(session, LATER, block=block, eps2=1e-4)) == expected, block


def test_what_is_asked_for_later_is_computed_then(make):
    """Lists, nearest neighbours and partial sums of rows that were summed before."""
    session, alone = make(), make()
    walk(session)
    for first in range(0, 6 * BLOCK, BLOCK):
        rows = slice(first, first + BLOCK)
        h2 = np.linspace(0, 0.2, BLOCK) * (first + 1) / 100
        found = rows_of(session, rows, h2=h2, nearest=first % 96 == 0)
        single = rows_of(alone, rows, h2=h2, nearest=first % 96 == 0)
        assert bits(found) == bits(single)
        lists = [[s.neighbours(pipe) for pipe in range(BLOCK)] for s in (session, alone)]
        assert lists[0] == lists[1]
        assert session.partial(BLOCK).tolist() == alone.partial(BLOCK).tolist()
        assert session.neighbours(BLOCK)[0] == alone.neighbours(BLOCK)[0] < 0


def write(session):
    assert session.put(5, 5, 3.0, [0.1, 0.2, 0.3], tj=TIME) == 0


def other_time(session):
    assert session.set_ti(TIME + 1 / 64) == 0


def no_jerk(session):
    session.set_int("G6X_JERK", 0)


def in_double(session):
    session.set_int("G6X_PRECISION", capi.MODES["double"])


CHANGES = [write, other_time, no_jerk, in_double]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_calls_counts_at_once(make, change):
    session, fresh = make(), make()
    walk(session)
    for k in range(3):
        rows_of(session, slice(k * BLOCK, (k + 1) * BLOCK))
    change(session)
    change(fresh)
    rows = slice(3 * BLOCK, 4 * BLOCK)
    assert bits(rows_of(session, rows)) == bits(rows_of(fresh, rows))


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_between_the_halves_counts_from_the_next_call_on(make, change):
    session, fresh, rows = make(), make(), slice(BLOCK, 2 * BLOCK)
    walk(session)
    rows_of(session, slice(0, BLOCK))
    x, v, index = SOURCE.x[rows], SOURCE.v[rows], SOURCE.index[rows]
    assert session.first(N, x, v, index) == 0
    expected = bits(rows_of(fresh, rows))
    change(session)
    assert bits(session.last(N, x, v, index)) == expected


@pytest.mark.parametrize("name", ["x", "v", "index", "eps2", "nj", "order", "fewer", "again"])
def test_a_call_that_was_not_foreseen_gets_its_own(make, name):
    session, fresh = make(), make()
    walk(session)
    rows_of(session, slice(0, BLOCK))
    rows = np.arange(BLOCK, 2 * BLOCK)
    x, v, index = (getattr(SOURCE, f)[rows].copy() for f in ("x", "v", "index"))
    nj, eps2 = N, 0.0
    if name in ("x", "v"):
        changed = x if name == "x" else v
        changed[-1, 2] = np.nextafter(changed[-1, 2], 9.0)
    elif name == "index":
        index[3] = -5
    elif name == "eps2":
        eps2 = 1e-3
    elif name == "nj":
        nj = N - 1
    elif name == "order":
        x, v, index = x[::-1].copy(), v[::-1].copy(), index[::-1].copy()
    elif name == "fewer":
        x, v, index = x[:5], v[:5], index[:5]
    else:
        x, v, index = x - 9.0, v, index
    for _ in range(2):
        found = session.force(nj, x, v, index, eps2=eps2)
        assert bits(found) == bits(fresh.force(nj, x, v, index, eps2=eps2))
    assert bits(walk(session)) == bits(walk(fresh, block=N))


def test_nan_among_i_particles_stays_theirs(make):
    session, fresh = make(), make()
    walk(session)
    rows_of(session, slice(0, BLOCK))
    x, v, index = (getattr(SOURCE, f)[BLOCK : 2 * BLOCK].copy() for f in ("x", "v", "index"))
    x[7, 1] = np.nan
    codes = [s.force(N, x, v, index).code for s in (session, fresh)]
    assert codes == [capi.CONSTANTS["G6X_E_I_NAN"]] * 2
    assert bits(rows_of(session, slice(96, 144))) == bits(rows_of(fresh, slice(96, 144)))


def test_last_halves_of_a_wrong_size_are_refused(make):
    session, rows = make(), slice(0, BLOCK)
    walk(session)
    x, v, index = SOURCE.x[rows], SOURCE.v[rows], SOURCE.index[rows]
    assert session.first(N, x, v, index) == 0
    more = slice(0, 2 * BLOCK)
    found = session.last(N, SOURCE.x[more], SOURCE.v[more], SOURCE.index[more])
    assert found.code == capi.CONSTANTS["G6X_E_MISMATCH"]
    assert np.isnan(found.acc[:BLOCK]).all()


# ---- that it happens, and where it does not -----------------------------------------------


SCRIPT = """
from test_ahead import SOURCE, TIME, N, walk, rows_of, Session, np
s = Session(0)
s.put_cloud(SOURCE)
s.set_ti(TIME)
"""
Session = capi.Session


def foreseen(script):
    """Force calls of a script, and how many were foreseen."""
    done = capi.run_python(SCRIPT + script, GRAPE6_LOG="info", GRAPE6_BACKEND="cpu")
    calls, count = re.search(r"(\d+) force calls.* (\d+) summed ahead", done.stderr).groups()
    return int(calls), int(count)


@pytest.mark.backends("cpu")
def test_from_the_second_walk_on_only_the_first_call_sums():
    calls, count = foreseen("for _ in range(10): walk(s); s.put_cloud(SOURCE)")
    assert calls == 10 * 44
    assert count >= calls - 9 - 8


@pytest.mark.backends("cpu")
def test_particles_at_rest_are_foreseen_too():
    calls, count = foreseen("""
zero = np.zeros(3)
for step in range(10):
    for a in range(N):
        s.put(a, a, 1.0, SOURCE.x[a], tj=TIME)
    s.force(N, SOURCE.x, np.zeros((N, 3)), SOURCE.index, block=48)
""")
    assert count >= calls - 9 - 8


@pytest.mark.backends("cpu")
@pytest.mark.parametrize("script", [
    "order = np.random.default_rng(1).permutation(N)\n"
    "for k in range(0, N, 48): rows_of(s, order[k : k + 48])",
    "s.set_ti(TIME + 1 / 64)\nfor _ in range(3): walk(s)",
    "for k in range(40): rows_of(s, slice(0, 48))",
], ids=["another order", "another time", "the same again"])  # fmt: skip
def test_what_cannot_be_foreseen_is_not_summed_ahead(script):
    assert foreseen(script)[1] == 0


@pytest.mark.backends("cpu")
def test_walks_that_break_off_are_no_longer_foreseen():
    """At most a share of 1/128 is summed for nothing, after the first."""
    _, count = foreseen("""
rng = np.random.default_rng(2)
for step in range(200):
    for k in range(rng.integers(2, 43)):
        rows_of(s, slice(48 * k, 48 * k + 48))
    s.put_cloud(SOURCE)
""")
    assert count < 600
