"""GRAPE-5's forces: what is summed, over whom, with which softening."""

import numpy as np
import pytest

import capi
from grape5 import EPS, assert_force, blank, direct, stars, value

M, XJ = stars(300)
XI = stars(70, seed=2)[1]


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
@pytest.mark.parametrize("n", [1, 2, 17, 300])
def test_forces_are_those_of_a_direct_sum(board5, n):
    board5.load(M, XJ, n)
    assert_force(board5.calculate(XI), direct(XI, M[:n], XJ[:n]))


@pytest.mark.parametrize("mode", ["double", "single"])
def test_forces_in_other_precisions(mode):
    tolerance = {"double": 1e-14, "single": 1e-5}[mode]
    capi.run_python(f"""
from grape5 import *
m, x = stars(300)
board = Board(1)
board.load(m, x)
assert_force(board.calculate(x[:70]), direct(x[:70], m, x), {tolerance})
""", GRAPE6_PRECISION=mode)  # fmt: skip


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_a_particle_feels_itself_in_the_potential_only(board5):
    board5.load(M, XJ)
    code, a, p = board5.calculate(XJ)
    s = np.sqrt(((XJ[:, None] - XJ) ** 2).sum(-1) + EPS**2)
    others = -(M / s).sum(1) + M / EPS
    assert_force((code, a, p), direct(XJ, M, XJ))
    assert (np.abs(p + M / EPS - others) <= 1e-6 * np.abs(p)).all()
    board5.load(M[:1], XJ[:1])
    code, a, p = board5.calculate(XJ[:1])
    assert (code, *a[0]) == (0, 0, 0, 0)
    assert p[0] == pytest.approx(-M[0] / EPS, rel=1e-6)


def test_without_softening_a_pair_at_one_place_adds_nothing(board5):
    board5.load(M, XJ)
    board5("set_eps_to_all", 0.0)
    assert_force(board5.calculate(XJ), direct(XJ, M, XJ, 0.0))
    board5.load(M[:1], XJ[:1])
    board5("set_eps_to_all", 0.0)
    code, a, p = board5.calculate(XJ[:1])
    assert (code, *a[0], p[0]) == (0, 0, 0, 0, 0)


@pytest.mark.backends("cpu cuda")
def test_i_particles_need_not_be_j_particles_and_may_be_many(board5):
    x = stars(5000, seed=3)[1]
    board5.load(M, XJ)
    assert_force(board5.calculate(x), direct(x, M, XJ))


@pytest.mark.backends("cpu cuda")
def test_pieces_give_the_bits_of_the_whole(board5):
    board5.load(M, XJ)
    _, a, p = board5.calculate(XI)
    for piece in (1, 7, value("g5_get_number_of_pipelines"), 64, len(XI)):
        code, *parts = board5.in_pieces(XI, piece)
        assert code == 0
        assert (parts[0].tobytes(), parts[1].tobytes()) == (a.tobytes(), p.tobytes())


@pytest.mark.backends("cpu cuda")
def test_one_array_may_serve_for_positions_and_forces(board5):
    board5.load(M, XJ)
    _, a, p = board5.calculate(XI)
    x, q = XI.copy(), np.zeros(len(XI))
    assert board5("calculate_force_on_x", x, x, q, len(x)) == 0
    assert (x == a).all()
    assert (q == p).all()


@pytest.mark.backends("cpu cuda")
def test_fewer_rows_than_were_set_may_be_got(board5):
    board5.load(M, XJ)
    board5("set_xi", len(XI), XI)
    board5("run")
    _, a, p = board5.get(len(XI))
    found = blank(10)
    assert board5("get_force", 3, *found) == 0
    assert (found[0][:3] == a[:3]).all()
    assert (found[1][:3] == p[:3]).all()
    assert (found[0][3:] == capi.UNTOUCHED).all()
    assert (found[1][3:] == capi.UNTOUCHED).all()


