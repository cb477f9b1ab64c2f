"""Block steps: the bodies' own times and derivatives, moved one block at a time.

Forces come from a session of the library (``grape6.py``). :class:`HostBlocks` keeps the bodies in
NumPy arrays; the loop over blocks is the library's ``g6x_hermite_evolve`` (csrc/session/hermite.c).
For bodies on a CUDA device see ``hermite_device.py``.

Bodies and derivatives are the same on all ranks, to the last bit, and so is all that is decided by
them; what is shared out is the sum over the j particles, which is nearly all of the work (Harfst
and others 2007, New Astronomy 12, 357: the copy algorithm).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from grape6py import _clock
from grape6py._lib.library import check, ffi, lib, pointer
from grape6py._lib.partial_rows import WORDS, words_pointer
from grape6py.integrators.blocks import CHANGED, NAMES, STATE, Blocks, Moment, Setup, first_steps
from grape6py.ranks.share import Share
from grape6py.ranks.sums import merge_rows

if TYPE_CHECKING:
    from grape6py._arrays.kinds import Bools, CData, Floats, Int32s, Int64s, State, Untyped
    from grape6py.integrators.external import External


class HostBlocks(Blocks):
    """Bodies in NumPy arrays, by the names of STATE: each at its time t."""

    t: Floats
    dt: Floats
    pos: Floats
    vel: Floats
    acc: Floats
    jerk: Floats
    work: Floats  # and power and rate, in a frame that moves

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        n, (eta, smallest, largest) = self.n, self.rule
        for name, shape in self.arrays.items():
            setattr(self, name, np.zeros((n, *shape)))
        self._everybody = np.arange(n, dtype=np.int32)
        block = {name: np.zeros((n, *shape)) for name, shape in self.block_arrays.items()}
        nearest = self._everybody.copy()
        self._block = SimpleNamespace(**block, address=self._everybody.copy(), nearest=nearest)
        self._radii = np.full(n, -1.0)  # no neighbour lists
        arrays = {NAMES.get(name, name): getattr(self, name) for name in self.arrays}
        arrays |= {"mass": self._mass, "rounding": self._rounding} | vars(self._block)
        self._pointers = {name: pointer(array) for name, array in arrays.items()}  # keeps them
        self._hermite = ffi.new("struct g6x_hermite *", {"n": n, "eta": eta, "dtmin": smallest})
        self._hermite.dtmax, self._hermite.massless = largest, n - self.acting
        self._hermite.noise, self._hermite.place = self._noise
        if self.external is not None:
            self._hermite.field = self.external.c
        for name, address in self._pointers.items():
            setattr(self._hermite, name, address)
        # Of the j particles whose forces this rank sums; partial rows, if there are others.
        self._first, self._end = Share(self.acting, setup.ranks.size).of(setup.ranks.rank)
        self._words: Int64s | None = None
        if setup.ranks.size > 1:
            self._words = np.zeros((n, WORDS), np.int64)
            self._hermite.words = words_pointer(self._words)
            self._hermite.share_first, self._hermite.share_end = self._first, self._end

    def _evolve(self, evolution: CData) -> int:
        if self.external is not None:
            self.external.epoch = self.epoch
        return self._board.check(
            lib.g6x_hermite_evolve(self._board.cluster, self._hermite, evolution)
        )

    def _merge(self) -> None:
        e = self._evolution
        self._merge_rows(e.ni)
        if e.closer:
            self._merge_nearest(e.ni, e.next)

    def _merge_rows(self, ni: int) -> None:
        """The partial rows of all ranks, to acc, jerk and pot of the block."""
        assert self._words is not None
        b, words = self._block, self._words[:ni]
        merge_rows(self._ranks, words)
        sums = (pointer(array) for array in (b.acc, b.jerk, b.pot))
        check(lib.g6x_from_partial(ni, words_pointer(words), *sums))

    def _merge_nearest(self, ni: int, time: float) -> None:
        """The nearest of those that the ranks have found; at equal distances the first one."""
        b, h = self._block, self._hermite
        found = np.empty((self._ranks.size, ni), np.int32)
        self._ranks.comm.Allgather(np.ascontiguousarray(b.nearest[:ni]), found)
        best = np.full(ni, np.inf)
        pos, vel = np.empty((ni, 3)), np.empty((ni, 3))
        state = h.t, h.x, h.v, h.a, h.j
        for near in found:
            check(lib.g6x_hermite_predict(ni, pointer(near), time, *state, pointer(pos),
                                          pointer(vel)))  # fmt: skip
            r2 = ((pos - b.xi[:ni]) ** 2).sum(axis=1)
            r2[near == b.address[:ni]] = np.inf  # nobody else is there
            nearer = r2 < best
            best[nearer], b.nearest[:ni][nearer] = r2[nearer], near[nearer]

    def _add_field(self, external: External, time: float, ni: int) -> None:
        b = self._block
        b.field_acc[:ni], b.field_jerk[:ni] = 0.0, 0.0
        arrays = (array[:ni] for array in (b.xi, b.vi, b.field_acc, b.field_jerk))
        external.add(time, *arrays)

    def _block_rows(self, name: str, ni: int) -> Untyped:
        return getattr(self._block, name)[:ni]

    def state(self) -> State:
        """Copies of the arrays, by name."""
        found = {name: self._out(getattr(self, name)).copy() for name in self.arrays}
        return found | ({"work_done": np.array(self.work_done)} if self.work_done else {})

    def put(self, state: Mapping[str, Floats]) -> None:
        """Take arrays over, by name."""
        for name in self.arrays:
            if name in state:
                getattr(self, name)[:] = self._in(np.asarray(state[name]))
        self.work_done = float(state.get("work_done", self.work_done))
        self._sent, self._looked = False, None

    def _latest_of_all(self) -> float:
        return float(self.t.max(initial=0.0))

    def _restart(self, anew: Bools, before: Moment | None, eta_start: float) -> None:
        """Take forces at the epoch, where all bodies are; first steps for those that begin anew,
        and for those whose force is another one than `before`."""
        self._send()
        block = self._block
        self._block.address[:] = self._everybody
        self._predict(self.n, 0.0)
        self._force(self.n, 0.0)
        self.acc[:], self.jerk[:] = block.acc, block.jerk
        self._begin_work(self.n, 0.0)
        first = self._first_steps(self._everybody, 0.0, eta_start)
        takes_first = self._in(anew).copy()
        if before is not None:
            for new, old in ((self.acc, before.acc), (self.jerk, before.jerk)):
                change, size = ((d * d).sum(axis=1) for d in (new - self._in(old), self._in(old)))
                takes_first |= (change > CHANGED**2 * size) & (first < self.dt)
        self.dt[:] = np.where(takes_first, first, self.dt)
        self._sent = False

    def _restart_rows(self, bodies: Int32s, eta_start: float) -> None:
        """Take forces on some bodies, at their times; their steps are at most what they have."""
        rows = np.sort(bodies if self._rows is None else self._rows[bodies])
        time, count = float(self.t[rows[0]]), len(rows)
        self._send()
        b = self._block
        b.address[:count] = rows
        self._predict(count, time)
        self._force(count, time)
        self.acc[rows], self.jerk[rows] = b.acc[:count], b.jerk[:count]
        self._begin_work(count, time)
        self.dt[rows] = np.minimum(self._first_steps(rows, time, eta_start), self.dt[rows])
        self._sent = False

    def _first_steps(self, rows: Int32s, time: float, eta_start: float) -> Floats:
        """First steps of the bodies of the block, whose forces are there."""
        b, ni = self._block, len(rows)
        acc, pot = b.acc[:ni], b.pot[:ni]
        steps = first_steps(acc, b.jerk[:ni], pot, self._falling(ni), eta_start, self.rule)
        roundoff = self._rounding[rows] * pot**2
        vanishing = np.flatnonzero(np.sqrt((acc * acc).sum(axis=1)) <= roundoff)
        if len(vanishing):
            steps[vanishing] = self._second_look(rows[vanishing], time, roundoff[vanishing])
        return steps

    def _second_look(self, rows: Int32s, time: float, roundoff: Floats) -> Floats:
        """Steps of bodies without acceleration, which says nothing of how soon it will change:
        those at whose end the criterion asks for none that is shorter."""
        b, h, (eta, smallest, largest) = self._block, self._hermite, self.rule
        steps, left, step = np.full(len(rows), largest), np.arange(len(rows)), largest
        while len(left) and step > smallest:
            ni = len(left)
            b.address[:ni] = rows[left]
            self._predict(ni, time + step)
            self._force(ni, time + step)
            moved = {name: getattr(self, name).copy() for name in STATE}
            moved["dt"][rows[left]] = step
            given = h.acc, h.jerk, pointer(roundoff[left]), *map(pointer, moved.values())
            check(lib.g6x_hermite_correct(ni, h.address, time + step, eta, smallest, largest,
                                          *given, h.xi, h.vi))  # fmt: skip
            steps[left] = np.minimum(moved["dt"][rows[left]], step)
            left = left[steps[left] < step]
            step = float(steps[left].min(initial=step))
        return steps

    def _falling(self, ni: int) -> Floats:
        """Times in which the field changes for bodies of the block at rest that begin to fall."""
        b, external = self._block, self.external
        time = np.full(ni, np.inf)
        rows = np.flatnonzero(~b.jerk[:ni].any(axis=1))
        if external is not None and len(rows):
            acc, jerk = np.zeros((len(rows), 3)), np.zeros((len(rows), 3))
            external.add(self.latest(), b.xi[rows], b.acc[rows], acc, jerk)
            a, j = (np.sqrt((array**2).sum(axis=1)) for array in (acc, jerk))
            with np.errstate(divide="ignore", invalid="ignore"):
                time[rows] = np.where(j > 0, np.sqrt(a / j), np.inf)
        return time

    def _begin_work(self, ni: int, time: float) -> None:
        """Of the first rows of the block, from a time on."""
        if "work" in self.arrays:
            check(lib.g6x_hermite_work(self._hermite, ni, time, ffi.NULL))

    def _found_at(self, time: float) -> Moment:
        time = self._since_epoch(time)
        if not (self.t == time).all():
            if self._evolution.ni:  # of a block that was left half way
                self._sent = False
            self._ready()
            b = self._block
            b.address[:] = self._everybody
            self._predict(self.n, time)
            self._force(self.n, time)
            found = b.acc.copy(), b.jerk.copy()  # which may be those of the corrected block
            self._correct_all(time)
            moment = b.xi, b.vi, *found
        else:
            moment = self.pos, self.vel, self.acc, self.jerk
        if "work" in self.arrays:
            self._work = self.work_done + self._work_until(time)
        return Moment(*(self._out(array).copy() for array in moment))

    def _work_until(self, time: float) -> float:
        """Since the epoch, when all bodies have been brought to a time."""
        mass = self._in(self.mass)
        if (self.t == time).all():
            return math.fsum(mass * self.work)
        work = np.zeros(self.n)
        check(lib.g6x_hermite_work(self._hermite, self.n, time, pointer(work)))
        return math.fsum(mass * work)

    def _predict(self, ni: int, time: float) -> None:
        """The first rows of the block."""
        h = self._hermite
        state = h.t, h.x, h.v, h.a, h.j
        check(lib.g6x_hermite_predict(ni, h.address, time, *state, h.xi, h.vi))

    def _force(self, ni: int, time: float) -> None:
        """All forces on the first rows of the block."""
        began = _clock.seconds()
        self._sums(ni, time)
        self.force_seconds += _clock.seconds() - began
        external = self.external
        if external is None:
            return
        external.reach(self.epoch + time)
        external.epoch = self.epoch
        if external.function is not None:
            self._call_function(self.epoch + time, ni)
        check(lib.g6x_hermite_add_field(self._hermite, ni, time))

    def _sums(self, ni: int, time: float) -> None:
        """Forces of the bodies."""
        h, board, nj = self._hermite, self._board, self._end - self._first
        board.set_time(time)
        with self._ranks.sharing_errors():
            for rows in board.chunks(ni, nj):
                k, radii = rows.start, pointer(self._radii[rows])
                call = board.cluster, nj, rows.stop - k, h.address + k, h.xi + k, h.vi + k
                sums = h.acc + k, h.jerk + k, h.pot + k
                board.check(lib.g6calc_firsthalf(*call, *sums, self._eps2, radii))
                if self._words is None:
                    board.check(lib.g6calc_lasthalf(*call, self._eps2, radii, *sums))
                else:
                    words = words_pointer(self._words[rows])
                    board.check(lib.g6x_get_partial(board.cluster, rows.stop - k, words))
            if self._words is not None:
                self._merge_rows(ni)

    def _correct_all(self, time: float) -> None:
        """To xi and vi; the bodies stay where they are, so that no error of acc is asked for."""
        h = self._hermite
        state = h.t, ffi.NULL, h.x, h.v, h.a, h.j
        forces = h.acc, h.jerk, ffi.NULL
        check(
            lib.g6x_hermite_correct(h.n, h.address, time, *self.rule, *forces, *state, h.xi, h.vi)
        )

    def _send(self) -> None:
        """Send everybody who acts, after a start or an interruption."""
        self._evolution.ni = self._evolution.stage = 0
        nj, board = self.acting, self._board
        arrays = (self.t[:nj], self._mass[:nj], self.jerk[:nj] / 6, self.acc[:nj] / 2,
                  self.vel[:nj], self.pos[:nj])  # fmt: skip
        if self._words is None:
            t, mass, *derivatives = arrays
            board.write(None, None, t, mass, None, *derivatives)
            return
        given = (ffi.NULL if nj == 0 else pointer(np.ascontiguousarray(array)) for array in arrays)
        share = board.cluster, nj, self._first, self._end
        board.check(lib.g6x_share_particles(*share, *given))
