"""Profiles of density and velocity dispersion, in space or as seen on the sky."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Floats, Int64s, Untyped
from grape6py._arrays.modules import lengths
from grape6py.diagnostics.bodies import chosen, plane_of
from grape6py.diagnostics.centres import centre_of
from grape6py.diagnostics.radii import lagrangian_radii
from grape6py.errors import ArgumentError
from grape6py.in_units import taken
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks


class Profile(NamedTuple):
    """A cluster in k spherical shells, or in k rings on the sky.

    Attributes
    ----------
    edges : ndarray, shape (k + 1,)
        Radii between which they lie: the outer one belongs to each, the innermost one to the first.
    radius : ndarray, shape (k,)
        Mean radius of the bodies, weighted with mass, as all means.
    number : ndarray of int64, shape (k,)
        Of bodies.
    mass, density, surface_density : ndarray, shape (k,)
        Mass, and mass over volume or area; of the two densities one is None.
    dispersion, radial, tangential : ndarray, shape (k,)
        Velocity dispersions in one dimension: sqrt((s_r^2 + s_theta^2 + s_phi^2) / 3); along the
        radius; and across it, sqrt((s_theta^2 + s_phi^2) / 2). On the sky: along the line of
        sight; of proper motions along the radius and across it. Each component is taken about its
        mean, theta and phi about the z axis: rotation is none of it.
    anisotropy : ndarray, shape (k,)
        1 - tangential^2 / radial^2 (Binney & Tremaine 2008, equation 4.61).
    """

    edges: Floats
    radius: Floats
    number: Int64s
    mass: Floats
    density: Floats | None
    surface_density: Floats | None
    dispersion: Floats
    radial: Floats
    tangential: Floats
    anisotropy: Floats


@taken(g_is_one=False)
def profile(
    mass: ArrayLike,
    pos: ArrayLike,
    vel: ArrayLike,
    shells: int = 20,
    *,
    edges: ArrayLike | None = None,
    centre: ArrayLike | str | None = "density",
    along: str | None = None,
    where: Untyped = None,
    ranks: Ranks = ONE,
) -> Profile:
    """Density and velocity dispersion against radius.

    Parameters
    ----------
    mass, pos, vel : array_like
    shells : int
        How many, each with the same number of bodies.
    edges : array_like, shape (k + 1,), optional
        Radii between which the shells lie, instead; bodies beyond the last are left out.
    centre : array_like, shape (3,), or "density" or "mass"
        As in :func:`lagrangian_radii`.
    along : "x", "y" or "z", optional
        The line of sight of a projected profile.

    Returns
    -------
    Profile
        NaN where a shell has no body, or no mass.

    Raises
    ------
    ArgumentError
        (a ValueError) for edges that do not ascend from 0 on, or wrong shapes.
    """
    mass, pos, vel = chosen(where, mass=mass, pos=pos, vel=vel)
    place, motion = centre_of(centre, mass, pos, vel, ranks)
    pos, vel = pos - place, vel - motion
    radius, components = _on_the_sky(pos, vel, along) if along else _in_space(pos, vel)
    edges = _edges(edges, shells, pos, along, ranks)
    shell = np.searchsorted(edges, radius, side="left") - 1
    shell[radius == edges[0]] = 0
    k = len(edges) - 1

    def mean(values: Floats) -> Floats:
        return _sums(shell, k, mass * values, ranks) / whole

    number = ranks.summed(np.bincount(shell[(shell >= 0) & (shell < k)], minlength=k))
    whole = _sums(shell, k, mass, ranks)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [mean(component) for component in components]
        r2, theta2, phi2 = (
            np.maximum(mean((c - np.append(m, 0.0)[shell]) ** 2), 0.0)
            for c, m in zip(components, means, strict=True)
        )
        # On the sky, phi is the line of sight.
        across2, all2 = (theta2, phi2) if along else ((theta2 + phi2) / 2, (r2 + theta2 + phi2) / 3)
        return Profile(
            edges, mean(radius), number, whole,
            None if along else whole / np.diff(4 / 3 * math.pi * edges**3),
            whole / np.diff(math.pi * edges**2) if along else None,
            np.sqrt(all2), np.sqrt(r2), np.sqrt(across2), 1 - across2 / r2,
        )  # fmt: skip


def _in_space(pos: Floats, vel: Floats) -> tuple[Floats, list[Floats]]:
    """Radius, and velocities along it and the angles theta and phi."""
    around, (flat, (along, phi, z)) = lengths(pos), _on_the_sky(pos, vel, "z")
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine, sine = np.nan_to_num(pos[:, 2] / around), np.nan_to_num(flat / around)
    return around, [sine * along + cosine * z, cosine * along - sine * z, phi]


def _on_the_sky(pos: Floats, vel: Floats, along: str) -> tuple[Floats, list[Floats]]:
    """Radius in the plane, and velocities along it, across it, and along the line of sight."""
    plane = plane_of(along)
    x, y = pos[:, plane].T
    radius = lengths(pos[:, plane])  # to the last bit as lagrangian_radii has it
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine, sine = (np.nan_to_num(c / radius) for c in (x, y))
    vx, vy = vel[:, plane].T
    return radius, [cosine * vx + sine * vy, cosine * vy - sine * vx, vel[:, 3 - sum(plane)]]


def _edges(
    edges: ArrayLike | None, shells: int, pos: Floats, along: str | None, ranks: Ranks
) -> Floats:
    if edges is not None:
        found = validate.floats("edges", edges, (None,))
        if len(found) < 2 or found[0] < 0 or not (np.diff(found) > 0).all():
            raise ArgumentError(f"edges = {found} do not ascend, at least two, from 0 on")
        return found
    shells = validate.integer("shells", shells, 1)
    if along:
        pos = pos.copy()
        pos[:, "xyz".index(along)] = 0.0
    ends = np.arange(1, shells + 1) / shells
    return np.append(0.0, lagrangian_radii(np.ones(len(pos)), pos, ends, (0, 0, 0), ranks=ranks))


def _sums(shell: Int64s, k: int, values: Floats, ranks: Ranks) -> Floats:
    """Of the values in each shell, rounded once."""
    order = np.argsort(shell, kind="stable")
    at = np.searchsorted(shell[order], np.arange(k + 1))
    values = values[order]
    return np.array([ranks.total(values[a:b]) for a, b in itertools.pairwise(at)])
