"""Jerks by the tree's kernels on the stand-in for a card: those of the tree on the CPU, and of the
direct sum."""

import numpy as np
import pytest

import samples
from cards import METHODS, relative, rows, shortened
from grape6py import Tree, models, reference
from grape6py.cuda.tree import octree as card_tree
from grape6py.cuda.tree import settings

EPS = 0.01
ORDERS = pytest.mark.parametrize("order", [0, 5], ids=["bh", "fmm"])


def made(tree_card, bodies):
    mass, pos, vel = map(np.ascontiguousarray, bodies)
    return card_tree.Octree(tree_card, pos, mass, vel)


def jerks(tree_card, bodies, theta=0.6, order=5, eps=EPS, **targets):
    """Jerks by the kernels."""
    tree = made(tree_card, bodies)
    return tree.forces(settings.Setting(theta, order, eps * eps), **targets)[2]


def direct(bodies, eps=EPS, **targets):
    return reference.direct_sum(*bodies, eps2=eps * eps, **targets).jerk


def moving(sample, n, seed):
    """Particles of a sample with velocities that are partly common to neighbours."""
    mass, pos = samples.SAMPLES[sample](n, seed)[:2]
    from_mean = pos - pos.mean(0)
    noise = np.random.default_rng(seed).normal(size=pos.shape)
    turning = np.cross([0.3, -1.0, 2.0], from_mean) / rows(from_mean).max()
    return mass, pos, noise + turning


@pytest.fixture(scope="module")
def cluster():
    return models.plummer(1500, seed=3)


@pytest.mark.parametrize("order", METHODS)
@pytest.mark.parametrize("sample", ["plummer", "lattice", "far_off"])
def test_jerks_are_those_of_the_cpu(tree_card, sample, order):
    bodies = moving(sample, 1500, 3)
    mass, pos, vel = bodies
    with Tree(pos, mass, vel) as tree:
        right = tree.forces(eps=EPS, theta=0.6, order=order or 5, method=METHODS[order]).jerk
    wrong = relative(jerks(tree_card, bodies, order=order), right)
    # but for the few wide groups: see test_cuda_tree.py
    assert np.median(wrong) < 1e-6
    assert np.quantile(wrong, 0.85) < 2e-5


@ORDERS
@pytest.mark.parametrize("eps", [0.0, EPS, 10.0])
def test_theta_to_zero_gives_the_direct_sum(tree_card, cluster, order, eps):
    wrong = relative(jerks(tree_card, cluster, 1e-6, order, eps), direct(cluster, eps))
    assert np.median(wrong) < 1e-6
    assert np.quantile(wrong, 0.99) < 1e-5


@pytest.mark.parametrize("order", METHODS)
@pytest.mark.parametrize("sample", ["plummer", "clustered", "disk"])
@pytest.mark.parametrize("eps", [EPS, 1.0])
def test_errors_are_those_of_the_cpu(tree_card, sample, order, eps):
    """Within what parts of groups make of them: see test_cuda_tree.py. Of many bodies at one place
    the CPU's tree makes one, which is better still."""
    bodies = moving(sample, 1500, 5)
    mass, pos, vel = bodies
    exact = direct(bodies, eps)
    with Tree(pos, mass, vel) as tree:
        right = tree.forces(eps=eps, theta=0.5, order=order or 5, method=METHODS[order]).jerk
    found = jerks(tree_card, bodies, 0.5, order, eps)
    for share in (0.5, 0.99):
        error, usual = (np.quantile(relative(some, exact), share) for some in (found, right))
        assert error < 6 * usual + 2e-6


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1025])
def test_any_number_of_particles(tree_card, n):
    bodies = models.plummer(n, seed=5) if n > 1 else (np.ones(1), np.ones((1, 3)), np.ones((1, 3)))
    right = direct(bodies)
    assert np.abs(jerks(tree_card, bodies, 1e-6) - right).max() <= 1e-5 * rows(right).max()


@ORDERS
def test_accelerations_do_not_depend_on_whether_there_are_jerks(tree_card, cluster, order):
    mass, pos, _ = cluster
    setting = settings.Setting(0.6, order, EPS**2)
    with_jerk, without = made(tree_card, cluster), card_tree.Octree(tree_card, pos, mass)
    acc, pot, jerk, counts = without.forces(setting)
    assert jerk is None
    same = with_jerk.forces(setting)
    assert np.array_equal(same[0], acc)
    assert np.array_equal(same[1], pot)
    assert same[3] == counts


@ORDERS
def test_groups_whose_lists_are_long_have_the_jerks_of_their_parts(
    tree_card, cluster, order, monkeypatch
):
    right = direct(cluster)
    whole = relative(jerks(tree_card, cluster, 0.3, order), right)
    shortened(monkeypatch, tree_card, [8, 0, 8], [4, 4, 4], [150] * 3)
    parts = relative(jerks(tree_card, cluster, 0.3, order), right)
    assert np.median(parts) > 5 * np.median(whole)
    assert np.median(parts) < 1e-3
    assert np.quantile(parts, 0.99) < 6 * np.quantile(whole, 0.99)


