"""The GRAPE-5 calls as the tests see them, and the sums that they are compared with."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

import capi
from once import by_content

HEADER = capi.ROOT / "include" / "g5lib.h"
SIGNATURES = capi.read_header(HEADER)[0]
# Calls that only have an MC form are among these.
CALLS = [name for name in SIGNATURES if name.startswith("g5_") and
         ("MC" not in name or name.replace("MC", "") not in SIGNATURES)]  # fmt: skip
EPS = 0.05
_ids = itertools.count(100)


def value(name, *args):
    """A call by value."""
    assert len(args) == len(SIGNATURES[name]), name
    return capi.function(capi.library(), name, SIGNATURES[name])(*map(capi.pointer, args))


def multi_form(name):
    """The 0 of symmetric softening stays at the end."""
    return f"{name.removesuffix('0')}MC{'0' * name.endswith('0')}"


def multi(name, cluster, *args):
    """The MC form of a call."""
    return value(multi_form(name), cluster, *args)


def fortran(name, *args, underscores="_"):
    """A call of Fortran's, every argument by address; of an MC form if it is named."""
    return capi.by_pointer(name.lower() + underscores, *args, letters=SIGNATURES[name])


class Board:
    """A cluster of GRAPE-5's, opened."""

    def __init__(self, number):
        self.number = number
        assert multi("g5_open", number) == 0

    def __call__(self, name, *args):
        return multi(f"g5_{name}", self.number, *args)

    def load(self, mass, x, n=None):
        """Sends all j particles, with the usual softening."""
        assert self("set_xmj", 0, len(mass), x, mass) == 0
        assert self("set_n", len(mass) if n is None else n) == 0
        assert self("set_eps_to_all", EPS) == 0

    def get(self, ni):
        """Code, a and p of g5_get_force."""
        a, p = blank(ni)
        return self("get_force", ni, a, p), a, p

    def calculate(self, x):
        """The same of g5_calculate_force_on_x."""
        a, p = blank(len(x))
        return self("calculate_force_on_x", np.ascontiguousarray(x), a, p, len(x)), a, p

    def in_pieces(self, x, piece):
        """The same, by set_xi, run and get_force of a piece of the i particles at a time."""
        codes, (a, p) = [], blank(len(x))
        for start in range(0, len(x), piece):
            rows = slice(start, min(start + piece, len(x)))
            ni = rows.stop - start
            codes += [self("set_xi", ni, np.ascontiguousarray(x[rows])), self("run")]
            codes += [self("get_force", ni, a[rows], p[rows])]
        return min(codes), a, p

    def error(self):
        return capi_text(self.number)


def capi_text(number):
    buffer = capi.ctypes.create_string_buffer(400)
    code = value("g6x_g5_last_error", number, capi.ctypes.addressof(buffer), 400)
    return code, buffer.value.decode()


def blank(ni):
    return np.full((ni, 3), capi.UNTOUCHED), np.full(ni, capi.UNTOUCHED)


@pytest.fixture
def boards():
    """Makes boards that no other test uses, and closes them."""
    made = []

    def make():
        made.append(Board(next(_ids)))
        return made[-1]

    yield make
    for board in made:
        assert board("close") == 0


@pytest.fixture
def board5(boards):
    return boards()


def stars(n, seed=1):
    """Masses and positions of a normal blob."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1.5, n) / n, rng.standard_normal((n, 3))


class Sum(NamedTuple):
    """Direct sums for some i particles; `pull` is that of the absolute values of a's terms."""

    a: np.ndarray
    p: np.ndarray
    pull: np.ndarray

    def of(self, rows):
        return Sum(*(f[rows] for f in self))


@by_content
def direct(x, mass, sources, eps=EPS):
    """By the formulas of g5lib.h, in long double."""
    r = sources[None].astype(np.longdouble) - np.asarray(x, np.longdouble)[:, None]
    eps = np.broadcast_to(np.asarray(eps, np.longdouble), len(r))
    s2 = (r * r).sum(-1) + eps[:, None] ** 2
    here = s2 == 0
    rinv = np.where(here, 0, 1 / np.sqrt(np.where(here, 1, s2)))
    terms = (mass * rinv**3)[..., None] * r
    pull = np.sqrt((terms**2).sum(-1)).sum(1)
    return Sum(*(f.astype(float) for f in (terms.sum(1), (mass * rinv).sum(1), pull)))


def assert_force(found, expected, tolerance=1e-6, code=0):
    """Every row within a tolerance, as a share of what was added up."""
    got, a, p = found
    assert got == code
    assert (np.linalg.norm(a - expected.a, axis=1) <= tolerance * expected.pull).all()
    assert (np.abs(p - expected.p) <= tolerance * np.abs(expected.p)).all()


def assert_nan(found, code):
    got, a, p = found
    assert got == code
    assert np.isnan(a).all()
    assert np.isnan(p).all()
