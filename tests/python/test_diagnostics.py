"""Energies, momentum, virial ratio and Lagrangian radii, against the oracle and definitions; an
integration that loses its energy warns once, with what to do."""

import math
import re
import warnings

import numpy as np
import pytest

import grape6py as g6
from grape6py import Hermite, Leapfrog, diagnostics, fields, plummer, reference, two_body
from grape6py.errors import AccuracyWarning, ArgumentError, Grape6Warning
from grape6py.events import EnergyError
from runs import run


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
    again = diagnostics.energy(mass, pos, vel, eps, pot=sums.pot.astype(float))
    assert again.total == pytest.approx(found.total, rel=1e-12)


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


BODIES = plummer(64, seed=1)
ORBIT = two_body(0.99999, apocentre=True)  # 2 pi to the next apocentre


def warned(cluster, *times):
    """The words of the warnings of looks at the energy at some times."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        cluster.energy()
        for time in times:
            cluster.evolve(time)
            cluster.energy()
    assert {(w.category, w.filename) for w in caught} <= {(AccuracyWarning, __file__)}
    assert issubclass(AccuracyWarning, Grape6Warning)
    return [str(w.message) for w in caught]


def test_an_orbit_that_loses_its_energy_warns_once_however_often_one_looks():
    """No single block changes the energy as much as the whole encounter does."""
    (words,) = warned(Hermite(*ORBIT, subsystems=False), 1.0, 5.0, 6.0, 7.0)
    # The digits are those of the machine's seed of 1/sqrt.
    assert re.sub(r"-[1-3]\.\de", "-2.4e", words) == (
        "at time 5 the relative energy error is -2.4e-02: take a smaller eta than 0.02 or a larger "
        "softening length than eps = 0"
    )
    (words,) = warned(Hermite(*ORBIT, subsystems=False), *np.linspace(3.1, 3.2, 400), 5.0)
    assert "take a smaller eta" in words


SOFTER = "a larger softening length than eps = 0.05"
WRONG = [
    (Hermite, {"dt": 0.25}, f"a smaller dt than 0.25 or {SOFTER}"),
    (Hermite, {"eta": 4.0, "precision": "single"},
     f"a smaller eta than 4, {SOFTER} or another precision than single"),
    (Leapfrog, {"dt": 0.5, "theta": 0.7},
     f"a smaller dt than 0.5, a smaller theta than 0.7 or {SOFTER}"),
    (Leapfrog, {"dt_max": 1.0, "eta": 9.0, "backend": "cpu"}, f"a smaller eta than 9 or {SOFTER}"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "remedy"), WRONG, ids=str)
def test_the_warning_names_what_the_integration_has(kind, options, remedy):
    (words,) = warned(kind(*BODIES, eps=0.05, **options), 4.0, 8.0)
    assert words.endswith(f": take {remedy}")


@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {}), (Hermite, {"precision": "single"}), (Leapfrog, {"dt": 1 / 64}),
    (Leapfrog, {"dt_max": 1 / 32, "eta": 0.001}),
], ids=str)  # fmt: skip
def test_a_good_integration_warns_of_nothing(kind, options):
    assert warned(kind(*BODIES, eps=0.05, **options), 0.5, 1.0, 2.0) == []


def test_energy_that_leaves_with_bodies_is_no_error():
    mass, pos, vel = BODIES
    flung = vel.copy()
    flung[:8] *= 6  # they leave with much of the energy
    options = {"eps": 0.05, "boundary": 3.0}
    galaxy = Leapfrog(mass, pos, flung, dt=1 / 256, **options)
    start = galaxy.energy().total
    assert warned(galaxy, *np.arange(0.5, 4.1, 0.5)) == []
    assert galaxy.n < 64
    assert abs(galaxy.energy().total / start - 1) > 0.1
    (words,) = warned(Leapfrog(mass, pos, flung, dt=1 / 2, **options), *np.arange(0.5, 12.1, 0.5))
    assert "a smaller dt" in words


def test_an_orbit_of_energy_zero_is_measured_by_its_parts():
    mass, pos, vel = two_body(0.0)
    parabola = mass, pos, vel * np.sqrt(2)
    cluster = Hermite(*parabola)
    assert abs(cluster.energy().total) < 1e-16
    assert warned(cluster, 1.0, 10.0, 20.0) == []
    assert len(warned(Hermite(*parabola, dt=1.0), 4.0)) == 1


def test_the_command_line_prints_one_line_and_says_which_error_it_is(here, capsys):
    rows = np.column_stack(ORBIT)
    (here / "orbit.dat").write_text("\n".join(" ".join(map(repr, row)) for row in rows.tolist()))
    assert run("orbit.dat", "--no-subsystems", "--t-end", 6, "--dt-out", 1, "--out", "a.h5") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("grape6: at time 4 the relative energy error is ")
    assert "take a smaller eta than 0.02" in line
    g6.write_snapshot("ring.txt", *ring())
    words = "ring.txt --integrator leapfrog --dt 0.001 --eps 0.05 --t-end 0.5".split()
    assert run(*words) == 0
    assert "of the specific energies of bodies without mass" in capsys.readouterr().out


def ring(n=40, drift=0.0):
    angle = np.linspace(0, 6, n)
    pos = np.c_[np.cos(angle), np.sin(angle), 0 * angle]
    vel = np.sqrt(0.2) * pos[:, [1, 0, 2]] * [-1, 1, 0]
    mass = np.append(1.0, np.zeros(n))
    return mass, np.vstack([[0, 0, 0], pos]), np.add(np.vstack([[0, 0, 0], vel]), [drift, 0, 0])


LIGHT = {
    "about a star": (ring(), {}),
    "about a star that moves": (ring(drift=3.0), {}),
    "in a field": ([array[1:] for array in ring()], {"field": fields.plummer(1.0, 0.05)}),
}


@pytest.mark.parametrize(("case", "kind"), [*zip(LIGHT, (Hermite, Leapfrog, Hermite), strict=True)])
def test_bodies_without_mass_are_judged_by_their_specific_energies(case, kind):
    bodies, options = LIGHT[case]
    good = kind(*bodies, eps=0.05, **options, dt=2**-10)
    assert warned(good, 1.0) == []
    assert 0 < good._specific_error() < 1e-3
    (words,) = warned(kind(*bodies, eps=0.05, **options, dt=1 / 8), 1.0, 3.0)
    assert "take a smaller dt than 0.125" in words
    stopped = kind(*bodies, eps=0.05, **options, dt=1 / 8)
    assert stopped.evolve(4.0, events=EnergyError(1e-2)).kind == "energy"
