"""Kepler's orbits of bodies about a primary, from their elements and back.

Arrays of shape (k,), and (k, 3) for relative positions and velocities; `mu` is G times the sum of
the two masses. Murray & Dermott, "Solar System Dynamics" (1999), sections 2.4 and 2.8; hyperbolas
have a < 0 and e > 1. Names are those of REBOUND.
"""

import math
from typing import NamedTuple

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Int64s
from grape6py.errors import ArgumentError


class Orbits(NamedTuple):
    """Orbits of k bodies about a primary: those that each would have alone with it.

    Attributes
    ----------
    ids : ndarray of int64, shape (k,)
    primary : int
        Its id.
    a, e, P : ndarray, shape (k,)
        Semi-major axis, below 0 of a hyperbola; eccentricity; period, infinite if unbound.
    inc, Omega, omega : ndarray, shape (k,)
        Inclination to the x-y plane, longitude of the ascending node, argument of pericentre; in
        radians. Omega is 0 in that plane, omega of a circle, and all three NaN on a straight line.
    f, M : ndarray, shape (k,)
        True and mean anomaly.
    """

    ids: Int64s
    primary: int
    a: Floats
    e: Floats
    P: Floats
    inc: Floats
    Omega: Floats
    omega: Floats
    f: Floats
    M: Floats


