"""Plain sums in double with each particle's own softening: eps_i^2 + eps_j^2, or the spline as it
stands in Gadget-2 (Springel 2005, forcetree.c: polynomials in u = r/h), the larger h counting."""

import numpy as np


def _spline(u):
    """-W2, the force over r, and its derivative over r, of h = 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = (2.8 - u**2 * (16 / 3 + u**2 * (6.4 * u - 9.6)),
                 32 / 3 + u**2 * (32 * u - 38.4), 96 * u - 76.8)  # fmt: skip
        outer = (3.2 - 1 / (15 * u) - u**2 * (32 / 3 + u * (-16 + u * (9.6 - 32 / 15 * u))),
                 64 / 3 - 48 * u + 38.4 * u**2 - 32 / 3 * u**3 - 1 / (15 * u**3),
                 -48 / u + 76.8 - 32 * u + 0.2 / u**5)  # fmt: skip
    return [np.where(u < 0.5, a, b) for a, b in zip(inner, outer, strict=True)]


def _terms(r2, eps, other, spline):
    """phi, f and f'/r of pairs: of mass 1, the potential -phi and the force -f r."""
    if not spline:
        y = 1 / np.sqrt(r2 + eps**2 + other**2)
        return y, y**3, -3 * y**5
    r, h = np.sqrt(r2), 2.8 * np.maximum(eps, other)
    soft = r < h
    y, k = 1 / np.where(soft, 1.0, r), 1 / np.where(soft, h, 1.0)
    phi, f, rate = _spline(np.where(soft, r * k, 0.7))
    return (np.where(soft, phi * k, y), np.where(soft, f * k**3, y**3),
            np.where(soft, rate * k**5, -3 * y**5))  # fmt: skip


def forces(mass, pos, vel, eps, *, spline, at=None, at_vel=None, at_eps=None, own=None):
    """acc, jerk and pot of all particles on some targets; own: which of them each is, or -1."""
    if at is None:
        at, at_vel, at_eps, own = pos, vel, eps, np.arange(len(pos))
    rows = []
    for x, v, e, number in zip(at, at_vel, np.broadcast_to(at_eps, len(at)), own, strict=True):
        acts = np.arange(len(pos)) != number
        d, w, m = x - pos[acts], v - vel[acts], mass[acts]
        r2 = (d * d).sum(axis=1)
        acts = (r2 > 0) | (e > 0) | (eps[acts] > 0)
        d, w, m, r2 = d[acts], w[acts], m[acts], r2[acts]
        other = eps[np.arange(len(pos)) != number][acts]
        phi, f, rate = _terms(r2, e, other, spline)
        jerk = -(m * f) @ w - (m * rate * (d * w).sum(axis=1)) @ d
        rows.append((-(m * f) @ d, jerk, -(m * phi).sum()))
    return [np.array(column) for column in zip(*rows, strict=True)]
