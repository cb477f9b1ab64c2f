"""``Tree``: forces within what is promised of each setting, wherever the tree is and whatever it is
made of. Errors of an accuracy that is asked for: test_error_asked.py."""

import itertools
import time
import warnings

import numpy as np
import pytest

from grape6py import Tree, plummer
from grape6py.errors import Grape6Warning, RangeError
from particles import relative
from samples import ODD, SAMPLES, SHAPES, bodies, length, truth

pytestmark = pytest.mark.filterwarnings("ignore:.*pairs of a tree at one place")
# Of the largest error as a share of the sum of the absolute values of the terms.
ROUNDING = {"acc": 4e-6, "pot": 1e-5, "jerk": 4e-6}
USUAL = {"acc": 1e-2, "pot": 4e-3, "jerk": 2e-2}  # of theta = 0.5


def assert_close(true, found, limits=ROUNDING, factor=1.0):
    for name, limit in limits.items():
        assert true.rounding(found, name) < factor * limit, name


def bits(forces):
    return b"".join(array.tobytes() for array in forces if array is not None)


# ---- errors -------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["host", "device"], indirect=True)
@pytest.mark.parametrize("name", [*SHAPES, *ODD])
def test_with_theta_towards_zero_it_is_the_direct_sum(where, name):
    """With and without softening, whatever the set; and near it with a usual angle. What moves in
    common has no jerk."""
    mass, pos, vel = given = bodies(name, 300 if where.name == "host" else 200)
    tree = where.tree(*given)
    for method, eps in (("bh", 0.0), ("fmm", 0.0), ("fmm", 10.0)):
        true = truth(*given, eps, count=60)
        found = tree.forces(eps=eps, theta=1e-9, method=method)
        assert_close(true, found, factor=1 if name in SAMPLES else 3)
        assert_close(true, tree.forces(eps=eps, theta=0.5, method=method), USUAL)
    steady = where.tree(mass, pos, 0 * vel + np.array([3.0, -2.0, 0.7])).forces(eps=10.0)
    assert np.abs(steady.jerk).max() < 1e-13 * true.size["jerk"].max() + 1e-300


@pytest.mark.parametrize("where", ["host", "device"], indirect=True)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("theta", [0.5, 1e-3])
def test_a_softened_pull_changes_along_each_axis_at_any_distance(where, theta, own):
    """The second derivatives of 1/s have a trace then, of which expansions that take it for
    harmonic know nothing: 3 eps^2 / s^2 of a cell's share in the jerk, and in z alone."""
    mass, pos, at = np.ones(1), np.zeros((1, 3)), np.array([[0.3, -0.2, 0.9]])
    for eps in np.linalg.norm(at) / np.array([1, 3, 9, 30, 90, 300, 900]):
        given = {"eps": np.full(1, eps)} if own else {}
        tree = where.tree(mass, pos, np.zeros((1, 3)), **given)
        for speed in np.eye(3):
            found = tree.forces(at, speed[None], eps=0.0 if own else eps, theta=theta).jerk[0]
            s2 = at[0] @ at[0] + eps**2
            true = (3 * (at[0] @ speed) * at[0] / s2 - speed) / s2**1.5
            assert np.abs(found - true).max() * s2**1.5 < 3e-4, eps


# Median and 99th percentile of the relative errors of 300 accelerations and jerks, for theta = 0.5
# and order 5. In the disk and in the lattice forces nearly cancel; a cell of few places, each with
# many particles, has large high moments; on devices, where the sets are smaller, it is one of twice
# as large a share of all places, and errors are up to twice as large: MORE.
LIMITS = {
    ("plummer", "fmm"): (1.3e-4, 1.2e-3, 1e-3, 2e-2),
    ("plummer", "bh"): (1.2e-4, 9e-4, 1e-3, 1.2e-2), ("lattice", "fmm"): (8e-4, 7e-3, 1.2e-2, 3e-1),
    ("lattice", "bh"): (2e-4, 1.3e-3, 5e-3, 3e-2), ("clustered", "fmm"): (4e-5, 1.2e-3, 1e-4, 1e-2),
    ("clustered", "bh"): (3e-6, 4e-4, 3e-6, 2e-3), ("disk", "fmm"): (9e-4, 1.7e-2, 3e-4, 4e-3),
    ("disk", "bh"): (1.4e-4, 2.4e-3, 4e-5, 1e-3), ("coincident", "fmm"): (8e-4, 5e-2, 5e-3, 5e-1),
    ("coincident", "bh"): (4e-4, 3e-3, 1e-3, 2e-2),
    ("far_off", "fmm"): (1.3e-4, 1.2e-3, 1e-3, 2e-2),
    ("far_off", "bh"): (1.2e-4, 9e-4, 1e-3, 1.2e-2),
}  # fmt: skip
MORE = {("coincident", "fmm", 1728): 2}  # by n too


