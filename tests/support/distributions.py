"""What the tests of initial conditions share."""

import math

import numpy as np


def follow(values, inside, limit=1.63):
    """Whether Kolmogorov's distance is below a limit in units of 1 / sqrt(n), by default that at
    1 %. `inside` gives the share that should be below a value."""
    n = len(values)
    steps = (np.arange(n) + 0.5) / n
    return np.abs(inside(np.sort(values)) - steps).max() * math.sqrt(n) < limit


def radii(model):
    return np.linalg.norm(model.pos, axis=1)


def rests(model, error=1e-14):
    """Whether its centre of mass is the origin, at rest."""
    return all(np.abs(model.mass @ a).max() < error for a in (model.pos, model.vel))


def same_bodies(one, other):
    return all(np.array_equal(*pair) for pair in zip(one, other, strict=True))
