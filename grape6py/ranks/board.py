"""The particles of a ``Grape6`` that has a communicator: shared out, and summed by all ranks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grape6py._arrays import memory_space, validate
from grape6py._arrays.kinds import Floats, Int64s, Numbers, Untyped
from grape6py._lib.address_table import AddressTable
from grape6py._lib.cluster import Board, Forces
from grape6py.errors import AddressError, ArgumentError
from grape6py.ranks.ranks import Ranks
from grape6py.ranks.share import Share
from grape6py.ranks.sums import Sums, Targets

# Columns of a particle on its way to its rank: label, time, mass, and four vectors and a position.
_VECTORS = ("snap", "jerk", "acc", "vel")
_FACTORS = {"snap": 18, "jerk": 6, "acc": 2, "vel": 1}  # of the predictor's terms
_COLUMNS = 18


class SharedBoard:
    """What ``Grape6(comm=...)`` does in place of its own calls.

    Parameters
    ----------
    ranks : Ranks
    board : Board
        Which gets this rank's share of the particles.
    """

    def __init__(self, ranks: Ranks, board: Board) -> None:
        self.ranks = ranks
        self._board, self._table = board, AddressTable()  # of this rank's share
        self._sums = Sums(self.ranks, board)
        if "tree" in board.name:
            raise ArgumentError("comm= has direct sums: a tree of all ranks is Tree(comm=...)")
        self.time = 0.0
        self._set_share(np.zeros(self.ranks.size, np.int64))

    def _set_share(self, given: Int64s) -> None:
        """Numbers of particles that each rank has given, in the order of addresses."""
        self._given: Int64s = np.concatenate([[0], np.cumsum(given)])
        self.n = int(self._given[-1])
        self._share = Share(self.n, self.ranks.size)
        self._first, end = self._share.first[self.ranks.rank : self.ranks.rank + 2]
        self._nj = int(end - self._first)
        self._scale_known = False

    # ---- writing -----------------------------------------------------------------------------

    def set_particles(self, given: Mapping[str, Untyped]) -> None:
        """All ranks' particles, one rank's behind the other's; or those at some addresses."""
        ranks = self.ranks
        with ranks.agreement("set_particles()") as agreement:
            self._board.check_open()
            agreement.same("whether an address is given", given["address"] is not None)
            rows, address = self._rows(given)
            latest = agreement.maximum(rows[:, 1].max(initial=0.0))
            has_index = agreement.maximum(given["index"] is not None)
            has = [agreement.maximum(given[name] is not None) for name in _VECTORS]
        if address is None:
            counts = ranks.counts(len(rows))
            self._set_share(counts)
            first = self._given[ranks.rank]
            if not has_index.value:
                rows[:, 0] = first + np.arange(len(rows))
            got, _ = ranks.exchanged(rows, self._share.cuts(first, first + len(rows)))
            at = np.arange(len(got))
            self.time = latest.value
        else:
            got, at = self._routed(rows, address)
            self.time = max(self.time, latest.value)
        with ranks.agreement("set_particles()"):
            has_index_ = bool(has_index.value) or address is None
            self._write(got, at, has_index_, [h.value for h in has], is_new=address is None)
        self._scale_known = False

    def _rows(self, given: Mapping[str, Untyped]) -> tuple[Floats, Int64s | None]:
        """This rank's particles, checked, and their addresses."""
        validate.order("set_particles(mass, pos)", given["mass"], given["pos"])
        place = memory_space.for_host(given)
        pos = place.any_floats("pos", given["pos"], (None, 3))
        n = len(pos)
        address = given["address"]
        if address is not None:
            address = place.ints("address", address, n).astype(np.int64)
            wrong = (address < 0) | (address >= self.n)
            if wrong.any():
                raise AddressError(
                    f"address[{wrong.argmax()}] = {address[wrong.argmax()]}: there are {self.n} "
                    "particles on all ranks; set_particles without addresses gives new ones"
                )
        rows = np.zeros((n, _COLUMNS))
        if given["index"] is not None:
            rows[:, 0] = place.ints("index", given["index"], n)
        rows[:, 1] = place.floats("time", given["time"], (n,))
        rows[:, 2] = place.floats("mass", given["mass"], (n,))
        for k, name in enumerate(_VECTORS):
            if given[name] is not None:
                values = place.floats(name, given[name], (n, 3)) / _FACTORS[name]
                rows[:, 3 + 3 * k : 6 + 3 * k] = values
        rows[:, 15:] = place.floats("pos", given["pos"], (n, 3))
        return rows, address

    def _routed(self, rows: Floats, address: Int64s) -> tuple[Floats, Int64s]:
        """Updates at the ranks that have their addresses, and these there."""
        owner = self._share.owner(address)
        order = np.argsort(owner, kind="stable")
        cuts = np.searchsorted(owner[order], np.arange(self.ranks.size + 1))
        got, _ = self.ranks.exchanged(rows[order], cuts)
        at, _ = self.ranks.exchanged(address[order], cuts)
        return got, at - self._first

    def _write(
        self, rows: Floats, at: Int64s, has_index: bool, has: list[float], *, is_new: bool
    ) -> None:
        address = at.astype(np.int32)
        label = rows[:, 0].astype(np.int32) if has_index else self._table.labels_of(address)
        if is_new and len(self._table) > len(rows):
            self._board.empty()
        columns = {
            name: np.ascontiguousarray(rows[:, 3 + 3 * k : 6 + 3 * k]) if has[k] else None
            for k, name in enumerate(_VECTORS)
        }
        time, mass, pos = (np.ascontiguousarray(rows[:, c]) for c in (1, 2, slice(15, 18)))
        self._board.write(
            None if is_new else address, label, time, mass, columns["snap"], columns["jerk"],
            columns["acc"], columns["vel"], pos,
        )  # fmt: skip
        if is_new:
            self._table.replace(label)
        else:
            self._table.update(address, label)

    # ---- forces --------------------------------------------------------------------------------

    def forces(
        self,
        pos: Numbers | None,
        vel: Numbers | None,
        index: Numbers | None,
        *,
        eps: float,
        time: float | None,
        nn: bool,
        h: Numbers | None,
        same: bool,
    ) -> Forces:
        """As :meth:`Grape6.forces`, for the targets of each rank."""
        kinds = pos is not None, index is not None, h is not None, bool(nn), bool(same)
        with self.ranks.agreement("forces()") as agreement:
            self._board.check_open()
            eps, eps2 = validate.softening(eps)
            agreement.same("eps", eps)
            agreement.same("time", time)
            agreement.same("whether pos, index, h, nn and same are given", *kinds)
            if same and pos is None:
                raise ArgumentError("same=True: give the targets that all ranks have")
            targets = None if pos is None else self._targets(pos, vel, index, h)
            agreement.same_contents(
                "the targets", *(targets if same and targets is not None else ())
            )
            lowest = agreement.minimum(self._table.labels.min(initial=0))
        if time is not None:
            self.time = validate.number("time", time)
        self._board.set_time(self.time)
        if not self._scale_known:
            self._sums.share_scale(self._nj, self.n, int(self._first))
            self._scale_known = True
        if targets is None:
            targets = self._own_particles(h)
        elif index is None:  # a label that no particle has
            targets = targets._replace(
                label=np.full(len(targets.pos), int(lowest.value) - 1, np.int32)
            )
        return self._sums.forces(self._nj, targets, eps2, nn=nn, lists=h is not None, same=same)

    def _targets(
        self, pos: Numbers, vel: Numbers | None, index: Numbers | None, h: Numbers | None
    ) -> Targets:
        place = memory_space.for_host({"pos": pos, "vel": vel, "index": index, "h": h})
        pos = place.floats("pos", pos, (None, 3))
        n = len(pos)
        vel = np.zeros((n, 3)) if vel is None else place.floats("vel", vel, (n, 3))
        labels = np.zeros(n, np.int32) if index is None else place.ints("index", index, n)
        return Targets(pos, vel, self._radii(h, n), labels)

    def _radii(self, h: Numbers | None, n: int) -> Floats:
        return validate.squared_radii("h", -1.0 if h is None else h, n)

    def _own_particles(self, h: Numbers | None) -> Targets:
        """The particles that this rank has given, predicted by those that have them."""
        ranks = self.ranks
        with ranks.agreement("forces()"):
            own = np.column_stack([*self._board.predicted(self._nj), self._table.labels])
            radii = self._radii(h, int(np.diff(self._given)[ranks.rank]))
        end = self._first + self._nj
        cuts = np.clip(self._given, self._first, end) - self._first
        rows, _ = ranks.exchanged(own, cuts)
        pos, vel = (np.ascontiguousarray(rows[:, c]) for c in (slice(3), slice(3, 6)))
        return Targets(pos, vel, radii, rows[:, 6].astype(np.int32))
