"""The binned accumulator on its own: equal bits for any cut and order, error within its bound.

csrc/core/partial.c is compiled alone, and compared with sums of fractions. That the vectorised
binning of the kernels does the same as partial_add_block is seen in test_bits.py: blocks of 1 i
particle take the one, blocks of 16384 the other."""

import ctypes
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import capi
from tools import run

ROW = np.dtype([("limb", "i8", (7, 3)), ("top", "i4", 3), ("invalid", "u4")])  # partial.h
LOWEST = Fraction(2) ** -1000  # below it nothing is promised in relative terms
RNG = np.random.default_rng(7)


class Accumulator:
    def __init__(self, library, limbs):
        self.library, self.limbs = ctypes.CDLL(str(library)), limbs

    def __call__(self, name, row, *other):
        pointers = (ctypes.c_void_p(a.ctypes.data) for a in (row, *other))
        more = [self.limbs] * (name in ("add_block", "merge"))
        getattr(self.library, f"partial_{name}")(*pointers, *more)

    def rows(self, n):
        made = np.zeros((n, 1), ROW)
        for row in made:
            self("clear", row)
        return made

    def add(self, row, table):
        for block in table:
            self("add_block", row, block)

    def shuffled(self, table):
        """Blocks in any order, cut into pieces that are merged pairwise in random order."""
        pieces = self.rows(RNG.integers(1, min(len(table), 38) + 3))
        order = RNG.permutation(len(table))
        where = RNG.integers(0, len(pieces), len(table))
        for piece, row in enumerate(pieces):
            self.add(row, table[order[where == piece]])
        for left in range(len(pieces) - 1, 0, -1):
            other = RNG.integers(left + 1)
            pieces[[left, other]] = pieces[[other, left]]
            self("merge", pieces[RNG.integers(left)], pieces[left])
        return pieces[0]

    def values(self, row):
        found = np.zeros(7)
        self("value", row, found)
        return found


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("partial") / "partial.so"
    run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O2", "-shared",
         "-fPIC", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-ffp-contract=off",
         f"-I{capi.ROOT}/csrc", f"{capi.ROOT}/csrc/core/partial.c", "-lm", "-o", path])  # fmt: skip
    return path


@pytest.fixture(params=[2, 3])
def accumulator(library, request):
    return Accumulator(library, request.param)


def check(accumulator, table):
    row = accumulator.rows(1)[0]
    accumulator.add(row, table)
    for _ in range(4):
        assert accumulator.shuffled(table).tobytes() == row.tobytes()
    found = accumulator.values(row)
    assert not row["invalid"]
    for columns in [slice(0, 3), slice(3, 6), slice(6, 7)]:
        part = table[:, columns]
        largest = max(Fraction(float(abs(part).max(initial=0))), LOWEST)
        bound = len(table) * largest / 2 ** (41 if accumulator.limbs == 2 else 81)
        for value, column in zip(found[columns].tolist(), part.T.tolist(), strict=True):
            exact = sum(map(Fraction, column))
            assert abs(Fraction(value) - exact) <= bound + abs(exact) / 2**53


NUMBERS = st.floats(-(2.0**1000), 2.0**1000) | st.builds(
    # near a power of two to the forty, or a half of its unit
    lambda exponent, factor, ulps: factor * np.ldexp(1.0 + ulps * 2.0**-52, 40 * exponent),
    st.integers(-25, 24), st.sampled_from([1, -1, 1.5, 2.0**-41, -(3 - 2.0**-40)]),
    st.integers(-1, 1),
)  # fmt: skip
TABLES = st.integers(0, 40).flatmap(lambda n: arrays(float, (n, 7), elements=NUMBERS))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(table=TABLES, cancels=st.booleans(), seed=st.integers(0, 2**32))
def test_any_cut_and_order_gives_one_sum_within_its_bound(accumulator, table, cancels, seed):
    """Of numbers of any size, those that cancel but for the last among them."""
    rng = np.random.default_rng(seed)
    wide = rng.choice([-1.0, 1.0], (100, 7)) * np.exp2(rng.uniform(-120, 120, (100, 7)))
    check(accumulator, np.concatenate([table, -table[:-1]]) if cancels else table)
    check(accumulator, np.concatenate([wide, -wide, table]))


def test_four_million_values_of_one_sign_do_not_overflow(accumulator):
    signs = np.array([1, -1, 0.5, 1, -1, 0.5, 1])
    values = 2.0**40 * (1 - 2.0**-20 * RNG.random(2048))  # as large as a bin takes
    row = accumulator.rows(1)[0]
    accumulator.add(row, np.outer(values, signs))
    for _ in range(11):
        accumulator("merge", row, row.copy())
    assert accumulator.values(row) == pytest.approx(2**11 * values.sum() * signs)
