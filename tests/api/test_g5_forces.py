"""GRAPE-5's forces: what is summed, over whom, with which softening."""

import numpy as np
import pytest

import capi
from grape5 import EPS, assert_force, blank, direct, stars, value

M, XJ = stars(300)
XI = stars(70, seed=2)[1]


@pytest.fixture
def loaded(board5):
    board5.load(M, XJ)
    return board5


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
@pytest.mark.parametrize("n", [1, 2, 17, 300])
def test_forces_are_those_of_a_direct_sum(board5, n):
    board5.load(M, XJ, n)
    assert_force(board5.calculate(XI), direct(XI, M[:n], XJ[:n]))


@pytest.mark.parametrize(("precision", "tolerance"), [("double", 1e-14), ("single", 1e-5)])
def test_forces_in_other_precisions(precision, tolerance):
    """In a process of its own: the mode of clusters to come is set where no cluster is open."""
    capi.run_python(f"""
from grape5 import *
assert capi.call("g6x_set_int", 0, capi.CONSTANTS["G6X_PRECISION"], {capi.MODES[precision]}) == 0
(m, x), xi = stars(300), stars(70, seed=2)[1]
board = Board(0)
board.load(m, x)
assert_force(board.calculate(xi), direct(xi, m, x), {tolerance})
""")


@pytest.mark.backends("cpu-tree cuda-tree")
def test_a_tree_counts_each_particle_itself_once():
    """Softened so that its own term outweighs all others in a particle's potential, and without.
    The tree opens only some of its cells."""
    capi.run_python("""
from grape5 import *
n = 3000
m, x = stars(n)
rows = np.arange(0, n, 20)
board = Board(0)
board.load(m, x)
for eps in (0.1 / n, 0.0):
    board("set_eps_to_all", eps)
    code, a, p = board.calculate(x)
    expected = direct(x[rows], m, x, eps)
    wrong = np.linalg.norm(a[rows] - expected.a, axis=1) / expected.pull
    assert code == 0
    assert 1e-8 < np.median(wrong) and wrong.max() < 1e-3  # a tree's, not those of all pairs
    assert (np.abs(p[rows] - expected.p) < 1e-4 * np.abs(expected.p)).all()
""", GRAPE6_THETA="0.3", timeout=300)  # fmt: skip


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_a_particle_feels_itself_in_the_potential_only(loaded):
    code, a, p = loaded.calculate(XJ)
    s = np.sqrt(((XJ[:, None] - XJ) ** 2).sum(-1) + EPS**2)
    others = (M / s).sum(1) - M / EPS
    assert_force((code, a, p), direct(XJ, M, XJ))
    assert (np.abs(p - M / EPS - others) <= 1e-6 * np.abs(p)).all()
    loaded.load(M[:1], XJ[:1])
    code, a, p = loaded.calculate(XJ[:1])
    assert (code, *a[0]) == (0, 0, 0, 0)
    assert p[0] == pytest.approx(M[0] / EPS, rel=1e-6)


def test_without_softening_a_pair_at_one_place_adds_nothing(board5):
    for n in (len(M), 1):
        board5.load(M[:n], XJ[:n])
        board5("set_eps_to_all", 0.0)
        code, a, p = board5.calculate(XJ[:n])
        assert_force((code, a, p), direct(XJ[:n], M[:n], XJ[:n], 0.0))
    assert not np.any([*a[0], p[0]])


@pytest.mark.backends("cpu cuda")
def test_i_particles_need_not_be_j_particles_and_may_be_many(board5):
    x = stars(5000, seed=3)[1]
    board5.load(M, XJ)
    assert_force(board5.calculate(x), direct(x, M, XJ))


@pytest.mark.backends("cpu cuda")
def test_pieces_give_the_bits_of_the_whole(loaded):
    _, a, p = loaded.calculate(XI)
    for piece in (1, 7, value("g5_get_number_of_pipelines"), 64, len(XI)):
        code, *parts = loaded.in_pieces(XI, piece)
        assert code == 0
        assert (parts[0].tobytes(), parts[1].tobytes()) == (a.tobytes(), p.tobytes())


@pytest.mark.backends("cpu cuda")
def test_one_array_may_serve_for_positions_and_forces(loaded):
    _, a, p = loaded.calculate(XI)
    x, q = XI.copy(), np.zeros(len(XI))
    assert loaded("calculate_force_on_x", x, x, q, len(x)) == 0
    assert (x == a).all()
    assert (q == p).all()


@pytest.mark.backends("cpu cuda")
def test_fewer_rows_than_were_set_may_be_got(loaded):
    loaded("set_xi", len(XI), XI)
    loaded("run")
    _, a, p = loaded.get(len(XI))
    found = blank(10)
    assert loaded("get_force", 3, *found) == 0
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


def test_n_goes_up_and_down_and_what_stands_above_is_kept(loaded):
    for n in (10, 300, 299, 0, 120):
        assert loaded("set_n", n) == 0
        assert_force(loaded.calculate(XI), direct(XI, M[:n], XJ[:n]))


