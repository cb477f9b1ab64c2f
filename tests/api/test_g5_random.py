"""GRAPE-5 calls in any order and any form, wrong ones among them: forces are the plain sums of what
was sent, codes and texts name what is wrong, and clusters do not know of each other."""

import numpy as np
import pytest

from capi import CODES, UNTOUCHED
from grape5 import Board, assert_force, assert_nan, blank, direct, fortran, multi_form, value

MOST, WRONG = 90, "wrong"
NAMES = "NO_FIRSTHALF ARGUMENT J_NAN I_NAN MISMATCH"
ORDER, ARGUMENT, J_NAN, I_NAN, MISMATCH = map(CODES.get, NAMES.split())


class Model:
    def __init__(self, number, rng):
        self.board, self.rng, self.n, self.eps, self.rows = Board(number), rng, None, None, []
        self.x, self.m, self.has = np.zeros((MOST, 3)), np.zeros(MOST), np.zeros((2, MOST), bool)

    def __call__(self, name, *args, plain=None):
        form, number, name = self.rng.integers(3), self.board.number, f"g5_{name}"
        if plain if plain is not None else (number == 0 and self.rng.random() < 0.5):
            return fortran(name, *args, underscores="_" * form) if form else value(name, *args)
        args = multi_form(name), number, *args
        return fortran(*args, underscores="_" * form) if form else value(*args)

    def write(self):
        first = int(self.rng.integers(MOST // 2))
        n = int(self.rng.integers(MOST - first))
        x, m = self.rng.standard_normal((n, 3)), self.rng.random(n)
        name, halves = [("xmj", "xm"), ("jp", "mx"), ("xj", "x"), ("mj", "m")][self.rng.integers(4)]
        if n and self.rng.random() < 0.1:
            (m if halves[0] == "m" else x)[self.rng.integers(n)] = self.rng.choice([np.nan, np.inf])
        given, rows = {"x": x, "m": m}, slice(first, first + n)
        bad = not all(np.isfinite(given[half]).all() for half in halves)
        assert self(f"set_{name}", first, n, *(given[half] for half in halves)) == bad * J_NAN
        for half in halves:
            {"x": self.x, "m": self.m}[half][rows] = given[half]
            self.has["xm".index(half), rows] = True

    def soften(self, all_clusters):
        chances = [0.28] * 3 + [0.16 / 3] * 3
        eps = float(self.rng.choice([0.0, 0.05, 0.3, -0.1, np.nan, np.inf], p=chances))
        fine, which = 0 <= eps < np.inf, self.rng.integers(3)
        if which == 2 and self.eps not in (None, WRONG):
            rows = self.rng.random(self.rng.integers(1, 30))
            self.rows = rows
            assert self("set_eps", len(rows), rows) == 0
            return
        plain = bool(self.board.number == 0 and self.rng.random() < 0.5)
        square = which == 1 and fine
        args = ("set_eps2_to_all", eps * eps) if square else ("set_eps_to_all", eps)
        assert self(*args, plain=plain) == (not fine) * ARGUMENT
        for each in all_clusters if plain else [self]:
            each.eps, each.rows = eps if fine else WRONG, []

    def right(self, x, eps2=None):
        """Code, text and sums."""
        n, have = self.n or 0, self.has.any(axis=0)
        finite = np.isfinite(self.x).all(axis=1) & np.isfinite(self.m) & self.has.all(axis=0)
        bad = np.flatnonzero((have & ~finite)[:n])
        if self.n is None or (eps2 is None and self.eps is None):
            return ORDER, "g5_set_", None
        if len(bad):
            text = f"address {bad[0]} " if self.has[:, bad[0]].all() else "lacks"
            return J_NAN, text, None
        if eps2 is None and self.eps is WRONG:
            return ARGUMENT, "", None
        eps = np.full(len(x), 0.0 if eps2 is not None else self.eps)
        eps[: len(self.rows)] = self.rows[: len(x)]
        sums = direct(x, self.m[:n][have[:n]], self.x[:n][have[:n]],
                      eps if eps2 is None else np.sqrt(eps2))  # fmt: skip
        wrong = np.flatnonzero(~np.isfinite(x).all(axis=1))
        text = f"NaN or Inf in i particle {wrong[0]} " if len(wrong) else ""
        return I_NAN if len(wrong) else 0, text, sums

    def check(self, found, right, x):
        code, text, sums = right
        if sums is None:
            assert_nan(found, code)
        else:
            good = np.isfinite(x).all(axis=1)
            assert_force((found[0], found[1][good], found[2][good]), sums.of(good), 5e-6, code)
            assert np.isnan(found[1][~good]).all()
            assert np.isnan(found[2][~good]).all()
        assert not text or text in self.board.error()[1]

    def force(self):
        x = self.rng.standard_normal((int(self.rng.integers(1, 30)), 3))
        if self.rng.random() < 0.2:
            x[self.rng.integers(len(x)), 1] = np.nan
        eps2 = self.rng.random(len(x)) if self.rng.random() < 0.3 else None
        found = blank(len(x))
        if self.rng.random() < 0.5:
            name, more = ("x", []) if eps2 is None else ("xe", [eps2])
            code = self(f"calculate_force_on_{name}", x, *more, *found, len(x))
            self.check((code, *found), self.right(x, eps2), x)
            return
        if eps2 is None:
            assert self("set_xi", len(x), x) == 0
        elif self.rng.random() < 0.5:
            assert self("set_xei", len(x), x, eps2) == 0
        else:
            assert self("set_ip", len(x), x, np.sqrt(eps2), None) == 0
        assert_nan((self("get_force", len(x), *found), *found), ORDER)
        assert self.board.error() == (ORDER, "g5_get_force without g5_run")
        right = self.right(x, eps2)
        assert self("run") == right[0]
        if right[0]:
            return
        self.write(), self.soften([self])  # for the next one
        more = blank(len(x) + 2)
        assert self("get_force", len(x) + 2, *more) == MISMATCH
        assert np.isnan(more[0][:-2]).all()
        assert (more[1][-2:] == UNTOUCHED).all()
        assert (self("get_force", len(x), *found)) == 0
        self.check((0, *found), (0, "", right[2]), x)


@pytest.mark.backends("cpu cuda cuda-tree")
@pytest.mark.parametrize("seed", range(3))
def test_any_calls(seed, boards):
    rng = np.random.default_rng(seed)
    assert value("g5_set_eps_to_all", 0.1) == 0  # it outlives closing
    clusters = [Model(number, rng) for number in (0, -1, -(2**31), 2**31 - 1)]
    for cluster in clusters:
        cluster.eps = 0.1
    for _ in range(150):
        cluster = clusters[rng.integers(4)]
        what = rng.integers(6)
        if what < 2:
            cluster.write()
        elif what == 2:
            cluster.soften(clusters)
        elif what == 3:
            cluster.n = int(rng.integers(MOST))
            assert cluster("set_n", cluster.n) == 0
        else:
            cluster.force()
    for cluster in clusters:
        assert cluster.board("close") == 0
