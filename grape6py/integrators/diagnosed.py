"""What one asks of a cluster on its way: the functions of ``diagnostics`` for its bodies, at the
time that they are at, in its units, with its softening and constant of gravity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from grape6py import diagnostics, kepler
from grape6py._arrays import ids as numbers
from grape6py._arrays import validate
from grape6py.errors import AddressError, ArgumentError
from grape6py.integrators.quantities import Quantities

if TYPE_CHECKING:
    from grape6py._arrays.kinds import Floats, Int64s, Numbers, Untyped
    from grape6py.bound_pairs import Binaries

T = TypeVar("T")
MOST_TRIES = 50  # of the tidal radius, which converges in a few


class Diagnosed(Quantities):
    """Bodies on their way, of which `where` says some, by a mask or the rows of an array: of all
    without it. Where each rank has bodies of its own, these are the rank's, and what is found is
    that of all ranks' bodies."""

    def _sum(self, find: Callable[..., T], *names: str, **options: Untyped) -> T:
        """What a function of diagnostics finds, of masses and some arrays."""
        with self._owners.agreement(f"{find.__name__}()"):
            arrays = (getattr(self._synchronised(), name) for name in names)
            return find(self._blocks.mass, *arrays, **options, ranks=self._owners)

    # ---- sums --------------------------------------------------------------------------------

    def momentum(self, *, where: Untyped = None) -> Floats:
        """Total momentum; shape (3,)."""
        return self._sum(diagnostics.momentum, "vel", where=where)

    def angular_momentum(self, *, where: Untyped = None) -> Floats:
        """Total angular momentum about the origin; shape (3,)."""
        return self._sum(diagnostics.angular_momentum, "pos", "vel", where=where)

    def centre_of_mass(self, *, where: Untyped = None) -> Floats:
        """Centre of mass; shape (3,). NaN without mass."""
        return self._sum(diagnostics.centre_of_mass, "pos", where=where)

    center_of_mass = centre_of_mass

    def kinetic_energy(self, *, where: Untyped = None) -> float:
        """Sum of m v^2 / 2."""
        return self._sum(diagnostics.kinetic_energy, "vel", where=where)

    def potential_energy(self) -> float:
        """Sum of m phi / 2, without the field from outside: of :meth:`energy`."""
        return self.energy().potential

    def total_energy(self) -> float:
        """Kinetic and potential energy, and that in the field: of :meth:`energy`."""
        return self.energy().total

    def virial_ratio(self) -> float:
        """Kinetic energy over minus the potential one, 1/2 in equilibrium."""
        return self.energy().virial_ratio

    def virial_radius(self) -> float:
        """G M^2 / (2 |W|) with the potential energy W: 1 in Henon units; NaN without mass."""
        mass, depth = self._owners.total(self._blocks.mass), -2 * self.energy().potential
        return self._G * mass**2 / depth if depth else float("nan")

    # ---- size and shape ----------------------------------------------------------------------

    def density_centre(self, neighbours: int = 6, *, where: Untyped = None) -> Floats:
        """Mean place weighted with density, as :func:`diagnostics.density_centre`; shape (3,)."""
        return self._sum(diagnostics.density_centre, "pos", neighbours=neighbours, where=where)

    def core_radius(self, neighbours: int = 6, *, where: Untyped = None) -> float:
        """The density radius, as :func:`diagnostics.core_radius`."""
        return self._sum(diagnostics.core_radius, "pos", neighbours=neighbours, where=where)

    def lagrangian_radii(
        self,
        fractions: ArrayLike = diagnostics.FRACTIONS,
        centre: ArrayLike | str | None = None,
        *,
        where: Untyped = None,
    ) -> Floats:
        """Radii that hold fractions of the mass, as :func:`diagnostics.lagrangian_radii`."""
        options = {"fractions": fractions, "centre": centre, "where": where}
        return self._sum(diagnostics.lagrangian_radii, "pos", **options)

    def half_mass_radius(
        self, centre: ArrayLike | str | None = "density", *, where: Untyped = None
    ) -> float:
        """Radius about the density centre that holds half of the mass."""
        return self._sum(diagnostics.half_mass_radius, "pos", centre=centre, where=where)

    def profile(
        self,
        shells: int = 20,
        *,
        edges: ArrayLike | None = None,
        centre: ArrayLike | str | None = "density",
        along: str | None = None,
        where: Untyped = None,
    ) -> diagnostics.Profile:
        """Density and velocity dispersion against radius, as :func:`diagnostics.profile`."""
        options = {"edges": edges, "centre": centre, "along": along, "where": where}
        return self._sum(diagnostics.profile, "pos", "vel", shells=shells, **options)

    # ---- times and members -------------------------------------------------------------------

    def crossing_time(self, *, where: Untyped = None) -> float:
        """G M^(5/2) / (2 |E|)^(3/2), as :func:`diagnostics.crossing_time`."""
        return self._sum(diagnostics.crossing_time, "pos", "vel", where=where, **self._gravity())

    def relaxation_time(
        self,
        *,
        coulomb: float = 0.11,
        centre: ArrayLike | str | None = "density",
        where: Untyped = None,
    ) -> float:
        """That at the half-mass radius, as :func:`diagnostics.relaxation_time`."""
        options = {"coulomb": coulomb, "centre": centre, "where": where, "G": self._G}
        return self._sum(diagnostics.relaxation_time, "pos", **options)

    def bound(self, *, where: Untyped = None) -> diagnostics.Bound:
        """Mass and number of the bodies that hold each other, and which these are, also beyond
        :meth:`tidal_radius`, as :func:`diagnostics.bound`."""
        return self._sum(diagnostics.bound, "pos", "vel", where=where, **self._gravity())

    def _gravity(self) -> dict[str, Untyped]:
        if {"softening", "eps_of"} & self._settings.keys():
            raise ArgumentError(
                "this is of bodies with one Plummer softening: give the function of diagnostics "
                "the eps to take"
            )
        return {"eps": self._settings["eps"], "G": self._G}

    def tidal_radius(self) -> float:
        """Radius at which the tide of the field balances the pull of the mass within it.

        About the density centre, by :func:`grape6py.tidal_radius` from the mass of the bound bodies
        on, again and again. King 1962, AJ 67, 471.

        Raises
        ------
        ArgumentError
            (a ValueError) without a field, or in one that compresses the cluster; if the cluster
            has dissolved.
        """
        from grape6py.models.tidal import tidal_radius

        external = self._blocks.external
        if external is None:
            raise ArgumentError("there is no field, and so no tide: give Hermite a field=")
        held = self.bound().is_bound
        centre = self.density_centre(where=held)
        motion = self._sum(diagnostics.centre_of_mass, "vel", where=held)
        place, speed = (at + own for at, own in zip(self.origin, (centre, motion), strict=True))
        distance = np.linalg.norm(self._synchronised().pos - centre, axis=1)
        mass, found = self._owners.total(self._blocks.mass[held]), -1.0
        for _ in range(MOST_TRIES):
            if not mass > 0:
                raise ArgumentError("no mass is left within the tidal radius")
            radius = tidal_radius(external.field, mass, place, speed, time=self.time, G=self._G)
            if radius == found:
                break
            found, mass = radius, self._owners.total(self._blocks.mass[distance <= radius])
        return found

    def mass_function(
        self, bins: int = 20, *, masses: ArrayLike | None = None, where: Untyped = None
    ) -> diagnostics.MassFunction:
        """Number of bodies by mass, as :func:`diagnostics.mass_function`."""
        return self._sum(diagnostics.mass_function, bins=bins, masses=masses, where=where)

    def mass_segregation(
        self,
        number: int = 20,
        *,
        samples: int = 200,
        seed: int = 0,
        along: str | None = None,
        where: Untyped = None,
    ) -> diagnostics.Segregation:
        """Lambda_MSR, as :func:`diagnostics.mass_segregation`."""
        options = {"samples": samples, "seed": seed, "along": along, "where": where}
        return self._sum(diagnostics.mass_segregation, "pos", number=number, **options)

    def orbits(self, primary: int | None = None, *, where: Untyped = None) -> kepler.Orbits:
        """Kepler's elements of the bodies about one of them.

        Parameters
        ----------
        primary : int, optional
            Its id; by default it is the heaviest.

        Returns
        -------
        Orbits
            Of all others, each by itself with the primary.

        Raises
        ------
        ArgumentError
            (a ValueError) if no body is the heaviest, or has no mass; if ranks share the bodies.
        """
        row, own, (pos, vel) = self._primary(primary)
        mass, ids = self._blocks.mass, self.ids
        which = np.arange(len(mass)) if where is None else np.arange(len(mass))[where]
        which = which[which != row]
        mu = self._G * (own + mass[which])
        found = kepler.elements(mu, pos[which] - pos[row], vel[which] - vel[row])
        return kepler.Orbits(ids[which], int(ids[row]), *found)

    def _primary(self, primary: int | None) -> tuple[int, float, tuple[Floats, Floats]]:
        """Row and mass of a body that others orbit, and positions and velocities of all."""
        mass, (pos, vel, *_) = self._blocks.mass, self._synchronised()
        with self._owners.agreement("orbits"):
            if self._owners.size > 1:
                raise ArgumentError("orbits are of bodies that one rank has, here each has its own")
            if primary is not None:
                row = int(self._numbers([primary])[0])
            else:
                row = int(mass.argmax()) if len(mass) else 0
                if np.count_nonzero(mass == mass.max(initial=0.0)) != 1:
                    raise ArgumentError("no body is heavier than all others: name a primary=")
            if not mass[row] > 0:
                raise ArgumentError(f"body {primary} has no mass: nothing orbits it")
        return row, float(mass[row]), (pos, vel)

    def _numbers(self, ids: Numbers) -> Int64s:
        """Rows of the bodies with some ids, or in a mask."""
        given = (
            ids if isinstance(ids, list | tuple) else np.atleast_1d(validate.numbers("ids", ids))
        )
        if isinstance(given, np.ndarray) and given.dtype.kind == "b":
            if len(given) != len(self._blocks.mass):
                raise ArgumentError(f"a mask of {len(given)} for {len(self._blocks.mass)} bodies")
            return np.flatnonzero(given)
        requested = numbers.of("ids", given, error=AddressError)
        rows, known = numbers.rows(self._own_ids(), requested)
        if not known.all():
            whose = f" of rank {self._owners.rank}" if self._owners.size > 1 else ""
            raise AddressError(f"no body{whose} has the id {requested[~known][0]}")
        if len(np.unique(rows)) < len(rows):
            raise ArgumentError(f"ids = {requested.tolist()} names a body twice")
        return rows

    def binaries(self) -> Binaries:
        """Bound pairs of bodies that are each other's nearest, as :func:`grape6py.binaries`."""
        from grape6py.bound_pairs import binaries

        with self._owners.agreement("binaries()"):
            if self._owners.size > 1:
                raise ArgumentError(
                    "binaries() are of bodies that one rank has, and here each has its own: look "
                    "for them in a file of the run"
                )
        pos, vel, *_ = self._synchronised()
        return binaries(self._blocks.mass, pos, vel, self._settings["eps"], G=self._G, ids=self.ids)
