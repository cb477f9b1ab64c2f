"""Trees: every misuse has its code and text, NaN in the outputs, and no effect on what is right."""

import numpy as np
import pytest

import capi
from grape6py import Grape6Warning, Tree, errors, plummer, reference
from particles import assert_nan
from variants import clean

N = 200
MASS, POS, VEL = plummer(N, seed=4)
CODE = {name: value for name, value in capi.CONSTANTS.items() if name.startswith("G6X_")}
BAD = [np.nan, np.inf, -np.inf]


def opened(pos=POS, vel=None, mass=MASS, n=N):
    return capi.call("g6x_tree_open", n, pos, vel, mass)


@pytest.fixture
def tree():
    handle = opened()
    assert handle > 0
    yield handle
    assert capi.call("g6x_tree_close", handle) == 0


def forces(tree, ni=N, x=None, v=None, own=None, eps2=0.0, method=0, order=5, theta=0.5,
           last=None, bound=0.0, jerk=True, out=None):  # fmt: skip
    """Code and outputs of g6x_tree_forces."""
    found = capi.Force.blank(max(ni, 0)) if out is None else out
    args = [tree, ni, x, v, own, eps2, method, order, theta, last, bound, found.acc]
    found.code = capi.call("g6x_tree_forces", *args, found.jerk if jerk else None, found.pot)
    return found


def message():
    code, text = capi.text("g6x_last_error", -7)
    capi.call("g6x_clear_error", -7)
    return code, text


