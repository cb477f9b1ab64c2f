"""The largest step by default, and first steps: what they depend on, and what not."""

import numpy as np
import pytest

from grape6py import Hermite, fields, plummer, reference, two_body, with_binaries

LONE = [1.0], np.zeros((1, 3)), np.zeros((1, 3))


def energy(cluster):
    return float(reference.energy(*cluster.particles(), extended=True).total)


def largest(mass, pos, vel, **options):
    return Hermite(mass, pos, vel, **options).settings["dt_max"]


def with_massless(mass, pos, vel, n=50):
    rng = np.random.default_rng(1)
    return (np.r_[mass, np.zeros(n)], np.r_[pos, rng.uniform(-9, 9, (n, 3))],
            np.r_[vel, rng.normal(size=(n, 3))])  # fmt: skip


@pytest.mark.parametrize("eccentricity", [0, 0.5, 0.9, 0.99, 0.9999])
@pytest.mark.parametrize("apocentre", [True, False])
def test_the_phase_of_two_bodies_does_not_change_the_largest_step(eccentricity, apocentre):
    bodies = two_body(eccentricity, apocentre=apocentre)
    assert largest(*bodies) == 0.25
    satellite = [1.0, 0.0], bodies[1] - bodies[1][0], bodies[2] - bodies[2][0]
    assert largest(*satellite) == 0.25


def test_a_pericentre_start_costs_the_steps_of_an_apocentre_start():
    steps = []
    for apocentre in (True, False):
        cluster = Hermite(*two_body(0.99, apocentre=apocentre))
        cluster.evolve(4 * np.pi)
        steps.append(cluster.steps)
    assert steps[1] == pytest.approx(steps[0], rel=0.1)


@pytest.mark.parametrize("axis", [1e-5, 1e-3])
def test_hard_binaries_do_not_shorten_the_largest_step(axis):
    sphere = plummer(200, seed=1)
    pairs = with_binaries(sphere, 0.5, 2, separation=axis, eccentricity=0)
    assert largest(*sphere) == largest(*pairs) == 0.125


@pytest.mark.parametrize("body", ["far", "heavy", "close"])
def test_one_body_does_not_decide(body):
    mass, pos, vel = (array.copy() for array in plummer(200, seed=1))
    if body == "far":
        pos[0] = 1e8
    elif body == "heavy":
        mass[0], pos[0], vel[0] = 1e-9, 0, 0
    else:
        pos[0] = pos[1] + 1e-12
    assert largest(mass, pos, vel) == 0.125


@pytest.mark.parametrize(
    ("bodies", "options", "step"),
    [(LONE, {}, 0.125), (([0.0], *LONE[1:]), {}, 0.125),
     (([], np.zeros((0, 3)), np.zeros((0, 3))), {}, 0.125),
     (([0.0], [[4.0, 0, 0]], [[0, 0.5, 0]]), {"field": fields.point_mass(1)}, 1.0),
     (([0.0], [[4e4, 0, 0]], [[0, 0.005, 0]]), {"field": fields.point_mass(1)}, 2.0**20)],
)  # fmt: skip
def test_without_two_masses_it_is_that_of_orbits_in_the_field(bodies, options, step):
    assert largest(*bodies, **options) == step


EIGHT = ([1.0] * 3, np.outer([1, -1, 0], [-0.97000436, 0.24308753, 0]),
         np.outer([1, 1, -2], [-0.466203685, -0.43236573, 0]))  # fmt: skip


@pytest.mark.parametrize("shift", [0.0, 0.1])  # so that acc is zero, or zero to rounding
@pytest.mark.parametrize("massless", [0, 5])
def test_a_first_step_without_acceleration_is_shortened_by_eta(shift, massless):
    errors = []
    for eta in (2e-2, 2e-4):
        mass, pos, vel = with_massless(EIGHT[0], EIGHT[1] + shift, EIGHT[2], massless)
        cluster = Hermite(mass, pos, vel, eta=eta, precision="double")
        start, first = energy(cluster), cluster.step_sizes[2]
        assert first <= 0.25 * eta**0.5
        cluster.evolve(1 / 16)
        errors.append(abs(energy(cluster) / start - 1))
    assert errors[1] < 1e-3 * errors[0]


def test_a_body_on_which_nothing_acts_begins_with_the_largest_step():
    assert Hermite(*LONE).step_sizes == [0.125]
    ring = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 0]], float)
    cluster = Hermite([1.0] * 5, ring, np.zeros((5, 3)))
    assert cluster.step_sizes[4] == cluster.settings["dt_max"]
