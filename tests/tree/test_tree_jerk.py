"""Jerks of the tree on the CPU: what they are made of, against the direct sum, and their units."""

import struct
import subprocess
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

import capi
from grape6py.models import plummer
from grape6py.reference import direct_sum
from particles import relative
from variants import run

FMM, BARNES_HUT = 0, 1
METHODS = pytest.mark.parametrize("method", [FMM, BARNES_HUT], ids=["fmm", "bh"])
N = 8192


class Sums(NamedTuple):
    acc: np.ndarray
    jerk: np.ndarray
    pot: np.ndarray


class Targets(NamedTuple):
    pos: np.ndarray
    vel: np.ndarray
    self: np.ndarray  # which particle each is, or -1


def summed(program, bodies, *, theta=0.5, order=5, method=FMM, isa=0, threads=2, eps2=1e-4,
           jerk=True, targets=None, refuse=False):  # fmt: skip
    """Runs tests/c/tree_jerk.c."""
    mass, pos, vel = bodies
    arrays = [mass, pos, vel, *(targets or [])[:2]]
    head = struct.pack("2q6i2d", len(mass), len(targets.pos) if targets else -1, method, order, isa,
                       threads, jerk, refuse, theta, eps2)  # fmt: skip
    given = b"".join([head, *(np.ascontiguousarray(a, dtype=float).tobytes() for a in arrays)])
    if targets:
        given += np.asarray(targets.self, dtype=np.int32).tobytes()
    done = subprocess.run([program], input=given, env=capi.clean_environment({}), check=False,
                          capture_output=True, timeout=240)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    numbers = np.frombuffer(done.stdout)
    n = len(numbers) // 7
    return Sums(numbers[: 3 * n].reshape(n, 3), numbers[3 * n : 6 * n].reshape(n, 3),
                numbers[6 * n :])  # fmt: skip


def check(wrong, median, most):
    """Median and 99th percentile."""
    assert np.median(wrong) < median
    assert np.quantile(wrong, 0.99) < most


@pytest.fixture(scope="module")
def program(variants):
    return variants["counted"].program("tree_jerk")


@pytest.fixture(scope="module")
def cluster():
    return plummer(N, seed=3)


@pytest.fixture(scope="module")
def direct(cluster):
    return direct_sum(*cluster, eps2=1e-4)


def test_rates_are_the_derivatives_of_what_changes(tmp_path):
    """Formulas in double precision: cells on points, expansions, moments of leaves and parents."""
    paths = [f"-I{capi.ROOT / 'include'}", f"-I{capi.ROOT / 'csrc'}"]
    run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", *paths,
         capi.TESTS / "c" / "tree_rates.c", "-lm", "-o", tmp_path / "rates"])  # fmt: skip
    worst = run([tmp_path / "rates"]).stdout.split()
    assert len(worst) == 6
    assert max(map(float, worst)) < 1e-9


@METHODS
def test_theta_to_zero_gives_the_direct_sum(program, cluster, direct, method, isa):
    found = summed(program, cluster, theta=1e-9, method=method, isa=capi.ISAS[isa])
    check(relative(found.jerk, direct.jerk), 5e-7, 5e-6)
    assert np.median(relative(found.acc, direct.acc)) < 3e-7


# Medians and 99th percentiles of the relative errors, near twice what they are.
BOUNDS = {
    (FMM, 0.3): (2e-4, 2e-3),
    (FMM, 0.5): (1.5e-3, 2e-2),
    (FMM, 0.8): (1.3e-2, 3e-1),
    (BARNES_HUT, 0.3): (3e-4, 3e-3),
    (BARNES_HUT, 0.5): (1.5e-3, 1.2e-2),
    (BARNES_HUT, 0.8): (6e-3, 5e-2),
}


@pytest.mark.parametrize(("method", "theta"), BOUNDS)
def test_errors_are_bounded(program, cluster, direct, method, theta):
    wrong = relative(summed(program, cluster, theta=theta, method=method).jerk, direct.jerk)
    check(wrong, *BOUNDS[method, theta])


