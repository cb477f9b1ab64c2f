"""GRAPE-5 sums with a softening of both particles: the calls that end in 0."""

import itertools

import numpy as np
import pytest

import capi
from capi import CONSTANTS
from grape5 import assert_force, assert_nan, blank, direct, stars, value

RNG = np.random.default_rng(3)
N, NI = 70, 45
M, XJ = stars(N)
XI = np.r_[XJ[:20], stars(NI - 20, seed=2)[1]]
EJ, EI = RNG.uniform(0, 0.1, N), RNG.uniform(0, 0.1, NI)


def expected(mass=M, xj=XJ, xi=XI, ej=EJ, ei=EI):
    """One j particle at a time: each pair has a softening of its own."""
    terms = [direct(xi, mass[j : j + 1], xj[j : j + 1], np.sqrt(ei + ej[j]))
             for j in range(len(mass))]  # fmt: skip
    return type(terms[0])(*(sum(of) for of in zip(*terms, strict=True)))


@pytest.fixture
def loaded(board5):
    assert board5("set_xmj0", 0, N, XJ, M, EJ) == 0
    assert board5("set_n", N) == 0
    return board5


def call0(board, name, *args):
    return value(f"g5_{name}MC0", board.number, *args)


def calculate(board, x=XI, eps2=EI):
    a, p = blank(len(x))
    return board("calculate_force_on_x0", x, a, p, len(x), eps2), a, p


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_each_pair_has_the_softening_of_both(loaded):
    assert_force(calculate(loaded), expected(), 1e-13)
    call0(loaded, "set_xi", 30, XI, EI)
    assert call0(loaded, "run") == 0
    assert_force(loaded.get(30), expected().of(slice(30)), 1e-13)
    loaded("set_eps_to_all", 0.2)  # for i particles that were sent without
    assert (loaded("set_xi", 9, XI), call0(loaded, "run")) == (0, 0)
    assert_force(loaded.get(9), expected(xi=XI[:9], ei=np.full(9, 0.04)), 1e-13)


@pytest.mark.backends("cpu cuda cpu-tree cuda-tree")
def test_their_j_particles_have_a_memory_of_their_own(loaded):
    loaded.load(2 * M[:50], XJ[:50])
    for _ in range(2):
        assert_force(loaded.calculate(XI), direct(XI, 2 * M[:50], XJ[:50]))
        assert_force(calculate(loaded), expected(M[:50], XJ[:50], ej=EJ[:50]), 1e-13)
    assert loaded("set_xmj0", 10, 5, XJ, M, EJ) == 0
    m, x, e = (np.r_[of[:10], of[:5], of[15:50]] for of in (M, XJ, EJ))
    assert_force(calculate(loaded), expected(m, x, ej=e), 1e-13)


def test_units_far_from_one_are_those_of_a_direct_sum(loaded):
    """Powers of two: the exact result is that of the usual units, times a power of two."""
    for length, mass in (-400, 0), (-200, 100), (250, -300), (0, 900):
        x, m = np.ldexp(1.0, length), np.ldexp(1.0, mass)
        loaded("set_xmj0", 0, N, XJ * x, M * m, EJ * x * x)
        code, a, p = calculate(loaded, XI * x, EI * x * x)
        ok = np.isfinite(a).all(1)
        assert (code == 0) == ok.all()
        assert_force((0, a[ok] * x / m * x, p[ok] / m * x), expected().of(ok), 1e-13)
        assert ok.all() or mass - 2 * length > 990


def test_bits_do_not_depend_on_threads(boards):
    found = set()
    for threads in (7, 1, 0):
        assert capi.call("g6x_set_int", 0, CONSTANTS["G6X_THREADS"], threads) == 0
        board = boards()
        board("set_xmj0", 0, N, XJ, M, EJ), board("set_n", N)
        _, a, p = calculate(board)
        found.add(a.tobytes() + p.tobytes())
    assert len(found) == 1


