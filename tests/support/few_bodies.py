"""A few bodies through g6x_few_body_evolve, and what they may be compared with."""

import numpy as np

from grape6py._lib.library import ffi, lib, pointer

# The Pythagorean problem (Burrau 1913) by Taylor series of 52 digits: body of mass 3 at times.
PYTHAGOREAN = {10: (0.7784804101380855, 0.1413923002900862),
               20: (3.004292636696399, 0.5119252350246859),
               30: (0.8563404988973161, 2.28709366369625),
               50: (-2.701461409265525, -3.797222682722448)}  # fmt: skip


class FewBodies:
    """Bodies as a caller of the C call has them."""

    def __init__(self, mass, pos, vel, perturbers=(), **numbers):
        self.mass, self.x, self.v = (np.array(q, dtype=float) for q in (mass, pos, vel))
        self.b = ffi.new("struct g6x_few_bodies *", {"n": len(self.mass)} | numbers)
        self.b.mass, self.b.x, self.b.v = map(pointer, (self.mass, self.x, self.v))
        self.outside = np.array(perturbers, dtype=float).reshape(-1, 13)
        self.b.perturbers = len(perturbers)
        self.b.perturber = ffi.cast("struct g6x_perturber *", pointer(self.outside))

    def evolve(self, dt):
        return lib.g6x_few_body_evolve(self.b, dt)

    def energy(self):
        return energy(self.mass, self.x, self.v, self.b.eps2)


def energy(mass, pos, vel, eps2=0.0):
    """In the frame of the centre of mass."""
    mass, pos, vel = (np.asarray(q, np.longdouble) for q in (mass, pos, vel))
    vel = vel - mass @ vel / mass.sum()
    first, second = np.triu_indices(len(mass), 1)
    r = np.sqrt(((pos[first] - pos[second]) ** 2).sum(axis=1) + eps2)
    return 0.5 * (mass * (vel**2).sum(axis=1)).sum() - (mass[first] * mass[second] / r).sum()


def pair(e, masses=(0.5, 0.5), a=1.0):
    """Two bodies at apocentre (a > 0) or at pericentre (a < 0), about their centre of mass."""
    m = np.array(masses)
    r = a * (1 + e) if a > 0 else a * (1 - e)
    v = np.sqrt(m.sum() / abs(a)) * (np.sqrt((1 - e) / (1 + e)) if a > 0 else
                                     np.sqrt((e + 1) / (e - 1)))  # fmt: skip
    share = np.array([-m[1], m[0]]) / m.sum()
    return m, np.outer(share, [r, 0, 0]), np.outer(share, [0, v, 0])


def elements(gm, d, w):
    """Semi-major axis and eccentricity vector of a relative motion."""
    r = np.linalg.norm(d)
    return 1 / (2 / r - w @ w / gm), ((w @ w - gm / r) * d - (d @ w) * w) / gm


def runge_kutta(mass, pos, vel, t, steps, perturbers=(), eps2=0.0):
    """Fourth order, plain steps: only where nothing is close."""

    def rate(time, x, v):
        d = x[None] - x[:, None]
        w = mass[None] / ((d**2).sum(axis=2) + eps2 + np.eye(len(mass))) ** 1.5
        acc = (w[:, :, None] * d).sum(axis=1)
        for m, *series in perturbers:
            x0, v0, a0, j0 = np.reshape(series, (4, 3))
            d = x0 + time * (v0 + time * (a0 / 2 + time * j0 / 6)) - x
            acc += m * d / ((d**2).sum(axis=1) + eps2)[:, None] ** 1.5
        return v, acc

    x, v = np.array(pos, float), np.array(vel, float)
    h = t / steps
    for k in range(steps):
        a = rate(k * h, x, v)
        b = rate((k + 0.5) * h, x + h / 2 * a[0], v + h / 2 * a[1])
        c = rate((k + 0.5) * h, x + h / 2 * b[0], v + h / 2 * b[1])
        d = rate((k + 1) * h, x + h * c[0], v + h * c[1])
        x, v = (q + h / 6 * (a[i] + 2 * b[i] + 2 * c[i] + d[i]) for i, q in enumerate((x, v)))
    return x, v
