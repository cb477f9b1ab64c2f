"""Sets of particles that try a tree in different ways, and what is true of them.

Each sample is a function of (n, seed) that gives masses and positions of about n particles."""

from typing import NamedTuple

import numpy as np

from grape6py import models
from once import by_content


def plummer(n, seed):
    """Dense within, thin without."""
    return models.plummer(n, seed=seed)[:2]


def lattice(n, seed):
    """A cube lattice: equal distances, and forces that cancel near the centre."""
    side = round(n ** (1 / 3))
    grid = np.stack(np.meshgrid(*[np.arange(side) / side] * 3), axis=-1).reshape(-1, 3)
    return np.full(len(grid), 1 / len(grid)), grid


def clustered(n, seed):
    """Ten dense clumps far apart, of very different sizes and masses."""
    rng = np.random.default_rng(seed)
    which = rng.integers(0, 10, n)
    size = 10.0 ** -rng.uniform(0, 5, 10)
    pos = 10 * rng.standard_normal((10, 3))[which]
    pos += size[which, None] * rng.standard_normal((n, 3))
    return rng.uniform(0.1, 1, n) * 10.0 ** -(which % 4), pos


def disk(n, seed):
    """Flat, with no thickness at all."""
    rng = np.random.default_rng(seed)
    radius, angle = np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
    pos = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(n)], axis=-1)
    return np.full(n, 1 / n), pos


