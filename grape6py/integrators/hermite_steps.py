"""Block steps: the bodies' own times and derivatives, moved one block at a time.

Forces come from a session of the library (``session.py``). :class:`HostBlocks` keeps the bodies in
NumPy arrays; predictor, corrector and the rule of the steps are the library's ``g6x_hermite_*``
(csrc/core/hermite.c). Their arguments lie in arrays that are made once, so that a step of a small
block costs little besides the force. For bodies on a CUDA device see ``hermite_device.py``.
"""

import math
import time as clock
from types import SimpleNamespace

import numpy as np

from grape6py._lib.library import check, ffi, lib, pointer
from grape6py.errors import NotOpenError

# Arrays by body, in which the whole state of the integration lies.
STATE = {"t": (), "dt": (), "pos": (3,), "vel": (3,), "acc": (3,), "jerk": (3,)}

# Of the bodies of a block, in their first entries: what goes to the board and comes back.
_BLOCK = {"t": (), "mass": (), "h2": (), "pos": (3,), "vel": (3,), "a2": (3,), "j6": (3,)}
_BLOCK |= {"acc": (3,), "jerk": (3,), "pot": (), "noise": ()}

# Error of a pair term, by mode.
_ROUNDING = {"grape": 2.0**-24, "single": 2.0**-24, "double": 2.0**-52}


class Blocks:
    """n bodies, each at its own time, moved block by block.

    Where the arrays are, and what computes with them, is the subclasses' business. The session of
    `board`, in mode `precision`, holds nothing else. `rule` is eta of Aarseth's criterion, smallest
    step, largest step; each of the corrector passes has a force call.
    """

    def __init__(self, board, precision, mass, rule, passes, eps):
        self.mass, self.rule, self.passes, self._eps2 = mass, rule, passes, eps * eps
        self._board = board
        self.steps = self.blocks = 0  # bodies and blocks moved
        self.held = 0  # steps that the smallest step kept longer than the criterion asked
        self.force_seconds = 0.0
        self._sent = False  # whether the board has the bodies as they are
        # The error of a force is that of its terms. Their sum without signs is at least pot^2
        # over the mass of the others (Cauchy and Schwarz).
        others = np.maximum(math.fsum(mass) - mass, 0.0)
        rounding = np.full(len(mass), _ROUNDING[precision])
        self._rounding = np.divide(rounding, others, out=np.zeros(len(mass)), where=others > 0)

    def step(self, time):
        """Move the block of `next_time()`.

        Whatever stops it half way, Ctrl-C or an error, leaves every body as it was before it
        or after it.
        """
        self._ready()
        self._sent = False
        n = self._select(time)
        self._predict(n, time)
        for left in reversed(range(self.passes)):
            self._force(n, time)
            self._advance(n, time, move=left == 0)
        self._sent = True
        self.steps += n
        self.blocks += 1

    def _ready(self):
        if not self._board.is_open:  # its id may be another session's by now
            raise NotOpenError("this integration is closed; make a new Hermite()")
        if not self._sent:
            self._send()
            self._sent = True


