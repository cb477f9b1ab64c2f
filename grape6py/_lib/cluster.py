"""One session of libgrape6.so: its C calls, with arrays and exceptions for arguments.

What is handed in has been checked already (``_arrays/validate.py``); which particles there are is
kept elsewhere (``_lib/address_table.py``).
"""

import collections
import contextlib
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import ArrayModule, Attributes, CData, Floats, Int32s, Int64s, Singles
from grape6py._lib.library import check, ffi, lib, pointers, text
from grape6py._lib.neighbours import Neighbours, joined
from grape6py._lib.partial_rows import WORDS, words_pointer
from grape6py.errors import NotOpenError

# Between two chunks of targets Ctrl-C works: about a second of one core's work.
CHUNK_PAIRS = 2**31
CHUNK_ROWS = 65536
TREE_ROWS = 2**22

FEW_NEIGHBOURS = 16  # that most targets have: more are asked for a second time

# Far above the ids that programs use, which are 0 or the number of an MPI rank.
_new_ids = itertools.count(1_000_000)
_released_ids: collections.deque[int] = collections.deque()
_forgotten: collections.deque[int] = collections.deque()  # to be closed, and then released


class Forces(NamedTuple):
    """Forces on ni targets; row i belongs to target i.

    Where the targets lie on a CUDA device the arrays are CuPy's, and lie there too.

    Attributes
    ----------
    acc : ndarray of float64, shape (ni, 3)
        Acceleration.
    jerk : ndarray of float64, shape (ni, 3), or None
        Its time derivative; None if the session was opened with ``jerk=False``.
    pot : ndarray of float64, shape (ni,)
        Potential, negative, not multiplied by the target's mass.
    nearest : ndarray of int32, shape (ni,), or None
        Index of the nearest neighbour if `nn` was asked for; the target's own index if
        there is nobody else.
    distance : ndarray of float32, shape (ni,), or None
        Its distance; 0 if there is nobody else.
    neighbours : Neighbours, or None
        Indices of the neighbours of all targets in one array, if `h` was given; those of target i
        are ``neighbours[i]``, and ``list(neighbours)`` is a list of such arrays.
    """

    acc: Floats
    jerk: Floats | None
    pot: Floats
    nearest: Int32s | None = None
    distance: Singles | None = None
    neighbours: Neighbours | None = None


def empty_forces(ni: int, nn: bool = False, xp: ArrayModule = np) -> Forces:
    """Arrays for the forces on ni targets, without neighbours."""
    near = (xp.empty(ni, np.int32), xp.empty(ni, np.float32)) if nn else ()
    return Forces(xp.empty((ni, 3)), xp.empty((ni, 3)), xp.empty(ni), *near)