def test_errors_fall_with_the_order_and_with_theta(program, cluster, direct):
    def median(**how):
        return np.median(relative(summed(program, cluster, **how).jerk, direct.jerk))

    by_order = [median(order=order) for order in (2, 3, 4, 6)]
    assert by_order == sorted(by_order, reverse=True)
    assert by_order[0] > 5 * by_order[-1]
    by_theta = [median(theta=theta) for theta in (0.8, 0.6, 0.4, 0.2)]
    assert all(b < 0.5 * a for a, b in pairwise(by_theta))


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6])
def test_each_order_in_each_instruction_set(program, cluster, direct, order, isa):
    found = summed(program, cluster, theta=0.3, order=order, isa=capi.ISAS[isa])
    wrong = relative(found.jerk, direct.jerk)
    assert np.median(wrong) < (1e-3 if order == 2 else 4e-4)
    assert np.quantile(wrong, 0.99) < (2e-2 if order == 2 else 4e-3)


@METHODS
def test_uniform_motion_has_no_jerk(program, cluster, direct, method):
    mass, pos, _ = cluster
    velocity = np.array([3.0, -2.0, 0.7])
    jerk = summed(program, (mass, pos, np.zeros_like(pos) + velocity), method=method).jerk
    assert np.abs(jerk).max() < 1e-13 * np.abs(direct.jerk).max()
    assert not summed(program, (mass, pos, np.zeros_like(pos)), method=method).jerk.any()


@METHODS
@pytest.mark.parametrize("speed", [1.0, 1e3])
def test_a_velocity_added_to_all_changes_nothing(program, cluster, method, speed):
    mass, pos, vel = cluster
    still = summed(program, cluster, method=method)
    moving = summed(program, (mass, pos, vel + speed * np.array([1.0, -2.0, 0.5])), method=method)
    assert np.array_equal(moving.acc, still.acc)
    assert relative(moving.jerk, still.jerk).max() < 1e-5
    assert np.median(relative(moving.jerk, still.jerk)) < 1e-7


def test_a_rotation_of_all_turns_the_force(program, cluster):
    """In rigid rotation the jerk is omega x acc: nothing of it comes from a cell's mean velocity
    alone."""
    mass, pos, _ = cluster
    omega = np.array([0.3, -1.0, 2.0])
    found = summed(program, (mass, pos, np.cross(omega, pos)), theta=0.4)
    check(relative(found.jerk, np.cross(omega, found.acc)), 1e-4, 3e-3)


@METHODS
def test_powers_of_two_in_the_units_change_no_bit(program, cluster, method):
    mass, pos, vel = (a[:3000] for a in cluster)
    once = summed(program, (mass, pos, vel), method=method)
    for length, of_mass, speed in [(0, 0, 100), (0, 0, -100), (80, -90, 60), (-70, 90, -100)]:
        scaled = np.ldexp(mass, of_mass), np.ldexp(pos, length), np.ldexp(vel, speed)
        found = summed(program, scaled, eps2=np.ldexp(1e-4, 2 * length), method=method)
        assert np.array_equal(found.acc, np.ldexp(once.acc, of_mass - 2 * length))
        assert np.array_equal(found.jerk, np.ldexp(once.jerk, of_mass + speed - 3 * length))


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_velocities_in_any_unit(program, cluster, direct, unit):
    mass, pos, vel = cluster
    found = summed(program, (mass, pos, unit * vel))
    assert np.median(relative(found.jerk, unit * direct.jerk)) < 1.5e-3


@METHODS
@pytest.mark.parametrize("eps", [0.0, 0.05, 10.0])
def test_softening(program, cluster, method, eps):
    mass, pos, vel = (a[:3000] for a in cluster)
    right = direct_sum(mass, pos, vel, eps2=eps**2)
    wrong = relative(
        summed(program, (mass, pos, vel), theta=0.3, method=method, eps2=eps**2).jerk, right.jerk
    )
    assert np.median(wrong) < 3e-4
    assert np.quantile(wrong, 0.99) < 4e-3


@METHODS
def test_bits_do_not_depend_on_the_threads(program, cluster, method):
    one, three = (summed(program, cluster, method=method, threads=n) for n in (1, 3))
    assert all(np.array_equal(a, b) for a, b in zip(one, three, strict=True))


