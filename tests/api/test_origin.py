"""Places are held relative to an origin near most particles, velocities relative to a drift."""

import numpy as np
import pytest

import capi
from grape6py import reference
from particles import assert_close, assert_same, cloud, relative

N = 1500
# Whole numbers of the steps that origins and drifts of this set take, which are 2.
FAR = np.array([1e6, -4096.0, 0.0])
FAST = np.array([-1000.0, 0.0, 64.0])


def resolved(n=N, seed=5):
    """A blob whose coordinates leave 2^27 before them."""
    source = cloud(n, seed=seed)
    for name in ("x", "v"):
        setattr(source, name, np.rint(getattr(source, name) * 2**24) / 2**24)
    return source


def moved(source, by=FAR, faster=FAST):
    there = source.take(np.arange(len(source)))
    there.x, there.v = source.x + by, source.v + faster
    assert (there.x - by == source.x).all()
    assert (there.v - faster == source.v).all()
    return there


def run(session, source, rows=np.r_[0:40, 700:720, N - 20 : N], **options):
    session.put_cloud(source)
    return session.force(len(source), source.x[rows], source.v[rows], source.index[rows], **options)


@pytest.mark.backends("cpu cuda")
@pytest.mark.parametrize("mode", ["grape", "single"])
@pytest.mark.parametrize(("eps2", "block"), [(1e-4, None), *((0.0, n) for n in (None, 3, 40, 150))])
def test_a_cluster_far_away_has_the_bits_of_the_same_cluster_here(new_session, isa, mode, eps2,
                                                                  block):  # fmt: skip
    source = resolved()
    source.x[3] = source.x[4] + 2.0**-24  # a close pair
    found = [run(new_session(precision=mode, isa=isa), placed, slice(None), eps2=eps2, block=block)
             for placed in (source, moved(source))]  # fmt: skip
    assert_same(*found)


def test_an_origin_is_near_most_particles_wherever_a_tenth_of_them_is(new_session):
    """A cluster at zero has none, nor has mode double."""
    source, rng = moved(resolved()), np.random.default_rng(1)
    others = rng.permutation(N)[: N // 10]
    source.x[others] = rng.standard_normal((len(others), 3)) * 1e9
    for mode, placed, given in ("grape", resolved(), [0, 0]), ("grape", source, [FAR, FAST]), \
                               ("double", moved(resolved()), [0, FAST]):  # fmt: skip
        session = new_session(precision=mode)
        session.put_cloud(placed)
        origin, drift = session.origin(N)
        assert np.abs(origin - given[0]).max() <= 4 * (placed is source)
        assert mode == "double" or (drift == given[1]).all()


@pytest.mark.backends("cpu cuda")
@pytest.mark.parametrize(("distance", "hole"), [(1e3, True), (1e5, False), (1e8, True)])
def test_forces_far_away_are_as_good_as_here(new_session, isa, mode, distance, hole):
    source = resolved(600)
    source.x = source.x + distance
    if hole:
        source.x[7], source.mass[7] = 0.0, 0.1
    rows = np.arange(100)
    found = run(new_session(precision=mode, isa=isa), source, rows)
    exact = reference.direct_sum(source.mass, source.x, source.v, extended=True, rows=rows)
    # a set of 600 averages less than those of docs/accuracy.md
    limits = {"grape": (5e-8, 3e-6), "double": (1e-14, 1e-12), "single": (1e-6, 1e-2)}[mode]
    assert_close(found, exact, limits, names=("acc", "pot"))


def test_a_bulk_velocity_leaves_the_jerk_as_it_is(new_session):
    source = resolved()
    here = run(new_session(), source)
    for speed in (10.0, 1000.0):
        there = run(new_session(), moved(source, by=0.0 * FAR, faster=speed))
        assert np.median(relative(there.jerk, here.jerk)) <= 2e-7


def test_origins_do_not_remember(new_session):
    """Whatever was written before, the origin is that of the particles that are there."""
    rng, session = np.random.default_rng(2), new_session()
    state, written = cloud(N), np.zeros(N, bool)
    for step in range(25):
        n = int(rng.integers(1, N))
        some = moved(resolved(n, seed=step), by=FAR * rng.integers(0, 3), faster=FAST)
        rows = rng.permutation(n)[: int(rng.integers(1, n + 1))]
        session.put_cloud(some.take(rows), rows)
        for name in state.__annotations__:
            getattr(state, name)[rows] = getattr(some, name)[rows]
        written[rows] = True
        nj, there = int(rng.integers(1, N + 200)), np.flatnonzero(written)
        again = new_session()
        again.put_cloud(state.take(there), there)
        assert (session.origin(nj) == again.origin(nj)).all(), step
        assert session.scale(nj) == again.scale(nj), step


def test_particles_beyond_nj_and_room_for_them_decide_nothing(new_session):
    source = moved(resolved(600))
    alone, beyond = new_session(), new_session()
    beyond.put_cloud(source.take([0]), [120_000])
    for nj in (700, 100_000):
        found = []
        for session in (alone, beyond):
            session.put_cloud(source)
            assert (session.origin(nj)[0] == FAR).all()
            found.append(session.force(nj, source.x[:30], source.v[:30], source.index[:30]).bits())
        assert found[0] == found[1]


def set_origin(session, origin, drift):
    for axis, x, v in zip("XYZ", origin, drift, strict=True):
        assert session.set_double(f"G6X_ORIGIN_{axis}", x) == 0
        assert session.set_double(f"G6X_DRIFT_{axis}", v) == 0


def test_an_origin_may_be_set_and_left_to_the_data_again(plain):
    """With a scale that is set there is none, unless it is set as well."""
    plain.put_cloud(moved(resolved()))
    for origin, expected in (FAR + 2, FAR + 2), (FAR * np.nan, FAR):
        set_origin(plain, origin, FAST + 0 * origin)
        assert (plain.origin(N) == [expected, FAST]).all()
    plain.set_int("G6X_SCALE_LENGTH", 2)
    assert (plain.origin(N) == [0 * FAR, FAST]).all()
    set_origin(plain, FAR, FAST)
    assert (plain.origin(N) == [FAR, FAST]).all()
    assert capi.call("g6x_get_origin", plain.cluster, -1, np.zeros(3), np.zeros(3)) == -11
    for bad in (np.inf, -np.inf, 1e300):
        assert plain.set_double("G6X_ORIGIN_Y", bad) == -11


def test_two_clusters_that_no_grid_resolves_are_done_in_double(new_session, isa):
    source = resolved()
    source.x[::2] += 1e7
    found = [run(new_session(precision=mode, isa=isa), source) for mode in ("grape", "double")]
    assert found[0].bits() == found[1].bits()
