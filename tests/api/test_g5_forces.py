"""GRAPE-5's forces: what is summed, over whom, with which softening. Accuracy: test_g5_sums.py."""

import numpy as np
import pytest

import capi
from grape5 import EPS, assert_force, blank, direct, stars

M, XJ = stars(300)


@pytest.fixture
def loaded(board5):
    board5.load(M, XJ)
    return board5


def test_forces_in_other_precisions():
    """In a process of its own: the mode of clusters to come is set where no cluster is open."""
    capi.run_python("""
from grape5 import *
(m, x), xi = stars(300), stars(70, seed=2)[1]
for mode, tolerance in ("double", 1e-14), ("single", 1e-5):
    assert capi.call("g6x_set_int", 0, capi.CONSTANTS["G6X_PRECISION"], capi.MODES[mode]) == 0
    board = Board(77)
    board.load(m, x)
    assert_force(board.calculate(xi), direct(xi, m, x), tolerance)
    assert board("close") == 0
""")


@pytest.mark.backends("cpu-tree cuda-tree")
def test_a_tree_counts_each_particle_itself_once():
    """Softened so that its own term outweighs all others in a particle's potential, and without.
    The tree opens only some of its cells."""
    capi.run_python("""
from grape5 import *
n = 800
m, x = stars(n)
rows = np.arange(0, n, 10)
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


@pytest.mark.backends("cpu cuda cuda-tree")
def test_a_particle_feels_itself_in_the_potential_only(loaded):
    """And not at all without softening, nor any other at its place."""
    code, a, p = loaded.calculate(XJ)
    assert_force((code, a, p), direct(XJ, M, XJ))  # whose terms of the particles are M / EPS
    loaded.load(M[:1], XJ[:1])
    code, a, p = loaded.calculate(XJ[:1])
    assert (code, *a[0]) == (0, 0, 0, 0)
    assert p[0] == pytest.approx(M[0] / EPS, rel=1e-6)
    for n in (len(M), 1):
        loaded.load(M[:n], XJ[:n])
        loaded("set_eps_to_all", 0.0)
        code, a, p = loaded.calculate(XJ[:n])
        assert_force((code, a, p), direct(XJ[:n], M[:n], XJ[:n], 0.0))
    assert not np.any([*a[0], p[0]])


@pytest.mark.backends("cpu cuda")
def test_pieces_of_many_i_particles_give_the_bits_of_the_whole(loaded):
    """So do fewer rows than were set, and one array for positions and forces."""
    x = stars(2500, seed=3)[1]
    _, a, p = whole = loaded.calculate(x)
    assert_force(whole, direct(x, M, XJ))
    for piece in (48, 1000):
        code, *parts = loaded.in_pieces(x, piece)
        assert code == 0
        assert (parts[0].tobytes(), parts[1].tobytes()) == (a.tobytes(), p.tobytes())
    loaded("set_xi", len(x), x)
    loaded("run")
    found = blank(10)
    assert loaded("get_force", 3, *found) == 0
    assert (found[0][:3] == a[:3]).all()
    assert (found[1][:3] == p[:3]).all()
    assert (found[0][3:] == capi.UNTOUCHED).all()
    assert (found[1][3:] == capi.UNTOUCHED).all()
    q = np.zeros(len(x))
    assert loaded("calculate_force_on_x", x, x, q, len(x)) == 0
    assert (x == a).all()
    assert (q == p).all()


SIGN, SOURCE = "GRAPE6_G5_POT_SIGN", "GRAPE6_G5_SOURCE"
HARDWARE = {SIGN: "1", SOURCE: "first"}
SWITCHES = {  # environment, sign of the potentials, whether arrays begin at the address
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
