"""Bodies that come, go and change on the way."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from grape6py import kepler
from grape6py._arrays import ids as numbers
from grape6py._arrays import kinds, validate
from grape6py._arrays.kinds import Bools, Floats, Int32s, Int64s, Numbers, UInt64s, Untyped
from grape6py._lib import memory_space
from grape6py.errors import ArgumentError
from grape6py.forces.grape6 import Grape6
from grape6py.integrators.backwards import turned
from grape6py.integrators.diagnosed import Diagnosed
from grape6py.integrators.energy_check import SpecificCheck
from grape6py.ranks.domains import Moves


class Changes(Diagnosed):
    """Bodies on their way, which may change; see :class:`~.base.Integration`.

    The integration goes on from :attr:`time` with the changed bodies. Those that feel the change
    take their forces anew, and a first step if these are others. A change of bodies without mass is
    felt by themselves alone: with block steps of Hermite, at a time on their grid (as the end of a
    block is), the others go on with the same bits.

    Where each rank has bodies of its own, it gives or names such, none perhaps: an empty list.
    """

    _SET_BY: ClassVar[dict[str, str]] = {
        "mass": "set_mass(ids, mass)",
        "pos": "kick(ids, pos=new - old)",
        "vel": "kick(ids, vel=new - old)",
    }

    def add(
        self,
        mass: Numbers = 0.0,
        pos: Numbers | None = None,
        vel: Numbers | None = None,
        *,
        ids: Numbers | None = None,
        primary: int | None = None,
        a: Numbers | None = None,
        P: Numbers | None = None,
        e: Numbers | None = None,
        inc: Numbers | None = None,
        Omega: Numbers | None = None,
        omega: Numbers | None = None,
        f: Numbers | None = None,
        M: Numbers | None = None,
    ) -> kinds.AnyArray:
        """Add bodies, by their places or by their orbits.

        Parameters
        ----------
        mass : float or array_like, shape (k,)
        pos, vel : array_like, shape (3,) or (k, 3)
            At :attr:`time`.
        primary : int, optional
            Id of the body that they orbit, by default the heaviest; instead of `pos` and `vel`.
        a, P : float or array_like, shape (k,)
            Semi-major axis or period; below zero for a hyperbola, whose e is above 1.
        e, inc, Omega, omega, f, M : float or array_like, shape (k,), optional
            The other elements, as in :meth:`orbits`; angles in radians or quantities.
        ids : array_like of int, shape (k,), optional
            Numbers of the new bodies, from 0 to 2^64 - 1, which no other has; by default those that
            follow the largest.

        Returns
        -------
        ndarray of int64 or uint64, shape (k,)
            Their ids.

        Raises
        ------
        ArgumentError, NotFiniteError
            (ValueErrors) for wrong shapes or values, and for ids that are in use.
        """
        with self._lock, self._ranks.agreement("add()"):
            of_orbit = {"a": a, "P": P, "e": e, "inc": inc, "Omega": Omega, "omega": omega, "f": f,
                        "M": M}  # fmt: skip
            shape = {k: validate.reals(k, v) for k, v in of_orbit.items() if v is not None}
            primary = None if primary is None else validate.integer("primary", primary)
            if pos is None and vel is None:
                mass, pos, vel = self._on_orbits(mass, primary, shape)
            elif primary is not None or shape:
                raise ArgumentError("add() takes pos and vel, or an orbit about a primary")
            if pos is None or vel is None:
                raise ArgumentError("add() takes both pos and vel")
            with memory_space.for_host({"mass": mass, "pos": pos, "vel": vel}) as place:
                pos, vel = (
                    np.atleast_2d(validate.reals(name, place.on_host(name, value)))
                    for name, value in (("pos", pos), ("vel", vel))
                )
                pos = place.floats("pos", pos, (None, 3))
                vel = place.floats("vel", vel, (len(pos), 3))
                mass = place.floats("mass", mass, (len(pos),))
            old, present = self._bodies(), self._own_ids()
            k, n = len(pos), len(present)
            new_ids = self._new_ids(
                k, None if ids is None else numbers.once("ids", numbers.of("ids", ids, k))
            )
            m, x, v = (np.concatenate(pair) for pair in zip(old, (mass, pos, vel), strict=True))
            rows = np.concatenate([np.arange(n), np.full(k, -1)]).astype(np.int32)
            self._change(m, x, v, np.concatenate([present, new_ids]), rows, rows < 0)
            return numbers.shown(new_ids)

    def _on_orbits(
        self, mass: Numbers, primary: int | None, shape: dict[str, Floats]
    ) -> tuple[Floats, Floats, Floats]:
        """Masses, positions and velocities of bodies on orbits about one that is there."""
        k = max(v.size for v in (validate.reals("mass", mass), *shape.values()))
        mass = validate.floats("mass", mass, (k,))
        row, own, (pos, vel) = self._primary(primary)
        found = kepler.relative(self._G * (own + mass), shape)
        return mass, pos[row] + found[0], vel[row] + found[1]

    def _new_ids(self, k: int, requested: UInt64s | None) -> UInt64s:
        """Ids of k new bodies: those requested, if they are free, or the next ones."""
        owners = self._owners
        if requested is None:
            first = max(self._largest_id(), self._last_id) + 1 + owners.numbered(k)[0]
            with owners.agreement("ids"):
                if k and first + k > numbers.END:
                    raise ArgumentError("no number follows the largest of a body: give ids=")
                return np.arange(k, dtype=np.uint64) + np.uint64(first if k else 0)
        with owners.agreement("ids") as agreement:
            agreement.same("whether ids are given", True)
        new = np.concatenate(owners.gathered(requested))
        with owners.agreement("ids"):
            used = np.isin(new, self._own_ids())
            if used.any():
                raise ArgumentError(f"ids: {new[used.argmax()]} is the number of a body")
            if len(np.unique(new)) < len(new):
                raise ArgumentError("ids: two ranks give a body the same number")
        return requested

    def remove(self, ids: Numbers) -> None:
        """Take bodies out.

        Parameters
        ----------
        ids : int or array_like of int
            Or a mask of all bodies, as wherever ids are given.

        Raises
        ------
        AddressError
            (an IndexError) for an id that no body has.
        """
        with self._lock, self._ranks.agreement("remove()"):
            which = self._numbers(ids)
            kept = np.setdiff1d(np.arange(len(self._blocks.mass)), which).astype(np.int32)
            mass, pos, vel = (array[kept] for array in self._bodies())
            self._change(mass, pos, vel, self._own_ids()[kept], kept, np.zeros(len(kept), bool))

    def merge(self, ids: Numbers) -> int:
        """Let bodies become one, with their mass, momentum and centre of mass.

        Parameters
        ----------
        ids : array_like of int, shape (k,)
            Two or more.

        Returns
        -------
        int
            Id of the merged body: that of the heaviest of them.

        Raises
        ------
        ArgumentError
            (a ValueError) for less than two bodies, or one that is named twice.
        AddressError
            (an IndexError) for an id that no body has.
        """
        with self._lock, self._ranks.agreement("merge()"):
            if self._owners.size > 1:
                raise ArgumentError(
                    "merge() is of bodies that one rank has, and here each has its own: remove() "
                    "them, and add() one in their place"
                )
            which = self._numbers(ids)
            if len(which) < 2:
                raise ArgumentError(f"merge needs two bodies or more, not {len(which)}")
            mass, pos, vel = self._bodies()
            heaviest = int(which[np.argmax(mass[which])])
            whole = math.fsum(mass[which])
            share = mass[which] / whole if whole else np.full(len(which), 1 / len(which))
            for array in (pos, vel):
                array[heaviest] = [math.fsum(share * column) for column in array[which].T]
            mass[heaviest] = whole
            gone = which[which != heaviest]
            kept = np.setdiff1d(np.arange(len(self._blocks.mass)), gone).astype(np.int32)
            present = self._own_ids()
            mass, pos, vel = (array[kept] for array in (mass, pos, vel))
            self._change(mass, pos, vel, present[kept], kept, kept == heaviest)
            return int(present[heaviest])

    def kick(self, ids: Numbers, vel: Numbers | None = None, *, pos: Numbers | None = None) -> None:
        """Add to velocities, or to positions.

        Parameters
        ----------
        ids : int or array_like of int, shape (k,)
        vel, pos : array_like, shape (3,) or (k, 3), optional
            What is added; the same for all, or for each its own.

        Raises
        ------
        ArgumentError, NotFiniteError
            (ValueErrors) for wrong shapes or values.
        AddressError
            (an IndexError) for an id that no body has.
        """
        with self._lock, self._ranks.agreement("kick()"):
            which, arrays = self._numbers(ids), self._bodies()
            for name, change, array in (("vel", vel, arrays[2]), ("pos", pos, arrays[1])):
                if change is None:
                    continue
                added = validate.reals(name, change)
                if added.ndim == 1:
                    added = np.tile(added, (len(which), 1))
                array[which] += validate.floats(name, added, (len(which), 3))
            self._change_some(*arrays, which)

    def set_mass(self, ids: Numbers, mass: Numbers) -> None:
        """Give bodies other masses. Errors are those of :meth:`kick`.

        Parameters
        ----------
        ids : int or array_like of int, shape (k,)
        mass : float or array_like, shape (k,)
        """
        with self._lock, self._ranks.agreement("set_mass()"):
            which, arrays = self._numbers(ids), self._bodies()
            arrays[0][which] = validate.floats("mass", mass, (len(which),))
            self._change_some(*arrays, which)

    def move_to_centre_of_mass(self) -> None:
        """Shift places and velocities so that the centre of mass rests in the origin."""
        with self._lock, self._ranks.agreement("move_to_centre_of_mass()"):
            mass, pos, vel = self._bodies()
            whole = self._owners.total(mass)
            if not whole:
                raise ArgumentError("bodies without mass have no centre of mass")
            for array in (pos, vel):
                array -= [self._owners.total(mass * column) / whole for column in array.T]
            self._change_some(mass, pos, vel, np.arange(len(self._blocks.mass)))

    move_to_com = move_to_centre_of_mass

    # ---- what they share ---------------------------------------------------------------------

    def _bodies(self) -> tuple[Floats, Floats, Floats]:
        """Copies of masses, positions and velocities at the present time."""
        moment = self._synchronised()
        return self._blocks.mass.copy(), moment.pos.copy(), moment.vel.copy()

    def _change_some(self, mass: Floats, pos: Floats, vel: Floats, which: Int64s) -> None:
        rows = np.arange(len(self._blocks.mass), dtype=np.int32)
        self._change(mass, pos, vel, self._own_ids(), rows, np.isin(rows, which))

    def _change(
        self, mass: Floats, pos: Floats, vel: Floats, ids: UInt64s, rows: Int32s, changed: Bools
    ) -> None:
        """Go on with these bodies; `rows` are their present numbers, -1 for new ones."""
        time, old = self.time, self._bodies()
        with self._ranks.agreement("a change of bodies") as agreement:
            for name, array in (("mass", mass), ("pos", pos), ("vel", vel)):
                validate.check_finite(name, array)
            if not self.SHARES_BODIES:
                agreement.same_contents("the bodies", mass, pos, vel, ids, rows, changed)
        gone = np.setdiff1d(np.arange(len(self._blocks.mass)), rows[~changed])  # or changed
        before = self._energy_of(*old, gone)
        after = self._energy_of(mass, pos, vel, np.flatnonzero(changed | (rows < 0)))
        goes_back = self._blocks.sense < 0
        if goes_back:
            self._turn()
        with self._ranks.agreement("a change of bodies"):  # on all ranks, or on none
            start = self._settings.get("eta_start")  # which Leapfrog has not
            new = self._call("replaced", mass, pos, vel, rows, changed, time, start)
        self._last_id = max(self._last_id, self._largest_id())
        self._net_change += new.n - self._blocks.n
        self._blocks = new
        self._energy_change += after - before
        self._specific_check = SpecificCheck()
        self._set_ids(ids)
        self._be_at(time)
        self._blocks.watch.renew({i: k for k, i in enumerate(ids.tolist())}, pos, time)
        for known in self._owners.from_each(self._blocks.watch.until):
            self._blocks.watch.until |= known
        if goes_back:
            self._turn()

    def _turn(self) -> None:
        """Go the other way in time from now on."""
        with self._lock, self._ranks.agreement("a turn in time"):
            self._blocks = turned(self._blocks, time := self.time)
            self._be_at(time)

    def _checked_ids(self, ids: Untyped, n: int) -> UInt64s:
        """Numbers of n bodies, each once, on all ranks too."""
        owners = self._owners
        with owners.agreement("ids"):
            found = numbers.once("ids", numbers.of("ids", ids, n))
        if owners.size > 1:  # those that are equal meet on a rank
            met = Moves(owners, (found % np.uint64(owners.size)).astype(np.int64)).there(found)
            with owners.agreement("ids"):
                numbers.once("ids", met)
        return found

    def _set_ids(self, ids: UInt64s) -> None:
        self._ids = ids

    def _energy_of(self, mass: Floats, pos: Floats, vel: Floats, which: Int64s) -> float:
        """The energy that some bodies have with each other, with the rest, and in the field."""
        which = which[mass[which] != 0]
        with self._owners.agreement("an energy") as agreement:
            most = agreement.maximum(len(which))
        if not most.value:
            return 0.0
        m, x, v = mass[which], pos[which], vel[which]
        rest = np.setdiff1d(np.arange(len(mass)), which)
        parts = [*(m * (v * v).sum(axis=1) / 2)]
        eps, backend = self._settings["eps"], str(self._options["backend"])
        kind = "auto" if "tree" in backend else backend
        options: kinds.Attributes = {"backend": kind, "comm": self._owners.comm}
        with Grape6(precision="double", jerk=False, **options) as grape:
            grape.set_particles(mass[rest] * self._G, pos[rest])
            parts += [*(m * grape.forces(x, eps=eps).pot)]
            grape.set_particles(m * self._G, x)
            parts += [*(m * grape.forces(eps=eps).pot / 2)]
        external = self._blocks.external_energy(self.time, m, x, v)  # of all ranks
        return self._owners.total([*parts, external * (self._owners.rank == 0)])
