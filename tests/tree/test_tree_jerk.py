"""Jerks of the tree on the CPU: what they are made of, against the direct sum, and their units."""

from itertools import pairwise

import numpy as np
import pytest

import capi
from grape6py import Tree
from grape6py.models import plummer
from grape6py.reference import direct_sum
from particles import relative
from variants import run

N = 8192
EPS = 0.01


def forces(bodies, *targets, isa=None, **setting):
    mass, pos, vel = bodies
    with Tree(pos, mass, vel, isa=isa) as tree:
        return tree.forces(*targets, **{"theta": 0.5, "eps": EPS} | setting)


def check(wrong, median, most):
    """Median and 99th percentile."""
    assert np.median(wrong) < median
    assert np.quantile(wrong, 0.99) < most


@pytest.fixture(scope="module")
def cluster():
    return plummer(N, seed=3)


@pytest.fixture(scope="module")
def direct(cluster):
    return direct_sum(*cluster, eps2=EPS**2)


def test_rates_are_the_derivatives_of_what_changes(tmp_path):
    """Formulas in double precision: cells on points, expansions, moments of leaves and parents."""
    paths = [f"-I{capi.ROOT / 'include'}", f"-I{capi.ROOT / 'csrc'}"]
    run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", *paths,
         capi.TESTS / "c" / "tree_rates.c", "-lm", "-o", tmp_path / "rates"])  # fmt: skip
    worst = run([tmp_path / "rates"]).stdout.split()
    assert len(worst) == 6
    assert max(map(float, worst)) < 1e-9


def test_theta_to_zero_gives_the_direct_sum(cluster, direct, method, isa):
    found = forces(cluster, theta=1e-9, method=method, isa=isa)
    check(relative(found.jerk, direct.jerk), 5e-7, 5e-6)
    assert np.median(relative(found.acc, direct.acc)) < 3e-7


# Medians and 99th percentiles of the relative errors, near twice what they are.
BOUNDS = {
    ("fmm", 0.3): (2e-4, 2e-3),
    ("fmm", 0.5): (1.5e-3, 2e-2),
    ("fmm", 0.8): (1.3e-2, 3e-1),
    ("bh", 0.3): (3e-4, 3e-3),
    ("bh", 0.5): (1.5e-3, 1.2e-2),
    ("bh", 0.8): (6e-3, 5e-2),
}


@pytest.mark.parametrize(("method", "theta"), BOUNDS)
def test_errors_are_bounded(cluster, direct, method, theta):
    wrong = relative(forces(cluster, theta=theta, method=method).jerk, direct.jerk)
    check(wrong, *BOUNDS[method, theta])


def test_errors_fall_with_the_order_and_with_theta(cluster, direct):
    def median(**how):
        return np.median(relative(forces(cluster, **how).jerk, direct.jerk))

    by_order = [median(order=order) for order in (2, 3, 4, 6)]
    assert by_order == sorted(by_order, reverse=True)
    assert by_order[0] > 5 * by_order[-1]
    by_theta = [median(theta=theta) for theta in (0.8, 0.6, 0.4, 0.2)]
    assert all(b < 0.5 * a for a, b in pairwise(by_theta))


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
def test_each_order_in_each_instruction_set(cluster, direct, order, isa):
    found = forces(cluster, theta=0.3, order=order, isa=isa)
    check(relative(found.jerk, direct.jerk), *((1e-3, 2e-2) if order == 2 else (4e-4, 4e-3)))


def test_uniform_motion_has_no_jerk(cluster, direct, method):
    mass, pos, _ = cluster
    velocity = np.array([3.0, -2.0, 0.7])
    jerk = forces((mass, pos, np.zeros_like(pos) + velocity), method=method).jerk
    assert np.abs(jerk).max() < 1e-13 * np.abs(direct.jerk).max()
    assert not forces((mass, pos, np.zeros_like(pos)), method=method).jerk.any()


@pytest.mark.parametrize("speed", [1.0, 1e3])
def test_a_velocity_added_to_all_changes_nothing(cluster, method, speed):
    mass, pos, vel = cluster
    still = forces(cluster, method=method)
    moving = forces((mass, pos, vel + speed * np.array([1.0, -2.0, 0.5])), method=method)
    assert np.array_equal(moving.acc, still.acc)
    assert relative(moving.jerk, still.jerk).max() < 1e-5
    assert np.median(relative(moving.jerk, still.jerk)) < 1e-7


def test_a_rotation_of_all_turns_the_force(cluster):
    """In rigid rotation the jerk is omega x acc: nothing of it comes from a cell's mean velocity
    alone."""
    mass, pos, _ = cluster
    omega = np.array([0.3, -1.0, 2.0])
    found = forces((mass, pos, np.cross(omega, pos)), theta=0.4)
    check(relative(found.jerk, np.cross(omega, found.acc)), 1e-4, 3e-3)


