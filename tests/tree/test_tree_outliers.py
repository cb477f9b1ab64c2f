"""Trees of particles that no one box resolves: far outliers, clusters far apart, shared places."""

import functools
import time

import numpy as np
import pytest

from grape6py import Leapfrog, Tree, plummer, reference
from grape6py.errors import Grape6Warning, RangeError
from particles import relative

N = 5000  # more than are summed directly
MASS, POS, VEL = plummer(N, seed=3)
ROWS = np.arange(0, N, 8)


def exact(mass, pos, vel, rows, eps=0.0):
    return reference.direct_sum(mass, pos, vel, rows=rows, eps2=eps**2, extended=True)


def errors(mass, pos, vel, rows, method):
    """Of acc, jerk and pot of these rows."""
    with Tree(pos, mass, vel) as tree:
        found = tree.forces(method=method)
    true = exact(mass, pos, vel, rows)
    names = ("acc", "jerk", "pot")
    return {name: relative(getattr(found, name)[rows], getattr(true, name)) for name in names}


@functools.cache
def errors_of_the_sphere(method):
    return errors(MASS, POS, VEL, ROWS, method)


def check_as_good(mass, pos, vel, rows, method, far=()):
    """The errors of some rows are those of the sphere alone, and the far ones' are small."""
    found = errors(mass, pos, vel, np.append(rows, far).astype(int), method)
    for name in ("acc", "jerk"):
        before, near = errors_of_the_sphere(method)[name], found[name][: len(rows)]
        assert np.median(near) < 1.5 * np.median(before), name
        assert np.percentile(near, 99) < 1.5 * np.percentile(before, 99), name
        assert (found[name][len(rows) :] < 1e-4).all(), name
    assert found["pot"].max() < 2e-2


@pytest.mark.parametrize("mass", [1 / N, 1e-30, -1.0])
@pytest.mark.parametrize("distance", [1e6, 1e9, 1e13, 1e30])
def test_one_far_body_changes_no_errors(distance, mass, method):
    where = distance * np.array([1.0, 0.3, -0.1])
    check_as_good(np.append(MASS, mass), np.vstack([POS, where]), np.vstack([VEL, [0, 1, 0]]),
                  ROWS, method, [N])  # fmt: skip


def test_far_bodies_on_all_scales_change_no_errors(method):
    far = 10.0 ** np.arange(3, 40)[:, None] * np.array([1.0, -0.5, 0.25])
    far[1::2] *= -1
    check_as_good(np.append(MASS, np.full(len(far), 1 / N)), np.vstack([POS, far]),
                  np.vstack([VEL, 0 * far]), ROWS, method)  # fmt: skip


@pytest.mark.parametrize("distance", [1e7, 1e9])
def test_clusters_far_apart_keep_their_errors(distance, method):
    """Each with as many digits as its coordinates have."""
    there = POS + np.array([distance, 0, 0])
    check_as_good(np.append(MASS, MASS), np.vstack([POS, there]), np.vstack([VEL, VEL]), ROWS,
                  method)  # fmt: skip


def test_a_few_bodies_and_a_far_one(method):
    pos = np.vstack([POS[:20], [1e15, 0, 0]])
    with Tree(pos, np.ones(21)) as tree:
        found = tree.forces(method=method)
    true = exact(np.ones(21), pos, 0 * pos, np.arange(21))
    assert relative(found.acc, true.acc).max() < 1e-12


@pytest.mark.parametrize("heaviest", [1.0, 1e20])
@pytest.mark.parametrize("distance", [1e9, 1e13, 1e16])
@pytest.mark.parametrize("eps", [1e-12, 0.01, 1.0, 1e6])
def test_a_far_or_heavy_body_has_its_own_force(eps, distance, heaviest, method):
    """Which what it would do to itself, m / eps, exceeds by far, or its mass that of all others."""
    mass, pos, vel = plummer(60, seed=8)
    pos[0], mass[1] = [distance, 0, 0], heaviest / 60
    pos[2] = pos[1]
    with Tree(pos, mass, vel) as tree:
        found = tree.forces(eps=eps, method=method)
    true = exact(mass, pos, vel, np.arange(60), eps)
    for name in ("acc", "pot", "jerk"):
        assert relative(getattr(found, name), getattr(true, name)).max() < 1e-4, name


@pytest.mark.parametrize("n", [1, 100])
def test_a_softening_beyond_single_precision_is_refused(n):
    pos = np.random.default_rng(1).random((n, 3)) * 1e-150
    with Tree(pos, np.ones(n)) as tree:
        if n == 1:
            assert tree.forces(eps=1.0).pot.tolist() == [0]
            return
        with pytest.raises(RangeError, match="eps = 1 is more than 1e18 times the size"):
            tree.forces(eps=1.0)
        assert np.isfinite(tree.forces(eps=1e-140).acc).all()


