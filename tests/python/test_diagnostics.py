"""Energies, momentum, virial ratio and Lagrangian radii, against the oracle and definitions."""

import math

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, diagnostics, plummer, reference
from grape6py.errors import ArgumentError


@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_energy_and_virial_ratio_are_those_of_the_oracle(eps):
    mass, pos, vel = plummer(300, seed=4)
    mass = mass * np.linspace(0.2, 1.8, 300)
    expected = reference.energy(mass, pos, vel, eps2=eps**2, extended=True)
    found = diagnostics.energy(mass, pos, vel, eps)
    assert found.kinetic == pytest.approx(float(expected.kinetic), rel=1e-14)
    assert found.potential == pytest.approx(float(expected.potential), rel=1e-12)
    assert found.total == found.kinetic + found.potential
    assert found.virial_ratio == pytest.approx(float(-expected.kinetic / expected.potential))
    sums = reference.direct_sum(mass, pos, eps2=eps**2, extended=True)
    assert np.allclose(diagnostics.potential(mass, pos, eps), sums.pot.astype(float), rtol=1e-12)
    assert diagnostics.energy(mass, pos, vel, eps, pot=sums.pot.astype(float)).total == (
        pytest.approx(found.total, rel=1e-12)
    )


@pytest.mark.parametrize("precision", ["grape", "double", "single"])
def test_an_integration_tells_the_energy_of_its_own_bodies(precision):
    """In mode double whatever mode integrates, at a time at which no body stands."""
    mass, pos, vel = plummer(200, seed=1)
    cluster = Hermite(mass, pos, vel, eps=0.02, precision=precision)
    cluster.evolve(0.1234)
    expected = reference.energy(mass, cluster.pos, cluster.vel, eps2=0.02**2, extended=True)
    assert cluster.energy().total == pytest.approx(float(expected.total), rel=1e-12)
    assert cluster.virial_ratio() == pytest.approx(float(-expected.kinetic / expected.potential))
    sums = reference.direct_sum(mass, cluster.pos, eps2=0.02**2)
    assert np.allclose(cluster.potential(), sums.pot, rtol=1e-12)
    assert np.allclose(cluster.momentum(), (mass[:, None] * cluster.vel).sum(axis=0), atol=1e-15)


def radii_by_hand(mass, pos, fractions, centre):
    """The smallest distance of a body within which the mass is the fraction or more."""
    distance = np.sqrt(((pos - centre) ** 2).sum(axis=1))
    total = math.fsum(mass)
    found = []
    for fraction in fractions:
        inside = [math.fsum(mass[distance <= d]) for d in distance]
        enough = [d for d, m in zip(distance, inside, strict=True) if m >= fraction * total]
        found.append(min(enough))
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 10, 137])
def test_lagrangian_radii_are_those_of_their_definition(n):
    rng = np.random.default_rng(n)
    mass, pos = rng.uniform(0.1, 1, n), rng.standard_normal((n, 3)) + 5
    mass[1::3] = 0  # which hold none of it
    fractions = (0.05, 0.1, 0.37, 0.5, 0.9, 1.0)
    centre = (mass[:, None] * pos).sum(axis=0) / mass.sum()
    found = diagnostics.lagrangian_radii(mass, pos, fractions)
    assert np.allclose(found, radii_by_hand(mass, pos, fractions, centre), rtol=1e-13)
    off = np.array([1.0, -2.0, 3.0])
    found = diagnostics.lagrangian_radii(mass, pos, fractions, centre=off)
    assert np.allclose(found, radii_by_hand(mass, pos, fractions, off), rtol=1e-13)
    assert np.allclose(diagnostics.centre_of_mass(mass, pos), centre, rtol=1e-13)


@pytest.mark.parametrize("n", [10, 100, 1000, 16384])
def test_a_tenth_of_equal_masses_is_a_tenth_of_the_bodies(n):
    """However the sums of 1/n round."""
    pos = np.zeros((n, 3))
    pos[:, 0] = np.arange(1, n + 1)
    fractions = np.arange(1, 11) / 10
    found = diagnostics.lagrangian_radii(np.full(n, 1 / n), pos, fractions, centre=np.zeros(3))
    assert found == pytest.approx(np.ceil(n * fractions - 1e-9), abs=0)


@pytest.mark.parametrize("bad", [0.0, -0.1, 1.1, np.nan])
def test_a_fraction_out_of_range_is_refused(bad):
    with pytest.raises(ArgumentError, match="fraction"):
        diagnostics.lagrangian_radii(*plummer(10, 1)[:2], (0.5, bad))


def test_without_mass_there_is_no_centre_and_no_virial_ratio():
    assert np.isnan(diagnostics.centre_of_mass(np.zeros(2), np.ones((2, 3)))).all()
    assert math.isnan(diagnostics.energy(np.zeros(2), np.eye(2, 3), np.eye(2, 3)).virial_ratio)
    assert np.isnan(diagnostics.lagrangian_radii(np.zeros(2), np.ones((2, 3)))).all()


@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {}), (Hermite, {"dt": 0.1}), (Leapfrog, {"dt": 0.1, "backend": "cpu"}),
    (Leapfrog, {"dt": 0.1, "backend": "cpu-tree"}), (Leapfrog, {"dt_max": 0.1, "eps": 0.1}),
])  # fmt: skip
def test_no_bodies_have_no_radii_and_go_on_from_a_file(kind, options, tmp_path):
    with kind(np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)), **options) as nobody:
        nobody.evolve(1.0)
        nobody.save(tmp_path / "nobody.h5")
        assert (nobody.time, nobody.pos.shape) == (1.0, (0, 3))
        assert np.isnan(nobody.lagrangian_radii()).tolist() == [True] * 3
        assert np.isnan(nobody.lagrangian_radii((0.5,), centre=np.zeros(3))).all()
        assert nobody.energy() == (0, 0, 0)
        assert math.isnan(nobody.virial_ratio())
        assert np.array_equal(nobody.momentum(), np.zeros(3))
        assert len(nobody.potential()) == 0
    with kind.load(tmp_path / "nobody.h5") as again:
        assert (again.n, again.time) == (0, 1.0)
        again.evolve(2.0)
    assert np.isnan(diagnostics.centre_of_mass([], np.zeros((0, 3)))).all()


def test_plain_lists_are_arrays_too():
    mass, pos, vel = [0.5, 0.5], [[0, 0, 0], [2, 0, 0]], [[0, 1, 0], [0, -1, 0]]
    energy = diagnostics.energy(mass, pos, vel)
    assert (energy.kinetic, energy.potential) == (0.5, -0.125)
    assert np.array_equal(diagnostics.momentum(mass, vel), [0, 0, 0])
    assert np.array_equal(diagnostics.centre_of_mass(mass, pos), [1, 0, 0])
    assert np.array_equal(diagnostics.lagrangian_radii(mass, pos), [1, 1, 1])
    mass, pos, vel = [2.0, 3.0], [[1, 0, 0], [0, 2, 0]], [[0, 5, 0], [0, 0, 7]]
    assert diagnostics.angular_momentum(mass, pos, vel).tolist() == [42, 0, 10]
