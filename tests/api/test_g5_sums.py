"""The kernel of GRAPE-5's forces on the CPU: its accuracy on every instruction set, and what its
bits may not depend on."""

import pytest

import capi

# Sets of particles: masses, positions, and what is asked of.
SETS = """
from grape5 import *
from grape6py import plummer
m, x = plummer(3000, seed=5)[:2]
rng = np.random.default_rng(7)
def forces(m, x, xi, eps, n=None):
    board = Board(next(numbers))
    assert board("set_xmj", 0, len(m), np.ascontiguousarray(x), np.ascontiguousarray(m)) == 0
    assert board("set_n", len(m) if n is None else n) == 0
    assert board("set_eps_to_all", eps) == 0
    found = board.calculate(xi)
    assert board("close") == 0
    return found
numbers = itertools.count(200)
def errors(m, x, xi, eps):
    code, a, p = forces(m, x, xi, eps)
    expected = direct(xi, m, x, eps)
    assert code == 0
    wrong = np.linalg.norm(a - expected.a, axis=1) / np.linalg.norm(expected.a, axis=1)
    assert (np.abs(p - expected.p) <= 5e-7 * np.abs(expected.p)).all()
    return np.median(wrong), wrong.max()
"""

CASES = {
    "softened": "errors(m, x, x[:500], 0.01)",
    "not_softened": "errors(m, x, x[:500], 0.0)",
    "between": "errors(m, x, x[:500] + 1e-3, 0.0)",
    "far_off": "errors(m, x + [1e6, -3e5, 2e4], x[:500] + [1e6, -3e5, 2e4], 0.01)",
    "cgs": "errors(2e33 * m, 3e18 * x, 3e18 * x[:500], 3e16)",
    "tiny_units": "errors(1e-40 * m, 1e-30 * x, 1e-30 * x[:500], 1e-32)",
    "short_list": "errors(m[:37], x[:37], x[:9], 0.05)",
    "an_escaper": "errors(m, np.r_[x[:-1], [[1e7, 0, 0]]], x[:500], 0.01)",
}


@pytest.mark.parametrize("case", CASES)
def test_errors_of_the_forces_are_below_1e_6(isa, case):
    capi.run_python(f"{SETS}\nmiddle, largest = {CASES[case]}\nassert middle < 3e-7, middle\n"
                    "assert largest < 5e-6, largest\n", GRAPE6_ISA=isa)  # fmt: skip


def test_close_pairs_are_as_accurate_as_any(isa):
    """Binaries of all separations down to a few bits of their coordinates."""
    capi.run_python(f"""{SETS}
for eps in (0.0, 1e-9, 1e-7, 1e-5):
    for k in range(4, 48):
        near = x[:40] + np.ldexp(rng.standard_normal((40, 3)), -k)
        code, a, p = forces(m, x, near, eps)
        expected = direct(near, m, x, eps)
        assert code == 0
        assert (np.linalg.norm(a - expected.a, axis=1) <= 1e-6 * expected.pull).all(), (eps, k)
        assert (np.abs(p - expected.p) <= 1e-6 * np.abs(expected.p)).all(), (eps, k)
""", GRAPE6_ISA=isa)  # fmt: skip


def test_particles_at_one_place_add_to_the_potential_alone_or_nothing(isa):
    capi.run_python(f"""{SETS}
same = np.tile(x[:1], (3000, 1))
for eps in (0.5, 1e-8):
    code, a, p = forces(m, same, same[:20], eps)
    assert code == 0 and not a.any()
    assert (np.abs(p + 1 / eps) < 1e-6 / eps).all()
code, a, p = forces(m, same, same[:20], 0.0)
assert code == 0 and not a.any() and not p.any()
""", GRAPE6_ISA=isa)  # fmt: skip


def test_massless_particles_and_empty_places_add_nothing(isa):
    capi.run_python(f"""{SETS}
light = m * (np.arange(3000) % 3 == 0)
assert errors(light, x, x[:100], 0.01)[1] < 1e-6
assert errors(light, x, x[:100], 0.0)[1] < 1e-6
assert not np.any(forces(0 * m, x, x[:100], 0.0)[1:][0])
board = Board(0)
for first in range(0, 3000, 300):
    assert board("set_xmj", 2 * first, 300, x[first:first + 300], m[first:first + 300]) == 0
board("set_eps_to_all", 0.01)
board("set_n", 6000)
assert_force(board.calculate(x[:100]), direct(x[:100], m, x, 0.01))
board("set_n", 650)
assert_force(board.calculate(x[:100]), direct(x[:100], m[:350], x[:350], 0.01))
""", GRAPE6_ISA=isa)  # fmt: skip