def test_a_leapfrog_does_not_feel_a_massless_far_body():
    with_one = np.append(MASS, 1e-30), np.vstack([POS, [1e16, 0, 0]]), np.vstack([VEL, [0, 0, 0]])
    alone, together = (Leapfrog(*bodies, eps=0.1, dt=1 / 16, theta=0.7, backend="cpu-tree")
                       for bodies in ((MASS, POS, VEL), with_one))  # fmt: skip
    for bodies in alone, together:
        bodies.evolve(0.5)
    assert np.abs(alone.pos - together.pos[:N]).max() < 1e-4
    assert np.median(np.abs(alone.pos - together.pos[:N])) < 1e-8


# ---- one place ---------------------------------------------------------------------------------

CROWD = 200


def crowded(signs=False):
    """Bodies on ten places, some of them alone, and a sphere around them."""
    rng = np.random.default_rng(4)
    places = rng.normal(size=(10, 3))
    pos = np.vstack([POS[:1000], places[rng.integers(0, 10, CROWD * 10)]])[rng.permutation(3000)]
    mass = rng.random(3000) * (rng.choice([-1, 1], 3000) if signs else 1)
    return mass, pos, rng.normal(size=(3000, 3))


def test_masses_at_one_place_whose_sum_is_no_double(method):
    pos = np.vstack([np.zeros((40, 3)), [[1e10, 0, 0]], [[0, 1e10, 0]]])
    mass = np.append(np.full(40, 1e308), [1.0, 1.0])
    with Tree(pos, mass) as tree, pytest.raises(RangeError):
        tree.forces(eps=1.0, method=method)


def test_places_that_differences_of_doubles_do_not_tell_apart(method):
    """Their differences are denormal numbers."""
    pos = np.zeros((100, 3))
    pos[:, 0] = np.finfo(float).tiny + np.arange(100) * 5e-324
    with Tree(pos, np.ones(100)) as tree:
        assert np.allclose(tree.forces(eps=1.0, method=method).pot, -99)
        with pytest.raises(RangeError, match="does not fit a double"):
            tree.forces(method=method)


@pytest.mark.filterwarnings("ignore:.*pairs of a tree at one place")
@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("eps", [0.0, 0.3])
def test_bodies_at_one_place_act_as_each_of_them(eps, signs, method):
    mass, pos, vel = crowded(signs)
    rows = np.arange(0, 3000, 37)
    true = exact(mass, pos, vel, rows, eps)
    with Tree(pos, mass, vel) as tree:
        setting = {"eps": eps, "method": method, "theta": 0.3}
        own = tree.forces(**setting)
        again = tree.forces(pos[rows], vel[rows], self_index=rows, **setting)
    for found in (type(own)(*(a[rows] for a in own)), again):
        for name in ("acc", "jerk", "pot"):
            size = np.abs(np.asarray(getattr(true, name), float)).max()
            wrong = np.abs(np.asarray(getattr(found, name) - getattr(true, name), float)).max()
            assert wrong < 2e-3 * size, name


def test_pairs_at_one_place_are_counted():
    pos = np.repeat(POS[:5], 100, axis=0)
    with Tree(pos, np.ones(500)) as tree, pytest.warns(Grape6Warning, match="^49500 pairs"):
        tree.forces()


# ---- time --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["far", "point", "sites", "line", "two points"])
def test_no_set_takes_quadratic_time(shape):
    """The direct sum of so many takes a minute or more, on a fast machine."""
    n = 400_000
    rng = np.random.default_rng(5)
    sphere = rng.normal(size=(n, 3))
    sphere[0] = 1e12
    pos = {
        "far": sphere,
        "point": np.ones((n, 3)),
        "line": sphere[:, :1] * [1.0, 0.5, 0.25],
        "sites": rng.normal(size=(27, 3))[rng.integers(0, 27, n)],
        "two points": np.where(np.arange(n)[:, None] < n // 2, 1.0, 2.0) * np.ones(3),
    }
    began = time.perf_counter()
    with Tree(pos[shape], np.full(n, 1 / n)) as tree:
        tree.forces(eps=0.01)
        tree.nearest(3)
    assert time.perf_counter() - began < 20


def test_bits_do_not_depend_on_threads():
    mass, pos, vel = crowded()
    pos = np.vstack([pos, [[1e12, 0, 0], [1e12, 1, 0]]])
    mass, vel = np.append(mass, [1, 1]), np.vstack([vel, np.ones((2, 3))])
    found = []
    for threads in (1, 2, 3):
        with Tree(pos, mass, vel, threads=threads) as tree:
            found.append(b"".join(a.tobytes() for a in tree.forces(eps=0.1)))
    assert found[0] == found[1] == found[2]
