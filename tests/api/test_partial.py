"""The binned accumulator on its own: equal bits for any cut and order, error within its bound.

csrc/core/partial.c is linked directly (tests/c/bins.c) and compared with sums of fractions. That
the vectorised binning of the kernels does the same as partial_add_block is seen in test_bits.py:
blocks of 1 i particle take the one, blocks of 16384 the other.
"""

from fractions import Fraction

import numpy as np
import pytest

import capi
from variants import run

WINDOWS = [slice(0, 3), slice(3, 6), slice(6, 7)]
SANITIZED = ["-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SPREAD = np.array([1, -1, 0.5, 1, -1, 0.5, 1])
LOWEST = Fraction(2) ** -1000  # below it nothing is promised in relative terms
RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bins")
    run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Wconversion", "-Werror", *SANITIZED,
         "-ffp-contract=off", f"-I{capi.ROOT}/csrc", f"{capi.TESTS}/c/bins.c",
         f"{capi.ROOT}/csrc/core/partial.c", "-lm", "-o", folder / "bins"])  # fmt: skip
    return folder / "bins"


def accumulate(program, values, limbs, rounds=20):
    """What bins.c says of these block sums: tops, invalid bits, values, exact row contents."""
    path = program.parent / "values"
    np.ascontiguousarray(values, dtype=float).tofile(path)
    columns = 1 if np.ndim(values) == 1 else 7
    done = run([program, path, limbs, columns, rounds])
    head, *lines = [line.split() for line in done.stdout.splitlines()]
    top, invalid = list(map(int, head[:3])), int(head[3])
    found = [float.fromhex(line[0]) for line in lines]
    rows = [
        sum(int(q) * Fraction(2) ** (40 * (top[k // 3] - d)) for d, q in enumerate(line[1:]))
        for k, line in enumerate(lines)
    ]
    return top, invalid, found, rows


def exact_sum(values):
    """Sum of doubles as a fraction: integers of 26 bits and less, exponent by exponent."""
    mantissa, exponent = np.frexp(values)
    integer = np.ldexp(mantissa, 53).astype(np.int64)
    total = Fraction(0)
    for e in np.unique(exponent):
        here = integer[exponent == e]
        high = here >> 27
        whole = (int(high.sum()) << 27) + int((here - (high << 27)).sum())
        total += whole * Fraction(2) ** (int(e) - 53)
    return total


def exact_sums(values):
    """Those of all columns; of values alone, a column differs in size or in sign."""
    if np.ndim(values) == 2:
        return [exact_sum(column) for column in values.T]
    of_size = {size: exact_sum(size * values) for size in np.unique(abs(SPREAD))}
    return [int(np.sign(factor)) * of_size[abs(factor)] for factor in SPREAD]


def check(program, values, limbs, rounds=20):
    table = np.outer(values, SPREAD) if np.ndim(values) == 1 else np.asarray(values, dtype=float)
    top, invalid, found, rows = accumulate(program, values, limbs, rounds)
    assert invalid == 0
    exact = exact_sums(np.asarray(values, dtype=float))
    for w, columns in enumerate(WINDOWS):
        part = table[:, columns]
        largest = max(Fraction(float(abs(part).max(initial=0))), LOWEST)
        assert Fraction(2) ** (40 * top[w]) <= largest < Fraction(2) ** (40 * (top[w] + 1))
        for k in range(columns.start, columns.stop):
            error = abs(rows[k] - exact[k])
            bound = len(table) * largest / 2 ** (41 if limbs == 2 else 81)
            assert error <= bound, (k, float(error / bound))
            assert found[k] == float(rows[k]), "rounded more than once"
    return found


def signs(n):
    return RNG.choice([-1.0, 1.0], n)


def wide(n):
    """Magnitudes from 2^-120 to 2^120, evenly in the exponent."""
    return signs(n) * np.exp2(RNG.uniform(-120, 120, n))


def cancelling():
    """Pairs that cancel exactly, and a little that stays."""
    big = wide(500)
    return np.concatenate([big, -big, wide(5) * 2.0**-200, [2.0**-119]])


def edges():
    """Powers of two to the forty, what lies just below and above, and halves of their units."""
    powers = np.exp2(np.arange(-1000, 961, 40.0))
    near = [powers, np.nextafter(powers, 0), np.nextafter(powers, np.inf), powers * 1.5]
    ties = [powers[1:] * (1 + 2.0**-41), powers[1:] * (3 - 2.0**-40), powers[1:] * 2.0**-41]
    return RNG.permutation(np.concatenate([*near, *ties]))


CASES = {
    "range": wide(3000),
    "table": wide(7 * 500).reshape(500, 7) * np.exp2(np.array([0, 0, 0, 60, 60, 60, -90])),
    "ordinary": RNG.standard_normal((3000, 7)),
    "cancelling": cancelling(),
    "edges": edges(),
    "edges-up": np.sort(edges()),
    "edges-signed": edges() * signs(len(edges())),
    "ascending": np.exp2(np.arange(-120, 121.0)),
    "zeros": np.zeros((9, 7)),
    "minus-zero": np.array([-0.0, 0.0, 1.0, -1.0, -0.0]),
    "one": np.array([[1.0, -(2.0**-120), 2.0**120, 0.0, -1.0, 3.0, -7.0]]),
    "denormals": np.concatenate([[5e-324, -5e-324, 1e-310], 2.0**-1040 * RNG.random(50)]),
    "large": signs(200) * np.exp2(RNG.uniform(900, 1010, 200)),
    "nothing": np.zeros((0, 7)),
}


@pytest.mark.parametrize("limbs", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_any_cut_and_order_gives_one_sum_within_its_bound(program, case, limbs):
    check(program, CASES[case], limbs)


@pytest.mark.parametrize("limbs", [2, 3])
def test_four_million_values_of_one_sign_do_not_overflow(program, limbs):
    n = 1 << 22
    values = 2.0**40 * (1 - 2.0**-20 * RNG.random(n))  # as large as a bin takes
    found = check(program, values, limbs, rounds=1)
    assert found[0] == pytest.approx(values.sum())


def test_nan_and_inf_mark_their_own_window_only(program):
    values = RNG.standard_normal((100, 7))
    clean = np.array(accumulate(program, values, 2, 0)[2])
    for column, bad in enumerate(np.resize([np.nan, np.inf, -np.inf, np.inf], 7)):
        spoilt = values.copy()
        spoilt[RNG.integers(100), column] = bad
        _, invalid, found, _ = accumulate(program, spoilt, 2)
        assert invalid == 1 << column // 3
        window = np.arange(7) // 3 == column // 3
        assert (np.array(found) == np.where(window, np.nan, clean)).tolist() == (~window).tolist()
        assert np.isnan(np.array(found)[window]).all()
