"""Trees: every misuse has its code and text, NaN in the outputs, and no effect on what is right."""

import itertools
import re

import numpy as np
import pytest

import capi
from grape6py import Tree, errors, plummer
from grape6py.errors import AddressError, ArgumentError, NotFiniteError, SizeError
from particles import assert_nan

N = 200
MASS, POS, VEL = plummer(N, seed=4)
CODE = {name: value for name, value in capi.CONSTANTS.items() if name.startswith("G6X_")}
BAD = [np.nan, np.inf, -np.inf]
TARGETS = POS[:9]


# ---- Python, wherever the tree is ---------------------------------------------------------------
def with_bad(array, row, bad=np.nan):
    array = np.array(array, float)
    array[row] = bad
    return array


MAKING = [
    ({"pos": POS[:, :2]}, ArgumentError, "pos has shape (200, 2), not (n, 3)"),
    ({"mass": MASS[:5]}, ArgumentError, "mass has shape (5,), not (200,)"),
    ({"vel": VEL[:5]}, ArgumentError, "vel has shape (5, 3), not (200, 3)"),
    ({"pos": MASS}, ArgumentError, "the order is Tree(mass, pos) or Tree(pos, mass), with shapes"),
    ({"mass": POS}, ArgumentError, "mass has shape (200, 3) and pos has (200, 3): the order is"),
    ({"pos": np.ones(5), "mass": np.ones(2)}, ArgumentError, "pos has (5,): the order is Tree("),
    ({"pos": POS * 1j}, ArgumentError, "pos is not an array of real numbers: it is complex"),
    ({"pos": with_bad(POS, (77, 1))}, NotFiniteError, "pos[77] is not finite: ["),
    ({"vel": with_bad(VEL, (5, 1))}, NotFiniteError, "vel[5] is not finite: ["),
    ({"mass": with_bad(MASS, 9, np.inf)}, NotFiniteError, "mass[9] is not finite: inf"),
    ({"isa": "mmx"}, ArgumentError, "isa = 'mmx' is unknown; there are: best, base"),
    (
        {"backend": "gpu"},
        ArgumentError,
        "backend = 'gpu' is unknown (did you mean cuda?); there are",
    ),
]
SOME = {"targets": TARGETS}
AT_BAD = {"targets": with_bad(TARGETS, (5, 0))}
USING = [
    ("forces", {"targets": POS[0]}, ArgumentError, "targets has shape (3,), not (n, 3)"),
    ("forces", AT_BAD, NotFiniteError, "targets[5] is not finite: ["),
    ("nearest", AT_BAD, NotFiniteError, "targets[5] is not finite: ["),
    ("neighbours", AT_BAD | {"radius": 1.0}, NotFiniteError, "targets[5] is not finite: ["),
    ("forces", SOME | {"self_index": np.full(9, N)}, AddressError, "[0] = 200: the "),
    ("nearest", SOME | {"self_index": np.arange(9) - 2}, AddressError, "[0] = -2: the "),
    ("nearest", SOME | {"self_index": np.full(9, 2**40)}, SizeError, "integers beyond 32 bits"),
    ("forces", SOME | {"self_index": np.ones(9)}, ArgumentError, "holds float64, not integers"),
    ("forces", {"self_index": np.arange(N)}, ArgumentError, "self_index describes targets: give"),
    ("forces", SOME | {"vel": AT_BAD["targets"]}, NotFiniteError, "vel[5] is not finite: ["),
    ("forces", SOME | {"vel": VEL[:3]}, ArgumentError, "vel has shape (3, 3), not (9, 3)"),
    ("forces", {"vel": VEL}, ArgumentError, "vel describes targets: give their positions too"),
    ("forces", {"last_acc": with_bad(MASS, 3), "bound": 0.1}, NotFiniteError, "last_acc[3] is not"),
    ("forces", {"last_acc": with_bad(MASS, 4, -1), "bound": 0.1}, ArgumentError, "[4] = -1 is neg"),
    ("forces", {"last_acc": with_bad(MASS, 4, -1)}, ArgumentError, "last_acc[4] = -1 is negative"),
    ("forces", {"bound": 0.1}, ArgumentError, "bound is a share of last_acc: give that too"),
    ("forces", {"bound": -1.0, "last_acc": MASS}, ArgumentError, "bound = -1.0 is not a finite"),
    ("forces", {"theta": 1.6}, ArgumentError, "theta = 1.6 is above 1.5"),
    ("forces", {"theta": 0}, ArgumentError, "theta = 0.0 is not above zero"),
    ("forces", {"theta": np.nan}, ArgumentError, "theta = nan is not a finite number"),
    ("forces", {"theta": 0.5, "accuracy": 1e-3}, ArgumentError, "give theta or accuracy, not both"),
    ("forces", {"accuracy": 1e-8}, ArgumentError, "1e-06 is the best that can be asked for"),
    ("forces", {"accuracy": 0.2}, ArgumentError, "accuracy = 0.2 is above 0.1"),
    ("forces", {"order": 7}, ArgumentError, "order = 7 is not from 2 to 6"),
    ("forces", {"method": "direct"}, ArgumentError, "method = 'direct' is unknown; there are: fmm"),
    ("forces", {"eps": -1}, ArgumentError, "eps = -1.0 is not a finite number >= 0"),
    ("forces", {"eps": 1e200}, ArgumentError, "eps^2 = inf is not a finite number"),
    ("forces", SOME | {"momentum": True}, ArgumentError, "momentum is that of all particles: give"),
    ("nearest", {"k": -1}, ArgumentError, "k = -1 is negative"),
    ("nearest", {"k": 1.5}, ArgumentError, "k = 1.5 is not an integer"),
    ("neighbours", {"radius": np.ones(3)}, ArgumentError, "radius has shape (3,), not (200,)"),
    ("bound", {"accuracy": 1e-7}, ArgumentError, "accuracy = 1e-07: pairs are summed in single"),
    ("bound", {"accuracy": 1e-3, "last_acc": with_bad(MASS, 2, -1)}, ArgumentError, "[2] = -1 is"),
]