@pytest.mark.parametrize(("where", "name"), [
    *itertools.product(["host", "device", "ranks"], SAMPLES),
    *itertools.product(["blocks", "mixed"], ["plummer", "clustered"]),
], indirect=["where"])  # fmt: skip
def test_errors_are_within_stated_percentiles(where, name, method):
    """And the net force is small."""
    given = bodies(name, where.n)
    true = truth(*given)
    found = where.tree(*given).forces(theta=0.5, method=method)
    errors = [np.percentile(true.errors(found, of), q) for of in ("acc", "jerk") for q in (50, 99)]
    limits = MORE.get((name, method, where.n), 1) * np.array(LIMITS[name, method])
    assert (np.array(errors) < limits).all(), errors
    net = np.linalg.norm(given[0] @ found.acc)
    assert net < 2e-3 * (given[0] @ length(found.acc))


def test_errors_fall_with_theta_and_with_order(where, method):
    given = bodies("plummer", 3000)
    true, tree = truth(*given), where.tree(*given)

    def medians(**setting):
        found = tree.forces(method=method, **setting)
        return [np.median(true.errors(found, of)) for of in ("acc", "jerk")]

    by_theta = np.transpose([medians(theta=theta) for theta in (0.8, 0.4, 0.2)])
    assert (by_theta[:, 1:] < by_theta[:, :-1] / 4).all()
    if method == "fmm":
        acc, jerk = np.transpose([medians(theta=0.5, order=order) for order in (2, 3, 4, 5, 6)])
        assert acc.tolist() == sorted(acc, reverse=True)
        assert acc[3] < acc[0] / 8
        assert jerk[4] < jerk[0] / 4


@pytest.mark.parametrize("order", [2, 3, 4, 5, 6, None])
def test_each_order_in_each_instruction_set(order, isa):
    given = bodies("plummer", 5000)
    true, tree = truth(*given), Tree(*given, isa=isa, backend="cpu")
    setting = {"method": "fmm", "order": order} if order else {"method": "bh"}
    assert_close(true, tree.forces(theta=1e-9, **setting))
    found = tree.forces(theta=0.3, **setting)
    assert np.median(true.errors(found)) < (1e-4 if order == 2 else 4e-5)
    assert np.median(true.errors(found, "jerk")) < (1e-3 if order == 2 else 4e-4)
    assert np.quantile(true.errors(found, "jerk"), 0.99) < (2e-2 if order == 2 else 4e-3)


def test_moments_of_far_cells_reach_groups_without_extent(isa):
    """In units of a group's size, high derivatives of 1/r would leave single precision."""
    given = plummer(3000, seed=3)
    places = np.random.default_rng(1).normal(size=(100, 3))
    found = Tree(*given, isa=isa, backend="cpu").forces(np.repeat(places, 32, axis=0), eps=0.01,
                                                        theta=0.2, order=5)  # fmt: skip
    right = truth(*given, 0.01, at=places)
    assert np.median(relative(found.acc[::32], right.acc)) < 2e-5
    assert np.median(relative(found.jerk[::32], right.jerk)) < 1e-3


def test_cells_and_groups_without_extent_close_to_each_other(isa):
    mass = np.full(82, 1 / 64)
    for apart in 2.0 ** np.arange(-22, -9):
        places = [[1.0, 1, 1], [-1, -1, -1], [0, 0, 0], [apart, 0, 0]]
        pos = np.repeat(places, [1, 1, 40, 40], axis=0)
        tree, right = Tree(mass, pos, isa=isa), truth(mass, pos, eps=1e-9)
        for order in (2, 3, 4, 5, 6):
            found = tree.forces(eps=1e-9, theta=0.8, order=order)
            assert np.allclose(found.acc, right.acc, rtol=1e-4, atol=0.1), apart


