"""g6x_hermite_predict and g6x_hermite_correct: the formulas, the rule of the steps, faults.

The expected values are the equations of Makino & Aarseth 1992 (PASJ 44, 141), in long double."""

import numpy as np
import pytest

import capi
from capi import call
from particles import LONG


class Bodies:
    def __init__(self, n, ni=None, seed=1, step=0.125):
        rng = np.random.default_rng(seed)
        self.t, self.dt = np.zeros(n), np.full(n, step)
        self.x, self.v, self.a, self.j = rng.standard_normal((4, n, 3))
        ni = n if ni is None else ni
        self.address = rng.permutation(n)[:ni].astype(np.int32)
        self.acc = self.a[self.address] + step * rng.standard_normal((ni, 3))
        self.jerk = self.j[self.address] + step * rng.standard_normal((ni, 3))
        self.xi, self.vi = np.full((2, ni, 3), capi.UNTOUCHED)

    def vectors(self):
        return self.x, self.v, self.a, self.j, self.xi, self.vi

    def predict(self, time=0.125, **other):
        a = {"ni": len(self.address), "address": self.address, **vars(self), "time": time, **other}
        return call("g6x_hermite_predict", *[a[k] for k in "ni address time t".split()],
                    *[a[k] for k in "x v a j xi vi".split()])  # fmt: skip

    def correct(self, time=0.125, **other):
        a = {"ni": len(self.address), "address": self.address, "eta": 0.02, "dtmin": 2.0**-40,
             "dtmax": 0.125, "noise": None, **vars(self), "time": time, **other}  # fmt: skip
        names = "ni address time eta dtmin dtmax acc jerk noise t dt x v a j xi vi".split()
        return call("g6x_hermite_correct", *[a[k] for k in names])

    def copies(self):
        return {name: value.copy() for name, value in vars(self).items()}

    def same(self, before, names):
        return all(getattr(self, n).tobytes() == before[n].tobytes() for n in names.split())


def column(h):
    return np.asarray(h, LONG)[..., None]


def predicted(h, x, v, a, j):
    h, x, v, a, j = column(h), *(q.astype(LONG) for q in (x, v, a, j))
    return x + h * v + h**2 / 2 * a + h**3 / 6 * j, v + h * a + h**2 / 2 * j


def derivatives(h, a, j, acc, jerk):
    """Snap and crackle at the start of the step, equations 6 and 7."""
    h, a, j, acc, jerk = column(h), *(q.astype(LONG) for q in (a, j, acc, jerk))
    snap = (-6 * (a - acc) - h * (4 * j + 2 * jerk)) / h**2
    return snap, (12 * (a - acc) + 6 * h * (j + jerk)) / h**3


def norm(vectors):
    return np.sqrt((vectors.astype(LONG) ** 2).sum(-1))


def criterion(a, j, snap, crackle, eta):
    size = [norm(q) for q in (a, j, snap, crackle)]
    return np.sqrt(eta * (size[0] * size[2] + size[1] ** 2) / (size[1] * size[3] + size[2] ** 2))


def aarseth(h, a, j, acc, jerk, eta):
    """The criterion as it will be two steps ahead, at most 4 h and |snap| / |crackle|."""
    snap, crackle = derivatives(h, a, j, acc, jerk)
    snap = snap + column(h) * crackle
    steps = 2 * np.minimum(criterion(acc, jerk, snap, crackle, eta), 2 * h)
    ahead = column(np.minimum(steps, norm(snap) / norm(crackle)))
    a1 = acc + ahead * jerk + ahead**2 / 2 * snap + ahead**3 / 6 * crackle
    j1 = jerk + ahead * snap + ahead**2 / 2 * crackle
    return criterion(a1, j1, snap + ahead * crackle, crackle, eta)


@pytest.mark.parametrize("step", [0.125, 2.0**-30, 0.1, 2.0**40])
def test_predictor_and_corrector_are_those_of_makino_and_aarseth(step):
    b = Bodies(20, 7, step=0.125)
    scale = step / 0.125  # the same motion in other units of time
    b.v, b.a, b.j = b.v / scale, b.a / scale**2, b.j / scale**3
    b.acc, b.jerk, b.dt = b.acc / scale**2, b.jerk / scale**3, b.dt * scale
    before, at = b.copies(), b.address
    block = np.full(7, step), *(before[k][at] for k in "xvaj")
    assert b.predict(step) == 0
    xp, vp = predicted(*block)
    for found, wanted in zip((b.xi, b.vi), (xp, vp), strict=True):
        assert np.abs(found - wanted).max() <= 4e-15 * np.abs(wanted).max()
    assert b.same(before, "t dt x v a j")
    snap, crackle = derivatives(block[0], *block[3:], b.acc, b.jerk)
    h = LONG(step)
    expected = (xp + h**4 / 24 * snap + h**5 / 120 * crackle,
                vp + h**3 / 6 * snap + h**4 / 24 * crackle)  # fmt: skip
    assert b.correct(step, dtmin=1e-30, dtmax=step) == 0
    for found, moved, wanted in zip((b.xi, b.vi), (b.x, b.v), expected, strict=True):
        assert np.abs(found - wanted).max() <= 4e-15 * np.abs(wanted).max()
        assert np.array_equal(moved[at], found)
    others = np.setdiff1d(np.arange(20), at)
    for name in ("t", "dt", "x", "v", "a", "j"):
        assert np.array_equal(getattr(b, name)[others], before[name][others])


@pytest.mark.parametrize(("time", "dtmax"), [(5 / 8, 1 / 4), (6 / 8, 1 / 8)],
                         ids=["off-the-grid", "largest"])  # fmt: skip
