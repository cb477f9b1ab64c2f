"""Sets of particles that try a tree in different ways, and what is true of them.

Each sample is a function of (n, seed) that gives masses and positions of about n particles.
"""

from typing import NamedTuple

import numpy as np

from grape6py import models, reference


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


class Truth(NamedTuple):
    """Direct sums for some rows, and the sums of the absolute values of their terms."""

    rows: np.ndarray
    acc: np.ndarray
    pot: np.ndarray
    pull: np.ndarray
    depth: np.ndarray

    def errors(self, forces):
        """Errors of the acceleration as shares of itself, row by row."""
        wrong = np.linalg.norm(forces.acc[self.rows] - self.acc, axis=1)
        return wrong / np.linalg.norm(self.acc, axis=1)

    def rounding(self, forces):
        """Largest errors of acceleration and potential as shares of what was added up."""
        acc = np.linalg.norm(forces.acc[self.rows] - self.acc, axis=1)
        pot = np.abs(forces.pot[self.rows] - self.pot)
        return (acc / self.pull).max(), (pot / self.depth).max()


def truth(mass, pos, eps=0.0, count=300):
    """Of `count` rows, evenly chosen."""
    rows = np.unique(np.linspace(0, len(mass) - 1, count).astype(int))
    sums = reference.direct_sum(mass, pos, rows=rows, eps2=eps**2)
    pull, depth = np.empty(len(rows)), np.empty(len(rows))
    for k, row in enumerate(rows):
        s2 = ((pos - pos[row]) ** 2).sum(axis=1) + eps**2
        others = (s2 > 0) & (np.arange(len(mass)) != row)
        pull[k] = (np.abs(mass[others]) / s2[others]).sum()
        depth[k] = (np.abs(mass[others]) / np.sqrt(s2[others])).sum()
    return Truth(rows, sums.acc, sums.pot, pull, depth)
