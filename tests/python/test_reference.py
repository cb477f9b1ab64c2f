"""The oracle itself: against bodies computed by hand, the other oracle, the Plummer model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import particles
from grape6py import reference
from grape6py.models import two_body
from grape6py.reference import direct_sum

LONG = np.longdouble


@pytest.mark.parametrize("extended", [False, True], ids=["double", "extended"])
def test_two_bodies_have_the_force_computed_by_hand(extended):
    # r = (2, 0, 0), v = (1, 1, 0) from body 0: v / 8 - 3 * 2 * r / 32 = (-1/4, 1/8, 0)
    bodies = [3, 5], [[1, 0, 0], [3, 0, 0]], [[0, 0, 0], [1, 1, 0]]
    sums = direct_sum(*bodies, nearest=True, extended=extended)
    assert np.array_equal(sums.acc, [[1.25, 0, 0], [-0.75, 0, 0]])
    assert np.array_equal(sums.jerk, [[-1.25, 0.625, 0], [0.75, -0.375, 0]])
    assert np.array_equal(sums.pot, [-2.5, -1.5])
    assert np.array_equal(sums.nearest, [1, 0])
    assert np.array_equal(sums.distance, [2, 2])
    assert sums.acc.dtype == (LONG if extended else np.float64)
    # r = (3, 0, 0), eps = 4, so s = 5; v = (1, 0, 2): v / 125 - 3 * 3 * r / 3125
    bodies = [0, 10], [[0, 0, 0], [3, 0, 0]], [[0, 0, 0], [1, 0, 2]]
    sums = direct_sum(*bodies, eps2=16, extended=extended)
    assert np.allclose(np.float64(sums.acc[0]), [0.24, 0, 0], rtol=1e-15)
    assert np.allclose(np.float64(sums.jerk[0]), [-0.0064, 0, 0.16], rtol=1e-13)
    assert np.allclose(np.float64(sums.pot[0]), -2, rtol=1e-15)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 40), eps2=st.sampled_from([0.0, 0.3]),
       is_extended=st.booleans(), is_foreign=st.booleans(), is_tiled=st.booleans())  # fmt: skip
def test_its_sums_are_those_of_the_other_oracle(seed, n, eps2, is_extended, is_foreign, is_tiled):
    """Of bodies some of which have one place or one index, in any tiles and by any threads."""
    rng, source = np.random.default_rng(seed), particles.cloud(n, seed)
    source.x[rng.integers(0, n, n // 4)] = source.x[0]
    source.x[rng.integers(0, n, n // 8)] = source.x[0] + [2.0**-40, 0, 0]
    source.index[:] = rng.permutation(n)
    source.index[rng.integers(0, n, n // 8)] = source.index[0]
    targets = particles.cloud(9, seed + 1) if is_foreign else source
    index = targets.index if rng.random() < 0.5 or not is_foreign else np.full(9, -1, np.int32)
    h2 = rng.choice([0.0, 0.5, 1.5, np.inf, -1.0, np.nan], len(index))
    to = {"target_pos": targets.x, "target_vel": targets.v, "target_index": index}
    with pytest.MonkeyPatch.context() as patch:
        if is_tiled:
            patch.setattr(reference, "_COLUMNS", 7)
            patch.setattr(reference, "_ROWS", 3)
        found = direct_sum(source.mass, source.x, source.v, index=source.index, eps2=eps2,
                           nearest=True, h2=h2, extended=is_extended, threads=1 + seed % 3,
                           **(to if is_foreign else {}))  # fmt: skip
    given_ = targets.x, targets.v, index, source
    *sums, nearest = particles.direct(*given_, eps2=eps2)
    *_, acc, jerk, pot = particles.pair_terms(*given_, eps2=eps2)
    error = 2e-18 if is_extended and np.finfo(LONG).nmant > 52 else 5e-15
    for name, right, terms in zip(("acc", "jerk", "pot"), sums, (acc, jerk, pot), strict=True):
        most = error * n * np.abs(terms).max(initial=0)
        assert np.abs(getattr(found, name) - right).max() <= most, name
    apart = index[:, None] != source.index
    x = source.x.astype(LONG) - targets.x[:, None].astype(LONG)
    distance = np.sqrt(np.where(apart, (x * x).sum(axis=2), np.inf)).min(axis=1)
    assert np.allclose(found.distance.astype(float),
                       np.where(np.isinf(distance), 0, distance).astype(float))  # fmt: skip
    if not eps2:  # with softening the other one takes what is nearest by the softened distance
        assert np.array_equal(found.nearest, nearest)
    assert [row.tolist() for row in found.neighbours] == particles.lists(*given_, h2, eps2=eps2)


@pytest.mark.parametrize(("h2", "eps2", "expected"), [
    (4.0, 0.0, [3, 5]), (np.nextafter(4.0, 0), 0.0, [5]), (4.0, 3.0, [5]), (0.0, 0.0, []),
])  # fmt: skip
def test_lists_hold_softened_distances_up_to_h_and_the_body_itself_if_asked(h2, eps2, expected):
    pos = [[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]]
    given_ = {"index": [4, 5, 3, 1], "rows": [0], "h2": h2, "eps2": eps2}
    assert direct_sum(np.ones(4), pos, **given_).neighbours[0].tolist() == expected
    own = direct_sum(np.ones(4), pos, **given_, include_self=True).neighbours[0].tolist()
    assert own == sorted([*expected, 4])


def test_the_predictor_is_the_taylor_series_of_the_scaled_derivatives():
    x, v, a2, j6, k18 = (np.full((1, 3), value) for value in (1.0, 2.0, 4.0, 8.0, 16.0))
    pos, vel = reference.predict(0.5, x, v, a2, j6, k18)
    assert np.array_equal(pos, np.full((1, 3), 1 + 1 + 1 + 1 + 0.75))
    assert np.array_equal(vel, np.full((1, 3), 2 + 4 + 6 + 6.0))
    assert np.array_equal(reference.predict(np.zeros(1), x, v, a2, j6, k18), [x, v])


@pytest.mark.parametrize("eccentricity", [0, 0.5, 0.9])
def test_energy_of_a_kepler_orbit(eccentricity):
    energy = reference.energy(*two_body(eccentricity, mass_ratio=0.25, semi_major_axis=2))
    assert energy.total == pytest.approx(-0.8 * 0.2 / 4, rel=1e-14)
    assert energy.total == energy.kinetic + energy.potential


@pytest.mark.parametrize("wrong", [
    {"mass": [1, 2]}, {"vel": [[0, 0, 0]]}, {"pos": [[1, 2]] * 3}, {"target_pos": [0, 0, 0]},
    {"rows": [0], "target_pos": [[0, 0, 0]]},
], ids=str)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(wrong):
    right = {"mass": [1, 1, 1], "pos": np.eye(3)}
    with pytest.raises(ValueError):  # noqa: PT011
        direct_sum(**(right | wrong))