# ---- j particles -------------------------------------------------------------


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_j_particles_may_be_written_in_parts_and_in_any_order(board5):
    board5.load(np.zeros(300), XJ)
    for first, end in [(200, 300), (0, 50), (50, 200)]:
        assert board5("set_xmj", first, end - first, XJ[first:end], M[first:end]) == 0
    assert_force(board5.calculate(XI), direct(XI, M, XJ))


def test_mass_may_come_before_position(board5):
    board5.load(np.zeros(300), np.zeros((300, 3)))
    assert board5("set_jp", 0, 300, M, XJ) == 0
    assert_force(board5.calculate(XI), direct(XI, M, XJ))


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
@pytest.mark.parametrize("order", ["xm", "mx"])
def test_positions_and_masses_may_come_apart(board5, order):
    for half in order:
        args = (0, 300, XJ) if half == "x" else (0, 300, M)
        assert board5(f"set_{half}j", *args) == 0
    board5("set_n", 300)
    board5("set_eps_to_all", EPS)
    assert_force(board5.calculate(XI), direct(XI, M, XJ))
    moved = np.ascontiguousarray(XJ[100:200] + 0.5)
    assert board5("set_xj", 100, 100, moved) == 0
    x = np.concatenate([XJ[:100], moved, XJ[200:]])
    assert_force(board5.calculate(XI), direct(XI, M, x))
    assert board5("set_mj", 0, 150, 2 * M[:150]) == 0
    assert_force(board5.calculate(XI), direct(XI, np.r_[2 * M[:150], M[150:]], x))


def test_n_goes_up_and_down_and_what_stands_above_is_kept(board5):
    board5.load(M, XJ)
    for n in (10, 300, 299, 0, 120):
        assert board5("set_n", n) == 0
        code, a, p = board5.calculate(XI)
        if n:
            assert_force((code, a, p), direct(XI, M[:n], XJ[:n]))
        else:
            assert code == 0
            assert not a.any()
            assert not p.any()


def test_places_never_written_count_as_nothing(board5):
    board5.load(M, XJ, 40000)
    assert_force(board5.calculate(XI), direct(XI, M, XJ))
    assert board5("set_xmj", 39000, 100, XJ[:100], M[:100]) == 0
    more = np.r_[M, M[:100]], np.r_[XJ, XJ[:100]]
    assert_force(board5.calculate(XI), direct(XI, *more))


@pytest.mark.parametrize("source", ["", "first", "address"])
def test_arrays_begin_with_the_first_particle_sent_or_as_phantom_grape_has_it(source):
    capi.run_python(f"""
from grape5 import *
m, x = stars(300)
board = Board(1)
board.load(m[:100], x[:100], 300)
shift = 0 if {source!r} == "address" else 100
for name, args in [("set_xmj", (x, m)), ("set_jp", (m, x)), ("set_xj", (x,)), ("set_mj", (m,))]:
    assert board(name, 100, 200, *(np.ascontiguousarray(a[shift:]) for a in args)) == 0
    assert_force(board.calculate(x[:70]), direct(x[:70], m, x))
""", GRAPE6_G5_SOURCE=source)  # fmt: skip


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_runs_may_be_repeated_with_other_j_particles(board5):
    board5.load(M[:100], XJ[:100])
    assert board5("set_xi", len(XI), XI) == 0
    total = np.zeros((len(XI), 3)), np.zeros(len(XI))
    for first in (0, 100, 200):
        part = slice(first, first + 100)
        board5("set_xmj", 0, 100, XJ[part], M[part])
        assert board5("run") == 0
        code, a, p = board5.get(len(XI))
        assert code == 0
        total[0][:] += a
        total[1][:] += p
    assert_force((0, *total), direct(XI, M, XJ))


@pytest.mark.backends("cpu cuda")
def test_what_changes_after_the_run_does_not_change_its_result(board5):
    board5.load(M, XJ)
    expected = board5.calculate(XI)
    board5("set_xi", len(XI), XI)
    board5("run")
    board5("set_xmj", 0, 300, XJ + 1, M)
    board5("set_n", 5)
    board5("set_eps_to_all", 3.0)
    for _ in range(2):
        code, a, p = board5.get(len(XI))
        assert code == 0
        assert (a == expected[1]).all()
        assert (p == expected[2]).all()


