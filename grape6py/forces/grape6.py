"""``Grape6``: the board as a Python object. NumPy arrays in, NumPy arrays out; CuPy likewise.

One object is one session (cluster id) of libgrape6.so, the very library that Fortran
and C programs link. Nothing is computed here.
"""

import math
import os
import threading
import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import libraries, validate
from grape6py._arrays.closed import Closed
from grape6py._arrays.kinds import Attributes, Floats, Int32s, Int64s, Numbers, Untyped
from grape6py._lib import memory_space
from grape6py._lib.address_table import AddressTable
from grape6py._lib.cluster import Board, Forces
from grape6py._lib.declarations import BACKENDS, ISAS, PRECISIONS
from grape6py._lib.library import lib
from grape6py._lib.tree_setting import SOFTENINGS
from grape6py.errors import ArgumentError, Grape6Warning
from grape6py.forces.partial import Scale
from grape6py.forces.softened import SoftenedSums
from grape6py.in_units import takes_quantities
from grape6py.ranks.addresses import Addresses
from grape6py.ranks.one_rank import ranks_of
from grape6py.ranks.sums import Sums, Targets
from grape6py.units import Units

__all__ = ["Forces", "Grape6"]

# Above these a message is printed before the wait.
LARGE = 10_000_000
_PAIRS_PER_CPU_SECOND = 2e9
_BYTES_PER_PARTICLE = 300


