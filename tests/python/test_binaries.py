"""Binaries: those that a model has, and those that are found."""

import math

import numpy as np
import pytest

from distributions import follow
from grape6py import Particles, binaries, diagnostics, plummer, two_body, with_binaries


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
    model = with_binaries(plummer(300, 1), 0.5, 2, separation=(2e-6, 1e-5), eccentricity=0.6,
                          mass_ratio=(0.5, 0.5))  # fmt: skip
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


N, AXES = 4000, (1e-6, 1e-3)


def elements(mass, pos, vel):
    """Orbits of rows 2 k and 2 k + 1: axis, eccentricity, mean anomaly, angular momentum."""
    m, r, v = mass[0::2] + mass[1::2], pos[1::2] - pos[0::2], vel[1::2] - vel[0::2]
    distance = np.linalg.norm(r, axis=1)
    axis = 1 / (2 / distance - (v**2).sum(axis=1) / m)
    laplace = np.cross(v, np.cross(r, v)) / m[:, None] - r / distance[:, None]
    e = np.linalg.norm(laplace, axis=1)
    anomaly = np.arctan2((r * v).sum(axis=1) / np.sqrt(m * axis), 1 - distance / axis)
    return axis, e, anomaly - e * np.sin(anomaly), np.cross(r, v)


def made(n=N, fraction=1.0, **how):
    # At rest in the origin, where nothing is lost when members are subtracted.
    model = Particles(np.full(n, 1 / n), np.zeros((n, 3)), np.zeros((n, 3)))
    return with_binaries(model, fraction, 1, **{"separation": AXES} | how)


def uniform_in(values, low, high):
    return follow(values, lambda sorted_: (sorted_ - low) / (high - low))


def test_orbits_are_distributed_as_asked_for():
    model = made(mass_ratio=(0.2, 0.8))
    axis, e, mean, momentum = elements(*model)
    assert uniform_in(np.log(axis), *np.log(AXES))
    assert uniform_in(e**2, 0, 1)  # thermal
    assert uniform_in(mean, -math.pi, math.pi)
    assert uniform_in(model.mass[1::2] / model.mass[0::2], 0.2, 0.8)
    axes = momentum / np.linalg.norm(momentum, axis=1)[:, None]
    assert all(uniform_in(axes[:, k], -1, 1) for k in range(3))
    towards = model.pos[1::2] / np.linalg.norm(model.pos[1::2], axis=1)[:, None]
    assert all(uniform_in(towards[:, k], -1, 1) for k in range(3))


@pytest.mark.parametrize("eccentricity", [0, 0.3, 0.999])
def test_all_may_have_one_shape(eccentricity):
    axis, e, _, _ = elements(*made(200, eccentricity=eccentricity, separation=2))
    assert axis == pytest.approx(2, rel=1e-10)
    assert e == pytest.approx(eccentricity, abs=1e-10)


@pytest.mark.parametrize("fraction", [0, 0.25, 0.5, 1])
def test_pairs_keep_mass_place_and_motion_of_the_body_that_they_were(fraction):
    model, count = plummer(101, 2), round(fraction * 101)
    mass, pos, vel = with_binaries(model, fraction, 3, separation=(1e-4, 1e-2))
    assert len(mass) == 101 + count
    paired, single = slice(0, 2 * count), slice(2 * count, None)
    both = mass[paired].reshape(-1, 2).sum(axis=1)
    assert (mass[0 : 2 * count : 2] >= mass[1 : 2 * count : 2]).all()
    centres = [(mass[paired, None] * vectors[paired]).reshape(-1, 2, 3).sum(axis=1) / both[:, None]
               for vectors in (pos, vel)]  # fmt: skip
    rows = [int(np.argmin(np.abs(model.pos - centre).sum(axis=1))) for centre in centres[0]]
    assert rows == sorted({*rows})
    assert np.array_equal(both, model.mass[rows])
    assert np.allclose(centres[0], model.pos[rows], rtol=1e-15, atol=1e-15)
    assert np.allclose(centres[1], model.vel[rows], rtol=0, atol=1e-14)
    rest = np.delete(np.arange(101), rows)
    assert np.array_equal(pos[single], model.pos[rest])
    assert np.array_equal(vel[single], model.vel[rest])


def test_massless_bodies_stay_single():
    mass = np.array([0, 1, 0, 2.0])
    model = with_binaries(Particles(mass, np.eye(4, 3), np.zeros((4, 3))), 0.5, 1, separation=AXES)
    assert (model.mass[:4] > 0).all()
    assert model.mass[4:].tolist() == [0, 0]