# ---- softening ---------------------------------------------------------------


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_softening_may_be_given_squared(board5):
    board5.load(M, XJ)
    assert board5("set_eps2_to_all", 0.09) == 0
    assert_force(board5.calculate(XI), direct(XI, M, XJ, 0.3))


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_softening_per_i_particle_holds_until_one_for_all(board5):
    board5.load(M, XJ)
    eps = np.linspace(0.01, 0.7, len(XI))
    assert board5("set_eps", len(XI), eps) == 0
    for _ in range(2):
        assert_force(board5.calculate(XI), direct(XI, M, XJ, eps))
    assert board5("set_eps", 20, eps) == 0
    both = np.where(np.arange(len(XI)) < 20, eps, EPS)
    assert_force(board5.calculate(XI), direct(XI, M, XJ, both))
    assert board5("set_eps_to_all", 0.3) == 0
    assert_force(board5.calculate(XI), direct(XI, M, XJ, 0.3))


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_softening_may_be_set_between_set_xi_and_run(board5):
    board5.load(M, XJ)
    board5("set_xi", len(XI), XI)
    for eps in (0.3, 0.0):
        board5("set_eps_to_all", eps)
        board5("run")
        assert_force(board5.get(len(XI)), direct(XI, M, XJ, eps))


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_softening_may_come_with_the_i_particles(board5):
    board5.load(M, XJ)
    eps = np.linspace(0.0, 0.7, len(XI))
    found = blank(len(XI))
    args = XI, eps**2, *found, len(XI)
    assert board5("calculate_force_on_xe", *args) == 0
    assert_force((0, *found), direct(XI, M, XJ, eps))
    assert board5("set_xei", 20, XI, eps**2) == 0
    board5("set_eps_to_all", 0.3)  # of no effect on these
    assert board5("run") == 0
    assert_force(board5.get(20), direct(XI[:20], M, XJ, eps[:20]))
    assert_force(board5.calculate(XI), direct(XI, M, XJ, 0.3))


# ---- the sign ----------------------------------------------------------------


@pytest.mark.parametrize("sign", ["", "-1", "1"])
def test_the_potential_has_the_sign_of_the_environment(sign):
    capi.run_python(f"""
from grape5 import *
m, x = stars(300)
board = Board(1)
board.load(m, x)
expected = direct(x[:70], m, x)
if {sign!r} == "1": expected = expected._replace(p=-expected.p)
assert_force(board.calculate(x[:70]), expected)
assert_force(board.in_pieces(x[:70], 48), expected)
board("set_xi", 70, x[:70]); board("run")
assert_force(board.get(9), expected.of(slice(9)))
""", GRAPE6_G5_POT_SIGN=sign)  # fmt: skip


@pytest.mark.parametrize("switch", ["GRAPE6_G5_POT_SIGN=0", "GRAPE6_G5_SOURCE=second"])
def test_a_switch_that_is_not_understood_refuses_to_open(switch):
    name, _, word = switch.partition("=")
    done = capi.run_python("""
from grape5 import *
assert value("g5_open") == CONSTANTS["G6X_E_ARGUMENT"]
""", **{name: word})  # fmt: skip
    assert switch in done.stderr


def test_the_switches_may_stand_in_the_configuration_file(tmp_path):
    file = tmp_path / "grape6.toml"
    file.write_text('g5_pot_sign = 1\ng5_source = "address"\n')
    capi.run_python("""
from grape5 import *
m, x = stars(2)
board = Board(1)
board.load(m, x)
assert board("set_xmj", 1, 1, x, m) == 0
assert board.calculate(x)[2].min() > 0
expected = direct(x, m, x)
assert_force(board.calculate(x), expected._replace(p=-expected.p))
""", GRAPE6_CONFIG=str(file))  # fmt: skip