@pytest.mark.backends("cpu gpu")
def test_what_cannot_be_a_tree_is_refused(where):
    for wrong, error, text in MAKING:
        with pytest.raises(error, match=re.escape(text)):
            where.of(**{"pos": POS, "mass": MASS, **wrong})


@pytest.mark.backends("cpu gpu")
def test_wrong_calls_are_refused_and_change_nothing(where):
    tree = where.of(pos=POS, mass=MASS)
    before = tree.forces(theta=0.6)
    for call, wrong, error, text in USING:
        with pytest.raises(error, match=re.escape(text)):
            getattr(tree, call)(**wrong)
    tree.forces(last_acc=with_bad(MASS, 4, -1.0), theta=0.6)  # of which nothing is asked
    assert np.array_equal(tree.forces(theta=0.6).acc, before.acc)
    tree.close()
    tree.close()
    for use in (tree.forces, tree.nearest, lambda: tree.neighbours(1.0), lambda: tree.bound(1e-3)):
        with pytest.raises(errors.NotOpenError):
            use()


def test_python_trees_close_and_those_that_are_forgotten_are_freed():
    with Tree(POS, MASS) as tree:
        assert repr(tree) == f"<Tree: {N} particles>"
        assert len(tree) == N
    assert repr(tree) == "<Tree: closed>"
    with pytest.raises(errors.NotOpenError), tree:
        pass
    handle = Tree(POS, MASS)._tree.handle
    assert forces(handle).code == -21
    with pytest.raises(ArgumentError, match="THREADS: the value -1"):
        Tree(POS, MASS, threads=-1)


def test_mass_and_pos_come_in_either_order():
    for n in (1, 3, 50):
        mass, pos, vel = plummer(n, seed=2)
        found = [Tree(*given, **options).forces(eps=0.1) for given, options in (
            ((mass, pos, vel), {}), ((pos, mass, vel), {}), ((mass,), {"pos": pos, "vel": vel}),
            ((), {"vel": vel, "pos": pos, "mass": mass}),
            ((mass.tolist(), pos.tolist()), {"vel": vel.tolist()}),
        )]  # fmt: skip
        assert all(map(np.array_equal, found[0] * 4, sum(found[1:], ())))
        light, other = (Tree(*given).forces(eps=0.1).acc for given in ((1.0, pos), (pos, 1.0)))
        assert np.array_equal(light, other)


# ---- C: tests/c/fuzz_tree.c has the codes of wrong calls ----------------------------------------
def opened(pos=POS, vel=None, mass=MASS, n=N):
    return capi.call("g6x_tree_open", n, pos, vel, mass)


def closed(handle):
    return capi.call("g6x_tree_close", handle) == 0


@pytest.fixture
def tree():
    handle = opened()
    yield handle
    assert closed(handle)


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