def test_few_particles_those_at_one_place_and_addresses_never_written(loaded):
    """Without softening a pair at one place adds nothing."""
    ej, ei = np.where(np.arange(N) < 10, 0, EJ), np.where(np.arange(NI) < 10, 0, EI)
    loaded("set_xmj0", 0, N, XJ, M, ej)
    for n, ni in itertools.product((0, 1, N, 5000), (0, 1, NI)):
        loaded("set_n", n)
        found = calculate(loaded, np.ascontiguousarray(XI[:ni]), ei[:ni].copy())
        assert found[0] == 0
        if n and ni:
            assert_force(found, expected(M[:n], XJ[:n], XI[:ni], ej[:n], ei[:ni]), 1e-13)


@pytest.mark.parametrize(("array", "bad", "code"), [
    (0, np.inf, "J_NAN"), (1, np.nan, "J_NAN"), (2, np.nan, "J_NAN"), (2, -0.1, "ARGUMENT"),
])  # fmt: skip
def test_a_bad_j_particle_is_refused_until_it_is_sent_again(loaded, array, bad, code):
    x, m, e = wrong = XJ.copy(), M.copy(), EJ.copy()
    wrong[array][33] = bad
    assert loaded("set_xmj0", 0, N, x, m, e) == capi.CODES[code]
    assert "address 33" in loaded.error()[1]
    assert_nan(calculate(loaded), CONSTANTS["G6X_E_J_NAN"])
    loaded("set_n", 33)
    assert_force(calculate(loaded), expected(M[:33], XJ[:33], ej=EJ[:33]), 1e-13)
    loaded("set_n", N)
    assert loaded("set_xmj0", 33, 1, XJ[33:], M[33:], EJ[33:]) == 0
    assert_force(calculate(loaded), expected(), 1e-13)


def test_a_bad_i_particle_affects_its_own_row(loaded):
    x = XI.copy()
    x[3, 2] = np.nan
    code, a, p = calculate(loaded, x)
    assert code == CONSTANTS["G6X_E_I_NAN"]
    assert (np.isnan(a).all(1) == (np.arange(NI) == 3)).all()
    assert_force((0, a[4:], p[4:]), expected().of(slice(4, None)), 1e-13)
    assert_nan(calculate(loaded, eps2=np.full(NI, -1.0)), CONSTANTS["G6X_E_ARGUMENT"])


def test_order_and_arguments(board5):
    code = capi.CODES
    assert call0(board5, "run") == code["NO_FIRSTHALF"]
    call0(board5, "set_xi", NI, XI, EI)
    board5("set_n", N)
    assert call0(board5, "run") == code["NO_FIRSTHALF"]  # nothing was sent by set_xmjMC0
    assert_nan(board5.get(NI), code["NO_FIRSTHALF"])
    assert board5("set_xmj0", 0, -1, XJ, M, EJ) == code["ARGUMENT"]
    assert board5("set_xmj0", -1, 1, XJ, M, EJ) == code["ADDRESS"]
    assert board5("set_xmj0", 0, 1, XJ, M, None) == code["NULL"]
    assert board5("set_xmj0", 0, 0, None, None, None) == 0
    assert call0(board5, "set_xi", 1, XI, None) == code["NULL"]


def test_eta_is_refused_or_has_a_line_once(board5):
    done = capi.run_python("""
from grape5 import *
assert value("g5_set_eta", 1.0) == CONSTANTS["G6X_E_NOT_OPEN"]
board = Board(0)
for eta in (0.0, -1.0, np.nan, -np.inf):
    assert board("set_eta", eta) == CONSTANTS["G6X_E_ARGUMENT"]
for eta in (np.inf, 1.0, 2.0): assert value("g5_set_eta", eta) == 0
m, x = stars(20)
board.load(m, x)
assert_force(board.calculate(x), direct(x, m, x))
""")  # fmt: skip
    assert done.stderr.count("there is no cut-off here") == 1