def test_masses_of_all_sizes_and_signs(isa):
    capi.run_python(f"""{SETS}
for wide in (m * 10.0 ** rng.uniform(-25, 0, 3000), m * 10.0 ** rng.uniform(-60, 60, 3000),
             m * np.where(np.arange(3000) % 2, 1, -1)):
    found = forces(wide, x, x[:60], 0.01)
    expected = direct(x[:60], wide, x, 0.01)
    assert (np.linalg.norm(found[1] - expected.a, axis=1) <= 1e-6 * expected.pull).all()
""", GRAPE6_ISA=isa)  # fmt: skip


BITS = """
import hashlib
def digest(*arrays): return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()
order = rng.permutation(700)
for eps in (0.01, 0.0):
    board = Board(next(numbers))
    for part in np.array_split(rng.permutation(3000), 40): # slots in any order
        for k in part: board("set_xmj", int(k), 1, x[k:k + 1].copy(), m[k:k + 1].copy())
    board("set_n", 3000), board("set_eps_to_all", eps)
    whole = board.calculate(x[:700])[1:]
    for piece in (1, 5, 64, 333):
        assert digest(*board.in_pieces(x[:700], piece)[1:]) == digest(*whole)
    _, a, p = board.calculate(x[order])
    assert digest(a, p) == digest(whole[0][order], whole[1][order])
    board("set_n", 100), board.calculate(x[:3]), board("set_n", 3000)
    board("set_xmj", 0, 3000, x + 1, m), board.calculate(x[:3]), board("set_xmj", 0, 3000, x, m)
    assert digest(*board.calculate(x[:700])[1:]) == digest(*whole)
    few = [board.calculate(x[k:k + 1])[1:] for k in range(20)]
    print(digest(*whole), digest(*(f for pair in few for f in pair)))
"""


def test_bits_do_not_depend_on_company_order_history_or_threads(isa):
    found = {capi.run_python(SETS + BITS, GRAPE6_ISA=isa, GRAPE6_THREADS=str(threads)).stdout
             for threads in (1, 2, 3, 16)}  # fmt: skip
    assert len(found) == 1


def test_a_pair_nearer_than_its_softening(isa):
    """Its force is small beside others', but all there is if there are none."""
    capi.run_python(f"""{SETS}
one = np.array([[0.6, 0.6, 0.6]])
for eps in (2.0**-12, 2.0**-8, 2.0**-6, 0.1, 1.0, 20.0, 1e3):
    for k in range(0, 46):
        there = one + np.array([[1.0, -0.3, 0.2]]) * 2.0**-k / 3
        code, a, p = forces(np.ones(1), one, there, eps)
        expected = direct(there, np.ones(1), one, eps)
        assert code == 0
        assert (np.linalg.norm(a - expected.a, axis=1) <= 1e-6 * expected.pull).all(), (eps, k)
        assert (np.abs(p - expected.p) <= 1e-6 * np.abs(expected.p)).all(), (eps, k)
""", GRAPE6_ISA=isa)  # fmt: skip


@pytest.mark.parametrize("steps", [1.0005, 2.001, 4.002])
def test_a_pair_whose_places_are_rounded_as_far_as_can_be(isa, steps):
    capi.run_python(f"""{SETS}
step = 2.0**-27
q = np.round(np.full((1, 3), 0.6) / step) * step
far = np.round(2.0**-6 * {steps} / 3**0.5 / step) * step
for sign in (0.499 * step, -0.499 * step):
    there = q + far - sign
    code, a, p = forces(np.ones(1), q + sign, there, 0.0)
    expected = direct(there, np.ones(1), q + sign, 0.0)
    assert (np.linalg.norm(a - expected.a, axis=1) <= 1e-6 * expected.pull).all()
""", GRAPE6_ISA=isa)  # fmt: skip
