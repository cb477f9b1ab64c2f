"""GRAPE-5 calls that cannot be right: a code, a text, and NaN instead of forces."""

import numpy as np
import pytest

import capi
from capi import CONSTANTS
from grape5 import EPS, assert_force, assert_nan, blank, direct, fortran, multi, stars, value

M, XJ = stars(100)
XI = stars(20, seed=2)[1]
EXPECTED = direct(XI, M, XJ)
ORDER, ARGUMENT, NULL, ADDRESS, MEMORY, J_NAN, I_NAN, NOT_OPEN, MISMATCH, RANGE = (
    CONSTANTS[f"G6X_E_{name}"]
    for name in (
        "NO_FIRSTHALF ARGUMENT NULL ADDRESS MEMORY J_NAN I_NAN NOT_OPEN MISMATCH RANGE"
    ).split()
)


@pytest.fixture
def loaded(board5):
    board5.load(M, XJ)
    return board5


# ---- order -------------------------------------------------------------------


def test_before_open_and_after_close_calls_are_refused_and_forces_nan():
    capi.run_python("""
from grape5 import *
x, m = np.zeros((3, 3)), np.ones(3)
def refused():
    closed = CONSTANTS["G6X_E_NOT_OPEN"]
    calls = [("set_n", 3), ("set_xmj", 0, 3, x, m), ("set_jp", 0, 3, m, x), ("set_xj", 0, 3, x),
             ("set_mj", 0, 3, m), ("set_eps", 3, m), ("set_xi", 3, x), ("set_xei", 3, x, m),
             ("run",)]
    for name, *args in calls:
        assert value("g5_" + name, *args) == closed, name
        assert fortran("g5_" + name, *args) == closed, name
    for name, args in [("g5_get_force", (3,)), ("g5_calculate_force_on_x", (x,)),
                       ("g5_calculate_force_on_xe", (x, m))]:
        a, p = blank(3)
        order = (*args, a, p) if name == "g5_get_force" else (*args, a, p, 3)
        assert_nan((value(name, *order), a, p), closed)
    assert "call g5_open" in capi_text(0)[1]
    for name in ["pipelines", "real_pipelines"]:
        assert value("g5_get_number_of_" + name) > 0
    assert value("g5_get_jmemsize") >= 1 << 20
    assert value("g5_get_pcibus_freq") > 0
    assert value("g5_set_range", -1.0, 1.0, 0.1) == 0
    assert value("g5_set_eps_to_all", 0.1) == 0
    assert value("g5_close") == 0
refused()
assert value("g5_open") == 0
assert value("g5_set_n", 3) == 0
assert value("g5_close") == 0
refused()
""", GRAPE6_LOG="none")  # fmt: skip


def test_softening_outlives_close_and_is_asked_for_if_never_set():
    capi.run_python(f"""
from grape5 import *
m, x = stars(30)
value("g5_open")
value("g5_set_xmj", 0, 30, x, m)
value("g5_set_n", 30)
def force():
    a, p = blank(30)
    return value("g5_calculate_force_on_x", x, a, p, 30), a, p
assert_nan(force(), {ORDER})
assert "g5_set_eps_to_all" in capi_text(0)[1]
value("g5_set_eps_to_all", 0.2)
assert_force(force(), direct(x, m, x, 0.2))
value("g5_close")
value("g5_open")
value("g5_set_xmj", 0, 30, x, m)
assert_nan(force(), {ORDER})
value("g5_set_xi", 30, x)
assert value("g5_run") == {ORDER}
assert "g5_set_n" in capi_text(0)[1]
value("g5_set_n", 30)
assert_force(force(), direct(x, m, x, 0.2))
""", GRAPE6_LOG="none")  # fmt: skip


def test_forces_without_a_run_or_of_more_rows_than_were_set_are_nan(loaded):
    assert loaded("run") == ORDER
    assert_nan(loaded.get(20), ORDER)
    assert loaded("set_xi", 20, XI) == 0
    assert_nan(loaded.get(20), ORDER)
    assert loaded.error() == (ORDER, "g5_get_force without g5_run")
    assert loaded("run") == 0
    a, p = blank(22)
    assert loaded("get_force", 22, a, p) == MISMATCH
    assert np.isnan(a[:20]).all()
    assert np.isnan(p[:20]).all()
    assert (a[20:] == capi.UNTOUCHED).all()
    assert_force(loaded.get(20), EXPECTED)
    assert loaded("set_xi", 20, XI) == 0
    assert_nan(loaded.get(20), ORDER)


