"""Bodies of a Hermite integration in NumPy arrays, and what a block step does with them.

Of a GPU's arrays hermite_device.py has the same. Forces come from a session of the library
(``grape6.py``); its call ``g6x_hermite_evolve`` (csrc/session/hermite.c) makes many blocks.

Bodies and derivatives are the same on all ranks, to the last bit, and so is all that is decided by
them; what is shared out is the sum over the j particles, which is nearly all of the work (Harfst
and others 2007, New Astronomy 12, 357: the copy algorithm).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grape6py._arrays.kinds import AnyArray, CData, DeviceArray, Floats, Int64s, Shapes, Untyped
from grape6py._lib.library import check, ffi, lib, pointer
from grape6py._lib.partial_rows import WORDS, words_pointer
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.share import Share
from grape6py.ranks.sums import merge_rows

if TYPE_CHECKING:
    from grape6py._lib.cluster import Board
    from grape6py.integrators.external import External
    from grape6py.ranks.ranks import Ranks

# Arrays by body, in which the whole state of the integration lies.
STATE: Shapes = {"t": (), "dt": (), "pos": (3,), "vel": (3,), "acc": (3,), "jerk": (3,)}

# Of bodies in a field whose frame moves: its work per mass since the epoch, its power and the
# derivative of that at t.
WORK: Shapes = {"work": (), "power": (), "rate": ()}

# Of the bodies of a block, in their first rows; what is watched; in a field; the library's names.
_BLOCK: Shapes = {"xi": (3,), "vi": (3,), "acc": (3,), "jerk": (3,),
                  "pot": (), "close": (), "left": ()}  # fmt: skip
_OUTSIDE: Shapes = {"field_acc": (3,), "field_jerk": (3,)}
_NAMES = {"t": "t", "dt": "dt", "pos": "x", "vel": "v", "acc": "a", "jerk": "j"}

# The time of members of subsystems that carry nothing is beyond this.
_NEVER = 2.0**999

# Error of a pair term, and of a position whose difference is computed as it is, by mode. Where mode
# auto sums in double, the library knows it.
_NOISE = {"grape": (2.0**-24, 0.0), "single": (2.0**-24, 2.0**-24), "double": (2.0**-52, 0.0)}
_NOISE["auto"] = _NOISE["grape"]


class Setup(NamedTuple):
    """What block steps depend on, besides the bodies' places and velocities.

    `rule` is eta of Aarseth's criterion, smallest step, largest step; each of the corrector passes
    has a force call. The session of `board`, in mode `precision`, holds nothing else. All
    `ranks` have the same bodies, and share the sums.
    """

    board: Board
    precision: str
    mass: Floats
    rule: tuple[float, float, float]
    passes: int
    eps: float = 0.0
    G: float = 1.0
    external: External | None = None
    ranks: Ranks = ONE
    subsystems: bool = False


class HostArrays:
    """NumPy's arrays: `own` by body, each at its time t, and `block` of the bodies of a block.

    `mass` is that of the rows, times G; the first `acting` of them have some. `rounding` is the
    error of a force by the square of the potential, `struct` all of it for the library.
    """

    xp: Untyped = np
    corrector_adds_field = False

    def __init__(self, setup: Setup, mass: Floats, acting: int) -> None:
        self.n, self.acting, self._setup, self._board = len(mass), acting, setup, setup.board
        self._ranks, self._eps2 = setup.ranks, setup.eps * setup.eps
        external, noise = setup.external, _NOISE[setup.precision]
        # The error of a force is that of its terms. Their sum without signs is at least the force,
        # and pot^2 over the mass of the others (Cauchy and Schwarz).
        others = np.maximum(math.fsum(mass) - mass, 0.0)
        self.rounding = np.zeros(self.n)
        np.divide(noise[0], others, out=self.rounding, where=others > 0)
        shapes = STATE if external is None or external.orbit_frame is None else STATE | WORK
        with self.using():
            self.own, self.block = (
                {name: self.xp.full((self.n, *shape), 0.0) for name, shape in of.items()}
                for of in (shapes, _BLOCK if external is None else _BLOCK | _OUTSIDE)
            )
            self._everybody, self.block["address"], self.block["nearest"] = (
                self.xp.asarray(np.arange(self.n, dtype=np.int32)) for _ in range(3)
            )
            self.mass = self.xp.asarray(np.ascontiguousarray(mass))
            given = {"mass": self.mass, "rounding": self.xp.asarray(self.rounding)}
        arrays = {_NAMES.get(name, name): array for name, array in self.own.items()}
        arrays |= given | self.block
        pointers = {name: self._pointer(array) for name, array in arrays.items()}
        self._kept = given, pointers
        eta, smallest, largest = setup.rule
        rule = {"n": self.n, "eta": eta, "dtmin": smallest, "dtmax": largest}
        rule["massless"], rule["noise"], rule["place"] = self.n - acting, *noise
        rule["subsystems"] = setup.subsystems
        if external is not None:
            rule["field"] = external.c
        self.struct = ffi.new("struct g6x_hermite *", rule | pointers)
        self._share()

    def _share(self) -> None:
        """Have partial rows, if there are other ranks, and a part of the j particles to sum."""
        ranks, h = self._ranks, self.struct
        self._first, self._end = Share(self.acting, ranks.size).of(ranks.rank)
        self._radii = np.full(self.n, -1.0)  # no neighbour lists
        self._words: Int64s | None = None
        if ranks.size > 1:
            self._words = np.zeros((self.n, WORDS), np.int64)
            h.words, h.share_first, h.share_end = (
                words_pointer(self._words), self._first, self._end)  # fmt: skip

    def using(self) -> contextlib.AbstractContextManager[Untyped]:
        """Context in which arrays are made and used."""
        return contextlib.nullcontext()

    def _pointer(self, array: DeviceArray) -> CData:
        return pointer(array)

    def fetch(self, array: AnyArray) -> AnyArray:
        """NumPy's copy of an array."""
        return array.copy()

    def put(self, state: Mapping[str, AnyArray]) -> None:
        """Take NumPy's arrays over, by name."""
        with self.using():
            for name, array in state.items():
                self.own[name][...] = self.xp.asarray(np.ascontiguousarray(array))

    @property
    def latest(self) -> float:
        """The latest of the bodies' times."""
        return float(self.own["t"][self.carriers].max(initial=0.0))

    @property
    def carriers(self) -> AnyArray:
        """Rows of single bodies, and those that carry the centre of mass of a subsystem."""
        rows: AnyArray = self._everybody
        if self._setup.subsystems:
            rows = np.flatnonzero(self.own["t"] < _NEVER).astype(np.int32)
        return rows

    @property
    def subsystems(self) -> Floats:
        """All that an integration goes on from with the same subsystems."""
        call = lib.g6x_subsystems_get, self._board.cluster, self.struct
        if not self._setup.subsystems:
            return np.zeros(0)
        found = np.zeros(self._board.check(call[0](*call[1:], 0, ffi.NULL)))
        self._board.check(call[0](*call[1:], len(found), pointer(found)))
        return found

    @subsystems.setter
    def subsystems(self, state: Floats) -> None:
        given = len(state), pointer(np.ascontiguousarray(state, float))
        self._board.check(lib.g6x_subsystems_put(self._board.cluster, self.struct, *given))

    def find_subsystems(self) -> tuple[AnyArray, Floats]:
        """Who carries each body's subsystem, or itself; and elements of those that carry some."""
        carrier, elements = np.arange(self.n, dtype=np.int32), np.full((self.n, 6), np.nan)
        if self._setup.subsystems:
            to = ffi.cast("double (*)[6]", pointer(elements))
            call = self._board.cluster, self.struct, pointer(carrier), to
            self._board.check(lib.g6x_subsystems(*call))
        return carrier, elements

    def evolve(self, evolution: CData) -> int:
        """Let the library move blocks."""
        cluster = self._board.cluster
        return self._board.check(lib.g6x_hermite_evolve(cluster, self.struct, evolution))

    def merge(self, e: CData) -> None:
        """Bring together what the ranks have summed of the block under way."""
        self._merge_rows(e.ni)
        if e.closer or self._setup.subsystems:
            self._merge_nearest(e.ni, e.next)

    def _merge_rows(self, ni: int) -> None:
        """The partial rows of all ranks, to acc, jerk and pot of the block."""
        assert self._words is not None
        h, words = self.struct, self._words[:ni]
        merge_rows(self._ranks, words)
        check(lib.g6x_from_partial(ni, words_pointer(words), h.acc, h.jerk, h.pot))

    def _merge_nearest(self, ni: int, time: float) -> None:
        """The nearest of those that the ranks have found; at equal distances the first one."""
        address, nearest, xi = (self.block[name][:ni] for name in ("address", "nearest", "xi"))
        found = np.empty((self._ranks.size, ni), np.int32)
        self._ranks.comm.Allgather(np.ascontiguousarray(nearest), found)
        best = np.full(ni, np.inf)
        pos, vel = np.empty((ni, 3)), np.empty((ni, 3))
        for near in found:
            self._predicted(ni, pointer(near), time, pointer(pos), pointer(vel))
            r2 = ((pos - xi) ** 2).sum(axis=1)
            r2[near == address] = np.inf  # nobody else is there
            nearer = r2 < best
            best[nearer], nearest[nearer] = r2[nearer], near[nearer]

    def choose(self, rows: AnyArray | None = None) -> int:
        """Let a block be of some rows, or of all; how many they are."""
        with self.using():
            rows = self._everybody if rows is None else rows
            self.block["address"][: len(rows)] = rows
        return len(rows)

    def predict(self, ni: int, time: float) -> None:
        """The first rows of the block."""
        h = self.struct
        self._predicted(ni, h.address, time, h.xi, h.vi)

    def _predicted(self, ni: int, rows: CData, time: float, pos: CData, vel: CData) -> None:
        h = self.struct
        check(lib.g6x_hermite_predict(ni, rows, time, h.t, h.x, h.v, h.a, h.j, pos, vel))

    def sums(self, ni: int, time: float) -> None:
        """Forces of the bodies on the first rows of the block."""
        h, board, nj = self.struct, self._board, self._end - self._first
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
        if self._setup.subsystems:
            board.check(lib.g6x_hermite_pull(board.cluster, h, ni, time))

    def unfold(self, rows: AnyArray, time: float, found: list[Floats]) -> list[Floats]:
        """Places, velocities, accelerations and jerks of all bodies, from those of what carries."""
        if not self._setup.subsystems:
            return found
        every = [np.zeros((self.n, 3)) for _ in found]
        for to, array in zip(every, found, strict=True):
            to[rows] = array[: len(rows)]
        call = self._board.cluster, self.struct, time, *map(pointer, every)
        self._board.check(lib.g6x_hermite_unfold(*call))
        return every

    def add_field(self, ni: int, time: float) -> None:
        """Add the field to the forces on the first rows of the block."""
        check(lib.g6x_hermite_add_field(self.struct, ni, time))

    def correct(self, ni: int, time: float) -> None:
        """The first rows of the block, to xi and vi; they stay, so that no error of acc matters."""
        h, none, rule = self.struct, ffi.NULL, self._setup.rule
        state = h.t, none, h.x, h.v, h.a, h.j, h.xi, h.vi
        check(lib.g6x_hermite_correct(ni, h.address, time, *rule, h.acc, h.jerk, none, *state))

    def steps_if(self, step: float, time: float, rows: AnyArray, roundoff: Floats) -> Floats:
        """Steps that the bodies of the block would have after this one, which ends at a time."""
        h = self.struct
        moved = {name: self.own[name].copy() for name in STATE}
        moved["dt"][rows] = step
        given = h.acc, h.jerk, pointer(roundoff), *map(pointer, moved.values()), h.xi, h.vi
        check(lib.g6x_hermite_correct(len(rows), h.address, time, *self._setup.rule, *given))
        steps: Floats = moved["dt"][rows]
        return steps

    def begin_work(self, ni: int, time: float) -> None:
        """Of the first rows of the block, from a time on."""
        if "work" in self.own:
            check(lib.g6x_hermite_work(self.struct, ni, time, ffi.NULL))

    def work_until(self, time: float) -> Floats:
        """Since the epoch, when all bodies have been brought to a time."""
        carriers, work = self.carriers, self.own["work"].copy()
        if not (self.own["t"][carriers] == time).all():
            found = np.empty(len(carriers))
            check(lib.g6x_hermite_work(self.struct, len(carriers), time, pointer(found)))
            work[carriers] = found
        shared: Floats = work[self.find_subsystems()[0]]
        return shared

    def send(self) -> None:
        """Send everybody who acts, after a start or an interruption."""
        nj, board, own = self.acting, self._board, self.own
        who = self.find_subsystems()[0][:nj]
        arrays = (own["t"][who], self.mass[:nj], own["jerk"][who] / 6, own["acc"][who] / 2,
                  own["vel"][who], own["pos"][who])  # fmt: skip
        if self._words is None:
            t, mass, *derivatives = arrays
            board.write(None, None, t, mass, None, *derivatives)
        else:
            given = (ffi.NULL if nj == 0 else pointer(np.ascontiguousarray(a)) for a in arrays)
            board.check(lib.g6x_share_particles(board.cluster, nj, self._first, self._end, *given))
        if self._setup.subsystems:
            self.subsystems = self.subsystems
