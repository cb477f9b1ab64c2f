"""Sets of bodies some of which dominate, and errors of their accelerations: see docs/accuracy.md.

A shape is a function of (n, rng) that gives positions of size 1. What is right are plain sums in
double precision; an error is a share of max(|a|, 0.05 f), f the sum of the lengths of the terms."""

from typing import NamedTuple

import numpy as np

from grape6py import Grape6, models

# Of errors as multiples of the accuracy: median, 99 %, 99.9 % and largest.
LIMITS = {50: 1.5, 99: 4.0, 99.9: 10.0, 100: 100.0}
WHOLE, SAMPLE, SMALLEST = 4000, 2048, 512  # all rows are judged; else some, and smallest |a|


def directions(radius, rng):
    u = rng.standard_normal((len(radius), 3))
    return u * (radius / np.linalg.norm(u, axis=1))[:, None]


def plummer(n, rng):
    return directions(0.6 / np.sqrt(rng.uniform(0, 0.999, n) ** (-2 / 3) - 1), rng)


def king(n, rng):
    return models.king(n, 6.0, seed=int(rng.integers(1 << 31))).pos


def cusp(n, rng):
    """A density that goes with r^-7/4."""
    return directions(rng.random(n) ** 0.8, rng)


def haloes(n, rng):
    """One for each 200 bodies: NFW's profile, concentration 10, sizes from 1/3 to 1/100."""
    q = np.geomspace(1e-5, 10, 2000)
    inside = np.log1p(q) - q / (1 + q)
    radius = np.interp(rng.random(n) * inside[-1], inside, q / 10)
    count = max(1, n // 200)
    size, centre = 10.0 ** -rng.uniform(0.5, 2, count), rng.uniform(-1, 1, (count, 3))
    which = rng.choice(count, n, p=size**2 / (size**2).sum())
    return centre[which] + directions(size[which] * radius, rng)


def around(radius, height, rng):
    angle = rng.uniform(0, 2 * np.pi, len(radius))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)


def disc(n, rng):
    """As round a star: from 0.3 to 3, and thin."""
    radius = rng.uniform(0.3, 3, n)
    return around(radius, 0.01 * radius * rng.standard_normal(n), rng)


def ring(n, rng):
    return around(rng.uniform(0.9, 1.1, n), 0.01 * rng.standard_normal(n), rng)


def cube(n, rng):
    return rng.uniform(-1, 1, (n, 3))


def clusters(n, rng):
    """Clusters of clusters of clusters, each an eighth of the size of the one it is in."""
    pos, count = np.zeros((1, 3)), max(2, round((n / 10) ** (1 / 3)))
    for size in (1, 1 / 8, 1 / 64):
        pos = (pos[:, None] + size * rng.standard_normal((len(pos), count, 3))).reshape(-1, 3)
    return pos[rng.integers(0, len(pos), n)] + rng.standard_normal((n, 3)) / 512


def cores(n, rng):
    """Half of the bodies in five dense cores, the others in a ball around these."""
    pos, half = directions(3 * rng.random(n) ** (1 / 3), rng), n // 2
    centre = directions(2 * rng.random(5) ** (1 / 3), rng)
    pos[:half] = centre[rng.integers(0, 5, half)] + 1e-3 * plummer(half, rng)
    return pos


SHAPES = {f.__name__: f for f in (plummer, king, cusp, haloes, disc, ring, cube, clusters, cores)}


class Bodies(NamedTuple):
    """A set; `targets` are positions, or None for the bodies themselves."""

    mass: np.ndarray
    pos: np.ndarray
    targets: np.ndarray | None = None
    eps: float = 0.0


def bodies(shape, n, share, heavy=1, *, kind="own", eps=0.0, seed=0):
    """Some heavy bodies have together `share` of the sum of the others, infinite: these have no
    mass. One is in the centre, two are a close pair there, more are where the shape has them.

    kind: "own", "foreign" targets, "massless": a third has no mass, "signed": half is negative."""
    rng = np.random.default_rng([seed, n])
    pos, mass = SHAPES[shape](n, rng), np.full(n, 0.0 if np.isinf(share) else 1 / n)
    if kind == "massless":
        mass[rng.random(n) < 1 / 3] = 0
    if kind == "signed":
        mass *= rng.choice([-1, 1], n)
    if share:
        if heavy <= 2:
            pos[:heavy] = 0.01 * rng.standard_normal(3) * np.array([[1], [-1]])[:heavy]
        mass[:heavy] = rng.uniform(0.5, 1.5, heavy)
        mass[:heavy] *= (1 if np.isinf(share) else share) / mass[:heavy].sum()
    order, targets = rng.permutation(n), None
    if kind == "foreign":
        inside, far = SHAPES[shape](n // 2, rng), 30 * SHAPES[shape](n // 4, rng)
        targets = np.concatenate([inside, rng.uniform(-3, 3, (n // 4, 3)), far])
    return Bodies(mass[order], pos[order], targets, eps)


def exact(at, pos, mass, eps):
    """Accelerations, and the sums of the lengths of their terms. None acts at its own place."""
    acc, size = np.empty((len(at), 3)), np.empty(len(at))
    pos = np.ascontiguousarray(pos.T)
    for begin in range(0, len(at), 4):  # what the cache has space for
        rows = slice(begin, begin + 4)
        d = pos[:, None] - at[rows].T[:, :, None]
        r2 = np.einsum("kij,kij->ij", d, d)
        s2 = r2 + eps**2
        s2[r2 == 0] = np.inf
        weight = mass / (s2 * np.sqrt(s2))
        acc[rows] = np.einsum("kij,ij->ik", d, weight)
        size[rows] = np.einsum("ij,ij->i", np.abs(weight), np.sqrt(r2))
    return acc, size


class Judge:
    """What is right for a set, and how far accelerations are from it."""

    def __init__(self, given):
        at = given.pos if given.targets is None else given.targets
        self.rows, self.drawn = np.arange(len(at)), slice(None)
        if len(at) > WHOLE:  # the direct sum of the library says alone which are smallest
            with Grape6(backend="cpu", jerk=False) as board:
                board.set_particles(given.mass, given.pos)
                index = self.rows if given.targets is None else None
                acc = board.forces(at, index=index, eps=given.eps).acc
                size = np.linalg.norm(acc, axis=1)
            drawn = np.random.default_rng(len(at)).choice(len(at), SAMPLE, False)
            heavy = np.argsort(np.abs(given.mass))[-20:] if given.targets is None else []
            smallest = np.argsort(size)[:SMALLEST]
            self.rows = np.concatenate([drawn, smallest, heavy]).astype(int)
            self.drawn = slice(SAMPLE)
        self.acc, size = exact(at[self.rows], given.pos, given.mass, given.eps)
        self.scale = np.maximum(np.linalg.norm(self.acc, axis=1), 0.05 * size)

    def errors(self, acc):
        """Median, 99 %, 99.9 % of the rows drawn, and the largest of all."""
        wrong = np.linalg.norm(acc[self.rows] - self.acc, axis=1)
        assert not wrong[self.scale == 0].any()  # a body that nobody pulls
        error = wrong / np.where(self.scale > 0, self.scale, 1)
        found = np.percentile(error[self.drawn], list(LIMITS), method="lower")
        found[-1] = error.max()
        return found


def check(errors, accuracy):
    """They are within the limits."""
    limits = accuracy * np.array(list(LIMITS.values()))
    assert (errors <= limits).all(), f"{np.round(errors / accuracy, 3)} times {accuracy:g}"