def test_many_bodies_follow_the_step_rule(time, dtmax):
    """A step of 1/8 is kept from doubling by the grid, or by the largest step alone."""
    n, eta, dtmin = 4000, 0.02, 2.0**-10
    b = Bodies(n)
    rng = np.random.default_rng(3)
    b.dt[:] = 2.0 ** rng.integers(-9, -2, n)
    b.t[:] = time - b.dt
    snap, crackle = 10.0 ** rng.uniform(-3, 6, (2, n, 1)) * rng.standard_normal((2, n, 3))
    a, j, h = b.a[b.address], b.j[b.address], b.dt[b.address, None]
    b.acc = a + h * j + h**2 / 2 * snap + h**3 / 6 * crackle
    b.jerk = j + h * snap + h**2 / 2 * crackle
    before, at = b.copies(), b.address
    wish = aarseth(before["dt"][at], before["a"][at], before["j"][at], b.acc, b.jerk, eta)
    held = 0
    found = b.correct(time, eta=eta, dtmin=dtmin, dtmax=dtmax)
    seen = set()
    for k, old, new in zip(wish, before["dt"][at], b.dt[at], strict=True):
        wanted = old
        if k >= 2 * old and 2 * old <= dtmax and time % (2 * old) == 0:
            wanted = 2 * old
        while wanted > k and wanted > dtmin:
            wanted /= 2
        held += wanted > k
        assert new == wanted or abs(np.log2(k / wanted) % 1) < 1e-9
        seen.add(np.log2(new / old))
    assert found == held > 0
    assert {1.0, 0.0, -1.0, -3.0} <= seen


def test_a_body_without_forces_doubles_its_step_once_and_only_on_the_grid():
    for time, dtmax, new in (
        (1 / 4, 4.0, 1 / 4), (3 / 8, 4.0, 1 / 8), (1 / 4, 1 / 8, 1 / 8), (1.0, 4.0, 1 / 4),
        (-3 / 4, 4.0, 1 / 4),
    ):  # fmt: skip
        b = Bodies(3)
        b.a[:], b.j[:], b.acc[:], b.jerk[:] = 0, 0, 0, 0
        b.dt[:], b.t[:] = 1 / 8, time - 1 / 8
        assert b.correct(time, dtmax=dtmax) == 0
        assert (b.dt == new).all()


def test_a_step_is_not_shortened_by_the_rounding_of_forces_but_by_what_is_more():
    """A body whose forces cancel but for their errors, as that of a star amid its planets."""
    b, again = Bodies(3, 3), Bodies(3, 3)
    for each in (b, again):
        each.a[:], each.j[:], each.jerk[:], each.acc[:] = 0, 0, 0, 1e-9
    assert b.correct() == 0
    assert (b.dt <= 0.125 / 16).all()
    again.t[:] = 0.125
    assert again.correct(0.25, noise=np.full(3, 1e-9), dtmax=0.5) == 0
    assert (again.dt == 0.25).all()
    quiet, loud = Bodies(20, 7), Bodies(20, 7)
    assert quiet.correct() == loud.correct(noise=np.full(7, 1e-9)) == 0
    assert np.array_equal(quiet.dt, loud.dt)


def test_without_dt_or_over_its_forces_only_the_block_is_corrected():
    apart, alone, over = Bodies(20, 7), Bodies(20, 7), Bodies(20, 7)
    before = alone.copies()
    assert alone.correct(dt=None) == apart.correct() == 0
    assert alone.same(before, "address t dt x v a j acc jerk")
    assert over.correct(xi=over.acc, vi=over.jerk) == 0
    for block in (alone.xi, alone.vi), (over.acc, over.jerk):
        assert np.array_equal(block, (apart.xi, apart.vi))
    assert over.same(vars(apart), "t dt x v a j")


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_row08_a_body_that_leaves_the_numbers_stays_and_the_others_move(bad):
    b, right = Bodies(20, 7), Bodies(20, 7)
    b.acc[3] = bad
    assert (b.correct(), right.correct()) == (-8, 0)
    moved = b.t == 0.125
    assert np.array_equal(np.flatnonzero(moved), np.sort(np.delete(b.address, 3)))
    assert np.array_equal(b.x[moved], right.x[moved])
    assert np.isfinite(b.x).all()


BAD = [np.nan, np.inf, -np.inf]
WRONG = [
    ({"ni": 0}, "predict correct", 0),
    ({"ni": -1}, "predict correct", -11), ({"address": -1}, "predict correct", -13),
    *[({name: bad}, "predict correct", -11) for name in ("time", "t") for bad in BAD],
    *[({name: bad}, "correct", -11) for name in ("eta", "dt") for bad in BAD],
    *[({name: bad}, "correct", -11) for name in ("dtmin", "dtmax") for bad in (np.nan, -1.0)],
    ({"eta": -0.02}, "correct", -11), ({"eta": 0.0}, "correct", -11),
    ({"dtmin": 1.0, "dtmax": 0.5}, "correct", -11),
    *[({name: None}, "predict correct", -26) for name in "address t x v a j xi vi".split()],
    ({"acc": None}, "correct", -26), ({"jerk": None}, "correct", -26),
]  # fmt: skip


def test_what_is_wrong_is_refused_before_anything_is_written():
    """An infinite step was halved for ever. Of an array, one body's number is wrong."""
    for wrong, calls, code in WRONG:
        b, given = Bodies(4), dict(wrong)
        for name in given.keys() & {"address", "t", "dt"}:
            if given[name] is not None:
                at = 2 if name == "address" else b.address[2]
                getattr(b, name)[at] = given.pop(name)
        before = b.copies()
        assert {getattr(b, call)(**given) for call in calls.split()} == {code}, wrong
        assert b.same(before, "address t dt x v a j xi vi")