class Board:
    """A cluster of the library, open from construction to :meth:`close`.

    Parameters
    ----------
    options : dict of str to int or float
        Values by G6X_* key, in small letters and without that.
    backend : int or None
        G6X_BACKEND_*; None: as GRAPE6_BACKEND says.

    Attributes
    ----------
    cluster : int
        Its id.
    has_particles : bool
        Whether some were written.
    """

    def __init__(self, options: Attributes, backend: int | None) -> None:
        self._options, self._backend = options, -1 if backend is None else backend
        self._device, self.has_particles = -1, False
        self.cluster = _released_ids.popleft() if _released_ids else next(_new_ids)
        self._finalizer = weakref.finalize(self, _release, self.cluster)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        code = lib.g6x_open_on(self.cluster, self._backend, self._device)
        _close_forgotten()
        self.check(code)
        for name, value in self._options.items():
            self.set_option(name, value)

    def check(self, code: int) -> int:
        """Raise the exception for a negative code of a call on this cluster."""
        return check(code, self.cluster)

    def _call(self, function: CData, *arguments: object) -> int:
        return self.check(function(self.cluster, *pointers(*arguments)))

    @property
    def is_open(self) -> bool:
        return self._finalizer.alive

    def check_open(self) -> None:
        """Raise a NotOpenError after :meth:`close`."""
        if not self.is_open:
            raise NotOpenError("this session is closed; make a new Grape6()")

    def close(self) -> None:
        """Release the cluster and its id."""
        self._finalizer()

    def empty(self) -> None:
        """Forget all j particles."""
        lib.g6_close(self.cluster)
        self.has_particles = False
        self._open()

    def move_to(self, device: int) -> int:
        """Number of the CUDA device, -1 on the CPU: this one, if there are no particles yet.

        A rank of MPI keeps its own, and GRAPE6_DEVICES may name others only.
        """
        if not self.has_particles and self.option("DEVICE") not in (-1, device):
            self._device = device
            self.empty()
            self.prepare_for(0, 0)
        return self.option("DEVICE")

    @property
    def name(self) -> str:
        """Backend, and its instruction set or device."""
        return text(lib.g6x_backend, self.cluster)

    def option(self, key: str) -> int:
        """Value of the integer option G6X_<key>."""
        value = ffi.new("int *")
        self.check(lib.g6x_get_int(self.cluster, getattr(lib, f"G6X_{key}"), value))
        return int(value[0])

    def prepare_for(self, ni: int, nj: int) -> None:
        """Decide where calls of so many particles are computed; ni = 0: on a GPU, if any."""
        self.check(lib.g6x_prepare(self.cluster, ni, nj))

    def set_option(self, name: str, value: float) -> None:
        """Set an option, to a float if it is one of those."""
        call = lib.g6x_set_double if isinstance(value, float) else lib.g6x_set_int
        self.check(call(self.cluster, getattr(lib, f"G6X_{name.upper()}"), value))
        self._options[name] = value

    def last_warning(self) -> str:
        """Text of the last warning, empty if none."""
        return text(lib.g6x_last_warning, self.cluster)

    def write(
        self, address: Int32s | None, index: Int32s | None, time: Floats, *arrays: Floats | None
    ) -> None:
        """Write n j particles: `arrays` are mass, k18, j6, a2, vel and pos.

        Address, index, k18, j6, a2 and vel may be None.
        """
        self.has_particles = True
        self._call(lib.g6x_set_j_particles, len(time), address, index, time, None, *arrays)

    def set_time(self, time: float) -> None:
        """Set the time to which the j particles are predicted."""
        self.check(lib.g6_set_ti(self.cluster, time))

    def predicted(self, nj: int) -> tuple[Floats, Floats]:
        """Positions and velocities, (nj, 3) each, of addresses 0 to nj - 1."""
        pos, vel = np.empty((nj, 3)), np.empty((nj, 3))
        self._call(lib.g6_get_predicted_j_particles, nj, pos, vel)
        return pos, vel

    def forces(
        self,
        nj: int,
        index: Int32s,
        pos: Floats,
        vel: Floats,
        eps2: float,
        h2: Floats,
        nn: bool,
        lists: bool,
    ) -> Forces:
        """:class:`Forces` of addresses 0 to nj - 1 on targets, chunk by chunk.

        With `nn` the nearest neighbours are found, with `lists` the neighbour lists are read.
        """
        ni = len(pos)
        out, found = empty_forces(ni, nn), []
        for rows in self.chunks(ni, nj):
            part = Forces._make([*(None if a is None else a[rows] for a in out[:5]), None])
            self.prepare(nj, index[rows], pos[rows], vel[rows], eps2, h2[rows], part)()
            if lists:
                found.append(self.lists(rows.stop - rows.start))
        return out._replace(neighbours=joined(found)) if lists else out

    def partial(self, nj: int, index: Int32s, pos: Floats, vel: Floats, eps2: float) -> Int64s:
        """Partial rows of addresses 0 to nj - 1 on targets, chunk by chunk."""
        words, out = np.zeros((len(pos), WORDS), np.int64), empty_forces(len(pos))
        for rows in self.chunks(len(pos), nj):
            arrays = index[rows], pos[rows], vel[rows]
            sums = pointers(*(None if array is None else array[rows] for array in out[:3]))
            ni = rows.stop - rows.start
            call = pointers(self.cluster, nj, ni, *arrays)
            self.check(lib.g6calc_firsthalf(*call, *sums, eps2, *pointers(np.full(ni, -1.0))))
            self.check(lib.g6x_get_partial(self.cluster, ni, words_pointer(words[rows])))
        return words

    def scale(self, nj: int) -> tuple[int, int, int, tuple[float, ...], tuple[float, ...]]:
        """Exponents of length, mass and velocity, origin and drift that a force call would use."""
        exponent, origin, drift = ffi.new("int[3]"), ffi.new("double[3]"), ffi.new("double[3]")
        self.check(lib.g6x_get_scale(self.cluster, nj, exponent))
        self.check(lib.g6x_get_origin(self.cluster, nj, origin, drift))
        length, mass, velocity = exponent
        return length, mass, velocity, tuple(origin), tuple(drift)

    def walks(
        self,
        i_start: Int64s,
        pos: Floats,
        j_start: Int64s,
        chosen: Int32s | None,
        source_pos: Floats,
        mass: Floats,
        eps2: float,
    ) -> tuple[Floats, Floats]:
        """Accelerations and potentials of the targets of all walks; NaN for those of none."""
        acc, pot = np.full((len(pos), 3), np.nan), np.full(len(pos), np.nan)
        given = len(i_start) - 1, i_start, pos, j_start, chosen, len(mass), source_pos, mass, eps2
        self._call(lib.g6x_walks, *given, acc, pot)
        return acc, pot

    def chunks(self, ni: int, nj: int) -> Iterator[slice]:
        """Slices of ni targets for a call each, after which Ctrl-C works.

        A tree takes many at once: those near each other share its walks.
        """
        whole = "-tree" in self.name
        return chunks(ni, nj, TREE_ROWS * nj, TREE_ROWS) if whole else chunks(ni, nj)

    def prepare(
        self, nj: int, index: Int32s, pos: Floats, vel: Floats, eps2: float, h2: Floats, out: Forces
    ) -> Callable[[], None]:
        """One force call into the arrays of `out`, as a function: all that is left is the C calls.

        Benchmarks call it many times.
        """
        call = pointers(self.cluster, nj, len(pos), index, pos, vel)
        radii, *sums = pointers(h2, *out[:3])
        last, near = lib.g6calc_lasthalf, pointers()
        if out.nearest is not None:
            last, near = lib.g6calc_lasthalf2p, pointers(out.nearest, out.distance)

        def run() -> None:
            self.check(lib.g6calc_firsthalf(*call, *sums, eps2, radii))
            self.check(last(*call, eps2, radii, *sums, *near))

        return run

    def lists(self, ni: int) -> tuple[Int64s, Int32s]:
        """Neighbour lists of the last force call, on ni targets: where they start, and all."""
        start = np.empty(ni + 1, np.int64)
        index = np.empty(FEW_NEIGHBOURS * ni, np.int32)
        few = not self._call(lib.g6x_get_neighbour_lists, ni, len(index), start, index)
        if few:
            return start, index[: start[-1]].copy()
        index = np.empty(start[-1], np.int32)
        self._call(lib.g6x_get_neighbour_lists, ni, len(index), start, index)
        return start, index


def chunks(ni: int, nj: int, pairs: int | None = None, rows: int | None = None) -> Iterator[slice]:
    """Slices of ni targets, after each of which Ctrl-C works."""
    step = min(rows or CHUNK_ROWS, max(64, (pairs or CHUNK_PAIRS) // max(nj, 1)))
    for first in range(0, ni, step):
        yield slice(first, min(first + step, ni))


def _release(cluster: int) -> None:
    """Close a cluster.

    The garbage collector may call this inside a call of the library that has called Python, whose
    locks are held: then it is closed later.
    """
    _forgotten.append(cluster)
    if not lib.g6x_runs_python():
        _close_forgotten()


def _close_forgotten() -> None:
    with contextlib.suppress(IndexError):  # none, or another thread has taken the last
        while True:
            cluster = _forgotten.popleft()
            lib.g6_close(cluster)
            _released_ids.append(cluster)