# ---- numbers -----------------------------------------------------------------


def test_a_wrong_softening_is_refused_and_the_old_one_not_used(loaded):
    """Nor is one whose square is none."""
    for call, largest in ("set_eps_to_all", 1e200), ("set_eps", 1e200), ("set_eps2_to_all", np.inf):
        for eps in (-0.1, np.nan, np.inf, -np.inf, largest):
            args = (20, np.full(20, eps)) if call == "set_eps" else (eps,)
            assert loaded(call, *args) == ARGUMENT
            assert_nan(loaded.calculate(XI), ARGUMENT)
            loaded("set_eps_to_all", EPS)
            assert_force(loaded.calculate(XI), EXPECTED)
    for wrong in (-0.1, np.nan, np.inf):  # of one i particle
        found = blank(20)
        code = loaded("calculate_force_on_xe", XI, np.r_[np.ones(19), wrong], *found, 20)
        assert_nan((code, *found), ARGUMENT)
        assert "particle 19" in loaded.error()[1]
        assert_force(loaded.calculate(XI), EXPECTED)


def test_what_is_counted_wrongly_is_refused(loaded):
    """Negative, or beyond what an int counts; nothing is legal."""
    for code, name, *args in [
        (ARGUMENT, "set_xmj", 0, -1, XJ, M), (ARGUMENT, "set_xj", 0, -1, XJ),
        (ARGUMENT, "set_mj", 0, -5, M), (ARGUMENT, "set_jp", 0, -1, M, XJ),
        (ADDRESS, "set_xmj", -1, 100, XJ, M), (MEMORY, "set_xmj", 2**31 - 50, 100, XJ, M),
        (ARGUMENT, "set_eps", -1, M), (0, "set_eps_to_all", EPS),
        (ARGUMENT, "set_xi", -1, XI), (ORDER, "run"), (ARGUMENT, "get_force", -1, *blank(1)),
        (ARGUMENT, "calculate_force_on_x", XI, *blank(1), -1),
        (0, "set_xmj", 5, 0, None, None), (0, "set_xj", 5, 0, None), (0, "set_eps", 0, None),
        (0, "set_xi", 0, None), (0, "run"), (0, "get_force", 0, None, None),
        (0, "calculate_force_on_x", None, None, None, 0),
    ]:  # fmt: skip
        assert loaded(name, *args) == code, (name, *args)
    assert_force(loaded.calculate(XI), EXPECTED)
    for n, first, second in (-1, ARGUMENT, ARGUMENT), (2**31 - 1, 0, MEMORY):
        assert loaded("set_n", n) == first
        assert_nan(loaded.calculate(XI), second)
    assert loaded("set_n", 100) == 0
    assert_force(loaded.calculate(XI), EXPECTED)


@pytest.mark.parametrize("half", ["x", "m"])
def test_a_bad_j_particle_or_half_of_one_makes_nan_until_it_is_sent(loaded, half):
    halves, good = {"x": XJ.copy(), "m": M.copy()}, {"x": XJ, "m": M}
    halves[half][7] = np.nan if half == "x" else np.inf
    assert loaded("set_xmj", 0, 100, *halves.values()) == J_NAN
    assert "address 7" in loaded.error()[1]
    assert_nan(loaded.calculate(XI), J_NAN)
    loaded("set_n", 7)
    assert_force(loaded.calculate(XI), direct(XI, M[:7], XJ[:7]))
    loaded("set_n", 100)
    other = "m" if half == "x" else "x"
    assert loaded(f"set_{other}j", 0, 100, good[other]) == 0  # the half that was good
    assert_nan(loaded.calculate(XI), J_NAN)
    assert loaded(f"set_{half}j", 0, 100, good[half]) == 0
    assert_force(loaded.calculate(XI), EXPECTED)
    assert loaded(f"set_{half}j", 100, 5, good[half]) == 0
    assert_force(loaded.calculate(XI), EXPECTED)
    loaded("set_n", 105)
    assert_nan(loaded.calculate(XI), J_NAN)
    assert "address 100 " in loaded.error()[1]
    assert "lacks" in loaded.error()[1]