@ORDERS
def test_uniform_motion_has_no_jerk(tree_card, cluster, order):
    mass, pos, vel = cluster
    usual = rows(direct(cluster)).max()
    steady = np.array([3.0, -2.0, 0.7])
    assert (
        np.abs(jerks(tree_card, (mass, pos, 0 * vel + steady), order=order)).max() < 1e-13 * usual
    )
    assert not jerks(tree_card, (mass, pos, 0 * vel), order=order).any()
    still = jerks(tree_card, cluster, order=order)
    wrong = relative(jerks(tree_card, (mass, pos, vel + 1e3 * steady), order=order), still)
    assert wrong.max() < 1e-5


@ORDERS
@pytest.mark.parametrize(
    ("size", "weight", "speed"), [(1e-30, 1e30, 1e-30), (1e30, 1e-30, 1e30), (1e-30, 1e-30, 1e30)]
)
def test_units_from_the_smallest_to_the_largest(tree_card, cluster, order, size, weight, speed):
    mass, pos, vel = (a[:600] for a in cluster)
    right = jerks(tree_card, (mass, pos, vel), order=order) * (weight / size * speed / size / size)
    found = jerks(tree_card, (weight * mass, size * pos, speed * vel), order=order, eps=size * EPS)
    assert np.quantile(relative(found, right), 0.85) < 3e-5


def test_jerks_near_the_ends_of_what_doubles_hold(tree_card, cluster):
    mass, pos, vel = (a[:300] for a in cluster)
    once = jerks(tree_card, (mass, pos, vel))
    for length, of_mass, speed in [(-200, -1000, 1000), (200, 1000, 450), (-300, 90, 20)]:
        bodies = np.ldexp(mass, of_mass), np.ldexp(pos, length), np.ldexp(vel, speed)
        found = jerks(tree_card, bodies, eps=np.ldexp(EPS, length))
        assert np.array_equal(found, np.ldexp(once, of_mass + speed - 3 * length))


@ORDERS
@pytest.mark.parametrize("speed", [0.0, 1e-20, 1.0, 1e30])
def test_targets_of_their_own(tree_card, cluster, order, speed):
    """Particles that are predicted elsewhere, and points that are none; fast and slow."""
    random = np.random.default_rng(5)
    mass, pos, _ = cluster
    self = np.where(random.random(300) < 0.5, random.integers(0, len(mass), 300), -1)
    self = self.astype(np.int32)
    at = np.where(self[:, None] < 0, random.normal(size=(300, 3)), 1.001 * pos[self])
    target_vel = speed * random.normal(size=(300, 3))
    right = direct(cluster, target_pos=at, target_vel=target_vel, target_index=self)
    targets = {"targets": at, "self_index": self, "vel": target_vel}
    assert (
        np.quantile(relative(jerks(tree_card, cluster, 1e-6, order, **targets), right), 0.99) < 1e-5
    )
    assert np.median(relative(jerks(tree_card, cluster, 0.4, order, **targets), right)) < 1e-3
    if speed == 0.0:
        del targets["vel"]
        assert (
            np.quantile(relative(jerks(tree_card, cluster, 1e-6, order, **targets), right), 0.9)
            < 1e-5
        )


def test_fast_targets_leave_the_tree_as_it_was(tree_card, cluster):
    _, pos, vel = cluster
    tree, setting = made(tree_card, cluster), settings.Setting(0.6, 5, EPS**2)
    before = tree.forces(setting)[2]
    fast = tree.forces(setting, targets=pos[:100].copy(), vel=1e30 * vel[:100])[2]
    assert rows(fast).min() > 1e20 * rows(before).min()
    assert np.array_equal(tree.forces(setting)[2], before)
    none = tree.forces(setting, targets=np.empty((0, 3)), vel=np.empty((0, 3)))
    assert none[2].shape == (0, 3)


@ORDERS
def test_pairs_too_close_for_single_precision(tree_card, order):
    """Two bodies 1e-13 apart where doubles resolve that, and two at one place, among others."""
    random = np.random.default_rng(8)
    pos = np.vstack([random.uniform(-1, 1, (60, 3)), [[1, 1, 1], [-1, -1, -1]], np.zeros((4, 3))])
    pos[-4] = [1e-13, -2e-13, 0.5e-13]
    pos[-1] = pos[-2] = [0.25, 0.5, 0.125]
    bodies = random.uniform(0.5, 1, len(pos)), pos, random.normal(size=pos.shape)
    tree_card.launched.clear()
    found = jerks(tree_card, bodies, 1e-6, order, eps=0.0)
    assert "tree_close_jerks" in tree_card.launched
    assert relative(found, direct(bodies, 0.0)).max() < 1e-5
    faster = jerks(tree_card, bodies, 1e-6, order, eps=0.0, targets=pos, vel=1e9 * bodies[2],
                   self_index=np.arange(len(pos), dtype=np.int32))  # fmt: skip
    right = direct(bodies, 0.0, target_pos=pos, target_vel=1e9 * bodies[2],
                   target_index=np.arange(len(pos)))  # fmt: skip
    assert relative(faster, right).max() < 1e-5


@ORDERS
def test_masses_of_both_signs(tree_card, order):
    random = np.random.default_rng(4)
    pos, vel = random.normal(size=(2, 800, 3))
    for mass in (random.normal(size=800), np.arange(800) % 2.0, np.zeros(800)):
        right = direct((mass, pos, vel))
        wrong = rows(jerks(tree_card, (mass, pos, vel), 0.3, order) - right)
        assert np.median(wrong) <= 1e-3 * np.median(rows(right))