@pytest.mark.parametrize(
    ("length", "of_mass", "speed"),
    [
        (0, 0, 100),
        (0, 0, -100),
        (80, -90, 60),
        (-70, 90, -100),
        (100, -100, 0),
        (-100, 100, 0),
        (100, 100, 0),
        (-100, -100, 0),
    ],
)
def test_powers_of_two_in_the_units_change_no_bit(cluster, method, length, of_mass, speed):
    mass, pos, vel = (a[:3000] for a in cluster)
    once = forces((mass, pos, vel), method=method, eps=2.0**-6)
    scaled = np.ldexp(mass, of_mass), np.ldexp(pos, length), np.ldexp(vel, speed)
    found = forces(scaled, eps=2.0 ** (length - 6), method=method)
    assert np.array_equal(found.acc, np.ldexp(once.acc, of_mass - 2 * length))
    assert np.array_equal(found.pot, np.ldexp(once.pot, of_mass - length))
    assert np.array_equal(found.jerk, np.ldexp(once.jerk, of_mass + speed - 3 * length))


@pytest.mark.parametrize("eps", [0.0, 0.05, 10.0])
def test_softening(cluster, method, eps):
    bodies = [a[:3000] for a in cluster]
    right = direct_sum(*bodies, eps2=eps**2)
    found = forces(bodies, theta=0.3, method=method, eps=eps)
    check(relative(found.jerk, right.jerk), 3e-4, 4e-3)


@pytest.mark.parametrize("moving", [True, False])
def test_targets_of_ones_own(cluster, method, isa, moving):
    """Particles that are predicted elsewhere, and points that are none; without velocities, they
    are at rest."""
    random = np.random.default_rng(5)
    _, pos, vel = cluster
    self = np.where(random.random(500) < 0.5, random.integers(0, N, 500), -1)
    x = np.where(self[:, None] < 0, random.normal(size=(500, 3)), 1.001 * pos[self])
    v = np.where(self[:, None] < 0, random.normal(size=(500, 3)), 1.1 * vel[self])
    v = v if moving else None
    right = direct_sum(*cluster, target_pos=x, target_vel=v, target_index=self, eps2=EPS**2)
    near, far = (forces(cluster, x, v, self_index=self, theta=theta, method=method, isa=isa).jerk
                 for theta in (1e-9, 0.4))  # fmt: skip
    assert np.quantile(relative(near, right.jerk), 0.99) < 1e-5
    assert np.median(relative(far, right.jerk)) < 1e-3


@pytest.mark.parametrize("speed", [0.0, 1e-20, 1e-60])
def test_targets_may_be_faster_than_all_sources(cluster, method, speed):
    mass, pos, vel = cluster
    targets, self = (pos[:300], 1e30 * vel[:300]), np.arange(300)
    bodies = mass, pos, speed * vel
    found = forces(bodies, *targets, self_index=self, method=method, theta=0.3)
    right = direct_sum(*bodies, target_pos=targets[0], target_vel=targets[1], target_index=self,
                       eps2=EPS**2)  # fmt: skip
    check(relative(found.jerk, right.jerk), 1e-4, 1e-3)


@pytest.mark.filterwarnings("ignore:.*pairs of a tree at one place")
def test_pairs_too_close_for_single_precision(method):
    """Two bodies 1e-13 apart where the tree's own coordinates resolve that, and two at one place,
    among others; without softening."""
    random = np.random.default_rng(8)
    pos = np.vstack([random.uniform(-1, 1, (60, 3)), [[1, 1, 1], [-1, -1, -1]], np.zeros((4, 3))])
    pos[-4] = [1e-13, -2e-13, 0.5e-13]
    pos[-1] = pos[-2] = [0.25, 0.5, 0.125]
    bodies = random.uniform(0.5, 1, len(pos)), pos, random.normal(size=pos.shape)
    right = direct_sum(*bodies)
    found = forces(bodies, theta=0.3, eps=0.0, method=method)
    assert relative(found.jerk, right.jerk).max() < 1e-5
    assert relative(found.acc, right.acc).max() < 1e-5


def test_one_body_and_masses_of_both_signs(method):
    one = np.ones(1), np.ones((1, 3)), np.ones((1, 3))
    assert not forces(one, method=method).jerk.any()
    random = np.random.default_rng(4)
    pos, vel = random.normal(size=(2, 2000, 3))
    for mass in (random.normal(size=2000), np.arange(2000) % 2.0, np.zeros(2000)):
        found = forces((mass, pos, vel), theta=0.3, method=method)
        right = direct_sum(mass, pos, vel, eps2=EPS**2)
        scale = np.median(np.linalg.norm(right.jerk, axis=1))
        wrong = np.linalg.norm(found.jerk - right.jerk, axis=1)
        assert np.median(wrong) <= 1e-3 * scale
