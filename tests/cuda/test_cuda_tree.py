"""The tree's kernels on the fake device: forces and jerks of the CPU's tree and the direct sum."""

import numpy as np
import pytest

import samples
from fake_gpu import METHODS, WARPS_AND_BLOCKS, relative, rows, shortened
from grape6py import Tree, models, reference
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda.tree import octree as fake_gpu_tree
from grape6py.cuda.tree import settings

EPS = 0.01
ORDERS = pytest.mark.parametrize("order", [0, 5], ids=["bh", "fmm"])


def made(tree_gpu, bodies):
    mass, pos, *vel = map(np.ascontiguousarray, bodies)
    return fake_gpu_tree.Octree(tree_gpu, pos, mass, *vel)


def all_sums(
    tree_gpu, bodies, theta=0.6, order=5, eps=EPS, targets=None, vel=None, self_index=None
):
    """Acc, pot, jerk (None without velocities) and counts, by the kernels."""
    setting = Setting(theta, order, eps * eps)
    return made(tree_gpu, bodies).forces(setting, Targets(targets, vel, self_index))


def sums(tree_gpu, pos, mass, *args, **more):
    """Acc, pot and counts of bodies without velocities."""
    acc, pot, _, counts = all_sums(tree_gpu, (mass, pos), *args, **more)
    return acc, pot, counts


def jerks(tree_gpu, bodies, *args, **more):
    return all_sums(tree_gpu, bodies, *args, **more)[2]


def direct(bodies, eps=EPS, **targets):
    """Acc, pot and jerk."""
    right = reference.direct_sum(*bodies, eps2=eps * eps, **targets)
    return right.acc, right.pot, right.jerk


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


@WARPS_AND_BLOCKS
@pytest.mark.parametrize("order", METHODS)
@pytest.mark.parametrize("sample", ["plummer", "lattice", "far_off"])
def test_forces_are_those_of_the_cpu(tree_gpu, sample, order):
    mass, pos, vel = bodies = moving(sample, 1500, 3)
    acc, pot, jerk, counts = all_sums(tree_gpu, bodies, order=order)
    with Tree(pos, mass, vel) as tree:
        right = tree.forces(eps=EPS, theta=0.6, order=order or 5, method=METHODS[order])
    # but for the few wide groups: see below
    assert np.quantile(relative(acc, right.acc), 0.85) < 3e-6
    assert np.quantile(np.abs(pot / right.pot - 1), 0.85) < 1e-6
    assert np.median(relative(jerk, right.jerk)) < 1e-6
    assert np.quantile(relative(jerk, right.jerk), 0.85) < 2e-5
    resting = all_sums(tree_gpu, (mass, pos), order=order)
    assert np.array_equal(resting[0], acc)
    assert np.array_equal(resting[1], pot)
    assert resting[2:] == (None, counts)


def assert_as_good(found, usual, exact):
    """Groups that are wide compared with what is in them are summed in parts here, in double there:
    what is far from a single target may be nearer, in units of its size, than from a group."""
    for share in (0.5, 0.99):
        error, limit = (np.quantile(relative(some, exact), share) for some in (found, usual))
        assert error < 6 * limit + 2e-6


@pytest.mark.parametrize("theta", [1e-3, 0.6])
@pytest.mark.parametrize("sample", ["clustered", "disk", "coincident"])
def test_errors_are_those_of_the_cpu(tree_gpu, sample, theta):
    mass, pos = samples.SAMPLES[sample](1500, 3)[:2]
    with Tree(pos, mass) as tree:
        usual = tree.forces(eps=EPS, theta=theta, order=5).acc
    exact = direct((mass, pos, np.zeros_like(pos)))[0]
    assert_as_good(sums(tree_gpu, pos, mass, theta)[0], usual, exact)


@pytest.mark.parametrize("order", METHODS)
@pytest.mark.parametrize("sample", ["clustered", "disk"])
@pytest.mark.parametrize("eps", [EPS, 1.0])
def test_errors_of_jerks_are_those_of_the_cpu(tree_gpu, sample, order, eps):
    """Of many bodies at one place the CPU's tree makes one, which is better still."""
    mass, pos, vel = bodies = moving(sample, 1500, 5)
    with Tree(pos, mass, vel) as tree:
        usual = tree.forces(eps=eps, theta=0.5, order=order or 5, method=METHODS[order]).jerk
    assert_as_good(jerks(tree_gpu, bodies, 0.5, order, eps), usual, direct(bodies, eps)[2])


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1023, 1024, 1025])
def test_any_number_of_particles(tree_gpu, n):
    mass, pos = samples.plummer(n, 5)
    bodies = mass, pos, np.random.default_rng(n).normal(size=pos.shape)
    for ours, right in zip(all_sums(tree_gpu, bodies, 1e-6), direct(bodies), strict=False):
        assert np.abs(ours - right).max() <= 1e-5 * np.abs(right).max()