@pytest.mark.parametrize("where", ["host", "device", "ranks", "mixed"], indirect=True)
@pytest.mark.parametrize("n", [0, 1, 2, 33, 1025])
def test_any_number_of_particles(where, n):
    mass, pos, _ = given = plummer(n, seed=n + 1) if n > 1 else (np.ones(n), *np.ones((2, n, 3)))
    at = np.array([[100.0, 0, 0], [1.0, 1.0, 1.0]])
    tree, true = where.tree(*given), truth(*given)
    assert len(tree.nearest(1).index) == len(tree.neighbours(1.0)) == n
    for method in "fmm", "bh":
        found = tree.forces(theta=1e-9, method=method)
        assert (found.acc.shape, found.pot.shape, found.jerk.shape) == ((n, 3), (n,), (n, 3))
        assert_close(true, found)
        assert_close(truth(*given, at=at), tree.forces(at, theta=1e-9, method=method))
        closed = tree.forces(momentum=True, method=method)
        assert np.abs(mass @ closed.acc).max() < 1e-14 * (mass @ length(closed.acc) + 1e-300)
        nobody = tree.forces(np.empty((0, 3)), method=method)
        assert (nobody.acc.shape, nobody.pot.shape) == ((0, 3), (0,))
    assert where.tree(mass, pos).forces().jerk is None


@pytest.mark.parametrize("where", ["host", "device"], indirect=True)
def test_row09_pairs_at_one_place_leave_one_warning(where):
    with warnings.catch_warnings(record=True, action="always") as said:
        for places, each in (1, 4), (5, 100):
            pos = np.repeat(POS[:places], each, axis=0)
            tree = where.tree(np.ones(len(pos)), pos)
            for eps in (1.0, 0.0, 0.0):
                tree.forces(theta=0.5, eps=eps)
    words = [str(w.message).partition(" at one")[0] for w in said]
    assert words == [f"{n} pairs of a tree" for n in (12, 49500)]
    assert all(w.category is Grape6Warning for w in said)
    assert where.name == "device" or said[0].filename == __file__


# ---- what no one box resolves ---------------------------------------------------------------
MASS, POS, VEL = plummer(5000, seed=3)
ONE = np.array([[1.0, 0.3, -0.1]])
FAR = {
    **{f"a body at {d:g}": (d * ONE, 1 / 5000) for d in (1e9, 1e30)},
    "no mass": (1e13 * ONE, 1e-30), "another sign": (1e9 * ONE, -1.0),
    "all scales": (10.0 ** np.arange(3, 40)[:, None] * [1.0, -0.5, 0.25], 1 / 5000),
    "a cluster": (POS + 1e7 * ONE, 1 / 5000), "a cluster far off": (POS + 1e9 * ONE, 1 / 5000),
}  # fmt: skip


@pytest.mark.parametrize("case", FAR)
def test_row46_far_bodies_change_no_errors(where, case, method):
    """The errors of the others are those that they have alone, if these are not of rounding. Bodies
    on all scales change the boxes: of a device's smaller sets, errors may be 1.7 times as large."""
    (far, mass), n = FAR[case], 2000 if where.name == "host" else 1200
    most = 2.0 if (where.name, case) == ("device", "all scales") else 1.5
    far = far[:n]
    given = (np.append(MASS[:n], np.full(len(far), mass)), np.vstack([POS[:n], far]),
             np.vstack([VEL[:n], 0 * far]))  # fmt: skip
    rows, errors = np.arange(0, n, 8), []
    for bodies_ in (MASS[:n], POS[:n], VEL[:n]), given:
        true = truth(*bodies_, at=POS[rows], at_vel=VEL[rows], own=rows)
        found = where.tree(*bodies_).forces(method=method, theta=0.5)
        found = found._replace(acc=found.acc[rows], jerk=found.jerk[rows])
        errors.append([true.errors(found, name) for name in ("acc", "jerk")])
    for before, now in zip(*errors, strict=True):
        for percentile in 50, 99:
            usual = max(np.percentile(before, percentile), 2.5e-7)
            assert np.percentile(now, percentile) < most * usual