def test_a_setting_that_is_not_understood_makes_no_tree():
    capi.run_python("""
x, m = np.eye(3), np.ones(3)
assert call("g6x_tree_open", 3, x, None, m) == CONSTANTS["G6X_E_ARGUMENT"]
assert "GRAPE6_TREE_ORDER=9" in text("g6x_last_error", -7)[1]
""", GRAPE6_TREE_ORDER="9", GRAPE6_LOG="none")  # fmt: skip


def test_row06_row11_row26_what_makes_no_tree():
    arrays = {"x": POS, "v": VEL, "mass": MASS}
    for field, bad in itertools.product(arrays, BAD):
        assert opened(*(arrays | {field: with_bad(arrays[field], 17, bad)}).values()) == -6
        code, text = message()
        assert code == -6
        assert f"{field}[17]" in text
    assert opened(n=-1) == -11
    assert "-1" in message()[1]
    assert opened(pos=None) == opened(mass=None) == -26


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_row07_row11_row13_row21_row26_a_fault_is_named_and_gives_nan(tree, bad):
    own, some, last = np.arange(5, dtype=np.int32), POS[:5].copy(), np.full(N, -1.0)
    own[3] = N
    for code, text, wrong in [
        (-21, "0", {"tree": 0}), (-21, "2147483647", {"tree": 2**31 - 1}),
        *((-11, "theta", {"theta": theta}) for theta in (0.0, -0.5, 1.6, bad)),
        (-11, "order", {"order": 1}), (-11, "order", {"order": 7}), (-11, "method", {"method": 2}),
        (-11, "eps2", {"eps2": -1e-9}), (-11, "eps2", {"eps2": bad}),
        (-11, "bound", {"bound": -1.0}), (-11, "bound", {"bound": -abs(bad)}),
        (-11, "bound", {"bound": 1e-7, "theta": 0.0}), (-11, "bound", {"bound": 0.2, "theta": 0.0}),
        *((-11, "last", {"bound": 1e-3, "last": size * last}) for size in (1, abs(bad))),
        (-11, "ni", {"ni": N - 1}), (-11, "ni", {"ni": -1}), (-26, "", {"bound": 1e-3}),
        (-11, "G6X_TREE_MOMENTUM", {"method": CODE["G6X_TREE_MOMENTUM"], "x": POS}),
        (-13, "self[3]", {"ni": 5, "x": some, "own": own}),
        (-7, "17", {"x": with_bad(POS, (17, 1), bad)}),
        (-7, "17", {"x": POS, "v": with_bad(VEL, (17, 1), bad)}),
    ]:  # fmt: skip
        found = forces(**{"tree": tree} | wrong)
        assert found.code == code, wrong
        assert_nan(found, [17] if code == -7 else slice(None))
        said, words = message()
        assert said == code
        assert text in words
    assert forces(tree, method=1, order=-3).code == 0  # which Barnes and Hut do not read
    start = np.r_[:6, 2, 7 : N + 1].astype(np.int64)
    given = tree, N, None, None, np.ones(N), start, np.zeros(N, np.int32), np.zeros(N, np.int32)
    assert capi.call("g6x_tree_within", *given) == -11
    assert "start[5]" in message()[1]


def test_row38_outputs_may_lie_on_top_of_inputs():
    tree, own = opened(vel=VEL), np.arange(N, dtype=np.int32)
    right = forces(tree, x=POS, v=VEL, own=own, theta=0.4)
    x, v = POS.copy(), VEL.copy()
    found = forces(tree, x=x, v=v, own=own, theta=0.4, out=capi.Force(x, v, np.zeros(N), None))
    assert found.code == 0
    assert found.bits() == right.bits()
    assert closed(tree)


def test_row11_row21_row26_wrong_arguments_give_no_bound(tree):
    for code, wrong in [
        (-11, {"accuracy": 1e-7}), (-11, {"accuracy": np.nan}), (-11, {"method": 2}),
        (-11, {"order": 7}), (-11, {"eps2": -1.0}), (-11, {"last": np.full(N, -1.0)}),
        (-11, {"last": np.full(N, np.nan)}), (-26, {"bound": None}), (-21, {"tree": -1}),
    ]:  # fmt: skip
        bound = np.ones(1)
        given = {"tree": tree, "eps2": 0.0, "method": 0, "order": 5, "accuracy": 1e-3,
                 "last": None, "bound": bound} | wrong  # fmt: skip
        assert capi.call("g6x_tree_bound", *given.values()) == code
        assert np.isnan(bound[0]) or given["bound"] is None
        assert message()[0] == code


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