@ORDERS
@pytest.mark.parametrize("eps", [0.0, EPS, 10.0])
def test_theta_to_zero_gives_the_direct_sum(tree_gpu, cluster, order, eps):
    wrong = relative(jerks(tree_gpu, cluster, 1e-6, order, eps), direct(cluster, eps)[2])
    assert np.median(wrong) < 1e-6
    assert np.quantile(wrong, 0.99) < 1e-5


def test_long_groups_are_taken_in_parts_whose_lists_grow(tree_gpu, monkeypatch):
    mass, pos = samples.plummer(1500, 9)
    right = sums(tree_gpu, pos, mass, theta=0.3)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], [8, 8, 8])
    tree_gpu.launched.clear()
    acc, _, _ = sums(tree_gpu, pos, mass, theta=0.3)
    assert tree_gpu.launched.count("tree_traverse_level2") > 1
    assert tree_gpu.launched.count("tree_near_singles") > 1
    assert np.median(relative(acc, right[0])) < 1e-3
    assert relative(acc, right[0]).max() < 1e-2


@WARPS_AND_BLOCKS
def test_single_targets_whose_lists_are_long_are_summed_and_counted_once(tree_gpu, monkeypatch):
    mass, pos = samples.plummer(1500, 9)
    found = []
    for longest in [64, 64, 8], [480, 480, 60]:  # of few of the targets, and of many: of no eight
        shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], longest)
        found.append(sums(tree_gpu, pos, mass, theta=0.3))
    (first, _, once), (again, _, counts) = found
    assert np.array_equal(first, again)
    assert counts == once


@WARPS_AND_BLOCKS
def test_how_many_parts_of_groups_are_summed_at_once_changes_no_digit(tree_gpu, monkeypatch):
    mass, pos = samples.SAMPLES["clustered"](5000, 9)
    monkeypatch.setattr(fake_gpu_tree, "SLOT_LISTS", 16)
    monkeypatch.setattr(fake_gpu_tree, "LIST_BYTES", 0)
    found = []
    for slots in 10**6, 100, 10:
        monkeypatch.setattr(fake_gpu_tree, "LEAST_SLOTS", slots)
        shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], [120, 60, 60])
        found.append(sums(tree_gpu, pos, mass))
    assert tree_gpu.launched.count("tree_near_singles") > 10
    for acc, pot, counts in found[1:]:
        assert np.array_equal(acc, found[0][0])
        assert np.array_equal(pot, found[0][1])
        assert counts == found[0][2]


@WARPS_AND_BLOCKS
def test_how_long_lists_are_at_first_changes_no_digit(tree_gpu, monkeypatch):
    mass, pos = samples.SAMPLES["clustered"](5000, 9)
    right = sums(tree_gpu, pos, mass)
    longest = settings.Capacities.of(Setting(0.6)).longest
    monkeypatch.setattr(fake_gpu_tree, "LEAST_SLOTS", 3)
    monkeypatch.setattr(fake_gpu_tree, "LEAST_LISTS", 16)
    monkeypatch.setattr(fake_gpu_tree, "SLOT_LISTS", 16)
    monkeypatch.setattr(fake_gpu_tree, "LIST_BYTES", 0)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], longest)
    tree_gpu.launched.clear()
    short = sums(tree_gpu, pos, mass)
    assert tree_gpu.launched.count("tree_groups_of_kind") > 50
    (capacities,) = tree_gpu.capacities.values()
    assert capacities.groups == [8, 8, 8]
    lengthened = sums(tree_gpu, pos, mass)
    for again in short, lengthened:
        assert all(np.array_equal(a, b) for a, b in zip(again[:2], right[:2], strict=True))
        assert again[2] == right[2]


