"""The kernel of GRAPE-5's forces on the CPU: its accuracy on every instruction set, and what its
bits may not depend on."""

import itertools

import numpy as np
import pytest

import capi
from grape5 import assert_force, direct
from grape6py import plummer
from particles import relative

M, X = plummer(3000, seed=5)[:2]
KEY = capi.CONSTANTS["G6X_ISA"]


@pytest.fixture(autouse=True)
def everywhere(isa):
    """Clusters to come have this instruction set: GRAPE-5 has no call for it."""
    assert capi.call("g6x_set_int", 0, KEY, capi.ISAS[isa]) == 0
    yield
    assert capi.call("g6x_set_int", 0, KEY, 0) == 0


@pytest.fixture
def forces(boards):
    def calculate(m, x, xi, eps):
        board = boards()
        board.load(np.ascontiguousarray(m), np.ascontiguousarray(x))
        assert board("set_eps_to_all", eps) == 0
        found = board.calculate(xi)
        assert board("close") == 0
        return found

    return calculate


OFFSET = np.array([1e6, -3e5, 2e4])
CASES = {
    "softened": (M, X, X[:150], 0.01), "not_softened": (M, X, X[:150], 0.0),
    "between": (M, X, X[:150] + 1e-3, 0.0), "far_off": (M, X + OFFSET, X[:150] + OFFSET, 0.01),
    "cgs": (2e33 * M, 3e18 * X, 3e18 * X[:150], 3e16),
    "tiny_units": (1e-40 * M, 1e-30 * X, 1e-30 * X[:150], 1e-32),
    "short_list": (M[:37], X[:37], X[:9], 0.05),
    "an_escaper": (M, np.r_[X[:-1], [[1e7, 0, 0]]], X[:150], 0.01),
}  # fmt: skip


def test_errors_of_the_forces_are_below_1e_6(forces):
    for name, (m, x, xi, eps) in CASES.items():
        (code, a, p), expected = forces(m, x, xi, eps), direct(xi, m, x, eps)
        assert code == 0, name
        assert (np.abs(p - expected.p) <= 5e-7 * np.abs(expected.p)).all(), name
        assert np.median(relative(a, expected.a)) < 3e-7, name
        assert relative(a, expected.a).max() < 5e-6, name


def test_close_pairs_are_as_accurate_as_any(forces):
    """Binaries of all separations down to a few bits of their coordinates."""
    rng = np.random.default_rng(7)
    for eps in (0.0, 1e-9, 1e-7, 1e-5):
        for k in range(4, 48, 8):
            near = X[:40] + np.ldexp(rng.standard_normal((40, 3)), -k)
            assert_force(forces(M, X, near, eps), direct(near, M, X, eps))


def test_masses_of_all_sizes_and_signs(forces):
    rng = np.random.default_rng(7)
    for wide in (10.0 ** rng.uniform(-25, 0, 3000), 10.0 ** rng.uniform(-60, 60, 3000),
                 np.where(np.arange(3000) % 2, 1, -1)):  # fmt: skip
        found, expected = forces(M * wide, X, X[:60], 0.01), direct(X[:60], M * wide, X, 0.01)
        assert (np.linalg.norm(found[1] - expected.a, axis=1) <= 1e-6 * expected.pull).all()


def bits(found, rows=slice(None)):
    return found[1][rows].tobytes() + found[2][rows].tobytes()


def test_bits_do_not_depend_on_company_order_history_or_threads(boards):
    rng, results = np.random.default_rng(7), set()
    order = rng.permutation(700)
    for threads in (1, 3):
        assert capi.call("g6x_set_int", 0, capi.CONSTANTS["G6X_THREADS"], threads) == 0
        board = boards()
        for k in 300 * rng.permutation(10):
            board("set_xmj", int(k), 300, X[k : k + 300].copy(), M[k : k + 300].copy())
        board("set_n", 3000), board("set_eps_to_all", 0.0)
        whole = board.calculate(X[:700])
        for piece in (1, 64, 333):
            assert bits(board.in_pieces(X[:700], piece)) == bits(whole)
        assert bits(board.calculate(X[order])) == bits(whole, order)
        board("set_n", 100), board.calculate(X[:3]), board("set_n", 3000)
        board("set_xmj", 0, 3000, X + 1, M), board.calculate(X[:3])
        board("set_xmj", 0, 3000, X, M)
        assert bits(board.calculate(X[:700])) == bits(whole)
        few = [bits(board.calculate(X[k : k + 1])) for k in range(20)]
        results.add((bits(whole), *few))
        assert board("close") == 0
    assert capi.call("g6x_set_int", 0, capi.CONSTANTS["G6X_THREADS"], 0) == 0
    assert len(results) == 1


def test_a_pair_alone_nearer_than_its_softening_or_of_places_rounded_as_far_as_can_be(forces):
    one, step = np.full((1, 3), 0.6), 2.0**-27
    for eps, k in itertools.product((2.0**-12, 2.0**-8, 2.0**-6, 0.1, 20.0, 1e3), range(0, 46, 3)):
        there = one + np.array([[1.0, -0.3, 0.2]]) * 2.0**-k / 3
        found = forces(np.ones(1), one, there, eps)
        assert_force(found, direct(there, np.ones(1), one, eps))
    q = np.round(one / step) * step
    for steps, sign in itertools.product((1.0005, 2.001, 4.002), (0.499 * step, -0.499 * step)):
        far = np.round(2.0**-6 * steps / 3**0.5 / step) * step
        found = forces(np.ones(1), q + sign, q + far - sign, 0.0)
        assert_force(found, direct(q + far - sign, np.ones(1), q + sign, 0.0))
