"""Models: the Plummer sphere's statistics and exact reproducibility, Kepler's two bodies."""

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grape6py import reference
from grape6py.models import galaxy, king, merger, plummer, two_body, uniform

SCALE = 3 * math.pi / 16  # the model's natural unit of length in Henon units


@pytest.mark.parametrize(("model", "digest"), [
    (plummer, "04b314cf8efc95a1f024aabb0c7fd150e1893889b655eb606d04b99f5161b568"),
    (lambda n, seed=None: king(n, 6, seed),
     "44765e9e866a92d21f2b331ccd99036bf50e7154632113283246fd1cebc672c9"),
    (uniform, "544dd6517deec341ab09ce1cd2e18478d91a3ee14d5e62a273e8219fe2fb3a21"),
])  # fmt: skip
def test_the_same_seed_gives_the_same_bits_on_every_machine(model, digest):
    text = b"".join(array.astype("<f8").tobytes() for array in model(1000, seed=7))
    assert hashlib.sha256(text).hexdigest() == digest
    assert not np.array_equal(model(10, seed=1).pos, model(10, seed=2).pos)
    assert not np.array_equal(model(10).pos, model(10).pos)


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_a_plummer_sphere_rests_in_the_origin_with_mass_one(n):
    model = plummer(n, seed=3)
    assert model.mass.shape == (n,)
    assert model.pos.shape == model.vel.shape == (n, 3)
    assert math.fsum(model.mass) == pytest.approx(1, rel=1e-15)
    assert np.abs(model.mass @ model.pos).max() < 1e-15
    assert np.abs(model.mass @ model.vel).max() < 1e-15


def test_a_plummer_sphere_is_in_henon_units():
    energies = [reference.energy(*plummer(2000, seed)) for seed in range(8)]
    assert np.mean([e.total for e in energies]) == pytest.approx(-0.25, rel=0.02)
    assert np.mean([-2 * e.kinetic / e.potential for e in energies]) == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize(("model", "size"), [(plummer, (200,)), (king, (300, 7))])
def test_rescaling_makes_the_units_exact(model, size):
    energy = reference.energy(*model(*size, seed=5, rescale=True))
    assert energy.kinetic == pytest.approx(0.25, rel=1e-13)
    assert energy.potential == pytest.approx(-0.5, rel=1e-13)


def test_radii_follow_the_mass_profile_and_end_where_told():
    n = 20000
    radius = np.sort(np.linalg.norm(plummer(n, seed=2).pos, axis=1)) / SCALE
    inside = (1 + radius**-2) ** -1.5 / 0.999
    steps = (np.arange(n) + 0.5) / n
    assert np.abs(inside - steps).max() < 1.63 / math.sqrt(n)  # Kolmogorov, 1 %
    assert radius[-1] < 1.02 * 22.8 / SCALE
    near = np.linalg.norm(plummer(n, seed=2, mass_fraction=0.5).pos, axis=1)
    assert near.max() == pytest.approx(SCALE / math.sqrt(0.5 ** (-2 / 3) - 1), rel=0.02)


def test_speeds_are_below_escape_and_have_the_local_dispersion():
    model = plummer(20000, seed=4)
    squared = (model.vel**2).sum(axis=1)
    depth = 1 / np.hypot(np.linalg.norm(model.pos, axis=1), SCALE)
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


@given(
    eccentricity=st.floats(0, 0.999),
    ratio=st.floats(1e-6, 1e6),
    axis=st.floats(1e-3, 1e3),
    apocentre=st.booleans(),
)
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
    return merger(plummer(5, 1), plummer(5, 2), **{"pericentre": 1, "separation": 3} | how)


@pytest.mark.parametrize(("model", "right", "cases"), [
    (plummer, {"n": 10}, [{"n": 0}, {"mass_fraction": 0}, {"mass_fraction": 1},
                          {"mass_fraction": math.nan}, {"n": 1, "rescale": True}]),
    (king, {"n": 10, "w0": 5}, [{"n": 0}, {"w0": 0.9}, {"w0": 12.1}, {"w0": math.nan},
                                {"n": 1, "rescale": True}]),
    (uniform, {"n": 9}, [{"n": 0}, {"virial_ratio": -0.1}, {"virial_ratio": 1},
                         {"virial_ratio": math.nan}, {"n": 1, "rescale": True}]),
    (galaxy, {"n_disk": 5, "n_bulge": 5, "n_halo": 5},
     [{"n_disk": 0, "n_bulge": 0, "n_halo": 0}, {"n_disk": -1}, {"halo_scale": 0},
      {"bulge_mass": -1}, {"toomre_q": math.nan}, {"cut": 0.9}, {"disk_height": 0},
      {"disk_height": 1.1}, {"black_hole": -1}]),
    (merged, {}, [{"pericentre": 0}, {"pericentre": math.nan}, {"separation": 0.5},
                  {"separation": math.inf}, {"separation": math.nan}, {"eccentricity": -1},
                  {"eccentricity": 0.5, "separation": 3.1}, {"mass_ratio": 0},
                  {"tilt": (0, math.nan)}]),
    (two_body, {"eccentricity": 0}, [{"eccentricity": 1}, {"eccentricity": -0.1},
                                     {"eccentricity": math.nan}, {"mass_ratio": 0},
                                     {"mass_ratio": -1}, {"semi_major_axis": 0}]),
])  # fmt: skip
def test_models_that_cannot_be_are_refused_by_name(model, right, cases):
    for wrong in cases:
        with pytest.raises(ValueError, match=f"{list(wrong)[-1]}|two bodies"):
            model(**right | wrong)