def coincident(n, seed):
    """Every place has from one to a hundred particles."""
    rng = np.random.default_rng(seed)
    places = rng.standard_normal((n // 10, 3))
    which = (n // 10 * rng.random(n) ** 3).astype(int)
    return rng.uniform(0.5, 1.5, n) / n, places[which]


def far_off(n, seed):
    """A Plummer sphere a million radii from the origin."""
    mass, pos = plummer(n, seed)
    return mass, pos + np.array([1e6, -2e6, 5e5])


def fractal(n, seed, dimension=1.8):
    """Clumps of clumps (Goodwin and Whitworth 2004, A&A 413, 929)."""
    rng = np.random.default_rng(seed)
    corners = np.stack(np.meshgrid(*[[-1, 1]] * 3), axis=-1).reshape(-1, 3)
    pos, size = np.zeros((1, 3)), 1.0
    while len(pos) < 2 * n:
        size /= 2
        children = (pos[:, None] + size * corners).reshape(-1, 3)
        kept = rng.random(len(children)) < 2 ** (dimension - 3)
        if kept.any():
            pos = children[kept] + 0.3 * size * rng.standard_normal((kept.sum(), 3))
    return np.full(n, 1 / n), rng.permutation(pos)[:n]


def apart(n, seed):
    """Two spheres, a thousand radii apart."""
    mass, pos = plummer(n, seed)
    pos[::2, 0] += 1000.0
    return mass, pos


SAMPLES = {f.__name__: f for f in (plummer, lattice, clustered, disk, coincident, far_off)}
SHAPES = SAMPLES | {f.__name__: f for f in (fractal, apart)}


def _odd(n, seed):
    """Sets as nobody plans them: masses and positions by name."""
    mass, pos = plummer(n, seed)
    rng = np.random.default_rng(seed)
    one, third = np.arange(n) == n // 2, np.arange(n) % 3 == 0
    crowd = np.where(third[:, None], pos, rng.normal(size=(10, 3))[rng.integers(0, 10, n)])
    close = rng.uniform(-1, 1, (n, 3))  # whose centre is that of the tree's coordinates
    close[:4] = np.array([[-1] * 3, [1] * 3, [0] * 3, [1e-13, -2e-13, 0.5e-13]])[:n]
    close[4:5] = close[5:6]
    far = np.where(one[:, None], [1e13, 3e12, -1e12], pos)
    scales = pos * 10.0 ** np.clip(np.arange(3 - n, 3) + 34, 0, None)[:, None]
    return {
        "one place": (mass, np.full((n, 3), 0.3)),
        "two places": (mass, np.where(third[:, None], 1.0, 2.0) * np.ones(3)),
        "few places": (rng.random(n), crowd), "close pairs": (mass, close),
        "a far body": (mass, far), "a far body of another sign": (np.where(one, -1.0, mass), far),
        "all scales": (mass, scales),
        "clusters far apart": (mass, pos + np.where(third[:, None], [1e9, 0, 0], 0)),
        "a heavy body": (np.where(one, 1e3, mass), pos),
        "massless bodies": (np.where(one, 1.0, 0.0), pos),
        "some massless": (np.where(third, 0.0, mass), pos), "no mass": (0 * mass, pos),
        "both signs": (rng.normal(size=n), pos),
        "half of one sign": (np.where((pos[:, 0] < 0) | third, 1.0, -1.0), pos),
        "a line": (mass, pos[:, :1] * [1.0, 0.5, 0.25]),
    }  # fmt: skip


ODD = list(_odd(9, 0))


def bodies(name, n, seed=5):
    """Mass, positions, and velocities that are partly common to neighbours, of a shape or an odd
    set."""
    mass, pos = SHAPES[name](n, seed) if name in SHAPES else _odd(n, seed)[name]
    noise = np.random.default_rng(seed).normal(size=pos.shape)
    extent = np.linalg.norm(pos - pos.mean(0), axis=1).max() or 1.0
    return mass, pos, noise + np.cross([0.3, -1.0, 2.0], (pos - pos.mean(0)) / extent)


class Truth(NamedTuple):
    """Direct sums for some rows, and the sums of the absolute values of their terms."""

    rows: np.ndarray | slice
    acc: np.ndarray
    pot: np.ndarray
    jerk: np.ndarray
    size: dict

    def errors(self, forces, name="acc"):
        """Errors as shares of what is right, row by row."""
        return self._wrong(forces, name) / length(getattr(self, name))

    def rounding(self, forces, name="acc"):
        """The largest error as a share of what was added up."""
        wrong, size = self._wrong(forces, name), self.size[name]
        return (wrong / np.where(size > 0, size, 1)).max(initial=0)

    def _wrong(self, forces, name):
        return length(getattr(forces, name)[self.rows] - getattr(self, name))


def length(rows):
    return np.linalg.norm(rows, axis=1) if rows.ndim > 1 else np.abs(rows)


@by_content
def truth(mass, pos, vel=None, eps=0.0, *, at=None, at_vel=None, own=None, count=300):
    """Of `count` particles, evenly chosen, or of targets, of which some are particles."""
    rows, vel = slice(None), np.zeros_like(pos) if vel is None else vel
    if at is None:
        rows = own = np.unique(np.linspace(0, len(mass) - 1, min(count, len(mass))).astype(int))
        at, at_vel = pos[rows], vel[rows]
    acc, jerk, pot, size = np.zeros((len(at), 3)), np.zeros((len(at), 3)), [], []
    pos, vel = np.ascontiguousarray(pos.T), np.ascontiguousarray(vel.T)
    for i, x in enumerate(at):
        r, v = pos - x[:, None], vel - (0 if at_vel is None else at_vel[i][:, None])
        s = np.sqrt(np.einsum("kj,kj->j", r, r) + eps**2)
        s[s == 0] = np.inf  # no pull
        if own is not None and own[i] >= 0:
            s[own[i]] = np.inf
        r, v, weight, level = r / s, v / s, mass / s**2, mass / s
        along = 3 * np.einsum("kj,kj->j", r, v)
        acc[i], pot = (weight * r).sum(axis=1), [*pot, -level.sum()]
        jerk[i] = (weight * (v - along * r)).sum(axis=1)
        speed = np.sqrt(np.einsum("kj,kj->j", v, v))
        size.append([np.abs(a).sum() for a in (weight, level, 4 * weight * speed)])
    sizes = dict(zip(("acc", "pot", "jerk"), np.reshape(size, (-1, 3)).T, strict=True))
    return Truth(rows, acc, np.array(pot), jerk, sizes)
