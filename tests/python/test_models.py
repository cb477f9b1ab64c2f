"""Models: what all promise; Plummer's sphere, the uniform one, Kepler's two bodies."""

import hashlib
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grape6py as g6
from distributions import follow, radii, rests, same_bodies
from grape6py import (
    eff,
    fractal,
    galaxy,
    hernquist,
    kroupa,
    maschberger,
    salpeter,
    stars,
    with_binaries,
)
from grape6py.models import king, merger, nfw, plummer, two_body, uniform

SCALE = 3 * math.pi / 16  # of Plummer's sphere in Henon units


def some_stars(n, seed=None, **options):
    return stars(kroupa(n, 1), plummer, seed, 0.5, **options)


def pairs(n, seed=None):
    return with_binaries(plummer(n, 1), 0.5, seed, separation=(1e-6, 1e-3))


SPHERES = {
    "plummer": plummer, "king": partial(king, w0=6), "uniform": uniform, "fractal": fractal,
    "stars": some_stars, "eff": partial(eff, gamma=3), "hernquist": hernquist,
    "nfw": partial(nfw, concentration=5),
}  # fmt: skip


@pytest.mark.parametrize(("name", "digest"), [
    ("plummer", "04b314cf8efc95a1f024aabb0c7fd150e1893889b655eb606d04b99f5161b568"),
    ("king", "44765e9e866a92d21f2b331ccd99036bf50e7154632113283246fd1cebc672c9"),
    ("uniform", "544dd6517deec341ab09ce1cd2e18478d91a3ee14d5e62a273e8219fe2fb3a21"),
])  # fmt: skip
def test_the_same_seed_gives_the_same_bits_on_every_machine(name, digest):
    text = b"".join(array.astype("<f8").tobytes() for array in SPHERES[name](1000, seed=7))
    assert hashlib.sha256(text).hexdigest() == digest


@pytest.mark.parametrize("model", [
    *SPHERES.values(), pairs, lambda n, seed=None: g6.galaxy_merger(n, n, seed).particles,
    *(lambda n, seed=None, f=f: (f(n, seed),) for f in (kroupa, salpeter, maschberger)),
])  # fmt: skip
def test_a_seed_says_what_comes(model):
    assert same_bodies(model(20, seed=1), model(20, seed=1))
    assert not same_bodies(model(20, seed=1)[-1:], model(20, seed=2)[-1:])
    assert not same_bodies(model(20)[-1:], model(20)[-1:])


@pytest.mark.parametrize("name", SPHERES)
@pytest.mark.parametrize("n", [1, 2, 1000])
def test_spheres_rest_in_the_origin_with_mass_one(name, n):
    if name in ("fractal", "stars") and n == 1:
        n = 3
    model = SPHERES[name](n, seed=3)
    assert model.mass.shape == (n,)
    assert model.pos.shape == model.vel.shape == (n, 3)
    error = 1e-15 if name == "plummer" else 1e-14
    assert math.fsum(model.mass) == pytest.approx(1, rel=error)
    assert rests(model, error)


@pytest.mark.parametrize(("model", "n", "ratio", "error", "of_total"), [
    (plummer, 16000, 0.5, 0.02, 0.02),
    *((partial(king, w0=w0), 6000, 0.5, 0.04, 0.04) for w0 in (1, 5.5, 12)),
    *((partial(uniform, virial_ratio=ratio), 6000, ratio, 0.02, 0.02 / (1 - ratio))
      for ratio in (0, 0.9)),
])  # fmt: skip
def test_spheres_are_bound_in_henon_units_and_rescaled_exactly(model, n, ratio, error, of_total):
    large = model(n, seed=4)
    pot = g6.diagnostics.potential(large.mass, large.pos)
    energy = g6.diagnostics.energy(*large, pot=pot)
    assert energy.virial_ratio == pytest.approx(ratio, rel=error)
    assert energy.total == pytest.approx(-0.25, rel=of_total)
    assert ((large.vel**2).sum(axis=1) / 2 + pot < 0).all()
    exact = g6.reference.energy(*model(200, seed=5, rescale=True))
    assert exact.total == pytest.approx(-0.25, rel=1e-13)
    assert exact.kinetic == pytest.approx(-ratio * exact.potential, rel=1e-13)


@pytest.mark.parametrize("virial_ratio", [0, 0.3, 0.5])
@pytest.mark.parametrize("model", [
    *(lambda r, n=n, d=d: fractal(n, d, 2, r) for n in (2, 300) for d in (1, 1.6, 3)),
    *(lambda r, s=s: stars(kroupa(300, 1), plummer, 1, s, virial_ratio=r) for s in (0, 1)),
])  # fmt: skip
def test_energies_of_fractals_and_stars_are_exact_if_asked_for(model, virial_ratio):
    energy = g6.reference.energy(*model(virial_ratio))
    assert energy.total == pytest.approx(-0.25, rel=1e-12)
    assert energy.kinetic == pytest.approx(-virial_ratio * energy.potential, rel=1e-12)