def test_lists_that_another_thread_lengthens_meanwhile_are_not_taken_for_long_ones(
    tree_gpu, monkeypatch
):
    mass, pos = samples.plummer(1500, 9)
    right = sums(tree_gpu, pos, mass)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [4000] * 3, [4000] * 3)
    launch = tree_gpu.launch

    def meanwhile(name, *rest):
        launch(name, *rest)
        if name == "tree_traverse_level1":
            (capacities,) = tree_gpu.capacities.values()
            capacities.large = [9000, 0, 9000]

    monkeypatch.setattr(tree_gpu, "launch", meanwhile)
    found = sums(tree_gpu, pos, mass)
    assert np.array_equal(found[0], right[0])


@pytest.mark.parametrize(("count", "made"), [(1200, 3), (320, 1)])  # of each other kind; of groups
def test_lists_of_tiny_angles_are_those_of_groups(tree_gpu, count, made):
    """Where most of them are long, parts of groups would cost many times as much."""
    mass, pos = samples.plummer(9000, 3)
    middle = np.ascontiguousarray(pos[np.argsort(rows(pos))[:count]])
    sums(tree_gpu, pos, mass, theta=0.1, targets=middle)
    assert tree_gpu.launched.count("tree_groups_of_kind") == made


def test_targets_far_away_and_none(tree_gpu):
    mass, pos = samples.plummer(1500, 11)
    targets = pos[:300] + 100.0
    _, pot, _ = sums(tree_gpu, pos, mass, theta=1e-3, targets=targets)
    away = rows(targets - (mass[:, None] * pos).sum(0) / mass.sum())
    assert np.allclose(pot, -mass.sum() / away, rtol=1e-3)
    assert sums(tree_gpu, pos, mass, targets=np.empty((0, 3)))[0].shape == (0, 3)


def test_no_close_pair_is_forgotten_in_full_lists(tree_gpu, monkeypatch):
    monkeypatch.setattr(fake_gpu_tree, "AGAIN_ROOM", 8)
    mass, pos = samples.plummer(400, 19)
    pos[200:] = pos[:200]
    pos[200:, 1] += 5e-12
    acc, _, _ = sums(tree_gpu, pos, mass, theta=1e-3, eps=0.0)
    apart = pos[200:, 1] - pos[:200, 1]
    near = apart > 0  # where doubles tell them apart
    assert near.sum() > 100
    assert np.allclose(acc[:200, 1][near], (mass[200:] / apart**2)[near], rtol=1e-3)


def test_no_target_is_forgotten_where_most_are_summed_again(tree_gpu, monkeypatch):
    """Single targets: some are found at once, so many as half the space, the others later."""
    mass, pos = samples.plummer(1500, 9)
    shortened(monkeypatch, tree_gpu, [3000, 0, 3000], [4, 4, 4], [8, 8, 8])
    right = sums(tree_gpu, pos, mass, theta=0.3)
    for name, few in (
        ("AGAIN_ROOM", 1),
        ("LEAST_SLOTS", 100),
        ("SLOT_LISTS", 0),
        ("LIST_BYTES", 0),
    ):
        monkeypatch.setattr(fake_gpu_tree, name, few)
    found = sums(tree_gpu, pos, mass, theta=0.3)
    assert np.array_equal(found[0], right[0])
    assert found[2] == right[2]


def test_a_bound_in_shares_of_the_last_acceleration(tree_gpu):
    mass, pos = samples.plummer(1500, 15)
    exact = sums(tree_gpu, pos, mass, theta=1e-3)[0]
    last = rows(exact)
    tree = fake_gpu_tree.Octree(tree_gpu, np.ascontiguousarray(pos), mass)
    errors = []
    for bound in (1e-2, 1e-4):
        setting = Setting(0.8, 5, 1e-4, bound)
        errors.append(np.median(relative(tree.forces(setting, Targets(last_acc=last))[0], exact)))
    assert errors[1] < errors[0] / 2


@pytest.mark.parametrize("n", [4, 40])
def test_only_targets_count_pairs_at_one_place(tree_gpu, n):
    pos = np.repeat([[1.0, 2, 3], [0, 0, 0]], [n, 3], axis=0)
    counts = sums(tree_gpu, pos, np.ones(n + 3), eps=0.0)[2]
    assert counts.zero_distances == n * (n - 1) + 6