@METHODS
def test_targets_of_ones_own(program, cluster, method):
    """Particles that are predicted elsewhere, and points that are none."""
    random = np.random.default_rng(5)
    _, pos, vel = cluster
    self = np.where(random.random(500) < 0.5, random.integers(0, N, 500), -1)
    targets = Targets(
        np.where(self[:, None] < 0, random.normal(size=(500, 3)), 1.001 * pos[self]),
        np.where(self[:, None] < 0, random.normal(size=(500, 3)), 1.1 * vel[self]),
        self,
    )
    right = direct_sum(*cluster, target_pos=targets.pos, target_vel=targets.vel,
                       target_index=targets.self, eps2=1e-4)  # fmt: skip
    near, far = (summed(program, cluster, theta=theta, method=method, targets=targets).jerk
                 for theta in (1e-9, 0.4))  # fmt: skip
    assert np.quantile(relative(near, right.jerk), 0.99) < 1e-5
    assert np.median(relative(far, right.jerk)) < 1e-3


@METHODS
@pytest.mark.parametrize("speed", [0.0, 1e-20, 1e-60])
def test_targets_may_be_faster_than_all_sources(program, cluster, method, speed):
    mass, pos, vel = cluster
    targets = Targets(pos[:300], 1e30 * vel[:300], np.arange(300))
    found = summed(program, (mass, pos, speed * vel), method=method, theta=0.3, targets=targets)
    right = direct_sum(mass, pos, speed * vel, target_pos=targets.pos, target_vel=targets.vel,
                       target_index=targets.self, eps2=1e-4)  # fmt: skip
    assert np.median(relative(found.jerk, right.jerk)) < 1e-4
    assert np.quantile(relative(found.jerk, right.jerk), 0.99) < 1e-3


def test_without_jerks_forces_are_those_of_a_tree_without_velocities(program, cluster):
    mass, pos, vel = cluster
    found = summed(program, cluster, jerk=False)
    assert not found.jerk.any()
    same = summed(program, (mass, pos, 1e300 * vel), jerk=False)
    assert np.array_equal(found.acc, same.acc)
    assert np.array_equal(found.pot, same.pot)
    asked = summed(program, cluster)
    assert np.median(relative(asked.acc, found.acc)) < 1e-6


@METHODS
def test_pairs_too_close_for_single_precision(program, method):
    """Two bodies 1e-13 apart where the tree's own coordinates resolve that, and two at one place,
    among others; without softening."""
    random = np.random.default_rng(8)
    pos = np.vstack([random.uniform(-1, 1, (60, 3)), [[1, 1, 1], [-1, -1, -1]], np.zeros((4, 3))])
    pos[-4] = [1e-13, -2e-13, 0.5e-13]
    pos[-1] = pos[-2] = [0.25, 0.5, 0.125]
    bodies = random.uniform(0.5, 1, len(pos)), pos, random.normal(size=pos.shape)
    right = direct_sum(*bodies)
    found = summed(program, bodies, theta=0.3, eps2=0.0, method=method)
    assert relative(found.jerk, right.jerk).max() < 1e-5
    assert relative(found.acc, right.acc).max() < 1e-5


@METHODS
def test_one_body_none_and_masses_of_both_signs(program, method):
    one = np.ones(1), np.ones((1, 3)), np.ones((1, 3))
    assert not summed(program, one, method=method).jerk.any()
    nobody = Targets(np.empty((0, 3)), np.empty((0, 3)), np.empty(0))
    assert summed(program, one, method=method, targets=nobody).jerk.shape == (0, 3)
    random = np.random.default_rng(4)
    pos, vel = random.normal(size=(2, 2000, 3))
    for mass in (random.normal(size=2000), np.arange(2000) % 2.0, np.zeros(2000)):
        found = summed(program, (mass, pos, vel), theta=0.3, method=method)
        right = direct_sum(mass, pos, vel, eps2=1e-4)
        scale = np.median(np.linalg.norm(right.jerk, axis=1))
        wrong = np.linalg.norm(found.jerk - right.jerk, axis=1)
        assert np.median(wrong) <= 1e-3 * scale


def test_bounds_and_undefined_arithmetic(variants, cluster):
    """The memory that velocities need, under the address sanitizer; and any of it missing."""
    program = variants["address"].program("tree_jerk")
    few = [a[:700] for a in cluster]
    for method in (FMM, BARNES_HUT):
        for targets in (None, Targets(few[1], few[2], np.arange(700))):
            summed(program, few, method=method, targets=targets, refuse=True)