def test_radii_follow_the_mass_profile_and_end_where_told():
    radius = radii(plummer(20000, seed=2)) / SCALE
    assert follow(radius, lambda r: (1 + r**-2) ** -1.5 / 0.999)
    assert radius.max() < 1.02 * 22.8 / SCALE
    near = radii(plummer(20000, seed=2, mass_fraction=0.5))
    assert near.max() == pytest.approx(SCALE / math.sqrt(0.5 ** (-2 / 3) - 1), rel=0.02)


def test_speeds_are_below_escape_and_have_the_local_dispersion():
    model = plummer(20000, seed=4)
    squared, depth = (model.vel**2).sum(axis=1), 1 / np.hypot(radii(model), SCALE)
    assert (squared < 2 * depth * 1.05).all()
    # The mean square speed is half the depth of the potential at every radius.
    for part in np.array_split(np.argsort(depth), 5):
        assert squared[part].mean() == pytest.approx(0.5 * depth[part].mean(), rel=0.04)


def test_directions_are_isotropic():
    model = plummer(20000, seed=6)
    for vectors in (model.pos, model.vel):
        units = vectors / np.linalg.norm(vectors, axis=1)[:, None]
        assert np.abs(units.mean(axis=0)).max() < 0.02
        assert np.allclose(units.T @ units / len(units), np.eye(3) / 3, atol=0.01)


@pytest.mark.parametrize("ratio", [0, 0.1, 0.9])
def test_bodies_fill_the_sphere_evenly(ratio):
    model = uniform(20000, 2, ratio)
    size = 2.4 * (1 - ratio)
    assert follow(radii(model) / size, lambda r: r**3)
    assert radii(model).max() == pytest.approx(size, rel=0.02)
    assert np.allclose(np.cov(model.pos.T), np.eye(3) * size**2 / 5, atol=0.02 * size**2)


@given(st.floats(0, 0.999), st.floats(1e-6, 1e6), st.floats(1e-3, 1e3), st.booleans())
def test_two_bodies_are_on_the_orbit_asked_for(eccentricity, ratio, axis, apocentre):
    mass, pos, vel = two_body(eccentricity, ratio, axis, apocentre=apocentre)
    r, v = pos[1] - pos[0], vel[1] - vel[0]
    distance, moment = np.linalg.norm(r), np.cross(r, v)
    assert mass.sum() == pytest.approx(1)
    assert mass[1] / mass[0] == pytest.approx(ratio)
    assert np.abs(mass @ pos).max() < 1e-15 * axis
    assert np.abs(mass @ vel).max() < 1e-15 * np.linalg.norm(v)
    assert distance == pytest.approx(axis * (1 + (eccentricity if apocentre else -eccentricity)))
    assert v @ v / 2 - 1 / distance == pytest.approx(-1 / (2 * axis), rel=1e-9)
    assert moment[2] == pytest.approx(math.sqrt(axis * (1 - eccentricity**2)), rel=1e-6)


def merged(**how):
    return merger(**{"first": plummer(5, 1), "second": plummer(5, 2), "pericentre": 1,
                     "separation": 3} | how)  # fmt: skip