def test_a_bad_i_particle_spoils_its_own_row(loaded):
    x, good = XI.copy(), np.arange(20) != 3
    x[3, 2] = np.nan
    loaded("set_xi", 20, x)
    assert loaded("run") == I_NAN
    assert loaded.error()[1].startswith("NaN or Inf in i particle 3 ")
    for code, a, p in (loaded.get(20), loaded.calculate(x), loaded.in_pieces(x, 5)):
        assert_force((code, a[good], p[good]), EXPECTED.of(good), code=I_NAN)
        assert np.isnan([*a[3], p[3]]).all()


def test_a_force_beyond_a_double_is_told(loaded):
    loaded("set_mj", 0, 1, np.array([1e305]))
    loaded("set_xj", 0, 1, XI)
    loaded("set_eps_to_all", 1e-6)
    code, a, p = loaded.calculate(XI[:2] + np.array([[1e-6, 0, 0], [0, 0, 0]]))
    assert loaded.error()[0] == code == RANGE
    assert loaded.error()[1].startswith("the force on particle 0 ")
    assert np.isnan(p[0])
    assert np.isfinite(a[1]).all()


# ---- null pointers -----------------------------------------------------------


def test_null_arrays_are_refused(loaded):
    for name, *args in [("set_xmj", 0, 5, None, M), ("set_xmj", 0, 5, XJ, None),
                        ("set_jp", 0, 5, None, XJ), ("set_jp", 0, 5, M, None),
                        ("set_xj", 0, 5, None), ("set_mj", 0, 5, None), ("set_xi", 5, None),
                        ("set_xei", 5, XI, None), ("set_xei", 5, None, M)]:  # fmt: skip
        assert loaded(name, *args) == NULL, (name, args)
    assert loaded("run") == ORDER
    assert_force(loaded.calculate(XI), EXPECTED)
    a, p = blank(20)
    assert loaded("get_force", 20, a, None) == loaded("get_force", 20, None, p) == NULL
    assert_nan((0, a, p), 0)
    for name, *given in [("x", XI, True, False), ("x", XI, False, True), ("x", None, True, True),
                         ("xe", XI, None, True, True)]:  # fmt: skip
        a, p = blank(20)
        *inputs, with_a, with_p = given
        outputs = a if with_a else None, p if with_p else None
        assert loaded(f"calculate_force_on_{name}", *inputs, *outputs, 20) == NULL
        assert np.isnan(a).all() == with_a
        assert np.isnan(p).all() == with_p
    assert loaded("set_eps", 5, None) == NULL
    assert_nan(loaded.calculate(XI), ARGUMENT)


def test_null_scalars_of_fortran_are_refused(loaded):
    a, p = blank(3)
    calls = [("set_n", None), ("set_xmj", None, 3, XJ, M), ("set_xmj", 0, None, XJ, M),
             ("set_eps_to_all", None), ("set_eps2_to_all", None), ("set_eps", None, M),
             ("set_xi", None, XI), ("set_xei", None, XI, M), ("get_force", None, a, p),
             ("calculate_force_on_x", XI, a, p, None)]  # fmt: skip
    for name, *args in calls:
        assert fortran(f"g5_{name}", *args) == NULL, name
        assert fortran(f"g5_{name}MC", loaded.number, *args) == NULL, name
    assert_force(loaded.calculate(XI), EXPECTED)
    found = blank(20)
    code = fortran("g5_calculate_force_on_xMC", None, XI, *found, 20)
    assert_nan((code, *found), NULL)
    assert fortran("g5_openMC", None) == NULL


def test_an_open_of_named_devices_takes_a_list(boards):
    boards()  # one that stays open
    for call in (value, fortran):
        assert call("g5_open_special", 1, None) == NULL
        assert call("g5_open_special", 1, np.zeros(1)) == 0
        assert multi("g5_set_n", 0, 5) == 0
        assert value("g5_close") == 0
        assert value("g5_set_n", 5) == NOT_OPEN
    assert fortran("g5_open_special", None, np.zeros(1)) == NULL


# ---- the host ----------------------------------------------------------------


def test_a_run_without_faults_prints_nothing_and_one_with_faults_one_line_a_kind():
    done = capi.run_python("""
from grape5 import *
m, x = stars(50)
board = Board(1)
board.load(m, x)
board.calculate(x); board.in_pieces(x, 48)
print("sound", file=sys.stderr, flush=True)
for _ in range(3):
    board.get(60)
    board("set_n", -1)
    board.calculate(x)
""")  # fmt: skip
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == "sound"
    assert len(lines) == 3
    assert all(line.startswith("grape6: g5_") for line in lines[1:])
