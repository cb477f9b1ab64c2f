"""Bodies that come, go and change on the way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays import memory_space, validate
from grape6py.errors import AddressError, ArgumentError
from grape6py.grape6 import Grape6
from grape6py.integrators.quantities import Quantities
from grape6py.integrators.together import OnRanks

if TYPE_CHECKING:
    from collections.abc import Callable

    from grape6py._arrays.kinds import Bools, Floats, Int32s, Int64s, Numbers, Untyped


class Changes(OnRanks, Quantities):
    """Bodies on their way, which may change; see :class:`~.base.Integration`.

    The integration goes on from :attr:`time` with the changed bodies. Those that feel the change
    take their forces anew, and a first step if these are others. A change of bodies without mass is
    felt by themselves alone: with block steps of Hermite, at a time on their grid (as the end of a
    block is), the others go on with the same bits.
    """

    # Of the subclasses: blocks of other bodies; see Blocks.replaced.
    _replaced: Callable[[Floats, Floats, Floats, Int32s, Bools], Untyped]

    def add(
        self, mass: Numbers, pos: Numbers, vel: Numbers, *, ids: Numbers | None = None
    ) -> Int64s:
        """Add bodies.

        Parameters
        ----------
        mass : float or array_like, shape (k,)
        pos, vel : array_like, shape (3,) or (k, 3)
            At :attr:`time`.
        ids : array_like of int, shape (k,), optional
            Numbers of the new bodies, which no other has; by default those that follow the largest.

        Returns
        -------
        ndarray of int, shape (k,)
            Their ids.

        Raises
        ------
        ArgumentError, NotFiniteError
            (ValueErrors) for wrong shapes or values, and for ids that are in use.
        """
        with self._turn_together("add()"):
            with memory_space.for_host({"mass": mass, "pos": pos, "vel": vel}) as place:
                pos, vel = (
                    np.atleast_2d(validate.reals(name, place.on_host(name, value)))
                    for name, value in (("pos", pos), ("vel", vel))
                )
                pos = place.floats("pos", pos, (None, 3))
                vel = place.floats("vel", vel, (len(pos), 3))
                mass = place.floats("mass", mass, (len(pos),))
            old, present = self._bodies(), self.ids
            k, n = len(pos), self.n
            if ids is None:
                last = max(int(present.max(initial=-1)), self._last_id)
                new_ids = np.arange(last + 1, last + 1 + k)
            else:
                new_ids = validate.ids("ids", ids, k)
                used = np.isin(new_ids, present)
                if used.any():
                    raise ArgumentError(f"ids: {new_ids[used.argmax()]} is the number of a body")
            m, x, v = (np.concatenate(pair) for pair in zip(old, (mass, pos, vel), strict=True))
            rows = np.concatenate([np.arange(n), np.full(k, -1)]).astype(np.int32)
            self._change(m, x, v, np.concatenate([present, new_ids]), rows, rows < 0)
            return new_ids

    def remove(self, ids: Numbers) -> None:
        """Take bodies out.

        Parameters
        ----------
        ids : int or array_like of int

        Raises
        ------
        AddressError
            (an IndexError) for an id that no body has.
        """
        with self._turn_together("remove()"):
            which = self._numbers(ids)
            kept = np.setdiff1d(np.arange(self.n), which).astype(np.int32)
            mass, pos, vel = (array[kept] for array in self._bodies())
            self._change(mass, pos, vel, self.ids[kept], kept, np.zeros(len(kept), bool))

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
        with self._turn_together("merge()"):
            which = self._numbers(ids)
            if len(which) < 2:
                raise ArgumentError(f"merge needs two bodies or more, not {len(which)}")
            mass, pos, vel = self._bodies()
            heaviest = int(which[np.argmax(mass[which])])
            total = math.fsum(mass[which])
            share = mass[which] / total if total else np.full(len(which), 1 / len(which))
            for array in (pos, vel):
                array[heaviest] = [math.fsum(share * column) for column in array[which].T]
            mass[heaviest] = total
            gone = which[which != heaviest]
            kept = np.setdiff1d(np.arange(self.n), gone).astype(np.int32)
            present = self.ids
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
        with self._turn_together("kick()"):
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
        """Give bodies other masses.

        Parameters
        ----------
        ids : int or array_like of int, shape (k,)
        mass : float or array_like, shape (k,)

        Raises
        ------
        ArgumentError, NotFiniteError
            (ValueErrors) for wrong shapes or values.
        AddressError
            (an IndexError) for an id that no body has.
        """
        with self._turn_together("set_mass()"):
            which, arrays = self._numbers(ids), self._bodies()
            arrays[0][which] = validate.floats("mass", mass, (len(which),))
            self._change_some(*arrays, which)

    def move_to_centre_of_mass(self) -> None:
        """Shift places and velocities so that the centre of mass rests in the origin."""
        with self._turn_together("move_to_centre_of_mass()"):
            mass, pos, vel = self._bodies()
            total = math.fsum(mass)
            if not total:
                raise ArgumentError("bodies without mass have no centre of mass")
            for array in (pos, vel):
                array -= [math.fsum(mass * column) / total for column in array.T]
            self._change_some(mass, pos, vel, np.arange(self.n))

    # ---- what they share ---------------------------------------------------------------------

    def _bodies(self) -> tuple[Floats, Floats, Floats]:
        """Copies of masses, positions and velocities at the present time."""
        moment = self._synchronised()
        return self._blocks.mass.copy(), moment.pos.copy(), moment.vel.copy()

    def _numbers(self, ids: Numbers) -> Int64s:
        """Rows of the bodies with some ids."""
        given = np.atleast_1d(validate.numbers("ids", ids))
        requested = validate.ints("ids", given)
        present = self.ids
        order = np.argsort(present, kind="stable")
        at = np.minimum(np.searchsorted(present, requested, sorter=order), max(self.n - 1, 0))
        rows: Int64s = order[at] if self.n else np.zeros(len(requested), np.int64)
        known = present[rows] == requested if self.n else np.zeros(len(requested), bool)
        if not known.all():
            raise AddressError(f"no body has the id {requested[~known][0]}")
        if len(np.unique(rows)) < len(rows):
            raise ArgumentError(f"ids = {requested.tolist()} names a body twice")
        return rows

    def _change_some(self, mass: Floats, pos: Floats, vel: Floats, which: Int64s) -> None:
        rows = np.arange(self.n, dtype=np.int32)
        self._change(mass, pos, vel, self.ids, rows, np.isin(rows, which))

    def _change(
        self, mass: Floats, pos: Floats, vel: Floats, ids: Int64s, rows: Int32s, changed: Bools
    ) -> None:
        """Go on with these bodies; `rows` are their present numbers, -1 for new ones."""
        time, old = self.time, self._bodies()
        with self._together("a change of bodies") as said:
            for name, array in (("mass", mass), ("pos", pos), ("vel", vel)):
                validate.check_finite(name, array)
            said.alike("the bodies", mass, pos, vel, ids, rows, changed)
        gone = np.setdiff1d(np.arange(self.n), rows[~changed])  # or changed
        before = self._energy_of(*old, gone)
        after = self._energy_of(mass, pos, vel, np.flatnonzero(changed | (rows < 0)))
        with self._together("a change of bodies"):  # on all ranks, or on none
            new = self._replaced(mass, pos, vel, rows, changed)
        self._last_id = max(self._last_id, int(self.ids.max(initial=-1)))
        self._blocks = new
        self._energy_change += after - before
        self._net_change += len(mass) - len(old[0])
        self._set_ids(ids)
        self._time, self._seen, self._potential = time, None, None
        number = {int(i): k for k, i in enumerate(ids)}
        self._blocks.watch.renew(number, pos, time)

    def _set_ids(self, ids: Int64s) -> None:
        self._ids = ids

    def _energy_of(self, mass: Floats, pos: Floats, vel: Floats, which: Int64s) -> float:
        """The energy that some bodies have with each other, with the rest, and in the field."""
        which = which[mass[which] != 0]
        if not len(which):
            return 0.0
        m, x, v = mass[which], pos[which], vel[which]
        rest = np.setdiff1d(np.arange(len(mass)), which)
        parts = [*(m * (v * v).sum(axis=1) / 2)]
        eps, backend = self._settings["eps"], str(self._options["backend"])
        kind = "auto" if "tree" in backend else backend
        with Grape6(backend=kind, precision="double", jerk=False) as grape:
            grape.set_particles(mass[rest] * self._G, pos[rest])
            parts += [*(m * grape.forces(x, eps=eps).pot)]
            grape.set_particles(m * self._G, x)
            parts += [*(m * grape.forces(eps=eps).pot / 2)]
        return math.fsum([*parts, self._blocks.external_energy(self.time, m, x, v)])