@pytest.mark.parametrize("method", [CODE["G6X_TREE_FMM"], CODE["G6X_TREE_BARNES_HUT"]])
def test_an_accuracy_is_had_without_last_accelerations(method):
    mass, pos, vel = plummer(4300, seed=6)  # more than are summed pair by pair
    handle = opened(pos, None, mass, len(mass))
    asked = {"theta": 0.0, "bound": 1e-3, "eps2": 1e-4, "method": method, "jerk": False}
    found = forces(handle, len(mass), **asked)
    assert found.code == 0
    exact = reference.direct_sum(mass, pos, vel, eps2=1e-4).acc
    error = np.linalg.norm(found.acc - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert np.median(error) < 1.5e-3
    assert np.quantile(error, 0.99) < 4e-3
    assert capi.call("g6x_tree_close", handle) == 0


# ---- making -------------------------------------------------------------------------------


def test_a_setting_that_is_not_understood_makes_no_tree():
    capi.run_python("""
x, m = np.eye(3), np.ones(3)
assert call("g6x_tree_open", 3, x, None, m) == CONSTANTS["G6X_E_ARGUMENT"]
assert "GRAPE6_TREE_ORDER=9" in text("g6x_last_error", -7)[1]
""", GRAPE6_TREE_ORDER="9", GRAPE6_LOG="none")  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("field", ["x", "v", "mass"])
def test_row06_a_particle_with_nan_makes_no_tree(field, bad):
    arrays = {"x": POS.copy(), "v": VEL.copy(), "mass": MASS.copy()}
    arrays[field][17] = bad
    assert opened(arrays["x"], arrays["v"], arrays["mass"]) == -6
    code, text = message()
    assert code == -6
    assert f"{field}[17]" in text


@pytest.mark.parametrize(
    ("given", "code"), [({"n": -1}, -11), ({"pos": None}, -26), ({"mass": None}, -26)]
)
def test_row11_row26_fewer_than_no_particles_and_null(given, code):
    assert opened(**given) == code
    assert code == -26 or "-1" in message()[1]


def test_no_particles_at_all_are_a_tree():
    tree = opened(None, None, None, 0)
    assert tree > 0
    assert forces(tree, 0).code == 0
    found = forces(tree, 3, np.ones((3, 3)))
    assert found.code == 0
    assert not found.acc.any()
    assert not found.pot.any()
    assert np.isnan(found.jerk).all()
    fast = np.zeros((3, 3))
    fast[1, 2] = np.inf
    found = forces(tree, 3, np.ones((3, 3)), fast)
    assert found.code == -7
    assert_nan(found, [1])
    assert not found.pot[[0, 2]].any()
    assert capi.call("g6x_tree_close", tree) == 0


def test_row22_trees_are_closed_once_or_twice_and_their_numbers_not_used_again():
    first, second = opened(), opened()
    for handle in (first, first, -5):
        assert capi.call("g6x_tree_close", handle) == 0
    third = opened()
    assert len({first, second, third}) == 3
    assert forces(first).code == -21
    for tree in (second, third):
        assert forces(tree).code == 0
        capi.call("g6x_tree_close", tree)


# ---- forces -------------------------------------------------------------------------------


@pytest.mark.parametrize("handle", [0, -1, 2**31 - 1])
def test_row21_a_tree_that_is_not_open(handle):
    found = forces(handle)
    assert found.code == -21
    assert_nan(found)
    assert str(handle) in message()[1]
    assert capi.call("g6x_tree_set_int", handle, CODE["G6X_THREADS"], 1) == -21


@pytest.mark.parametrize("setting", [
    {"theta": 0.0}, {"theta": -0.5}, {"theta": 1.6}, {"theta": np.nan}, {"theta": np.inf},
    {"order": 1}, {"order": 7}, {"method": 2}, {"method": -1},
    {"eps2": -1e-9}, {"eps2": np.nan}, {"eps2": np.inf},
    {"bound": -1.0}, {"bound": np.nan}, {"theta": 0.0, "bound": 1e-7}, {"theta": 0.0, "bound": 0.2},
    {"last": np.full(N, -1.0), "bound": 1e-3}, {"last": np.full(N, np.nan), "bound": 1e-3},
    {"ni": N - 1}, {"ni": N + 1}, {"ni": -1},
], ids=lambda s: ",".join(f"{k}={np.ravel(v)[0]}" for k, v in s.items()))  # fmt: skip
def test_row11_a_setting_out_of_range(tree, setting):
    found = forces(tree, **setting)
    assert found.code == -11
    assert_nan(found)
    code, text = message()
    assert code == -11
    assert next(iter(setting)) in text


def test_order_is_not_read_by_barnes_and_hut(tree):
    assert forces(tree, method=1, order=-3).code == 0


@pytest.mark.parametrize("missing", ["acc", "pot"])
def test_row26_null_outputs(tree, missing):
    out = capi.Force.blank(N)
    setattr(out, missing, None)
    assert forces(tree, out=out).code == -26
    for array in (out.acc, out.pot, out.jerk):
        assert array is None or np.isnan(array).all()


def test_row26_a_bound_without_last_accelerations(tree):
    found = forces(tree, bound=1e-3)
    assert found.code == -26
    assert_nan(found)


@pytest.mark.parametrize("number", [-2, N, 2**31 - 1, -(2**31)])
def test_row13_a_number_that_no_particle_has(tree, number):
    own = np.full(5, -1, np.int32)
    own[3] = number
    found = forces(tree, 5, POS[:5].copy(), own=own)
    assert found.code == -13
    assert_nan(found)
    assert "self[3]" in message()[1]
    out = np.zeros(5, np.int32), np.zeros(5)
    assert capi.call("g6x_tree_nearest", tree, 5, POS[:5].copy(), own, 1, *out) == -13


@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("field", ["x", "v"])
def test_row07_a_target_with_nan_spoils_its_own_row(field, bad):
    tree = opened(vel=VEL)
    arrays = {"x": POS + 0.01, "v": VEL + 0.01}
    right = forces(tree, **arrays, theta=1e-9)
    arrays[field] = arrays[field].copy()
    arrays[field][[7, 30], 1] = bad
    found = forces(tree, **arrays, theta=1e-9)
    assert found.code == -7
    assert "7" in message()[1]
    assert_nan(found, [7, 30])
    others = np.setdiff1d(np.arange(N), [7, 30])
    for name in ("acc", "jerk", "pot"):
        assert np.allclose(getattr(found, name)[others], getattr(right, name)[others], rtol=1e-4)
    capi.call("g6x_tree_close", tree)


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_row07_searches_around_nan(tree, bad):
    x = POS.copy()
    x[[5, 9], 2] = bad
    count, number, r2 = np.zeros(N, np.int32), np.zeros((N, 2), np.int32), np.zeros((N, 2))
    args = tree, N, x, None, np.full(N, np.inf), None, count, None
    assert capi.call("g6x_tree_within", *args) == -7
    assert "5" in message()[1]
    assert (count[[5, 9]] == -1).all()
    assert (np.delete(count, [5, 9]) == N).all()
    assert capi.call("g6x_tree_nearest", tree, N, x, None, 2, number, r2) == -7
    assert (number[[5, 9]] == -1).all()
    assert np.isnan(r2[[5, 9]]).all()
    assert np.isfinite(np.delete(r2, [5, 9], axis=0)).all()


def test_row08_a_force_that_does_not_fit():
    pos, mass = np.array([[0.0, 0, 0], [1e-160, 0, 0], [1e3, 0, 0]]), np.ones(3)
    tree = opened(pos * 1e-3, None, mass * 1e10, 3)
    found = forces(tree, 3)
    assert found.code in (0, -8)
    assert np.isfinite(found.acc[2]).all()
    capi.call("g6x_tree_close", tree)
    tree = opened(pos[[0, 2]] * 1e-190, None, mass[:2], 2)
    found = forces(tree, 2)
    assert found.code == -8
    assert np.isnan(found.acc).all()
    assert np.isfinite(found.pot).all()
    assert "0" in message()[1]
    capi.call("g6x_tree_close", tree)


def test_row09_pairs_at_one_place_leave_a_warning():
    capi.call("g6x_clear_error", -7)
    tree = opened(np.zeros((4, 3)), None, np.ones(4), 4)
    assert forces(tree, 4, eps2=1.0).code == 0
    assert capi.text("g6x_last_warning", -7) == (0, "")
    assert forces(tree, 4).code == 0
    count, text = capi.text("g6x_last_warning", -7)
    assert count == 1
    assert "12 pairs" in text
    capi.call("g6x_tree_close", tree)
    tree = Tree(np.zeros((2, 3)), 1.0)
    with pytest.warns(Grape6Warning, match="at one place"):
        tree.forces()
    tree.forces()  # once is enough: warnings are errors here if any is left


def test_row38_outputs_may_lie_on_top_of_inputs():
    tree = opened(vel=VEL)
    right = forces(tree, x=POS, v=VEL, own=np.arange(N, dtype=np.int32), theta=0.4)
    x, v = POS.copy(), VEL.copy()
    out = capi.Force(x, v, np.zeros(N), None)
    found = forces(tree, x=x, v=v, own=np.arange(N, dtype=np.int32), theta=0.4, out=out)
    assert found.code == 0
    assert found.bits() == right.bits()
    capi.call("g6x_tree_close", tree)


def test_jerks_of_a_tree_without_velocities_are_nan_and_cost_no_bits(tree):
    found, fast = forces(tree), opened(vel=1e300 * VEL)
    assert found.code == 0
    assert np.isnan(found.jerk).all()
    for plain in (forces(tree, jerk=False), forces(fast, jerk=False)):
        assert np.array_equal(plain.acc, found.acc)
        assert np.array_equal(plain.pot, found.pot)
    capi.call("g6x_tree_close", fast)


# ---- searches -----------------------------------------------------------------------------


BACKWARDS = np.r_[:6, 2, 7 : N + 1].astype(np.int64)


@pytest.mark.parametrize(("code", "wrong"), [
    (-26, {"h2": None}), (-26, {"count": None}), (-26, {"start": np.zeros(N + 1, np.int64)}),
    (-11, {"start": BACKWARDS, "found": np.zeros(N, np.int32)}),
])  # fmt: skip
def test_row11_row26_wrong_lists(tree, code, wrong):
    count = np.zeros(N, np.int32)
    given = {"h2": np.ones(N), "start": None, "count": count, "found": None} | wrong
    assert capi.call("g6x_tree_within", tree, N, None, None, *given.values()) == code
    assert "found" not in wrong or "start[5]" in message()[1]
    assert given["count"] is None or (count == -1).all()


@pytest.mark.parametrize(("code", "wrong"), [
    (-26, {"number": None}), (-26, {"r2": None}), (-11, {"k": -2}), (-11, {"ni": N - 1}),
    (-11, {"ni": -3}), (-11, {"ni": -2, "k": -1}), (-21, {"tree": 12345678}),
    (0, {"k": 0, "number": None, "r2": None}),
])  # fmt: skip
def test_row11_row21_row26_wrong_searches_of_the_nearest(tree, code, wrong):
    number, r2 = np.full((N, 2), 7, np.int32), np.full((N, 2), 7.0)
    given = {"tree": tree, "ni": N, "x": None, "self": None, "k": 2, "number": number, "r2": r2}
    given |= wrong
    assert capi.call("g6x_tree_nearest", *given.values()) == code
    written = max(given["ni"], 0) * max(given["k"], 0)
    for array, none in ((number, number == -1), (r2, np.isnan(r2))):
        assert none.ravel()[:written].all() or not any(a is array for a in given.values())
        assert (array.ravel()[written:] == 7).all()


# ---- options, threads ---------------------------------------------------------------------


def test_options_that_a_tree_does_not_have(tree):
    assert capi.call("g6x_tree_set_int", tree, CODE["G6X_PRECISION"], 1) == -11
    assert capi.call("g6x_tree_set_int", tree, CODE["G6X_THREADS"], -1) == -11
    assert capi.call("g6x_tree_set_int", tree, CODE["G6X_ISA"], 99) == -11
    assert capi.call("g6x_tree_set_int", tree, CODE["G6X_THREADS"], 2) == 0


def test_row32_a_host_that_traps_gets_its_traps_back():
    """In a process of its own, with traps on invalid operations, division by zero, overflow."""
    capi.run_python("""
libm = ctypes.CDLL("libm.so.6")
n = 500
rng = np.random.default_rng(1)
x, m = rng.standard_normal((n, 3)), np.ones(n)
x[:9] = 0
bad = x.copy()
bad[3] = np.nan
acc, pot, count, r2 = np.zeros((n, 3)), np.zeros(n), np.zeros(n, np.int32), np.zeros(n)
traps = 1 | 4 | 8
libm.feenableexcept(traps)
tree = call("g6x_tree_open", n, x, None, m)
codes = [call("g6x_tree_open", n, bad, None, m)]
for points in (None, bad):
    for theta in (0.5, float("nan")):
        codes.append(call("g6x_tree_forces", tree, n, points, None, None, 0.0, 0, 5, theta, None,
                          0.0, acc, None, pot))
    codes.append(call("g6x_tree_within", tree, n, points, None, np.full(n, np.nan), None, count,
                      None))
    codes.append(call("g6x_tree_nearest", tree, n, points, None, 1, count, r2))
on = libm.fegetexcept()
libm.fedisableexcept(traps)
assert codes == [-6, 0, -11, 0, 0, -7, -11, -7, -7], codes
assert on == traps
""", GRAPE6_LOG="none")  # fmt: skip


@pytest.mark.parametrize(("wrong", "code"), [
    ({"accuracy": 1e-7}, -11), ({"accuracy": np.nan}, -11), ({"method": 2}, -11),
    ({"order": 7}, -11), ({"eps2": -1.0}, -11), ({"last": np.full(N, -1.0)}, -11),
    ({"last": np.full(N, np.nan)}, -11),
    ({"bound": None}, CODE["G6X_E_NULL"]), ({"tree": -1}, CODE["G6X_E_NOT_OPEN"]),
])  # fmt: skip
def test_wrong_arguments_give_no_bound(tree, wrong, code):
    bound = np.ones(1)
    given = {"tree": tree, "eps2": 0.0, "method": 0, "order": 5, "accuracy": 1e-3, "last": None,
             "bound": bound} | wrong  # fmt: skip
    assert capi.call("g6x_tree_bound", *given.values()) == code
    assert np.isnan(bound[0]) or given["bound"] is None
    assert message()[0] == code


# ---- Python -------------------------------------------------------------------------------


def test_python_raises_what_fits():
    tree = Tree(POS, MASS)
    for wrong in (
        lambda: Tree(POS[:, :2], MASS),
        lambda: Tree(POS, MASS[:5]),
        lambda: Tree(POS, MASS, VEL[:5]),
        lambda: Tree(POS, MASS, isa="mmx"),
        lambda: Tree(POS, MASS, threads=-1),
        lambda: tree.forces(theta=0),
        lambda: tree.forces(theta=2),
        lambda: tree.forces(theta=0.5, accuracy=1e-3),
        lambda: tree.forces(accuracy=1e-8),
        lambda: tree.forces(method="direct"),
        lambda: tree.forces(order=9),
        lambda: tree.forces(eps=-1),
        lambda: tree.forces(bound=1e-3),
        lambda: tree.forces(vel=VEL),
        lambda: tree.forces(self_index=np.arange(N)),
        lambda: tree.forces(POS, VEL[:3]),
        lambda: tree.neighbours([1.0, 2.0]),
        lambda: tree.nearest(-1),
        lambda: tree.nearest(1.5),
    ):
        with pytest.raises(errors.ArgumentError):
            wrong()
    with pytest.raises(errors.NotFiniteError, match="17"):
        Tree(POS, np.where(np.arange(N) == 17, np.nan, MASS))
    with pytest.raises(errors.NotFiniteError):
        tree.nearest(1, [[0, 0, np.inf]])
    with pytest.raises(errors.AddressError):
        tree.forces(POS[:1], self_index=[N])


def test_python_trees_close():
    with Tree(POS, MASS) as tree:
        assert repr(tree) == f"<Tree: {N} particles>"
        assert len(tree) == N
    assert repr(tree) == "<Tree: closed>"
    tree.close()
    for use in (tree.forces, tree.nearest, lambda: tree.neighbours(1.0), tree.__enter__):
        with pytest.raises(errors.NotOpenError):
            use()


def test_python_trees_that_are_forgotten_are_freed():
    handle = Tree(POS, MASS)._tree.handle
    assert forces(handle).code == -21


@pytest.mark.parametrize("particles", ["ordinary", "parts"])
def test_row29_every_allocation_may_fail(variants, particles):
    done = clean([variants["address"].program("tree_memory"), particles], printed=True)
    allocations, reported = map(int, done.stdout.split())
    assert done.stderr == ""
    assert allocations > 40
    assert reported > allocations // 2, "the others did without, as a thread fewer"
