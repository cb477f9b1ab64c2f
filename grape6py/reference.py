"""The oracle: the direct O(N^2) sum in NumPy, against which everything else is judged.

Force, jerk, potential, nearest neighbour and neighbour lists; the predictor of the j
particles; the energy of a system. Written for plainness, it shares no code with the
library and is never used to compute forces for a caller. With ``extended=True`` it
works in ``np.longdouble``, which on x86-64 has 11 bits more than double precision (and
none more on a few other platforms: see ``np.finfo(np.longdouble)``).

Units are the caller's, with G = 1.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Int64s, Reals, Untyped

Real: TypeAlias = type[np.floating]

# Pairs handled at once. The dozen work arrays of a tile then stay in the L2 cache.
_COLUMNS = 1024
_ROWS = 8


class DirectSum(NamedTuple):
    """Result of :func:`direct_sum`; row i belongs to target i.

    Attributes
    ----------
    acc : ndarray, shape (ni, 3)
        Acceleration, sum of m_j r / s^3 with r = x_j - x_i and s^2 = r^2 + eps2.
    jerk : ndarray, shape (ni, 3), or None
        Time derivative of `acc`, sum of m_j (v / s^3 - 3 (r.v) r / s^5); None if no
        velocities were given.
    pot : ndarray, shape (ni,)
        Potential, minus the sum of m_j / s.
    nearest : ndarray of int64, shape (ni,), or None
        Index of the nearest neighbour, the target's own index if there is nobody else.
    distance : ndarray, shape (ni,), or None
        Its distance, 0 if there is nobody else.
    neighbours : list of ndarray of int64, or None
        Indices of the neighbours of each target, ascending.
    """

    acc: Reals
    jerk: Reals | None
    pot: Reals
    nearest: Int64s | None
    distance: Reals | None
    neighbours: list[Int64s] | None


class Energy(NamedTuple):
    """Energy of a system: kinetic, potential and their sum, as Python or NumPy scalars."""

    kinetic: float
    potential: float
    total: float


def direct_sum(
    mass: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike | None = None,
    *,
    index: ArrayLike | None = None,
    rows: ArrayLike | slice | None = None,
    target_pos: ArrayLike | None = None,
    target_vel: ArrayLike | None = None,
    target_index: ArrayLike | None = None,
    eps2: float = 0.0,
    nearest: bool = False,
    h2: ArrayLike | None = None,
    include_self: bool = False,
    extended: bool = False,
    threads: int | None = None,
) -> DirectSum:
    """Sum the gravity of n particles on some targets, pair by pair.

    A pair of equal index is left out; a pair with r^2 + eps2 == 0 adds nothing to
    force, jerk and potential, but is a neighbour.

    Parameters
    ----------
    mass : array_like, shape (n,)
    pos, vel : array_like, shape (n, 3)
        Sources. Without `vel` no jerk is computed.
    index : array_like of int, shape (n,), optional
        Labels of the sources; 0 to n - 1 by default.
    rows : array_like of int or slice, optional
        Sources that are the targets; all by default. Not together with `target_pos`.
    target_pos, target_vel : array_like, shape (ni, 3), optional
        Targets that are not (or not exactly) sources. Velocities default to zero.
    target_index : array_like of int, shape (ni,), optional
        Labels of these; by default they equal no source's label.
    eps2 : float
        Softening length squared.
    nearest : bool
        Look for the nearest neighbour too: smallest r^2, ties to the lowest address.
    h2 : float or array_like, shape (ni,), optional
        Squared radius of the neighbour sphere; lists hold r^2 + eps2 <= h2. Negative
        or NaN: no neighbours.
    include_self : bool
        Keep pairs of equal index in the lists.
    extended : bool
        Work in and return ``np.longdouble``.
    threads : int, optional
        Threads; as many as this process may use by default. The bits do not depend on it.

    Returns
    -------
    DirectSum

    Raises
    ------
    ValueError
        If shapes do not fit, or both `rows` and `target_pos` are given.

    Notes
    -----
    Aarseth, "Gravitational N-Body Simulations" (2003), equations 1.1 and 2.22.
    """
    real = np.longdouble if extended else np.float64
    pos = _vectors("pos", pos, real)
    n = len(pos)
    mass = np.asarray(validate.numbers("mass", mass), dtype=real)
    if mass.shape != (n,):
        raise ValueError(f"mass has shape {mass.shape}, not ({n},) as pos asks")
    if vel is not None:
        vel = _vectors("vel", vel, real, n)
    index = np.arange(n) if index is None else validate.numbers("index", index).astype(np.int64)
    eps2 = validate.number("eps2", eps2)

    if target_pos is None:
        if not isinstance(rows, slice | None):
            validate.numbers("rows", rows)
        chosen: Untyped = slice(None) if rows is None else rows
        target_pos, target_index = pos[chosen], index[chosen]
        target_vel = None if vel is None else vel[chosen]
    elif rows is not None:
        raise ValueError("give rows or target_pos, not both")
    else:
        target_pos = _vectors("target_pos", target_pos, real)
        target_vel = np.zeros_like(target_pos) if target_vel is None else target_vel
        target_vel = _vectors("target_vel", target_vel, real, len(target_pos))
        if target_index is None:  # beyond every 32-bit label
            target_index = np.full(len(target_pos), np.iinfo(np.int64).min)
        target_index = validate.numbers("target_index", target_index).astype(np.int64)
    ni = len(target_pos)
    if h2 is not None:
        h2 = np.broadcast_to(np.asarray(validate.numbers("h2", h2), dtype=real), (ni,))

    out = DirectSum(
        acc=np.zeros((ni, 3), real),
        jerk=None if vel is None else np.zeros((ni, 3), real),
        pot=np.zeros(ni, real),
        nearest=target_index.astype(np.int64) if nearest else None,
        distance=np.zeros(ni, real) if nearest else None,
        neighbours=None if h2 is None else [np.empty(0, np.int64)] * ni,
    )
    # Components as rows, so that every pass over a tile runs along contiguous sources.
    sources = (mass, _columns(pos), None if vel is None else _columns(vel), index)
    targets, softening = (target_pos, target_vel, target_index), real(eps2)

    def sum_rows(few: slice) -> None:
        """Sum all sources on the few targets of slice `few`, tile by tile."""
        mass, pos, vel, index = sources
        target_pos, target_vel, target_index = targets
        x, label = _columns(target_pos[few])[:, :, None], target_index[few, None]
        v = None if target_vel is None else _columns(target_vel[few])[:, :, None]
        best = np.full(len(label), np.inf, dtype=mass.dtype)
        found: list[list[Int64s]] = [[] for _ in label]
        for first in range(0, len(mass), _COLUMNS):
            part = slice(first, first + _COLUMNS)
            dx = pos[:, None, part] - x
            r2 = dx[0] * dx[0]
            r2 += dx[1] * dx[1]
            r2 += dx[2] * dx[2]
            same = label == index[part]

            if h2 is not None:
                inside = r2 + softening <= h2[few, None]
                if not include_self:
                    inside &= ~same
                for row, hits in enumerate(inside):
                    found[row].append(index[part][hits])

            if out.nearest is not None:
                r2[same] = np.inf
                closer = r2.min(axis=1) < best
                best[closer] = r2[closer].min(axis=1)
                out.nearest[few][closer] = index[part][r2[closer].argmin(axis=1)]

            if softening:
                r2 += softening
            # An infinite distance makes every term of a pair exactly zero.
            r2[same] = np.inf
            if r2.min() == 0:
                r2[r2 == 0] = np.inf
            dv = None if vel is None or v is None else vel[:, None, part] - v
            _add_tile(out, few, mass[part], dx, r2, dv)

        if out.distance is not None:
            out.distance[few] = np.sqrt(np.where(np.isinf(best), 0, best))
        if out.neighbours is not None:
            out.neighbours[few] = [np.sort(np.concatenate(hits or [index[:0]])) for hits in found]

    rows_of = (slice(first, first + _ROWS) for first in range(0, ni, _ROWS))
    count = 0 if threads is None else validate.integer("threads", threads)
    with ThreadPoolExecutor(count or len(os.sched_getaffinity(0))) as pool:
        list(pool.map(sum_rows, rows_of))
    return out


def _add_tile(
    out: DirectSum, few: slice, mass: Reals, dx: Reals, s2: Reals, dv: Reals | None
) -> None:
    """Add one tile of pairs; dx, dv: (3, rows, columns), s2: (rows, columns)."""
    u = 1 / np.sqrt(s2)  # 1 / s
    w = mass * u  # m / s
    out.pot[few] -= w.sum(axis=1)
    u *= u
    w *= u  # m / s^3
    for k in range(3):
        out.acc[few, k] += _dot(w, dx[k])
    if dv is None or out.jerk is None:
        return
    rv = dx[0] * dv[0]
    rv += dx[1] * dv[1]
    rv += dx[2] * dv[2]
    rv *= u
    rv *= w  # m (r.v) / s^5
    for k in range(3):
        out.jerk[few, k] += _dot(w, dv[k]) - 3 * _dot(rv, dx[k])


def predict(
    dt: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike,
    a2: ArrayLike | None = None,
    j6: ArrayLike | None = None,
    k18: ArrayLike | None = None,
    *,
    extended: bool = False,
) -> tuple[Reals, Reals]:
    """Extrapolate particles as the library does, from the scaled derivatives of its API.

    x + v dt + a2 dt^2 + j6 dt^3 + 0.75 k18 dt^4 and
    v + 2 a2 dt + 3 j6 dt^2 + 3 k18 dt^3, the Taylor series to the snap.

    Parameters
    ----------
    dt : float or array_like, shape (n,)
        Time to predict to, minus the particle's own time.
    pos, vel, a2, j6, k18 : array_like, shape (n, 3)
        Position, velocity, acc / 2, jerk / 6, snap / 18; the last three default to zero.
    extended : bool
        Work in and return ``np.longdouble``.

    Returns
    -------
    pos, vel : ndarray, shape (n, 3)
    """
    real = np.longdouble if extended else np.float64
    x, v = _vectors("pos", pos, real), _vectors("vel", vel, real)
    a, j, k = (
        np.zeros_like(x) if d is None else _vectors(name, d, real, len(x))
        for name, d in (("a2", a2), ("j6", j6), ("k18", k18))
    )
    t = np.broadcast_to(np.asarray(validate.numbers("dt", dt), dtype=real), (len(x),))[:, None]
    return (
        x + v * t + a * t**2 + j * t**3 + real(0.75) * k * t**4,
        v + 2 * a * t + 3 * j * t**2 + 3 * k * t**3,
    )


def energy(
    mass: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike,
    *,
    eps2: float = 0.0,
    extended: bool = False,
    threads: int | None = None,
) -> Energy:
    """Kinetic and potential energy of a system, and their sum.

    Parameters
    ----------
    mass : array_like, shape (n,)
    pos, vel : array_like, shape (n, 3)
    eps2 : float
        Softening length squared.
    extended, threads
        As in :func:`direct_sum`.

    Returns
    -------
    Energy
    """
    real = np.longdouble if extended else np.float64
    m: Reals = np.asarray(validate.numbers("mass", mass), dtype=real)
    v = _vectors("vel", vel, real)
    pot = direct_sum(m, pos, eps2=eps2, extended=extended, threads=threads).pot
    kinetic = (m * (v * v).sum(axis=1)).sum() / 2
    potential = (m * pot).sum() / 2
    return Energy(kinetic, potential, kinetic + potential)


def _vectors(name: str, values: ArrayLike, real: Real, n: int | None = None) -> Reals:
    """`values` as an array of shape (n, 3)."""
    array = np.asarray(validate.numbers(name, values), dtype=real)
    if array.ndim != 2 or array.shape[1] != 3 or n not in (None, len(array)):
        raise ValueError(f"{name} has shape {array.shape}, not ({'n' if n is None else n}, 3)")
    return array


def _columns(vectors: Reals) -> Reals:
    return np.ascontiguousarray(vectors.T)


def _dot(a: Reals, b: Reals) -> Reals:
    """Row by row scalar product of two (rows, columns) arrays."""
    products: Reals = np.einsum("ij,ij->i", a, b)
    return products
