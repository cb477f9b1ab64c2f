"""Which rank has which addresses of the particles of a ``Grape6``, and how particles come there."""

from collections.abc import Sequence

import numpy as np

from grape6py._arrays.kinds import AnyArray, Floats, Int32s, Int64s
from grape6py.errors import AddressError
from grape6py.ranks.domains import Moves
from grape6py.ranks.ranks import Ranks
from grape6py.ranks.share import Share

_WIDTHS = (1, 1, 1, 3, 3, 3, 3, 3)  # of columns: label, time, mass, four derivatives, position


class Addresses:
    """Of all ranks' particles: those that one rank has given are behind those of the one before.

    Attributes
    ----------
    n : int
        How many particles all ranks have given.
    first, end : int
        This rank has the addresses from `first` to before `end`.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._deal(np.zeros(ranks.size, np.int64))

    def _deal(self, counts: Int64s) -> None:
        """Numbers of particles that each rank has given."""
        self._given: Int64s = np.concatenate([[0], np.cumsum(counts)])
        self.n = int(self._given[-1])
        self._share = Share(self.n, self._ranks.size)
        self.first, self.end = self._share.of(self._ranks.rank)

    def check(self, address: Int32s) -> None:
        """Raise an AddressError if particles are to be written where there can be none."""
        if len(address) and address.min() < 0:
            raise AddressError(f"address[{address.argmin()}] = {address.min()} is negative")
        if self._ranks.size > 1 and address.max(initial=-1) >= self.n:
            raise AddressError(
                f"address[{address.argmax()}] = {address.max()}: there are {self.n} particles on "
                "all ranks; set_particles without addresses gives new ones"
            )

    def brought(
        self, address: Int32s | None, columns: Sequence[AnyArray | None]
    ) -> tuple[Int32s | None, Sequence[AnyArray | None]]:
        """Particles at the ranks that have their addresses, and these, counted there; None of new
        ones. Labels may be None, and derivatives.
        """
        ranks, (label, *arrays) = self._ranks, columns
        if ranks.size == 1:
            return address, columns
        n = len(columns[-1] if columns[-1] is not None else ())
        own = np.array([n, *(column is not None for column in columns)], np.int64)
        of_all = np.empty((ranks.size, len(own)), np.int64)
        ranks.comm.Allgather(own, of_all)
        are_given = of_all[:, 1:].max(axis=0)
        if address is None:
            self._deal(of_all[:, 0])
            new = int(self._given[ranks.rank]) + np.arange(n)
            label = new if label is None else label
            are_given[0] = 1
            way = Moves(ranks, self._share.owner(new))
        else:
            way = Moves(ranks, self._share.owner(address))
            address = (way.there(address) - self.first).astype(np.int32)
        columns = label, *arrays
        filled = (np.zeros((n, width)) if column is None else column
                  for column, width in zip(columns, _WIDTHS, strict=True))  # fmt: skip
        pieces = np.split(way.there(np.column_stack(list(filled))), np.cumsum(_WIDTHS)[:-1], axis=1)
        label, *arrays = (
            np.ascontiguousarray(piece.reshape(-1) if piece.shape[1] == 1 else piece) if is_given
            else None
            for piece, is_given in zip(pieces, are_given, strict=True)
        )  # fmt: skip
        return address, (None if label is None else label.astype(np.int32), *arrays)

    def given(self, n: int) -> int:
        """How many particles this rank has given, if its addresses have n."""
        return n if self._ranks.size == 1 else int(np.diff(self._given)[self._ranks.rank])

    def returned(self, pos: Floats, vel: Floats, label: Int32s) -> tuple[AnyArray, ...]:
        """Particles of this rank's addresses, at the ranks that have given them."""
        if self._ranks.size == 1:
            return pos, vel, label
        cuts = np.clip(self._given, self.first, self.end) - self.first
        rows, _ = self._ranks.exchanged(np.column_stack([pos, vel, label]), cuts)
        pos, vel = (np.ascontiguousarray(rows[:, c]) for c in (slice(3), slice(3, 6)))
        return pos, vel, rows[:, 6].astype(np.int32)