@pytest.mark.parametrize("distance", [1e9, 1e13, 1e16])
@pytest.mark.parametrize("eps", [1e-12, 0.01, 1e6])
def test_a_far_or_heavy_body_has_its_own_force(where, eps, distance, method):
    """Which what it would do to itself, m / eps, exceeds by far, or its mass that of all others."""
    mass, pos, vel = plummer(60, seed=8)
    pos[0], pos[2] = [distance, 0, 0], pos[1]
    for mass[1] in (1 / 60, 1e20 / 60):
        found = where.tree(mass, pos, vel).forces(eps=eps, method=method)
        for name in ("acc", "pot", "jerk"):
            assert truth(mass, pos, vel, eps).errors(found, name).max() < 1e-4, name


def test_a_softening_beyond_single_precision_is_refused(where):
    pos = np.random.default_rng(1).random((100, 3)) * 1e-150
    assert where.tree(np.ones(1), pos[:1]).forces(eps=1.0).pot.tolist() == [0]
    tree = where.tree(np.ones(100), pos)
    with pytest.raises(RangeError, match=where.text("eps = 1 is more than 1e18 times the size")):
        tree.forces(eps=1.0)
    assert np.isfinite(tree.forces(eps=1e-140).acc).all()


def test_masses_at_one_place_whose_sum_is_no_double(where, method):
    pos = np.vstack([np.zeros((40, 3)), [[1e10, 0, 0]], [[0, 1e10, 0]]])
    tree = where.tree(np.append(np.full(40, 1e308), [1.0, 1.0]), pos)
    with pytest.raises(RangeError):
        tree.forces(eps=1.0, method=method)


@pytest.mark.parametrize("where", ["host", "ranks"], indirect=True)
def test_places_that_differences_of_doubles_do_not_tell_apart(where, method):
    """Their differences are denormal numbers."""
    pos = np.zeros((100, 3))
    pos[:, 0] = np.finfo(float).tiny + np.arange(100) * 5e-324
    tree = where.tree(np.ones(100), pos)
    assert np.allclose(tree.forces(eps=1.0, method=method).pot, -99)
    with pytest.raises(RangeError, match=where.text("does not fit a double")):
        tree.forces(method=method)


def test_row08_a_force_that_does_not_fit(where):
    pos = np.array([[0.0, 0, 0], [1e-187, 0, 0]])
    words = where.text("the force on target 0 of a tree does not fit")
    with pytest.raises(RangeError, match=words):
        where.tree(np.ones(2), pos).forces()


@pytest.mark.full
@pytest.mark.parametrize("shape", ["far", "point", "sites"])
def test_row46_no_set_takes_quadratic_time(shape):
    """The direct sum of so many takes half a minute or more, on a fast machine."""
    n, rng = 200_000, np.random.default_rng(5)
    some = rng.normal(size=(n, 3))
    pos = {"far": np.where(np.arange(n)[:, None] == 0, 1e12, some),
           "point": np.ones((n, 3)),
           "sites": some[rng.integers(0, 27, n)]}  # fmt: skip
    began = time.process_time()
    with Tree(pos[shape], np.full(n, 1 / n), backend="cpu") as tree:
        tree.forces(eps=0.01)
        tree.nearest(3)
    assert time.process_time() - began < 10


# ---- momentum, motion, units --------------------------------------------------------------------
@pytest.mark.parametrize("name", ["plummer", "clustered", "coincident", "apart"])
def test_forces_add_up_to_zero_and_none_changes_by_more_than_need_be(where, name, method):
    mass, pos, vel = bodies(name, 800)
    mass = mass * np.where(np.arange(len(mass)) % 5, 1, -2) if name == "plummer" else mass
    for weight, size in (1, 1), (1e150, 1e70), (1e-150, 1e-70):
        tree = where.tree(mass * weight, pos * size, vel if size == 1 else None)
        usual, closed = (tree.forces(eps=0.01 * size, theta=0.5, method=method, momentum=wanted)
                         for wanted in (False, True))  # fmt: skip
        unit = weight / size / size
        for before, after in ((usual.acc, closed.acc), (usual.jerk, closed.jerk)):
            if before is None:
                continue
            before, after, sizes = before / unit, after / unit, length(before / unit)
            net = length(mass @ before[None])[0] / (np.abs(mass) @ sizes)
            assert length(mass @ after[None])[0] < 1e-14 * (np.abs(mass) @ sizes)
            assert length(after - before) == pytest.approx(net * sizes, rel=1e-6,
                                                           abs=1e-15 * sizes.max())  # fmt: skip
        assert np.array_equal(closed.pot, usual.pot)


