"""The search for binaries: against all pairs, against known orbits, for any number of bodies."""

import math

import numpy as np
import pytest

from grape6py import binaries, diagnostics, plummer, two_body, with_binaries


def by_all_pairs(mass, pos, vel, eps):
    """Bound pairs of mutual nearest neighbours, by the table of all distances."""
    distance = np.linalg.norm(pos[:, None] - pos, axis=2)
    np.fill_diagonal(distance, np.inf)
    nearest = distance.argmin(axis=1)
    found = set()
    for i, j in enumerate(nearest):
        m, v = mass[i] + mass[j], vel[j] - vel[i]
        bound = v @ v / 2 < m / math.hypot(distance[i, j], eps)
        if nearest[j] == i and bound:
            found.add(frozenset((i, int(j))))
    return found


@pytest.mark.parametrize("eps", [0, 0.05])
@pytest.mark.parametrize("fraction", [0, 0.3])
def test_they_are_the_bound_pairs_of_mutual_nearest_neighbours(fraction, eps):
    model = with_binaries(plummer(400, 1), fraction, 2, separation=(1e-4, 1e-2))
    found = binaries(*model, eps)
    expected = by_all_pairs(*model, eps)
    assert {frozenset(pair) for pair in zip(found.first, found.second, strict=True)} == expected
    assert len(found.first) == len(expected) > 0
    assert (np.diff(found.hardness) <= 0).all()
    assert (model.mass[found.first] >= model.mass[found.second]).all()


def test_primordial_binaries_are_found_again_with_their_orbits():
    model = with_binaries(
        plummer(300, 1), 0.5, 2, separation=(2e-6, 1e-5), eccentricity=0.6, mass_ratio=(0.5, 0.5)
    )
    found = binaries(*model)
    assert sorted(found.first) == list(range(0, 300, 2))
    assert (found.second == found.first + 1).all()
    assert ((found.semi_major_axis > 1.99e-6) & (found.semi_major_axis < 1.01e-5)).all()
    assert np.allclose(found.eccentricity, 0.6, atol=1e-5)
    # Energy of the pair over 3/2 kT: of the model before there were binaries, at rest.
    mean = diagnostics.energy(*plummer(300, 1), backend="cpu").kinetic / 300
    binding = (2 / 9) / 300**2 / (2 * found.semi_major_axis)
    assert np.allclose(found.hardness, binding / mean, rtol=1e-6)


@pytest.mark.parametrize("eccentricity", [0, 1e-6, 0.3, 0.99])
@pytest.mark.parametrize("apocentre", [False, True])
def test_two_bodies_have_their_elements(eccentricity, apocentre):
    mass, pos, vel = two_body(eccentricity, 3.0, 0.2, apocentre=apocentre)
    found = binaries(mass, pos + 7, vel + 0.25, ids=[2**53 + 1, 2**64 - 1])
    assert found.first.tolist() == [2**64 - 1]  # three times as heavy
    assert found.second.tolist() == [2**53 + 1]
    assert found.semi_major_axis == pytest.approx(0.2)
    assert found.eccentricity == pytest.approx(eccentricity, abs=1e-8)


@pytest.mark.parametrize(("mass", "place"), [(0, [-0.2, 0, 0]), (0.1, [0, 20, 0])])
def test_massless_bodies_and_distant_ones_are_left_out(mass, place):
    """A hierarchy is found as its inner pair; two at rest are infinitely hard."""
    (m, n), (x, y), (v, w) = two_body(0.5)
    found = binaries([m, mass, n], [x, place, y], [v, 0 * v, w])
    assert sorted([*found.first, *found.second]) == [0, 2]
    assert binaries(*two_body(0.3)).hardness.tolist() == [math.inf]


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_bodies_have_none(n):
    # Two far apart that move fast.
    found = binaries(np.ones(n), np.arange(3.0 * n).reshape(n, 3), 9.0 * np.eye(n, 3))
    assert [len(array) for array in found] == [0] * 5
    assert found.first.dtype == np.int64


def test_bodies_at_one_place_are_no_binary_without_softening():
    assert not len(binaries([1, 1], np.zeros((2, 3)), np.zeros((2, 3))).first)
    found = binaries([1, 1], np.zeros((2, 3)), np.zeros((2, 3)), 0.5)
    assert found.semi_major_axis.tolist() == [0.25]
    assert found.eccentricity.tolist() == [1]


@pytest.mark.parametrize(("wrong", "words"), [
    ({"mass": [1, -1]}, r"mass\[1\] = -1.0 is negative"),
    ({"pos": [[0, 0, 0]]}, r"pos has shape \(1, 3\), not \(2, 3\)"),
    ({"vel": [[0, 0, 0], [0, math.nan, 0]]}, r"vel\[1\] is not finite"),
    ({"eps": -1}, "eps = -1.0 is not a finite number >= 0"),
    ({"G": 0}, "G = 0.0 is not above zero"),
    ({"ids": [1.5, 2]}, "ids holds float64, not integers"),
    ({"ids": [1]}, r"ids has shape \(1,\), not \(2,\)"),
])  # fmt: skip
def test_bodies_that_cannot_be_are_refused_in_words(wrong, words):
    right = {"mass": [1, 1], "pos": [[0, 0, 0], [1, 0, 0]], "vel": np.zeros((2, 3))}
    with pytest.raises(ValueError, match=words):
        binaries(**right | wrong)
