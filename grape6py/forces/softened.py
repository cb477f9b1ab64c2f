"""Direct sums of a session whose particles have their own softening, or splines: in double."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays.kinds import Floats, Int32s, Untyped
from grape6py._lib.cluster import Forces, chunks
from grape6py._lib.interruptible import wait_for
from grape6py._lib.library import check, ffi, lib, pointers
from grape6py.errors import ArgumentError

if TYPE_CHECKING:
    from grape6py._lib.address_table import AddressTable
    from grape6py._lib.cluster import Board


class SoftenedSums:
    """Masses and softening by address, which a session does not give back, and sums with them."""

    def __init__(self, *, spline: bool) -> None:
        self.is_spline, self.has_own = spline, False
        self._mass, self._eps = np.zeros(0), np.zeros(0)

    @property
    def are_needed(self) -> bool:
        """Whether pairs are others than those of the board."""
        return self.is_spline or self.has_own

    def set(self, address: Int32s | None, n: int, mass: Untyped, eps: Floats | None) -> None:
        """Take n particles at some addresses, or all; `eps`: their own softening."""
        self.has_own = eps is not None or (address is not None and self.has_own)
        if not self.are_needed:
            return
        if address is None:
            self._mass, self._eps = np.zeros(n), np.zeros(n)
        elif (grow := int(address.max(initial=-1)) + 1 - len(self._mass)) > 0:
            self._mass, self._eps = (np.pad(a, (0, grow)) for a in (self._mass, self._eps))
        at = slice(None) if address is None else address
        self._mass[at], self._eps[at] = mass, 0.0 if eps is None else eps

    def forces(
        self, place: Untyped, board: Board, table: AddressTable, call: tuple[Untyped, ...]
    ) -> tuple[Forces, str]:
        """What a call of `place.forces` would give, and a warning or an empty text.

        Its eps is that of targets whose particles have none of their own, or are none.
        """
        nj, label, at, motion, eps2, h2, nn, lists = call
        found = Forces._make([None] * 6)
        board.prepare_for(len(at), nj)
        if nn or lists:
            found = place.forces(nj, label, at, motion, 0.0, h2, nn, lists)
        pos, vel, _ = place.particles(table)
        mass, own, index = table.present(self._mass[:nj], self._eps[:nj], table.labels)
        number = _numbers(np.asarray(label.get() if hasattr(label, "get") else label), index)
        has_own = (number >= 0) & self.has_own
        each = np.where(has_own, own[number] if len(own) else 0.0, math.sqrt(eps2))
        targets, sources = (at, motion, each, number), (pos, vel, mass, own)
        device = board.option("DEVICE")
        if device >= 0:
            from grape6py.cuda.tree.device_tree import direct_sums

            acc, jerk, pot, pairs = direct_sums(device, targets, sources, spline=self.is_spline)
        else:
            acc, jerk, pot, pairs = self._on_host(board.option("THREADS"), targets, sources)
        warning = f"{pairs} pairs at one place without softening were left out" if pairs else ""
        return found._replace(acc=acc, jerk=jerk, pot=pot), warning

    def _on_host(
        self, threads: int, targets: Untyped, sources: Untyped
    ) -> tuple[Floats, Floats, Floats, int]:
        ni, nj = len(targets[0]), len(sources[0])
        acc, jerk, pot = np.empty((ni, 3)), np.empty((ni, 3)), np.empty(ni)
        left_out = ffi.new("long long *")
        pairs = 0
        for rows in chunks(ni, nj):
            some = [np.ascontiguousarray(array[rows]) for array in targets]
            given = rows.stop - rows.start, *some, nj, *sources, acc[rows], jerk[rows], pot[rows]
            call = int(self.is_spline), threads, *pointers(*given), left_out
            check(wait_for(lib.g6x_softened_forces, *call, size=ni))
            pairs += left_out[0]
        return acc, jerk, pot, pairs


def _numbers(label: Int32s, index: Int32s) -> Int32s:
    """The particle that has each target's index, or -1."""
    order = np.argsort(index, kind="stable")
    in_order = index[order]
    if (in_order[1:] == in_order[:-1]).any():
        raise ArgumentError("two particles have one index: for softening of each, give others")
    if not len(index):
        return np.full(len(label), -1, np.int32)
    number = order[np.minimum(np.searchsorted(in_order, label), len(index) - 1)]
    return np.where(index[number] == label, number, -1).astype(np.int32)