def test_motion_in_common_changes_nothing_and_a_rotation_turns_the_force(where, method):
    mass, pos, vel = plummer(800, seed=3)
    setting = {"theta": 0.4, "eps": 0.01, "method": method}
    still = where.tree(mass, pos, vel).forces(**setting)
    for speed in (1.0, 1e3):
        moving = where.tree(mass, pos, vel + speed * np.array([1.0, -2.0, 0.5])).forces(**setting)
        assert np.array_equal(moving.acc, still.acc)
        assert relative(moving.jerk, still.jerk).max() < 1e-5
    omega = np.array([0.3, -1.0, 2.0])
    found = where.tree(mass, pos, np.cross(omega, pos)).forces(**setting)
    wrong = relative(found.jerk, np.cross(omega, found.acc))
    assert np.median(wrong) < 1e-4
    assert np.quantile(wrong, 0.99) < 4e-3


def test_row08_powers_of_two_in_the_units_change_no_bit(where, method):
    bodies_, setting = plummer(300, seed=3), {"theta": 0.5, "method": method}
    once = where.tree(*bodies_).forces(eps=2.0**-6, **setting)
    for length_, mass_, speed in [
        (0, 0, 100), (80, -90, 60), (-70, 90, -100), (100, -100, 0), (-100, 100, 0),
        (-100, -100, 0), (-200, -1000, 1000), (200, 1000, 450), (-300, 90, 20),
    ]:  # fmt: skip
        if where.name == "ranks" and mass_ + speed > 1023:
            continue  # momenta are summed
        scaled = [np.ldexp(a, by) for a, by in zip(bodies_, (mass_, length_, speed), strict=True)]
        found = where.tree(*scaled).forces(eps=2.0 ** (length_ - 6), **setting)
        assert np.array_equal(found.acc, np.ldexp(once.acc, mass_ - 2 * length_))
        assert np.array_equal(found.pot, np.ldexp(once.pot, mass_ - length_))
        assert np.array_equal(found.jerk, np.ldexp(once.jerk, mass_ + speed - 3 * length_))


# ---- targets ------------------------------------------------------------------------------
@pytest.mark.parametrize("speed", [None, 1.0, 1e30])
def test_targets_of_ones_own(where, method, speed):
    """Particles that are predicted elsewhere, or far away, and points that are none; at rest, or as
    fast as the particles, which may be slower still, or faster. A GPU takes some of them as single
    targets, whose largest error is up to six times as large."""
    for n, slow in (1500, 1.0), (2400, 1e-20):  # of the latter, a GPU walks groups by themselves
        mass, pos, vel = given = bodies("plummer", n)
        mass[::97] = 0.2  # missed, if one is
        vel *= slow
        random = np.random.default_rng(5)
        own = np.where(random.random(300) < 0.5, random.integers(0, 1500, 300), -1)
        own[:60] = 97 * random.integers(0, 15, 60)
        at = np.where(own[:, None] < 0, random.normal(size=(300, 3)), 1.001 * pos[own])
        at[:120] = pos[:120] + 1e-3
        at_vel = None if speed is None else speed * random.normal(size=(300, 3))
        true, tree = truth(*given, at=at, at_vel=at_vel, own=own), where.tree(*given)
        near, far = (tree.forces(at, at_vel, self_index=own, theta=theta, method=method)
                     for theta in (1e-9, 0.4))  # fmt: skip
        assert_close(true, near, factor=7 if where.name == "device" else 1)
        for name in "acc", "pot", "jerk":
            assert np.quantile(true.errors(near, name), 0.99) < 1e-5
            assert np.median(true.errors(far, name)) < 1e-3