@takes_quantities
class Grape6(Closed):
    """A session: a set of particles, and the forces of them on any points.

    Use it in a ``with`` statement, or call :meth:`close`. All arguments are optional;
    what is left out is decided by the GRAPE6_* environment variables.

    Parameters
    ----------
    backend : {"auto", "cpu", "cuda", "tree", "cpu-tree", "cuda-tree"}
        Where the sum is done; "auto": as GRAPE6_BACKEND says, by default on a GPU if there is one.
        "cpu-tree" is an octree, "cuda-tree" one on a GPU, "tree" that one if there is a GPU.
    precision : {"auto", "grape", "double", "single"}
        "grape": positions in pairs of single precision numbers and pair terms in single. "double",
        "single": all in that. "auto" (the default): as "grape", but in double for targets whose own
        particle has ``acc`` and ``jerk`` that say that the time since its own is less than about a
        hundredth of its time scale, so that roundoff shortens no step.
    threads : int
        Threads of a force call; 0 for as many as the process may use.
    isa : {"best", "base", "avx2", "avx512", "neon"}
        Instruction set of the CPU backend.
    jerk, snap : bool
        False: no jerk is requested; the snap is not used in the prediction.
    neighbour_self : bool
        True: a particle is in its own neighbour list.
    verify : float
        Fraction of the rows to recompute and compare, 0 to 1.
    theta : float
        Opening angle of a tree, 0 to 1; 0: the direct sum.
    softening : {"plummer", "spline"}
        The law of force, as in :class:`Tree`. Splines, and particles with their own `eps`, are
        summed in double, without `precision`; not with `comm` or by a tree, which :class:`Tree` is.
    comm : Intracomm of mpi4py, optional
        All of its ranks make the same calls. The particles that they give are those of one session,
        one rank's behind the other's, of which each rank sums a share. Each rank gets the forces on
        its own targets, or particles, with the bits of one rank. Direct sums only.

    Raises
    ------
    ArgumentError
        (a ValueError) for an unknown option or one that this machine lacks.
    BackendError
        (a RuntimeError) if the backend cannot be had.

    Examples
    --------
    >>> from grape6py import Grape6, plummer
    >>> with Grape6() as grape:
    ...     grape.set_particles(*plummer(1024, seed=1))
    ...     acc, jerk, pot, *_ = grape.forces(eps=1 / 256)
    """

    def __init__(
        self,
        *,
        units: Units | None = None,
        backend: str = "auto",
        precision: str | None = None,
        threads: int | None = None,
        isa: str | None = None,
        jerk: bool | None = None,
        snap: bool | None = None,
        neighbour_self: bool | None = None,
        verify: float | None = None,
        theta: float | None = None,
        softening: str = "plummer",
        comm: Untyped = None,
    ) -> None:
        del units  # of takes_quantities
        self._softened = SoftenedSums(spline=validate.choice("softening", softening, SOFTENINGS))
        ranks = ranks_of(comm)
        with ranks.agreement("Grape6()"):
            number = validate.choice("backend", backend, BACKENDS) or None  # of the environment
            options: Attributes = {"threads": threads, "jerk": jerk, "snap": snap}
            options["neighbour_self"] = neighbour_self
            if precision is not None:
                options["precision"] = validate.choice("precision", precision, PRECISIONS)
            if isa is not None:
                options["isa"] = validate.choice("isa", isa, ISAS)
            options = {k: validate.integer(k, v) for k, v in options.items() if v is not None}
            fractions = {"verify": verify, "theta": theta}
            options |= {k: validate.number(k, v) for k, v in fractions.items() if v is not None}
            if options.get("theta") and backend in ("cpu", "cuda"):
                raise ArgumentError(f"theta is a tree's, but backend = {backend!r} is none")
            self._board = Board(options, number)
            if comm is not None and "tree" in self._board.name:
                raise ArgumentError("comm= has direct sums: a tree of all ranks is Tree(comm=...)")
            if self._softened.are_needed:
                self._check_own_softening(ranks.comm)
            self._has_jerk = bool(self._board.option("JERK"))
        self._lock = threading.RLock()
        self._table = AddressTable()  # of this rank's particles
        self._ranks, self._addresses = ranks, Addresses(ranks)
        self._sums = Sums(ranks, self._board, self._addresses)
        self._time = 0.0
        self._device: int | None = None  # CUDA's number of that where the particles came from
        self._library: str | None = None  # whose arrays they came in
        self._warned = False

    def __enter__(self) -> Self:
        self._board.check_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self._board.is_open:
            return "<Grape6, closed>"
        return f"<Grape6 on {self.backend}, mode {self.precision}, {self.n} particles>"

    def close(self) -> None:
        """Release the session with its particles. Closing twice is fine."""
        self._board.close()

    @property
    def backend(self) -> str:
        """Name of the backend and of its instruction set or device: "cpu avx512"."""
        self._board.check_open()
        return self._board.name

    @property
    def precision(self) -> str:
        """Arithmetic mode: "auto", "grape", "double" or "single"."""
        self._board.check_open()
        value = self._board.option("PRECISION")
        return next(name for name, number in PRECISIONS.items() if number == value)

    @property
    def threads(self) -> int:
        """Threads of a force call; 0 may be written for as many as the process may use."""
        self._board.check_open()
        return self._board.option("THREADS") or int(lib.g6x_threads())

    @threads.setter
    def threads(self, value: int) -> None:
        self._board.check_open()
        self._board.set_option("threads", validate.integer("threads", value))

    @property
    def n(self) -> int:
        """Number of particles; with `comm` those of all ranks."""
        if self._ranks.size > 1:
            return self._addresses.n
        return int(np.count_nonzero(self._table.written))

    @property
    def index(self) -> Int32s:
        """Indices of the particles in the order of their addresses; int32, shape (n,).

        With `comm` those of this rank's share.
        """
        return self._table.labels[self._table.written]

    @property
    def time(self) -> float:
        """Time to which the particles are predicted unless `forces` gets another time."""
        return self._time

    def set_particles(
        self,
        mass: Numbers,
        pos: Numbers,
        vel: Numbers | None = None,
        acc: Numbers | None = None,
        jerk: Numbers | None = None,
        snap: Numbers | None = None,
        time: Numbers = 0.0,
        *,
        eps: Numbers | None = None,
        index: Numbers | None = None,
        address: Numbers | None = None,
    ) -> None:
        """Replace all particles, or those at some addresses.

        Parameters
        ----------
        mass : float or array_like, shape (n,)
        pos : array_like, shape (n, 3)
        vel, acc, jerk, snap : array_like, shape (n, 3), optional
            Velocity and the derivatives from which the particles are predicted; zero
            if left out, also in an update.
        time : float or array_like, shape (n,)
            Time at which these hold.
        eps : array_like, shape (n,), optional
            Each particle's own softening length; a pair has sqrt(eps_i^2 + eps_j^2), or the larger
            one of "spline". In an update, zero if left out. An update has it only if all had.
        index : array_like of int, shape (n,), optional
            Labels; a target and a particle of equal index do not interact. By default
            the address, or in an update what the address had.
        address : array_like of int, shape (n,), optional
            Write these addresses and leave the others alone. Without, the n particles
            at addresses 0 to n - 1 are all there is.

        Arrays of the session's CUDA device (CuPy's, or with ``__cuda_array_interface__`` or DLPack)
        stay there, and are read on CuPy's current stream. If one of the arguments is such an array,
        those of the host are copied to its device. A session on the CPU copies them to the host.

        Raises
        ------
        ArgumentError, NotFiniteError
            (ValueErrors) for wrong shapes, NaN and infinities. Nothing is changed.
        AddressError
            (an IndexError) for a negative address.
        SizeError
            (an OverflowError) for numbers beyond 32 bits.
        OutOfMemoryError
            (a MemoryError); the old particles are intact.
        """
        given = {"mass": mass, "pos": pos, "vel": vel, "acc": acc, "jerk": jerk, "snap": snap}
        given |= {"time": time, "index": index, "address": address, "eps": eps}
        if eps is not None:
            self._check_own_softening(self._ranks.comm)
        ranks = self._ranks
        with self._lock, ranks.agreement("set_particles()"), self._place(given) as place:
            with ranks.agreement("the particles") as agreement:
                validate.order("set_particles(mass, pos)", mass, pos)
                kinds = address is not None, index is not None
                agreement.same("whether address and index are given", *kinds)
                x: Untyped = place.any_floats("pos", pos, (None, 3))
                n = len(x)
                if address is not None:
                    address = validate.ints("address", place.on_host("address", address), n)
                    self._addresses.check(address)
                if index is not None:
                    index = validate.ints("index", place.on_host("index", index), n)
                elif ranks.size == 1:
                    new = np.arange(n, dtype=np.int32)
                    index = new if address is None else self._table.labels_of(address)
                mass = place.floats("mass", mass, (n,), index)
                x = place.floats("pos", x, (n, 3), index)
                time = place.floats("time", time, (n,), index)
                vel = None if vel is None else place.floats("vel", vel, (n, 3), index)
                a2 = None if acc is None else place.floats("acc", acc, (n, 3), index) / 2
                j6 = None if jerk is None else place.floats("jerk", jerk, (n, 3), index) / 6
                k18 = None if snap is None else place.floats("snap", snap, (n, 3), index) / 18
                own_mass = own_eps = None
                if eps is not None:
                    host = memory_space.HostPlace(None)
                    own_eps = validate.lengths_of(host, place.on_host("eps", eps), n)
                    if address is not None and len(self._table) and not self._softened.are_needed:
                        raise ArgumentError(
                            "the particles were given without eps: give all of them with eps "
                            "before some are given again with theirs"
                        )
                if eps is not None or self._softened.are_needed:
                    own_mass = place.on_host("mass", mass)
                columns: Untyped = index, time, mass, k18, j6, a2, vel, x
                latest = agreement.maximum(columns[1].max() if n else -math.inf)
            if n >= LARGE and ranks.size == 1:
                _warn(
                    f"{n} particles: about {n * _BYTES_PER_PARTICLE / 1e9:.0f} GB of memory, "
                    f"and {_duration(n, n)} for the forces on all of them"
                )
            at: Untyped
            at, (label, *columns) = self._addresses.brought(address, columns)
            label = self._table.labels_of(at) if label is None else label
            if at is None and len(self._table) > len(label):
                # What lies above must not come back when the set grows again.
                place.check()
                self._board.empty()
            self._sums.has_scale = False
            place.write(at, label, *columns)
            self._softened.set(at, n, own_mass, own_eps)
            self._device, self._library = place.device, libraries.library_of(given.values())
            if at is None:
                self._table.replace(label)
                self._time = latest.value if latest.value > -math.inf else 0.0
            else:
                self._table.update(at, label)
                self._time = max(self._time, latest.value)

    def forces(
        self,
        pos: Numbers | None = None,
        vel: Numbers | None = None,
        index: Numbers | None = None,
        *,
        eps: float = 0.0,
        time: float | None = None,
        nn: bool = False,
        h: Numbers | None = None,
        same: bool = False,
    ) -> Forces:
        """Force of the particles on some targets.

        Parameters
        ----------
        pos, vel : array_like, shape (ni, 3), optional
            Targets at `time`; `vel` is zero by default. Without `pos` the particles
            themselves are the targets, predicted to `time`, in the order of addresses.
        index : array_like of int, shape (ni,), optional
            Labels of the targets. Without, targets given by `pos` are foreign to all
            particles, and feel also one at their own place.
        eps : float
            Softening length. If particles have their own, that of targets which are none.
        time : float, optional
            Time to which the particles are predicted; by default the last such time or
            the latest time of particles set since, whichever is later.
        nn : bool
            Find the nearest neighbours too.
        h : float or array_like, shape (ni,), optional
            Radius of the neighbour sphere; a neighbour has r^2 + eps^2 <= h^2. Infinite:
            everybody, negative or NaN: nobody.
        same : bool
            With `comm`: all ranks ask for the forces on the same targets, and get them.

        Returns
        -------
        Forces
            With CuPy arrays if one of the arguments lies on a CUDA device or, without `pos`,
            if the particles came from one; these are computed on CuPy's current stream. With
            those of PyTorch or JAX if one of the arguments, or the particles, came as such.

        Raises
        ------
        ArgumentError, NotFiniteError
            (ValueErrors) for wrong shapes or values, and arrays of another device.
        NotOpenError
            (a RuntimeError) after `close`.
        Grape6Error
            whatever else the library reports.

        Warns
        -----
        Grape6Warning
            Once, if two particles lie at one place without softening (the pair adds
            nothing), and before a sum that takes long.
        """
        ranks, itself = self._ranks, pos is None  # the particles are the targets
        given = {"pos": pos, "vel": vel, "index": index, "h": h}
        last = self._device if itself else None
        targets: Untyped
        with self._lock, ranks.agreement("forces()"), self._place(given, last) as place:
            with ranks.agreement("the targets") as agreement:
                eps, eps2 = validate.softening(eps)
                time = None if time is None else validate.number("time", time)
                agreement.same("eps", eps)
                agreement.same("time", time)
                kinds = pos is not None, index is not None, h is not None, bool(nn), bool(same)
                agreement.same("whether pos, index, h, nn and same are given", *kinds)
                if not itself:
                    targets = self._targets(place, pos, vel, index)
                    h2 = _squared_radii(place, h, len(targets[0]))
                    known = [array for array in (*targets, h2) if array is not None]
                    agreement.same_contents("the targets", *(known if same else ()))
                elif vel is not None or index is not None:
                    raise ArgumentError("vel and index describe targets: give their pos too")
                elif same and ranks.size > 1:
                    raise ArgumentError("same=True: give the targets that all ranks have")
            self._time = self._time if time is None else time
            self._board.set_time(self._time)
            if itself and eps and self._softened.has_own:
                raise ArgumentError("the particles have their own eps: give none for all of them")
            if itself:
                with ranks.agreement("own particles"):
                    own = place.particles(self._table)
                    h2 = _squared_radii(place, h, self._addresses.given(len(own[0])))
                targets = self._addresses.returned(*own)
            at, motion, label = targets
            if label is None:
                label = place.full(len(at), self._unused_label(), np.int32)
            ni, nj = len(at), len(self._table)
            if ranks.size > 1:
                call = nj, Targets(at, motion, h2, label), eps2
                result = self._sums.forces(*call, nn=nn, lists=h is not None, same=same)
                result = place.give_all(result)
            else:
                if ni >= LARGE:
                    _warn(f"{ni} targets and {nj} particles: {_duration(ni, nj)}")
                task = nj, label, at, motion, eps2, h2, nn, h is not None
                if self._softened.are_needed:
                    result, message = self._softened.forces(place, self._board, self._table, task)
                else:
                    result = place.forces(*task)
                    message = self._board.last_warning()
                if message and not self._warned:
                    self._warned = True
                    _warn(message)
            found = result if self._has_jerk else result._replace(jerk=None)
            library = libraries.library_of(given.values()) or (self._library if itself else None)
            forces: Forces = libraries.all_given_to(library, found)
            return forces

    def partial(
        self,
        pos: Numbers,
        vel: Numbers | None = None,
        index: Numbers | None = None,
        *,
        eps: float = 0.0,
        time: float | None = None,
    ) -> Int64s:
        """Sums of this session's particles on some targets, as integers.

        Rows of several sessions, each with a share of the particles, add up to the bits of one with
        all: see :mod:`grape6py.forces.partial`.

        Parameters
        ----------
        pos, vel, index, eps, time
            As in :meth:`forces`.

        Returns
        -------
        ndarray of int64, shape (ni, 32)

        Raises
        ------
        ArgumentError, NotFiniteError, NotOpenError
            As :meth:`forces`; and if the session is one of several ranks.
        """
        self._check_alone("partial()")
        _, eps2 = validate.softening(eps)
        with self._lock:
            self._time = self._time if time is None else validate.number("time", time)
            self._board.set_time(self._time)
            with memory_space.for_host({"pos": pos, "vel": vel, "index": index}) as place:
                at, motion, label = self._targets(place, pos, vel, index)
            if label is None:
                label = np.full(len(at), self._unused_label(), np.int32)
            return self._board.partial(len(self._table), label, at, motion, eps2)

    @property
    def scale(self) -> Scale:
        """The :class:`~grape6py.forces.partial.Scale` of the next sum: of the particles if not set.

        Sessions whose partial sums are to be merged get the same one. None: that of the particles.
        """
        self._check_alone("scale")
        return Scale(*self._board.scale(len(self._table)))

    @scale.setter
    def scale(self, value: Scale | None) -> None:
        self._check_alone("scale")
        nowhere = (math.nan,) * 3
        scale = Scale(*3 * (lib.G6X_AUTO,), nowhere, nowhere) if value is None else value
        for name, power in scale._asdict().items() if value is not None else ():
            if name in ("length", "mass", "velocity") and not -1000 <= power <= 1000:
                raise ArgumentError(f"scale: {name} = {power} is not from -1000 to 1000")
        names = [f"scale_{name}" for name in ("length", "mass", "velocity")]
        names += [f"{name}_{axis}" for name in ("origin", "drift") for axis in "xyz"]
        numbers = [*map(int, scale[:3]), *map(float, [*scale.origin, *scale.drift])]
        for name, number in zip(names, numbers, strict=True):
            self._board.set_option(name, number)

    def _check_own_softening(self, comm: Untyped) -> None:
        if comm is not None or "tree" in self._board.name:
            raise ArgumentError("splines and own eps are of direct sums of one rank, and of Tree()")

    def _check_alone(self, what: str) -> None:
        self._board.check_open()
        if self._softened.are_needed:
            raise ArgumentError(f"{what} has one Plummer softening for all")
        if self._ranks.size > 1:
            raise ArgumentError(f"{what} is of a session of its own: make it without comm=")

    def walks(
        self,
        i_start: ArrayLike,
        pos: ArrayLike,
        j_start: ArrayLike,
        source_pos: ArrayLike,
        source_mass: ArrayLike,
        chosen: ArrayLike | None = None,
        *,
        eps: float = 0.0,
    ) -> tuple[Floats, Floats]:
        """Force on groups of targets, each from a list of its own, all in one call.

        For treecodes that keep their own tree (Hamada and others 2009). The particles of this
        session and its time play no part. What is at distance zero of a target adds nothing, so a
        body may be in its own list.

        Parameters
        ----------
        i_start, j_start : array_like of int, shape (nwalks + 1,)
            Targets of walk w are ``pos[i_start[w]:i_start[w + 1]]``, its list is
            ``chosen[j_start[w]:j_start[w + 1]]``, or the same part of the sources.
        pos : array_like, shape (ni, 3)
        source_pos, source_mass : array_like, shapes (nj, 3) and (nj,)
            Bodies and cells, which act as points.
        chosen : array_like of int, optional
            Numbers of sources; without, the sources are the lists one behind the other.
        eps : float
            Softening length.

        Returns
        -------
        acc, pot : ndarray, shapes (ni, 3) and (ni,)
            The error of a force is about 1e-6 of its terms, or that of double precision with
            ``precision="double"``. NaN for targets of no walk.

        Raises
        ------
        ArgumentError, NotFiniteError, AddressError
            for wrong shapes or values; for numbers that no source has.
        NotOpenError
            after `close`.
        """
        pos = validate.floats("pos", pos, (None, 3))
        source_pos = validate.floats("source_pos", source_pos, (None, 3))
        mass = validate.floats("source_mass", source_mass, (len(source_pos),))
        chosen = None if chosen is None else validate.ints("chosen", chosen)
        i_start = validate.offsets("i_start", i_start, len(pos))
        j_start = validate.offsets("j_start", j_start, len(mass) if chosen is None else len(chosen))
        if len(i_start) != len(j_start):
            raise ArgumentError(f"i_start tells of {len(i_start) - 1} walks, j_start of "
                                f"{len(j_start) - 1}")  # fmt: skip
        eps = validate.number("eps", eps, negative=False)
        with self._lock:
            self._board.check_open()
            return self._board.walks(i_start, pos, j_start, chosen, source_pos, mass, eps * eps)

    def _place(self, given: Attributes, last: int | None = None) -> Untyped:
        """Of the arguments of a call; those of several ranks come to the host."""
        self._board.check_open()
        return memory_space.choose(self._board, given, last, self._ranks.size > 1)

    def _targets(
        self, place: Untyped, pos: Untyped, vel: Untyped, index: Untyped
    ) -> tuple[Untyped, Untyped, Untyped]:
        pos = place.floats("pos", pos, (None, 3))
        ni = len(pos)
        vel = place.full((ni, 3), 0.0) if vel is None else place.floats("vel", vel, (ni, 3))
        return pos, vel, None if index is None else place.ints("index", index, ni)

    def _unused_label(self) -> int:
        """A label that no particle has."""
        if self._ranks.size == 1:
            return self._table.unused_label
        return -int(self._ranks.largest(-self._table.labels.min(initial=0, keepdims=True))[0]) - 1


def _squared_radii(place: Untyped, h: Numbers | None, n: int) -> Floats:
    radii = -1.0 if h is None else place.on_host("h", h)
    return validate.squares(validate.any_floats("h", radii, (n,)))


def _duration(ni: int, nj: int) -> str:
    seconds = ni * nj / (_PAIRS_PER_CPU_SECOND * len(os.sched_getaffinity(0)))
    return f"about {seconds:.0f} s" if seconds < 3600 else f"about {seconds / 3600:.1f} hours"


def _warn(message: str) -> None:
    warnings.warn(message, Grape6Warning, stacklevel=3)