@pytest.mark.parametrize("order", [0, 5])
@pytest.mark.parametrize("eps", [1e-25, 1e-13, 1e-9])
def test_softening_far_below_what_single_precision_holds(tree_gpu, eps, order):
    mass, pos = samples.plummer(300, 23)
    pos[1], pos[3] = pos[0], pos[2] + [2 * eps, 0, 0]
    acc, pot, counts = sums(tree_gpu, pos, mass, 1e-3, order, eps)
    exact = reference.direct_sum(mass, pos, np.zeros_like(pos), eps2=eps * eps)
    assert np.allclose(pot, exact.pot, rtol=1e-5)
    assert relative(acc, exact.acc).max() < 1e-4
    assert counts.zero_distances == 0


def test_forces_do_not_depend_on_those_before(tree_gpu, monkeypatch):
    mass, pos = samples.plummer(600, 25)
    at = np.ascontiguousarray(pos[:280] * 1.1)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [40, 4, 4], [99] * 3)
    tree = fake_gpu_tree.Octree(tree_gpu, np.ascontiguousarray(pos), mass)
    setting = Setting(0.5, 5, 1e-4)
    first = tree.forces(setting, Targets(at))[0]
    own = tree.forces(setting)[0]
    tree.forces(Setting(0.2, 6, 1e-4))
    assert np.array_equal(tree.forces(setting, Targets(at))[0], first)
    assert np.array_equal(tree.forces(setting)[0], own)
    fresh = fake_gpu_tree.Octree(tree_gpu, np.ascontiguousarray(pos), mass)
    assert np.array_equal(fresh.forces(setting)[0], own)


@pytest.mark.parametrize("eps", [0.0, 1e-6, 0.01])
def test_targets_at_the_places_of_particles_are_summed_as_groups(tree_gpu, eps):
    mass, pos = samples.plummer(1500, 27)
    own = sums(tree_gpu, pos, mass, theta=0.5, eps=eps)
    parts = tree_gpu.launched.count("tree_groups_of_kind")
    tree_gpu.launched.clear()
    foreign = sums(tree_gpu, pos, mass, theta=0.5, eps=eps, targets=np.ascontiguousarray(pos))
    assert np.median(relative(foreign[0], own[0])) < 1e-6
    assert relative(foreign[0], own[0]).max() < 1e-5
    assert tree_gpu.launched.count("tree_groups_of_kind") == parts


# ---- jerks ---------------------------------------------------------------------------


@ORDERS
def test_groups_whose_lists_are_long_have_the_jerks_of_their_parts(
    tree_gpu, cluster, order, monkeypatch
):
    right = direct(cluster)[2]
    whole = relative(jerks(tree_gpu, cluster, 0.3, order), right)
    shortened(monkeypatch, tree_gpu, [8, 0, 8], [4, 4, 4], [150] * 3)
    parts = relative(jerks(tree_gpu, cluster, 0.3, order), right)
    assert np.median(parts) > 5 * np.median(whole)
    assert np.median(parts) < 1e-3
    assert np.quantile(parts, 0.99) < 6 * np.quantile(whole, 0.99)


@ORDERS
def test_uniform_motion_has_no_jerk(tree_gpu, cluster, order):
    mass, pos, vel = cluster
    usual = rows(direct(cluster)[2]).max()
    steady = np.array([3.0, -2.0, 0.7])
    assert np.abs(jerks(tree_gpu, (mass, pos, 0 * vel + steady), order=order)).max() < 1e-13 * usual
    assert not jerks(tree_gpu, (mass, pos, 0 * vel), order=order).any()
    still = jerks(tree_gpu, cluster, order=order)
    wrong = relative(jerks(tree_gpu, (mass, pos, vel + 1e3 * steady), order=order), still)
    assert wrong.max() < 1e-5


@ORDERS
@pytest.mark.parametrize(
    ("size", "weight", "speed"), [(1e-30, 1e30, 1e-30), (1e30, 1e-30, 1e30), (1e-30, 1e-30, 1e30)]
)
def test_units_from_the_smallest_to_the_largest(tree_gpu, cluster, order, size, weight, speed):
    mass, pos, vel = (a[:600] for a in cluster)
    right = jerks(tree_gpu, (mass, pos, vel), order=order) * (weight / size * speed / size / size)
    found = jerks(tree_gpu, (weight * mass, size * pos, speed * vel), order=order, eps=size * EPS)
    assert np.quantile(relative(found, right), 0.85) < 3e-5


