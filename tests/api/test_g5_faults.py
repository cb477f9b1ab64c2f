"""GRAPE-5 calls that cannot be right: a code, a text, and NaN instead of forces."""

import re

import numpy as np
import pytest

import capi
import grape5
from grape5 import EPS, SIGNATURES, assert_force, assert_nan, blank, direct, fortran, stars, value

M, XJ = stars(100)
XI = stars(20, seed=2)[1]
EXPECTED = direct(XI, M, XJ)
NAMES = "NO_FIRSTHALF ARGUMENT NULL ADDRESS MEMORY NOT_OPEN RANGE"
ORDER, ARGUMENT, NULL, ADDRESS, MEMORY, NOT_OPEN, RANGE = map(capi.CODES.get, NAMES.split())


@pytest.fixture
def loaded(board5):
    board5.load(M, XJ)
    return board5


def test_before_open_and_after_close_calls_are_refused_and_forces_nan():
    capi.run_python("""
from grape5 import *
x, m, closed = np.zeros((3, 3)), np.ones(3), CONSTANTS["G6X_E_NOT_OPEN"]
def refused():
    for name in CALLS:
        args = [{"i": 3, "d": 0.5, "p": np.ones((3, 3))}[letter] for letter in SIGNATURES[name]]
        if re.search("open|close|get_[nfpj]|range|to_all", name): continue
        assert value(name, *args) == closed == fortran(name, *args), name
    for name, args in [("get_force", (3,)), ("calculate_force_on_x", (x,)),
                       ("calculate_force_on_xe", (x, m))]:
        a, p = blank(3)
        order = (*args, a, p) if name == "get_force" else (*args, a, p, 3)
        assert_nan((value("g5_" + name, *order), a, p), closed)
    assert "call g5_open" in capi_text(0)[1]
    for name in ["number_of_pipelines", "number_of_real_pipelines", "jmemsize", "pcibus_freq"]:
        assert value("g5_get_" + name) > 0
    assert value("g5_set_range", -1.0, 1.0, 0.1) == value("g5_set_eps_to_all", 0.1) == 0
    assert value("g5_close") == 0
refused()
assert value("g5_open") == value("g5_set_n", 3) == value("g5_close") == 0
refused()
""", GRAPE6_LOG="none")  # fmt: skip


def test_a_softening_and_a_number_of_particles_that_were_never_set_are_asked_for():
    """That a softening outlives closing: test_g5_random.py."""
    capi.run_python(f"""
from grape5 import *
m, x = stars(30)
board = Board(0)
board("set_xmj", 0, 30, x, m)
for name, *args in ("set_n", 30), ("set_eps_to_all", EPS):
    assert_nan(board.calculate(x), {ORDER})
    assert f"g5_{{name}}" in board.error()[1], board.error()
    board(name, *args)
assert_force(board.calculate(x), direct(x, m, x))
""", GRAPE6_LOG="none")  # fmt: skip


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


def test_a_force_beyond_a_double_is_told(loaded):
    loaded("set_mj", 0, 1, np.array([1e305]))
    loaded("set_xj", 0, 1, XI)
    loaded("set_eps_to_all", 1e-6)
    code, a, p = loaded.calculate(XI[:2] + np.array([[1e-6, 0, 0], [0, 0, 0]]))
    assert loaded.error()[0] == code == RANGE
    assert loaded.error()[1].startswith("the force on particle 0 ")
    assert np.isnan(p[0])
    assert np.isfinite(a[1]).all()


def test_null_pointers_are_refused(loaded):
    """By value each pointer, in Fortran's forms each argument; outputs that there are have NaN."""
    for name in grape5.CALLS:
        multi_name = name if "MC" in name else grape5.multi_form(name)
        if name == "g5_open_special" or multi_name not in SIGNATURES:
            continue
        letters = SIGNATURES[multi_name]
        for null, letter in enumerate(letters):
            free = name in ("g5_set_range", "g5_set_eta") or (name, null) == ("g5_set_ip", 4)
            args = [{"i": 5, "d": 0.1, "p": np.ones((5, 3))}[each] for each in letters]
            args[0], args[null] = loaded.number, None
            if free or re.match("g5_(run|close|get_[njp])", name):
                continue
            codes = {NULL, ORDER} if name == "g5_get_force" else {NULL}
            loaded("set_eps_to_all", EPS), loaded("set_xmj0", 0, 100, XJ, M, M)
            assert fortran(multi_name, *args) in codes, (name, null)
            if letter == "p":
                assert value(multi_name, *args) in codes, (name, null)
            if "force" in name and null:
                outputs = [k for k in range(1, len(letters)) if letters[k] == "p"]
                outputs = outputs[-3:-1] if name.endswith("0") else outputs[-2:]
                given = [args[k] for k in outputs if k != null]
                assert letter == "i" or all(np.isnan(np.ravel(a)[:5]).all() for a in given)
    loaded.load(M, XJ)
    assert_force(loaded.calculate(XI), EXPECTED)


def test_an_open_of_named_devices_takes_a_list(boards):
    boards()  # one that stays open
    for call in (value, fortran):
        assert call("g5_open_special", 1, None) == NULL
        assert call("g5_open_special", 1, np.zeros(1)) == 0
        assert value("g5_close") == 0
        assert value("g5_set_n", 5) == NOT_OPEN
    assert fortran("g5_open_special", None, np.zeros(1)) == NULL


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