RIGHT = {
    plummer: {"n": 10}, king: {"n": 10, "w0": 5}, uniform: {"n": 9}, merged: {},
    galaxy: {"n_disk": 5, "n_bulge": 5, "n_halo": 5}, two_body: {"eccentricity": 0},
    fractal: {"n": 10, "seed": 1},
    stars: {"mass": [1, 2], "seed": 1}, kroupa: {"n": 10, "seed": 1},
    salpeter: {"n": 10, "seed": 1}, maschberger: {"n": 10, "seed": 1},
    with_binaries: {"particles": plummer(4, 1), "fraction": 1, "seed": 1, "separation": (1e-3, 1)},
}  # fmt: skip
NOT_FINITE = "= nan is not a finite number"
ONE = [[0, 0, 0]]
WRONG = [
    *((plummer, wrong, None) for wrong in (
        {"n": 0}, {"mass_fraction": 0}, {"mass_fraction": 1}, {"mass_fraction": math.nan})),
    *((king, wrong, None) for wrong in ({"n": 0}, {"w0": 0.9}, {"w0": 12.1}, {"w0": math.nan})),
    *((uniform, wrong, None) for wrong in (
        {"n": 0}, {"virial_ratio": -0.1}, {"virial_ratio": 1}, {"virial_ratio": math.nan})),
    *((f, {"n": 1, "rescale": True}, "two bodies") for f in (plummer, king, uniform)),
    *((galaxy, wrong, None) for wrong in (
        {"n_disk": 0, "n_bulge": 0, "n_halo": 0}, {"n_disk": -1}, {"halo_scale": 0},
        {"bulge_mass": -1}, {"toomre_q": math.nan}, {"cut": 0.9}, {"disk_height": 0},
        {"disk_height": 1.1}, {"black_hole": -1})),
    *((merged, wrong, None) for wrong in (
        {"pericentre": 0}, {"pericentre": math.nan}, {"separation": 0.5}, {"separation": math.inf},
        {"separation": math.nan}, {"eccentricity": -1}, {"eccentricity": 0.5, "separation": 3.1},
        {"mass_ratio": 0}, {"tilt": (0, math.nan)})),
    (merged, {"first": g6.Particles(np.zeros(2), np.zeros((2, 3)), np.zeros((2, 3)))}, "mass"),
    *((two_body, wrong, None) for wrong in (
        {"eccentricity": 1}, {"eccentricity": -0.1}, {"eccentricity": math.nan},
        {"mass_ratio": 0}, {"mass_ratio": -1}, {"semi_major_axis": 0})),
    (fractal, {"n": 1}, "n = 1: a fractal needs two bodies"),
    (fractal, {"dimension": 0.9}, "dimension = 0.9 is not between 1 and 3"),
    (fractal, {"virial_ratio": 1}, r"virial_ratio = 1 is not in \[0, 1\)"),
    (stars, {"mass": []}, "mass is empty"), (stars, {"mass": 1.0}, r"mass has shape \(\)"),
    (stars, {"mass": [1, 0, 1]}, r"mass\[1\] = 0.0 is not above zero"),
    (stars, {"mass": [1, math.nan]}, r"mass\[1\] is not finite"),
    (stars, {"segregation": 1.1}, "segregation = 1.1 is not between 0 and 1"),
    (stars, {"mass": [1], "virial_ratio": 0.5}, "virial_ratio needs at least two stars"),
    (stars, {"model": lambda n, seed: galaxy(n, 0, 0, seed)}, "gives Labelled, not Particles"),
    (stars, {"model": lambda n, seed: plummer(7, seed)}, r"model\(n=2, seed=...\) gives 7 bodies"),
    (stars, {"model": lambda n, seed: stars([1, 2])}, "model has bodies of several masses"),
    (kroupa, {"n": 10.5}, "n = 10.5 is not an integer"),
    (kroupa, {"n": np.array(5.0, object)}, r"n = array\(5.0, dtype=object\) is not an integer"),
    (kroupa, {"n": 0}, "n = 0: a model needs at least one body"),
    (kroupa, {"lowest": 0.001}, "lowest = 0.001 is below 0.01, where Kroupa"),
    (kroupa, {"lowest": 3, "highest": 2}, "lowest = 3.0 is not below highest = 2.0"),
    (salpeter, {"lowest": 0}, "lowest = 0.0 is not above zero"),
    (salpeter, {"slope": math.nan}, f"slope {NOT_FINITE}"),
    (salpeter, {"slope": "steep"}, "slope = 'steep' is not a number"),
    (maschberger, {"alpha": 1}, "alpha = 1 is not above 1"),
    (with_binaries, {"fraction": 1.1}, "fraction = 1.1 is not between 0 and 1"),
    (with_binaries, {"separation": (0, 1)}, r"separation = \(0, 1\): give the smallest and the l"),
    (with_binaries, {"separation": (1, 2, 3)}, r"separation has shape \(3,\), not \(2,\)"),
    (with_binaries, {"mass_ratio": (0.5, 2)}, "the ratio is at most 1"),
    (with_binaries, {"eccentricity": 1}, "eccentricity = 1 is neither 'thermal' nor in"),
    (with_binaries, {"eccentricity": "hot"}, "eccentricity = 'hot' is not a number"),
    (with_binaries, {"particles": g6.Particles([-1.0], ONE, ONE)}, "is negative"),
    (with_binaries, {"particles": g6.Particles([0.0], ONE, ONE)}, "1 binaries of 0 bodies with m"),
    (with_binaries, {"particles": g6.Particles([1.0], [[0, 0]], ONE)}, "particles.pos has shape"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "wrong", "words"), WRONG)
def test_models_that_cannot_be_are_refused_by_name(model, wrong, words):
    with pytest.raises(ValueError, match=words or [*wrong][-1]):
        model(**RIGHT[model] | wrong)
