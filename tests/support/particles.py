"""Small particle sets and what the contract says of them: predictor, direct sum, lists.

Written from the formulas of the API alone, in long double; for large sets see
grape6py.reference."""

from dataclasses import dataclass

import numpy as np

from once import by_content

LONG = np.longdouble


@dataclass
class Cloud:
    """j particles as the API takes them: x and v at times t, and a/2, j/6, snap/18."""

    index: np.ndarray
    mass: np.ndarray
    x: np.ndarray
    v: np.ndarray
    a2: np.ndarray
    j6: np.ndarray
    k18: np.ndarray
    t: np.ndarray

    def __len__(self):
        return len(self.mass)

    def take(self, rows):
        return Cloud(*[np.ascontiguousarray(getattr(self, f)[rows]) for f in self.__annotations__])

    def at(self, time):
        dt = (LONG(time) - self.t.astype(LONG))[:, None]
        x = self.x + self.v * dt + self.a2 * dt**2 + self.j6 * dt**3 + LONG(0.75) * self.k18 * dt**4
        v = self.v + 2 * self.a2 * dt + 3 * self.j6 * dt**2 + 3 * self.k18 * dt**3
        return x, v

    def scaled(self, a, b, c):
        """Lengths times 2^a, masses times 2^b, velocities times 2^c, of a set at rest in time."""
        return Cloud(self.index, np.ldexp(self.mass, b), np.ldexp(self.x, a),
                     np.ldexp(self.v, c), self.a2, self.j6, self.k18, self.t)  # fmt: skip


def cloud(n, seed=1, moving=False):
    """A normal blob of n bodies of mass about 1/n; moving: with derivatives and times."""
    rng = np.random.default_rng(seed)
    mass = rng.uniform(0.5, 1.5, n) / max(n, 1)
    vectors = [rng.standard_normal((n, 3)) for _ in range(5)]
    times = rng.integers(0, 64, n) / 256.0
    if not moving:
        vectors[2:], times = [np.zeros((n, 3))] * 3, np.zeros(n)
    return Cloud(np.arange(n, dtype=np.int32), mass, *vectors, times)


def pair_terms(x, v, index, source, time=0.0, eps2=0.0):
    """Softened distances squared, pair forces, jerks and potentials, each (ni, nj, ...)."""
    xj, vj = source.at(time)
    r = xj[None] - np.asarray(x, LONG)[:, None]
    w = vj[None] - np.asarray(v, LONG)[:, None]
    eps2 = np.broadcast_to(np.asarray(eps2, LONG), len(r))[:, None]
    s2 = (r * r).sum(-1) + eps2
    apart = np.asarray(index)[:, None] != source.index[None]
    pulls = apart & (s2 > 0)
    rinv = np.where(pulls, 1 / np.sqrt(np.where(pulls, s2, 1)), 0)
    mr3 = (source.mass * rinv**3)[..., None]
    acc = mr3 * r
    jerk = mr3 * (w - 3 * ((r * w).sum(-1) * rinv**2)[..., None] * r)
    return s2, apart, acc, jerk, -source.mass * rinv


@by_content
def direct(x, v, index, source, time=0.0, eps2=0.0):
    """acc, jerk, pot in long double, and nearest indices (ties: the lowest address)."""
    s2, apart, acc, jerk, pot = pair_terms(x, v, index, source, time, eps2)
    nearest = np.array(index, dtype=np.int32)
    for i in range(len(s2)):
        if apart[i].any():
            nearest[i] = source.index[np.argmin(np.where(apart[i], s2[i], np.inf))]
    return acc.sum(1), jerk.sum(1), pot.sum(1), nearest


@by_content
def lists(x, v, index, source, h2, time=0.0, eps2=0.0):
    """Ascending indices of the j particles with r^2 + eps2 <= h2, self left out."""
    s2, apart, *_ = pair_terms(x, v, index, source, time, eps2)
    inside = apart & (s2 <= np.broadcast_to(np.asarray(h2, LONG), len(s2))[:, None])
    return [np.sort(source.index[row]).tolist() for row in inside]


def relative(found, expected):
    """|found - expected| / |expected| of each row; where 0 is expected, 0 or infinite."""
    difference = (np.asarray(found, LONG) - expected).reshape(len(expected), -1)
    size = np.sqrt((expected.reshape(len(expected), -1) ** 2).sum(-1))
    error = np.sqrt((difference**2).sum(-1))
    ratio = error / np.where(size > 0, size, 1)
    return np.where(size > 0, ratio, np.where(error == 0, 0, np.inf)).astype(float)


def _parts(force):
    return [a for name in ("acc", "jerk", "pot") if (a := getattr(force, name, None)) is not None]


def assert_zero(force):
    assert not any(part.any() for part in _parts(force))


def assert_nan(force, rows=slice(None)):
    """Quiet NaN in every number of these rows."""
    for part in _parts(force):
        assert np.isnan(part[rows]).all()
        assert ((part[rows].view(np.int64) >> 51) & 1 == 1).all(), "signalling NaN"


def assert_same(found, expected):
    assert found.bits() == expected.bits()
    assert (found.nearest == expected.nearest).all()


def assert_force(found, expected, tolerance):
    assert found.code == 0
    for name, value in zip(("acc", "jerk", "pot"), expected, strict=False):
        error = relative(getattr(found, name), value)
        assert error.max(initial=0) <= tolerance, (name, error.max(), int(error.argmax()))


def assert_close(found, exact, limits, more=1, names=("acc", "jerk", "pot")):
    """Relative errors of rows are within the limits (median, largest), of all or of each name."""
    for name in names:
        error = relative(getattr(found, name), getattr(exact, name))
        median, largest = limits[name] if isinstance(limits, dict) else limits
        assert np.median(error) <= more * median, (name, np.median(error))
        assert error.max() <= more * largest, (name, error.max())