def test_places_never_written_count_as_nothing(board5):
    board5.load(M, XJ, 40000)
    assert_force(board5.calculate(XI), direct(XI, M, XJ))
    assert board5("set_xmj", 39000, 100, XJ[:100], M[:100]) == 0
    more = np.r_[M, M[:100]], np.r_[XJ, XJ[:100]]
    assert_force(board5.calculate(XI), direct(XI, *more))


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
def test_what_changes_after_the_run_does_not_change_its_result(loaded):
    expected = loaded.calculate(XI)
    loaded("set_xi", len(XI), XI)
    loaded("run")
    loaded("set_xmj", 0, 300, XJ + 1, M)
    loaded("set_n", 5)
    loaded("set_eps_to_all", 3.0)
    for _ in range(2):
        code, a, p = loaded.get(len(XI))
        assert code == 0
        assert (a == expected[1]).all()
        assert (p == expected[2]).all()


# ---- softening ---------------------------------------------------------------


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_softening_per_i_particle_holds_until_one_for_all(loaded):
    eps = np.linspace(0.01, 0.7, len(XI))
    assert loaded("set_eps", len(XI), eps) == 0
    for _ in range(2):
        assert_force(loaded.calculate(XI), direct(XI, M, XJ, eps))
    assert loaded("set_eps", 20, eps) == 0
    both = np.where(np.arange(len(XI)) < 20, eps, EPS)
    assert_force(loaded.calculate(XI), direct(XI, M, XJ, both))
    assert loaded("set_eps2_to_all", 0.09) == 0
    assert_force(loaded.calculate(XI), direct(XI, M, XJ, 0.3))


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_softening_may_be_set_between_set_xi_and_run(loaded):
    loaded("set_xi", len(XI), XI)
    for eps in (0.3, 0.0):
        loaded("set_eps_to_all", eps)
        loaded("run")
        assert_force(loaded.get(len(XI)), direct(XI, M, XJ, eps))


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_softening_may_come_with_the_i_particles(loaded):
    eps = np.linspace(0.0, 0.7, len(XI))
    found = blank(len(XI))
    args = XI, eps**2, *found, len(XI)
    assert loaded("calculate_force_on_xe", *args) == 0
    assert_force((0, *found), direct(XI, M, XJ, eps))
    assert loaded("set_xei", 20, XI, eps**2) == 0
    loaded("set_eps_to_all", 0.3)  # of no effect on these
    assert loaded("run") == 0
    assert_force(loaded.get(20), direct(XI[:20], M, XJ, eps[:20]))
    assert_force(loaded.calculate(XI), direct(XI, M, XJ, 0.3))


# ---- switches ----------------------------------------------------------------

SIGN, SOURCE = "GRAPE6_G5_POT_SIGN", "GRAPE6_G5_SOURCE"
HARDWARE = {SIGN: "1", SOURCE: "first"}
SWITCHES = {  # environment, sign of the potentials, whether arrays begin at the address
    "default": ({}, 1, False),
    "as by default": (HARDWARE, 1, False),
    "negative": ({SIGN: "-1"}, -1, False),
    "by address": ({SOURCE: "address"}, 1, True),
    "for fdps": ({"GRAPE6_CLIENT": "fdps"}, 1, False),
    "for phantom-grape": ({"GRAPE6_CLIENT": "phantom-grape"}, 1, True),
    "for sapporo2": ({"GRAPE6_CLIENT": "sapporo2"}, -1, True),
    "for sapporo2, by hand": ({"GRAPE6_CLIENT": "sapporo2", **HARDWARE}, 1, False),
    "by file": ({"GRAPE6_CONFIG": "g5_pot_sign = -1\ng5_source = 'address'\n"}, -1, True),
}


@pytest.mark.parametrize("switch", SWITCHES)
def test_the_sign_of_the_potential_and_where_arrays_begin_can_be_chosen(tmp_path, switch):
    """With the first particle sent, or as Phantom-GRAPE has it."""
    env, sign, by_address = SWITCHES[switch]
    if switch == "by file":
        file = tmp_path / "grape6.toml"
        file.write_text(env["GRAPE6_CONFIG"].replace("'", '"'))
        env = {"GRAPE6_CONFIG": str(file)}
    capi.run_python(f"""
from grape5 import *
m, x = stars(300)
expected = direct(x[:70], m, x)
expected = expected._replace(p={sign} * expected.p)
shift = 0 if {by_address} else 100
board = Board(1)
board.load(m[:100], x[:100], 300)
for name, args in [("set_xmj", (x, m)), ("set_jp", (m, x)), ("set_xj", (x,)), ("set_mj", (m,))]:
    assert board(name, 100, 200, *(np.ascontiguousarray(a[shift:]) for a in args)) == 0
    assert_force(board.calculate(x[:70]), expected)
assert_force(board.in_pieces(x[:70], 48), expected)
board("set_xi", 70, x[:70]); board("run")
assert_force(board.get(9), expected.of(slice(9)))
""", **env)  # fmt: skip


@pytest.mark.parametrize("switch", ["GRAPE6_G5_POT_SIGN=0", "GRAPE6_G5_SOURCE=second"])
def test_a_switch_that_is_not_understood_refuses_to_open(switch):
    name, _, word = switch.partition("=")
    done = capi.run_python("""
from grape5 import *
assert value("g5_open") == CONSTANTS["G6X_E_ARGUMENT"]
""", **{name: word})  # fmt: skip
    assert switch in done.stderr
