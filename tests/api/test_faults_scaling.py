"""Units and dynamic range (row 8): any system of units, never a silent zero or Inf."""

import functools
import itertools

import numpy as np
import pytest

from particles import LONG, assert_force, cloud, direct, pair_terms

pytestmark = pytest.mark.backends("cpu cuda cpu-tree:grape cuda-tree:grape gpu")
N = 1100
SOURCE = cloud(N, seed=51)
ROWS = slice(0, 60)
EPS2, H2 = 1e-3, 0.05
UNIT = [40 * k for k in (-2, -1, 0, 1, 2)]
CASES = [*list(itertools.permutations(UNIT, 3))[::5], *((k, k, k) for k in UNIT[::4])]
OTHER = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-13, 29, 5), (100, -100, 100), (-99, -100, -98)]


def scaled_force(session, a, b, c):
    """The force of the scaled set, scaled back exactly; lists and neighbours too."""
    source = SOURCE.scaled(a, b, c)
    session.put_cloud(source)
    found = session.force(N, source.x[ROWS], source.v[ROWS], source.index[ROWS],
                          eps2=np.ldexp(EPS2, 2 * a), h2=np.ldexp(H2, 2 * a))  # fmt: skip
    assert found.code == 0
    back = np.ldexp(found.acc, 2 * a - b), np.ldexp(found.jerk, 3 * a - b - c)
    lists = [session.neighbours(i) for i in range(0, 60, 7)]
    return *back, np.ldexp(found.pot, a - b), found.nearest, lists


@pytest.fixture
def base(new_session, mode, isa):
    return scaled_force(new_session(precision=mode, isa=isa), 0, 0, 0)


@pytest.mark.backends("cpu cuda:grape cpu-tree:grape cuda-tree:grape gpu")
def test_row08_units_by_multiples_of_forty_keep_every_mantissa(session, base):
    for a, b, c in CASES:
        found = scaled_force(session, a, b, c)
        assert all((f == e).all() for f, e in zip(found[:4], base[:4], strict=True)), (a, b, c)
        assert found[4] == base[4]


@functools.cache
def largest_block_sums():
    """Largest |sum| over a block of 1024 addresses, of acc, jerk (components) and pot."""
    args = SOURCE.x[ROWS], SOURCE.v[ROWS], SOURCE.index[ROWS], SOURCE
    terms = pair_terms(*args, eps2=EPS2)[2:]
    sums = [np.add.reduceat(t, range(0, N, 1024), axis=1) for t in terms]
    return [abs(s.reshape(60, -1)).max(1) for s in sums]


@pytest.mark.backends("cpu cuda:grape cpu-tree:grape cuda-tree:grape gpu")
def test_row08_units_by_other_powers_agree_to_the_accumulators_bound(session, mode, base):
    bits, blocks = (81 if mode == "double" else 41), 2
    for powers in OTHER:
        found = scaled_force(session, *powers)
        for value, expected, largest in zip(found[:3], base[:3], largest_block_sums(), strict=True):
            last_place = 2.0**-52 * abs(expected)
            bound = 2 * blocks * 2.0**-bits * largest.astype(float)
            bound = bound.reshape([60] + [1] * (expected.ndim - 1))
            assert (abs(value - expected) <= bound + last_place).all(), powers
        assert (found[3] == base[3]).all()
        assert found[4] == base[4]


LIMIT = {"grape": 2e-5, "double": 1e-12, "single": 1e-3}


@pytest.mark.backends("cpu cuda gpu")
def test_row08_pairs_beyond_the_range_of_single_are_neither_lost_nor_infinite(session, mode):
    pairs = [(separation, mass, 1.0)
             for separation in (1e-3, 1e-14, 1e-19, 1e-30, 1e12, 1e19, 1e30, 1e60)
             for mass in (1.0, 1e-30, 1e30, 1e-100, 1e100)]  # fmt: skip
    x, v, index, source = np.zeros((1, 3)), np.zeros((1, 3)), np.array([9]), cloud(2)
    source.index[:], source.v[:] = (1, 2), 0
    pairs += [(0.5, 2.0, speed) for speed in (1e-30, 1e-15, 1e15, 1e30)]
    for separation, mass, speed in pairs:  # from the particle at the origin; another is far away
        source.mass[:], source.x[:] = (mass, 1.0), [(separation, 0, 0), (0, 1e3, 0)]
        source.v[0] = speed, speed, 0
        session.put_cloud(source)
        found, expected = session.force(2, x, v, index), direct(x, v, index, source)
        assert_force(found, expected, 3e-6 if mode != "double" else 1e-14)
        assert found.nearest[0] == (1 if separation < 1e3 else 2)


@pytest.mark.backends("cpu cuda gpu")
def test_row08_softening_counts_for_a_pair_at_one_place_however_far(session):
    x = np.full((1, 3), 1e200)
    session.put(0, 0, 1.0, x[0])
    found = session.force(1, x, index=np.array([9]), eps2=0.25, h2=0.3)
    assert (found.code, *found.pot) == (0, -2.0)
    assert session.neighbours(0)[2] == [0]


@pytest.mark.backends("cpu cuda gpu")
def test_row08_a_massless_particle_of_any_speed_leaves_the_jerk_alone(new_session, mode):
    """Five particles: their 7/8 quantile, and so the scale of velocities, is the fastest."""
    session, few = new_session(precision=mode), cloud(5, seed=3)
    few.mass[3] = 0.0
    targets = cloud(7, seed=4)
    args = targets.x, targets.v, np.full(7, 99, np.int32)
    found = []
    for speed in (0.0, 1e36):
        few.v[3, 0] = speed
        session.put_cloud(few)
        found.append(session.force(5, *args, eps2=EPS2).jerk)
    limit = 1e-12 if mode == "double" else 1e-5
    assert np.abs(found[1] - found[0]).max() <= limit * np.abs(found[0]).max()


# Exponents of lengths, masses and velocities whose results underflow, or whose scale has no
# normal inverse; all overflowed before the sums were taken back to the caller's units in two steps.
TINY = [(0, -996, 0), (0, -1040, 0), (-996, -996, -1000), (-1030, -1070, 0), (300, 0, -1060),
        (340, -20, 0), (500, 0, 0), (1000, 900, 0), (990, -1000, -700), (0, 0, -1060)]  # fmt: skip


@pytest.mark.backends("cpu cuda gpu")
def test_row08_what_underflows_is_the_nearest_double(new_session, mode):
    """It was reported as a force that does not fit, with NaN."""
    lowest = LONG(2) ** (-1074 if mode == "double" else -1041)
    for k, powers in enumerate(TINY):
        source = cloud(300, seed=55)
        source.v[:] *= k % 2
        source = source.scaled(*powers)
        session = new_session(precision=mode)
        session.put_cloud(source)
        args = source.x[:40], source.v[:40], source.index[:40]
        found = session.force(300, *args)
        assert found.code == 0, powers
        for value, right in zip((found.acc, found.jerk, found.pot), direct(*args, source)[:3],
                                strict=True):  # fmt: skip
            assert (abs(value - right) <= LIMIT[mode] * abs(right).max() + 4 * lowest).all(), powers