def test_targets_far_outside_the_box_feel_its_mass(where, method):
    """In groups that are as wide as they are far: one expansion is all there is of the force."""
    given = bodies("plummer", 1000)
    tree, rng = where.tree(*given), np.random.default_rng(8)
    for distance, limit in (1e2, 3e-4), (1e5, 2e-6), (1e9, 2e-6), (1e12, 2e-6):
        for count in (1, 60):
            at = distance * rng.normal(2, 1, size=(count, 3))
            true, found = truth(*given, at=at), tree.forces(at, theta=0.5, method=method)
            assert true.errors(found).max() < limit
            assert true.errors(found, "pot").max() < max(limit / 10, 2e-6)


# ---- the same result ----------------------------------------------------------------------
@pytest.mark.parametrize("name", ["plummer", "coincident", "few places", "all scales"])
@pytest.mark.parametrize("setting", [{"theta": 0.6}, {"method": "bh"}, {"momentum": True},
                                     {"bound": 1e-3}], ids=str)  # fmt: skip
def test_bits_do_not_depend_on_threads_or_sums_before(name, setting):
    given, found = bodies(name, 4500), set()
    last = {"last_acc": np.ones(len(given[0]))} if "bound" in setting else {}
    for threads in (1, 1, 3, 7):
        with Tree(*given, threads=threads) as tree:
            tree.forces(given[1][:threads], theta=0.3)
            found.add(bits(tree.forces(**setting, **last, eps=1e-3)))
            found.add(bits(tree.forces(**setting, **last, eps=1e-3)))
    assert len(found) == 1


def test_calls_on_a_device_have_the_bits_of_the_first(where, method):
    given = bodies("plummer", 700)
    tree, setting = where.tree(*given), {"theta": 0.5, "method": method}
    own, some = tree.forces(**setting), tree.forces(given[1][:90] * 1.1, **setting)
    tree.forces(theta=0.2, order=6)
    fast = tree.forces(given[1][:100], 1e30 * given[2][:100], **setting)
    assert length(fast.jerk).min() > 1e20 * length(own.jerk).min()
    assert bits(tree.forces(given[1][:90] * 1.1, **setting)) == bits(some)
    assert bits(tree.forces(**setting)) == bits(where.tree(*given).forces(**setting)) == bits(own)


@pytest.mark.parametrize("name", ["plummer", "disk", "clustered", "coincident"])
def test_shuffled_input_gives_the_same_bits(name, method):
    """As long as no two particles share a key, 2^-21 of the box. Where thousands do, their groups
    are others; at one place sums differ by rounding."""
    mass, pos, _ = bodies(name, 5000)
    order, theta = np.random.default_rng(1).permutation(len(mass)), 0.6
    theta = 1e-9 if name == "coincident" else theta
    plain, shuffled = (Tree(mass[rows], pos[rows], backend="cpu").forces(method=method, theta=theta)
                       for rows in (slice(None), order))  # fmt: skip
    if name in ("plummer", "disk"):
        assert np.array_equal(shuffled.acc, plain.acc[order])
        assert np.array_equal(shuffled.pot, plain.pot[order])
    assert np.median(relative(shuffled.acc, plain.acc[order])) < 1e-6


def test_next_to_no_softening_counts_as_none_and_signs_turn_forces(isa, method):
    mass, pos, _ = bodies("plummer", 4500)
    pos[1::2] = pos[::2]
    tree, negative = (Tree(m, pos, isa=isa, backend="cpu") for m in (mass, -mass))
    right = tree.forces(method=method)
    assert bits(tree.forces(method=method, eps=1e-25)) == bits(right)
    other = negative.forces(method=method)
    assert np.array_equal(other.acc, -right.acc)
    assert np.array_equal(other.pot, -right.pot)


@pytest.mark.parametrize("where", ["device"], indirect=True)
def test_softening_far_below_what_single_precision_holds(where, method):
    mass, pos, vel = bodies("plummer", 300)
    for eps in (1e-25, 1e-13, 1e-9):
        pos[1], pos[3] = pos[0], pos[2] + [2 * eps, 0, 0]
        found = where.tree(mass, pos).forces(eps=eps, theta=1e-3, method=method)
        for name in "acc", "pot":
            assert truth(mass, pos, vel, eps).errors(found, name).max() < 1e-4
