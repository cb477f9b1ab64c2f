"""Positions and masses for the octree's benchmarks, drawn where they are needed; and errors.

Each model is a function of xp (NumPy or CuPy), the number of particles, and a seed. The masses add
up to 1. They are drawn on the GPU, since a host needs longer for 10^8 particles than the GPU has
for all its benchmarks; the same seed gives other particles on the host.
"""

import math

HENON = 3 * math.pi / 16  # Plummer's radius in units where E = -1/4
EPS = 1e-4  # softening, in units of the models' size
CANCELLED = 0.05  # of the lengths of the terms: errors asked for are shares of no less


def relative_errors(xp, acc, exact, least):
    """Ascending, as shares of the length of the acceleration, or of `least` times the sum of the
    lengths of its terms if that is more."""
    norm = xp.linalg.norm
    scale = xp.maximum(norm(exact[:, :3], axis=1), least * exact[:, 3])
    return xp.sort(norm(acc - exact[:, :3], axis=1) / scale)


def percentile(ascending, percent):
    return float(ascending[round((len(ascending) - 1) * percent / 100)])


def summary(errors):
    """Median, 99 %, 99.9 %, largest and mean of errors in ascending order."""
    percents = {"median": 50, "p99": 99, "p999": 99.9, "largest": 100}
    found = {name: percentile(errors, percent) for name, percent in percents.items()}
    return found | {"mean": float(errors.mean())}


def plummer(xp, n, seed):
    """A Plummer sphere in Henon units, cut at 0.999 of the mass."""
    random = xp.random.default_rng(seed)
    radius = (((1 - random.random(n)) * 0.999) ** (-2 / 3) - 1) ** -0.5
    return _directions(xp, random, n) * (HENON * radius)[:, None], _equal(xp, n)


def clustered(xp, n, seed, clumps=256):
    """Plummer spheres of all sizes from 1/10 to 1/1000, spread like a Plummer sphere."""
    random = xp.random.default_rng(seed)
    size = 10.0 ** -(1 + 2 * random.random(clumps))
    which = random.integers(0, clumps, n)
    centre = plummer(xp, clumps, seed + 1)[0]
    return centre[which] + size[which, None] * plummer(xp, n, seed + 2)[0], _equal(xp, n)