def test_jerks_near_the_ends_of_what_doubles_hold(tree_gpu, cluster):
    mass, pos, vel = (a[:300] for a in cluster)
    once = jerks(tree_gpu, (mass, pos, vel))
    for length, of_mass, speed in [(-200, -1000, 1000), (200, 1000, 450), (-300, 90, 20)]:
        bodies = np.ldexp(mass, of_mass), np.ldexp(pos, length), np.ldexp(vel, speed)
        found = jerks(tree_gpu, bodies, eps=np.ldexp(EPS, length))
        assert np.array_equal(found, np.ldexp(once, of_mass + speed - 3 * length))


@ORDERS
@pytest.mark.parametrize("speed", [0.0, 1e-20, 1.0, 1e30])
def test_moving_targets_of_their_own(tree_gpu, cluster, order, speed):
    """Particles that are predicted elsewhere, and points that are none; fast and slow."""
    random = np.random.default_rng(5)
    mass, pos, _ = cluster
    self = np.where(random.random(300) < 0.5, random.integers(0, len(mass), 300), -1)
    self = self.astype(np.int32)
    at = np.where(self[:, None] < 0, random.normal(size=(300, 3)), 1.001 * pos[self])
    vel = speed * random.normal(size=(300, 3))
    right = direct(cluster, target_pos=at, target_vel=vel, target_index=self)[2]

    def errors(theta, **more):
        found = jerks(tree_gpu, cluster, theta, order, targets=at, self_index=self, **more)
        return relative(found, right)

    assert np.quantile(errors(1e-6, vel=vel), 0.99) < 1e-5
    assert np.median(errors(0.4, vel=vel)) < 1e-3
    if speed == 0.0:
        assert np.quantile(errors(1e-6), 0.9) < 1e-5


def test_fast_targets_leave_the_tree_as_it_was(tree_gpu, cluster):
    _, pos, vel = cluster
    tree, setting = made(tree_gpu, cluster), Setting(0.6, 5, EPS**2)
    before = tree.forces(setting)[2]
    fast = tree.forces(setting, Targets(pos[:100].copy(), 1e30 * vel[:100]))[2]
    assert rows(fast).min() > 1e20 * rows(before).min()
    assert np.array_equal(tree.forces(setting)[2], before)
    none = tree.forces(setting, Targets(np.empty((0, 3)), np.empty((0, 3))))
    assert none[2].shape == (0, 3)


@ORDERS
def test_pairs_too_close_for_single_precision(tree_gpu, order):
    """Two bodies 1e-13 apart where doubles resolve that, and two at one place, among others."""
    random = np.random.default_rng(8)
    pos = np.vstack([random.uniform(-1, 1, (60, 3)), [[1, 1, 1], [-1, -1, -1]], np.zeros((4, 3))])
    pos[-4] = [1e-13, -2e-13, 0.5e-13]
    pos[-1] = pos[-2] = [0.25, 0.5, 0.125]
    bodies = random.uniform(0.5, 1, len(pos)), pos, random.normal(size=pos.shape)
    acc, _, jerk, counts = all_sums(tree_gpu, bodies, 1e-6, order, eps=0.0)
    assert "tree_close_jerks" in tree_gpu.launched
    assert counts.zero_distances == 2
    right = direct(bodies, 0.0)
    assert relative(acc, right[0]).max() < 1e-5
    assert relative(jerk, right[2]).max() < 1e-5
    resting = sums(tree_gpu, pos, bodies[0], 1e-6, order, eps=0.0)
    assert np.array_equal(resting[0], acc)
    assert resting[2].zero_distances == 2
    index, fast = np.arange(len(pos), dtype=np.int32), 1e9 * bodies[2]
    found = jerks(tree_gpu, bodies, 1e-6, order, 0.0, targets=pos, vel=fast, self_index=index)
    right = direct(bodies, 0.0, target_pos=pos, target_vel=fast, target_index=index)[2]
    assert relative(found, right).max() < 1e-5


@ORDERS
def test_masses_of_both_signs(tree_gpu, order):
    random = np.random.default_rng(4)
    pos, vel = random.normal(size=(2, 800, 3))
    for mass in (random.normal(size=800), np.arange(800) % 2.0, np.zeros(800)):
        right = direct((mass, pos, vel))[2]
        wrong = rows(jerks(tree_gpu, (mass, pos, vel), 0.3, order) - right)
        assert np.median(wrong) <= 1e-3 * np.median(rows(right))
