"""Block steps: the bodies' own times and derivatives, moved one block at a time.

Forces come from a session of the library (``grape6.py``). :class:`HostBlocks` keeps the bodies in
NumPy arrays; the loop over blocks is the library's ``g6x_hermite_evolve`` (csrc/session/hermite.c).
For bodies on a CUDA device see ``hermite_device.py``.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays.kinds import CData, Floats, Shapes, State
from grape6py._lib.library import check, ffi, lib, pointer
from grape6py.errors import NotOpenError

if TYPE_CHECKING:
    from grape6py._lib.cluster import Board

# Arrays by body, in which the whole state of the integration lies.
STATE: Shapes = {"t": (), "dt": (), "pos": (3,), "vel": (3,), "acc": (3,), "jerk": (3,)}

# Of the bodies of a block, in their first rows; names of the state and of these as the library's.
BLOCK: Shapes = {"xi": (3,), "vi": (3,), "acc": (3,), "jerk": (3,), "pot": ()}
NAMES = {"t": "t", "dt": "dt", "pos": "x", "vel": "v", "acc": "a", "jerk": "j"}

# Between two calls of the library Ctrl-C works, and the bar moves.
_SECONDS = 0.05

# Error of a pair term, by mode.
_ROUNDING = {"grape": 2.0**-24, "single": 2.0**-24, "double": 2.0**-52}


class Blocks:
    """n bodies, each at its own time, moved block by block.

    Where the arrays are, and what computes with them, is the subclasses' business. The session of
    `board`, in mode `precision`, holds nothing else. `rule` is eta of Aarseth's criterion, smallest
    step, largest step; each of the corrector passes has a force call.
    """

    # Of the subclasses: move blocks by the library, and give the board all bodies.
    _evolve: Callable[[CData], int]
    _send: Callable[[], None]

    def __init__(
        self,
        board: Board,
        precision: str,
        mass: Floats,
        rule: tuple[float, float, float],
        passes: int,
        eps: float,
    ) -> None:
        self.mass, self.rule, self.passes, self._eps2 = mass, rule, passes, eps * eps
        self._board = board
        self.steps = self.blocks = 0  # bodies and blocks moved
        self.clamped = 0  # steps that the smallest step kept longer than the criterion asked,
        self.clamped_time: float | None = None  # and when the first of them ended
        self.force_seconds = 0.0
        self._sent = False  # whether the board has the bodies as they are
        self._evolution = ffi.new("struct g6x_evolution *", {"eps2": self._eps2, "passes": passes})
        # The error of a force is that of its terms. Their sum without signs is at least pot^2
        # over the mass of the others (Cauchy and Schwarz).
        others = np.maximum(math.fsum(mass) - mass, 0.0)
        rounding = np.full(len(mass), _ROUNDING[precision])
        self._rounding = np.divide(rounding, others, out=np.zeros(len(mass)), where=others > 0)

    def advance(self, target: float, stop: CData, *, one: bool) -> int | None:
        """Move blocks that end by `target`, for a while; only `one` of them if so requested.

        `stop` is a pointer to an int: the block under way is the last if that is not zero. Returns
        how many blocks were moved, None if the next ends later. Ctrl-C between two calls, and
        errors, leave every body as it was before a block or after it.
        """
        e = self._evolution
        if e.ni and e.next > target:  # a block that was left half way, with a later target
            self._sent = False
        self._ready()
        self._sent = False
        e.t_end, e.most_blocks, e.seconds, e.stop = target, int(one), _SECONDS, stop
        goes_on = 0
        try:
            goes_on = self._evolve(e)
        finally:
            moved = self._take_counts()
        self._sent = True
        return moved if moved or goes_on else None

    def _take_counts(self) -> int:
        """Add what the calls have done, and return how many blocks that was."""
        e = self._evolution
        moved: int = e.blocks
        if e.clamped and not self.clamped:
            self.clamped_time = e.clamped_time
        for name in ("blocks", "steps", "clamped", "force_seconds"):
            setattr(self, name, getattr(self, name) + getattr(e, name))
            setattr(e, name, 0)
        return moved

    def _ready(self) -> None:
        if not self._board.is_open:  # its id may be another session's by now
            raise NotOpenError("this integration is closed; make a new Hermite()")
        if not self._sent:
            self._send()
            self._sent = True


class HostBlocks(Blocks):
    """Bodies in NumPy arrays, by the names of STATE: each at its time t."""

    t: Floats
    dt: Floats
    pos: Floats
    vel: Floats
    acc: Floats
    jerk: Floats

    def __init__(
        self,
        board: Board,
        precision: str,
        mass: Floats,
        rule: tuple[float, float, float],
        passes: int,
        eps: float,
    ) -> None:
        super().__init__(board, precision, mass, rule, passes, eps)
        n, (eta, smallest, largest) = len(mass), rule
        for name, shape in STATE.items():
            setattr(self, name, np.zeros((n, *shape)))
        self._everybody = np.arange(n, dtype=np.int32)
        block = {name: np.zeros((n, *shape)) for name, shape in BLOCK.items()}
        self._block = SimpleNamespace(**block, address=self._everybody.copy())
        self._radii = np.full(n, -1.0)  # no neighbour lists
        arrays = {library: getattr(self, name) for name, library in NAMES.items()}
        arrays |= {"mass": mass, "rounding": self._rounding} | vars(self._block)
        self._pointers = {name: pointer(array) for name, array in arrays.items()}  # keeps them
        self._hermite = ffi.new("struct g6x_hermite *", {"n": n, "eta": eta, "dtmin": smallest})
        self._hermite.dtmax = largest
        for name, address in self._pointers.items():
            setattr(self._hermite, name, address)

    def _evolve(self, evolution: CData) -> int:
        return self._board.check(
            lib.g6x_hermite_evolve(self._board.cluster, self._hermite, evolution)
        )

    def state(self) -> State:
        """Copies of the arrays, by name."""
        return {name: getattr(self, name).copy() for name in STATE}

    def put(self, state: Mapping[str, ArrayLike]) -> None:
        """Take arrays over, by name."""
        for name, values in state.items():
            getattr(self, name)[:] = values
        self._sent = False

    def latest(self) -> float:
        """The latest of the bodies' times, at least 0."""
        return float(self.t.max(initial=0.0))

    def start(self, eta_start: float) -> None:
        """Take forces at time 0 and choose the first steps.

        A step is the largest power-of-two fraction of the largest step that is not above
        eta_start min(|a| / |da/dt|, sqrt(-pot) / |a|); the second term is for bodies at rest,
        whose da/dt is zero.
        """
        self._send()
        block = self._block
        self._predict_all(0.0)
        self._force_all(0.0)
        self.acc[:], self.jerk[:] = block.acc, block.jerk
        a, j = (np.sqrt((d * d).sum(axis=1)) for d in (self.acc, self.jerk))
        with np.errstate(divide="ignore", invalid="ignore"):
            requested = eta_start * np.fmin(a / j, np.sqrt(np.abs(block.pot)) / a)
        _, smallest, largest = self.rule
        level = np.frexp(np.where(requested < largest, requested, largest) / largest)[1] - 1
        self.dt[:] = np.maximum(np.ldexp(largest, np.minimum(level, 0)), smallest)
        self._sent = False

    def at(self, time: float) -> tuple[Floats, Floats]:
        """Positions and velocities of all bodies at a time not after the next block's.

        Who is not there yet is brought there by a step of the same scheme, which is then
        forgotten: when one looks does not change what will be seen later.
        """
        if not (self.t == time).all():
            if self._evolution.ni:  # of a block that was left half way
                self._sent = False
            self._ready()
            self._predict_all(time)
            self._force_all(time)
            self._correct_all(time)
            return self._block.xi.copy(), self._block.vi.copy()
        return self.pos.copy(), self.vel.copy()

    def _predict_all(self, time: float) -> None:
        h = self._hermite
        self._block.address[:] = self._everybody
        state = h.t, h.x, h.v, h.a, h.j
        check(lib.g6x_hermite_predict(h.n, h.address, time, *state, h.xi, h.vi))

    def _force_all(self, time: float) -> None:
        h, nj, board = self._hermite, len(self.mass), self._board
        began = clock.perf_counter()
        board.set_time(time)
        for rows in board.chunks(nj, nj):
            k, radii = rows.start, pointer(self._radii[rows])
            call = board.cluster, nj, rows.stop - k, h.address + k, h.xi + k, h.vi + k
            sums = h.acc + k, h.jerk + k, h.pot + k
            board.check(lib.g6calc_firsthalf(*call, *sums, self._eps2, radii))
            board.check(lib.g6calc_lasthalf(*call, self._eps2, radii, *sums))
        self.force_seconds += clock.perf_counter() - began

    def _correct_all(self, time: float) -> None:
        """To xi and vi; the bodies stay where they are, so that no error of acc is asked for."""
        h = self._hermite
        state = h.t, ffi.NULL, h.x, h.v, h.a, h.j
        forces = h.acc, h.jerk, ffi.NULL
        check(
            lib.g6x_hermite_correct(h.n, h.address, time, *self.rule, *forces, *state, h.xi, h.vi)
        )

    def _send(self) -> None:
        """Send everybody, after a start or an interruption."""
        self._evolution.ni = 0
        derivatives = None, self.jerk / 6, self.acc / 2
        self._board.write(None, None, self.t, self.mass, *derivatives, self.vel, self.pos)