def lattice(xp, n, seed):
    """A cube lattice, row by row; shuffled if there is a seed."""
    side = round(n ** (1 / 3))
    steps = (xp.arange(side) + 0.5) / side
    pos = xp.stack(xp.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    if seed is not None:
        pos = pos[xp.argsort(xp.random.default_rng(seed).random(len(pos)))]
    return xp.ascontiguousarray(pos), _equal(xp, len(pos))


def sheet(xp, n, seed):
    """A uniform square without thickness."""
    pos = xp.zeros((n, 3))
    pos[:, :2] = xp.random.default_rng(seed).random((n, 2))
    return pos, _equal(xp, n)


def disk(xp, n, seed):
    """An exponential disk without thickness."""
    random = xp.random.default_rng(seed)
    radius = -xp.log((1 - random.random(n)) * (1 - random.random(n)))
    angle = 2 * math.pi * random.random(n)
    pos = xp.zeros((n, 3))
    pos[:, 0], pos[:, 1] = radius * xp.cos(angle), radius * xp.sin(angle)
    return pos, _equal(xp, n)


def uniform(xp, n, seed):
    """A sphere of one density."""
    random = xp.random.default_rng(seed)
    radius = random.random(n) ** (1 / 3)
    return _directions(xp, random, n) * radius[:, None], _equal(xp, n)


def fractal(xp, n, seed, dimension=1.8):
    """Clumps of clumps (Goodwin and Whitworth 2004, A&A 413, 929)."""
    random = xp.random.default_rng(seed)
    corners = xp.stack(xp.meshgrid(*[xp.array([-1.0, 1.0])] * 3), axis=-1).reshape(-1, 3)
    pos, size = xp.zeros((1, 3)), 1.0
    while len(pos) < 2 * n:
        size /= 2
        pos = (pos[:, None] + size * corners).reshape(-1, 3)
        pos = pos[random.random(len(pos)) < 2 ** (dimension - 3)] if size < 1 / 4 else pos
        pos += 0.3 * size * random.standard_normal(pos.shape)
    return pos[xp.argsort(random.random(len(pos)))[:n]], _equal(xp, n)


def thin_disk(xp, n, seed):
    """An exponential disk, a twentieth as thick as its scale length."""
    pos, mass = disk(xp, n, seed)
    pos[:, 2] = 0.05 * xp.random.default_rng((seed, 1)).standard_normal(n)
    return pos, mass


def apart(xp, n, seed):
    """Two Plummer spheres, a thousand radii apart."""
    pos, mass = plummer(xp, n, seed)
    pos[::2, 0] += 1000.0
    return pos, mass


def line(xp, n, seed):
    """Bodies on a line."""
    pos = xp.zeros((n, 3))
    pos[:, 0] = xp.random.default_rng(seed).random(n)
    return pos, _equal(xp, n)


def haloes(xp, n, seed):
    """A thousandth of n haloes of NFW's profile, concentration 10, radii from 1/3 to 1/100."""
    random = xp.random.default_rng(seed)
    count = max(1, n // 1000)
    size = 10.0 ** -(0.5 + 1.5 * random.random(count))
    share = xp.cumsum(size**2) / xp.sum(size**2)
    which = xp.minimum(xp.searchsorted(share, random.random(n)), count - 1)
    q = xp.asarray(10.0) ** xp.linspace(-5, 1, 4000)  # radii over NFW's scale
    inside = xp.log1p(q) - q / (1 + q)
    radius = size[which] * xp.interp(random.random(n) * inside[-1], inside, q / 10)
    centre = 2 * random.random((count, 3)) - 1
    return centre[which] + _directions(xp, random, n) * radius[:, None], _equal(xp, n)


def cores(xp, n, seed):
    """Half of the bodies in five dense cores, the others in a ball around these."""
    random, half = xp.random.default_rng(seed), n // 2
    pos = _directions(xp, random, n) * (3 * random.random(n) ** (1 / 3))[:, None]
    centre = _directions(xp, random, 5)
    pos[:half] = centre[random.integers(0, 5, half)] + 1e-3 * plummer(xp, half, seed + 1)[0]
    return pos, _equal(xp, n)


def central(xp, n, seed, share=10.0):
    """A Plummer sphere, and a body in its centre of `share` times its mass."""
    return _around(xp, plummer(xp, n, seed)[0], share)


def cusp(xp, n, seed):
    """A density that goes with r^-7/4, and a black hole of the same mass."""
    random = xp.random.default_rng(seed)
    radius = random.random(n) ** 0.8
    return _around(xp, _directions(xp, random, n) * radius[:, None], 1.0)


def planets(xp, n, seed):
    """A star and a thin disk from 0.3 to 3, with a thousandth of its mass."""
    random = xp.random.default_rng(seed)
    radius, angle = 0.3 + 2.7 * random.random(n), 2 * math.pi * random.random(n)
    height = 0.01 * radius * random.standard_normal(n)
    pos = xp.stack([radius * xp.cos(angle), radius * xp.sin(angle), height], axis=1)
    return _around(xp, pos, 1e3)


SHAPES = (plummer, uniform, clustered, fractal, thin_disk, apart, line, haloes, cores, central,
          cusp, planets)  # fmt: skip


def _around(xp, pos, share):
    """The first body in the centre, with `share` times the mass of all others."""
    mass = xp.full(len(pos), 1 / ((1 + share) * max(1, len(pos) - 1)))
    pos[:1], mass[:1] = 0, share / (1 + share)
    return pos, mass


def _equal(xp, n):
    return xp.full(n, 1 / n)


def _directions(xp, random, n):
    across, angle = 2 * random.random(n) - 1, 2 * math.pi * random.random(n)
    ring = xp.sqrt(1 - across * across)
    return xp.stack([ring * xp.cos(angle), ring * xp.sin(angle), across], axis=1)