class HostBlocks(Blocks):
    """Bodies in NumPy arrays, by the names of STATE: each at its time t."""

    def __init__(self, board, precision, mass, rule, passes, eps):
        super().__init__(board, precision, mass, rule, passes, eps)
        n = len(mass)
        for name, shape in STATE.items():
            setattr(self, name, np.zeros((n, *shape)))
        self._own = _pointers({name: getattr(self, name) for name in STATE})
        self._everybody = np.arange(n, dtype=np.int32)
        block = {name: np.zeros((n, *shape)) for name, shape in _BLOCK.items()}
        block |= {"address": self._everybody.copy()}
        block["h2"][:] = -1.0  # no neighbour lists
        self._block, self._at = SimpleNamespace(**block), _pointers(block)

    def state(self):
        """Copies of the arrays, by name."""
        return {name: getattr(self, name).copy() for name in STATE}

    def put(self, state):
        """Take arrays over, by name."""
        for name, values in state.items():
            getattr(self, name)[:] = values
        self._sent = False

    def latest(self):
        """The latest of the bodies' times, at least 0."""
        return float(self.t.max(initial=0.0))

    def next_time(self):
        """Time of the next block; infinite without bodies."""
        return float(self._ends().min(initial=np.inf))

    def _ends(self):
        """Times at which the bodies' steps end.

        Steps that all share need not be a power of two; their times are multiples, not sums.
        """
        _, smallest, largest = self.rule
        if smallest == largest:
            return (np.rint(self.t / largest) + 1) * largest
        return self.t + self.dt

    def start(self, eta_start):
        """Take forces at time 0 and choose the first steps.

        A step is the largest power-of-two fraction of the largest step that is not above
        eta_start min(|a| / |da/dt|, sqrt(-pot) / |a|); the second term is for bodies at rest,
        whose da/dt is zero.
        """
        self._send()
        n, block = self._take(self._everybody), self._block
        self._predict(n, 0.0)
        self._force(n, 0.0)
        self.acc[:], self.jerk[:] = block.acc, block.jerk
        a, j = (np.sqrt((d * d).sum(axis=1)) for d in (self.acc, self.jerk))
        with np.errstate(divide="ignore", invalid="ignore"):
            wanted = eta_start * np.fmin(a / j, np.sqrt(np.abs(block.pot)) / a)
        _, smallest, largest = self.rule
        level = np.frexp(np.where(wanted < largest, wanted, largest) / largest)[1] - 1
        self.dt[:] = np.maximum(np.ldexp(largest, np.minimum(level, 0)), smallest)
        self._sent = False

    def at(self, time):
        """Positions and velocities of all bodies at a time not after the next block's.

        Who is not there yet is brought there by a step of the same scheme, which is then
        forgotten: when one looks does not change what will be seen later.
        """
        if not (self.t == time).all():
            self._ready()
            n = self._take(self._everybody)
            self._predict(n, time)
            self._force(n, time)
            self._correct(n, time, move=False)
            return self._block.pos.copy(), self._block.vel.copy()
        return self.pos.copy(), self.vel.copy()

    def _select(self, time):
        return self._take(np.flatnonzero(self._ends() == time))

    def _take(self, address):
        n = len(address)
        self._block.address[:n] = address
        return n

    def _predict(self, n, time):
        own, at = self._own, self._at
        check(
            lib.g6x_hermite_predict(
                n, at.address, time, own.t, own.pos, own.vel, own.acc, own.jerk, at.pos, at.vel
            )
        )

    def _force(self, n, time):
        nj, at, board = len(self.mass), self._at, self._board
        began = clock.perf_counter()
        board.set_time(time)
        for rows in board.chunks(n, nj):
            k, ni = rows.start, rows.stop - rows.start
            call = board.cluster, nj, ni, at.address + k, at.pos + k, at.vel + k
            sums = at.acc + k, at.jerk + k, at.pot + k
            board.check(lib.g6calc_firsthalf(*call, *sums, self._eps2, at.h2 + k))
            board.check(lib.g6calc_lasthalf(*call, self._eps2, at.h2 + k, *sums))
        self.force_seconds += clock.perf_counter() - began

    def _correct(self, n, time, *, move):
        block, own, at = self._block, self._own, self._at
        np.take(self._rounding, block.address[:n], out=block.noise[:n])
        block.noise[:n] *= block.pot[:n] ** 2
        self.held += check(
            lib.g6x_hermite_correct(
                n, at.address, time, *self.rule, at.acc, at.jerk, at.noise,
                own.t, own.dt if move else ffi.NULL, own.pos, own.vel, own.acc, own.jerk,
                at.pos, at.vel,
            )
        )  # fmt: skip

    def _advance(self, n, time, *, move):
        self._correct(n, time, move=move)
        self._write(n, time)

    def _write(self, n, time):
        """Send the block to the board, as it stands in the arrays of the block."""
        block, at = self._block, self._at
        block.t[:n] = time
        np.take(self.mass, block.address[:n], out=block.mass[:n])
        np.divide(block.acc[:n], 2, out=block.a2[:n])
        np.divide(block.jerk[:n], 6, out=block.j6[:n])
        self._board.check(
            lib.g6x_set_j_particles(
                self._board.cluster, n, at.address, ffi.NULL, at.t, ffi.NULL, at.mass,
                ffi.NULL, at.j6, at.a2, at.vel, at.pos,
            )
        )  # fmt: skip

    def _send(self):
        """Send everybody, after a start or an interruption."""
        block = self._block
        for name in ("pos", "vel", "acc", "jerk"):
            getattr(block, name)[:] = getattr(self, name)
        self._write(self._take(self._everybody), self.t)


def _pointers(arrays):
    """Pointers to the first entries of arrays, which must live as long."""
    return SimpleNamespace(**{name: pointer(array) + 0 for name, array in arrays.items()})