def elements(mu: Floats, pos: Floats, vel: Floats) -> tuple[Floats, ...]:
    """a, e, P, inc, Omega, omega, f and M of relative positions and velocities."""
    r, v2 = np.sqrt((pos * pos).sum(axis=1)), (vel * vel).sum(axis=1)
    spin = np.cross(pos, vel)
    size = np.sqrt((spin * spin).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        a = 1 / (2 / r - v2 / mu)
        P = np.where(a > 0, 2 * math.pi * np.sqrt(a * a * a / mu), math.inf)
        to_pericentre = np.cross(vel, spin) / mu[:, None] - pos / r[:, None]
        pole = spin / size[:, None]
    e = np.sqrt((to_pericentre * to_pericentre).sum(axis=1))
    inc = np.arctan2(np.hypot(spin[:, 0], spin[:, 1]), spin[:, 2])
    Omega = np.arctan2(spin[:, 0], -spin[:, 1])
    Omega[(spin[:, 0] == 0) & (spin[:, 1] == 0)] = 0.0
    node = np.column_stack([np.cos(Omega), np.sin(Omega), np.zeros(len(r))])
    across = np.cross(pole, node)

    def angle(vectors: Floats) -> Floats:
        found: Floats = np.arctan2((vectors * across).sum(axis=1), (vectors * node).sum(axis=1))
        return found

    omega = np.where(e > 0, angle(to_pericentre), 0.0)
    f, omega, Omega = (np.mod(x, 2 * math.pi) for x in (angle(pos) - omega, omega, Omega))
    for of_plane in (inc, Omega, omega, f):
        of_plane[size == 0] = np.nan
    return a, e, P, inc, Omega, omega, f, _mean_anomaly(e, f)


def relative(mu: Floats, given: dict[str, Floats]) -> tuple[Floats, Floats]:
    """Relative positions and velocities from elements by their names, checked; 0 of others."""
    if ("a" in given) == ("P" in given) or {"f", "M"} <= given.keys():
        raise ArgumentError(
            "an orbit has a semi-major axis a or a period P, not both, and one anomaly: f or M"
        )
    zeros: dict[str, Floats] = dict.fromkeys(("e", "inc", "Omega", "omega", "f"), np.zeros(()))
    at = {k: validate.floats(k, v, mu.shape) for k, v in (zeros | given).items()}
    if not (mu > 0).all():
        raise ArgumentError("an orbit needs mass: the primary's, or that of the body itself")
    if not ((at["inc"] >= 0) & (at["inc"] <= math.pi)).all():
        raise ArgumentError(f"inc = {given['inc']} is not from 0 to pi: angles are in radians")
    e, f = at["e"], at["f"]
    if "P" in at:
        at["a"] = np.cbrt(mu * (at["P"] / (2 * math.pi)) ** 2)
    wrong = (e < 0) | (e == 1) | ((at["a"] > 0) != (e < 1)) | ("P" in at and at["P"] <= 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ArgumentError(
            f"a = {at['a'][row]}, e = {e[row]}: ellipses have a > 0 and 0 <= e < 1, "
            "hyperbolas a < 0 and e > 1"
        )
    if "M" in at:
        f = _true_anomaly(at["M"], e)
    if not (1 + e * np.cos(f) > 0).all():
        row = int(np.argmin(1 + e * np.cos(f)))
        raise ArgumentError(f"f = {f[row]} is beyond the asymptotes of a hyperbola of e = {e[row]}")
    width = at["a"] * (1 - e) * (1 + e)  # the semi-latus rectum
    cos, sin = ({k: of(at[k]) for k in ("inc", "Omega", "omega")} for of in (np.cos, np.sin))
    node = np.column_stack([cos["Omega"], sin["Omega"], np.zeros(len(mu))])
    across = np.column_stack([-sin["Omega"] * cos["inc"], cos["Omega"] * cos["inc"], sin["inc"]])
    to_pericentre = cos["omega"][:, None] * node + sin["omega"][:, None] * across
    beside = cos["omega"][:, None] * across - sin["omega"][:, None] * node
    r, speed = width / (1 + e * np.cos(f)), np.sqrt(mu / width)
    pos = (r * np.cos(f))[:, None] * to_pericentre + (r * np.sin(f))[:, None] * beside
    vel = (speed * (e + np.cos(f)))[:, None] * beside - (speed * np.sin(f))[:, None] * to_pericentre
    return pos, vel


def eccentric_anomaly(mean: Floats, e: Floats) -> Floats:
    """Solve Kepler's equation E - e sin E = M for 0 <= M < 2 pi and 0 <= e < 1."""
    half = np.minimum(mean, 2 * math.pi - mean)
    # From above the root Newton's steps descend to it: E - e sin E is convex up to pi.
    found = np.minimum(half + e, math.pi)
    for _ in range(60):
        found = found - (found - e * np.sin(found) - half) / (1 - e * np.cos(found))
    return np.where(mean <= math.pi, found, 2 * math.pi - found)


def _hyperbolic_anomaly(mean: Floats, e: Floats) -> Floats:
    """Solve e sinh H - H = M for e > 1."""
    # From above the root: e sinh H - H >= (e - 1) sinh H, and so H is at most this.
    found = np.arcsinh(np.abs(mean) / (e - 1))
    for _ in range(60):  # a step of one at least while sinh is steep, then Newton's
        found = found - (e * np.sinh(found) - found - np.abs(mean)) / (e * np.cosh(found) - 1)
    return np.copysign(found, mean)


def _true_anomaly(mean: Floats, e: Floats) -> Floats:
    f, bound = np.empty(len(e)), e < 1
    E = eccentric_anomaly(np.mod(mean[bound], 2 * math.pi), e[bound])
    f[bound] = 2 * np.arctan2(np.sqrt(1 + e[bound]) * np.sin(E / 2),
                              np.sqrt(1 - e[bound]) * np.cos(E / 2))  # fmt: skip
    H, e = _hyperbolic_anomaly(mean[~bound], e[~bound]), e[~bound]
    f[~bound] = 2 * np.arctan(np.sqrt((e + 1) / (e - 1)) * np.tanh(H / 2))
    return f


def _mean_anomaly(e: Floats, f: Floats) -> Floats:
    M, bound = np.empty(len(e)), e < 1
    half, below = f[bound] / 2, e[bound]
    E = 2 * np.arctan2(np.sqrt(1 - below) * np.sin(half), np.sqrt(1 + below) * np.cos(half))
    M[bound] = np.mod(E - below * np.sin(E), 2 * math.pi)
    f, e = np.where(f > math.pi, f - 2 * math.pi, f)[~bound], e[~bound]
    with np.errstate(invalid="ignore"):
        H = 2 * np.arctanh(np.sqrt((e - 1) / (e + 1)) * np.tan(f / 2))
    M[~bound] = e * np.sinh(H) - H
    return M
