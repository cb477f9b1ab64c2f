"""``Hermite``: star clusters integrated with the fourth-order Hermite scheme in block steps."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Mapping
from typing import NamedTuple

from grape6py._arrays import libraries, validate
from grape6py._arrays.kinds import Attributes, Floats, Numbers, State, Untyped
from grape6py._lib import memory_space
from grape6py.errors import ArgumentError, Grape6Error, Grape6Warning
from grape6py.forces.grape6 import Grape6
from grape6py.in_units import takes_quantities
from grape6py.integrators import external
from grape6py.integrators.base import Integration, kind_of, limits, no_others, outside_settings
from grape6py.integrators.blocks import Blocks, power_of_two
from grape6py.integrators.hermite_arrays import STATE, HostArrays, Setup
from grape6py.integrators.hermite_device import DeviceArrays
from grape6py.integrators.time_scale import time_scale
from grape6py.models import Particles
from grape6py.units import Units

_NO_SUBSYSTEMS = (
    "subsystems do not go together with a softening, a field that rotates or is a function, or "
    "mode single: leave subsystems=True away, or the other"
)
_BLOCKS = 16  # of which, about, everybody is in one: of a thousand bodies


class Subsystem(NamedTuple):
    """Bodies that :class:`Hermite` integrates by themselves.

    `semi_major_axis`, negative if they only meet, and `eccentricity` are those of the widest pair,
    of bodies or of centres of mass; `slow_down` is the largest factor by which a pair in it is
    slowed down, 1 for none.
    """

    ids: tuple[int, ...]
    semi_major_axis: float
    eccentricity: float
    slow_down: float


@takes_quantities
class Hermite(Integration):
    """N bodies, integrated with the fourth-order Hermite scheme.

    Every body has its own step, a power of two times the largest (block steps), or all share
    one constant step. Forces come from a session of the library in any of its modes. Bodies live on
    the device that it computes on; what one looks at are NumPy's arrays, or tensors of PyTorch and
    arrays of JAX if such came in. Arrays of any CUDA device (CuPy's, or with
    ``__cuda_array_interface__`` or DLPack) are copied at the start.

    Bodies may come, go and change at any time, see :meth:`add`, :meth:`remove`, :meth:`merge`,
    :meth:`kick` and :meth:`set_mass`. Those without mass feel the others, do not act, and cost half
    as much as others.

    Parameters
    ----------
    mass : array_like, shape (n,), or Particles
        A model or a snapshot stands for all three, and its ids.
    pos, vel : array_like, shape (n, 3)
        At time 0, in any units.
    ids : array_like of int, shape (n,), optional
        Numbers of the bodies, from 0 to 2^64 - 1, each once: those of a snapshot, the keys of a set
        of AMUSE. By default 0 to n - 1.
    G : float
        The gravitational constant in these units.
    subsystems : bool, optional
        Integrate bound pairs and close encounters by themselves: docs/encounters.md. By default so
        with block steps; not with a softening, sums in mode single, or a field that is a function
        or whose coordinates rotate.
    field : Field or callable, optional
        A field from outside: one of :mod:`grape6py.fields`, or a function field(t, pos, vel) that
        gives acc, jerk and pot, of shapes (n, 3), (n, 3) and (n,), in arrays of the kind that it is
        given: NumPy's, or CuPy's on a GPU. Where its forces depend on velocities the scheme is of
        second order in a cluster: the function does not know what accelerates the bodies else.
    orbit : array_like, six numbers, optional
        Position and velocity at time 0 of the frame in which `pos` and `vel` are, in the field:
        it moves on the orbit that a body would have, and does not rotate. See :attr:`origin`.
    eps : float
        Softening length.
    eta : float, optional
        Accuracy parameter of Aarseth's criterion, 0.02 by default; the error goes as its square.
    eta_start : float, optional
        The first steps are eta_start |a| / |da/dt|; by default eta / 8.
    passes : int
        Passes of evaluation and correction a step: 1 is PEC, n is P(EC)^n. With 1, hard pairs that
        are no subsystems are corrected twice, so that their orbits do not drift.
    dt : float, optional
        Constant step shared by all bodies, instead of block steps.
    dt_max : float, optional
        Largest step, rounded down to a power of two. By default the power of two nearest to an
        eighth of sqrt(r^3 / M), where M / r is the median depth of the potential at the start of
        the bodies with mass, a bound pair being one: the step is 1/8 in Henon units. For two
        bodies, or such systems, r is 3/2 of the semi-major axis.
    units : Units, optional
        Units of the numbers: then, or if mass and pos are quantities (of astropy or AMUSE), all
        that has a unit may be given as a quantity, and comes out as such. See docs/formats.md.
    backend, precision, threads
        As in :class:`Grape6`.
    comm : Intracomm of mpi4py, optional
        All of its ranks make the same calls, with the same arguments, and see the same bodies, with
        the bits of one rank. Each sums the forces of a share of the bodies. See docs/parallel.md.

    Raises
    ------
    ArgumentError, NotFiniteError
        (ValueErrors) for wrong shapes or values.
    Grape6Error
        Whatever else the library reports.

    Notes
    -----
    Makino & Aarseth 1992, PASJ 44, 141. How often, and when, one looks at the bodies does
    not change the bits of what is seen later.

    Examples
    --------
    >>> from grape6py import Hermite, plummer
    >>> cluster = Hermite(*plummer(256, seed=1), eps=4 / 256)
    >>> start = cluster.energy().total
    >>> cluster.evolve(0.25)
    >>> abs(cluster.energy().total / start - 1) < 1e-6
    True
    """

    STATE = STATE
    _forces: Grape6
    _blocks: Blocks

    def __init__(
        self,
        mass: Numbers | Particles,
        pos: Numbers | None = None,
        vel: Numbers | None = None,
        *,
        ids: Numbers | None = None,
        G: float = 1.0,
        eps: float = 0.0,
        eta: float | None = None,
        eta_start: float | None = None,
        passes: int = 1,
        dt: float | None = None,
        dt_max: float | None = None,
        subsystems: bool | None = None,
        field: external.AnyField | None = None,
        orbit: Numbers | None = None,
        units: Units | None = None,
        backend: str = "auto",
        precision: str | None = None,
        threads: int | None = None,
        comm: Untyped = None,
    ) -> None:
        self._take_ranks(comm)
        with self._ranks.agreement("Hermite()"):
            mass, pos, vel, ids = validate.bodies("Hermite", mass, pos, vel, ids)
            self._library = libraries.library_of((mass, pos, vel))
            with memory_space.for_host({"mass": mass, "pos": pos, "vel": vel}) as place:
                mass = place.floats("mass", mass, (None,)).copy()
                n = len(mass)
                pos, vel = (place.floats(*a, (n, 3)) for a in (("pos", pos), ("vel", vel)))
            own_ids = None if ids is None else self._checked_ids(ids, n)
            eps = validate.number("eps", eps, negative=False)
            if dt is not None:
                no_others(eta=eta, eta_start=eta_start, dt_max=dt_max)
            eta = validate.positive("eta", 0.02 if eta is None else eta)
            first = validate.positive("eta_start", eta / 8 if eta_start is None else eta_start)
            passes = validate.integer("passes", passes, 1)
            self._settings = {"eps": eps, "eta": eta, "eta_start": first, "passes": passes}
            self._set_constant(G)
            outside = external.make(field, orbit, self.G, self._settings)
            fits = outside is None or (outside.function is None and not outside.c.omega)
            suits = not eps and fits  # a field of the library, in coordinates that do not rotate
            if subsystems and not suits:
                raise ArgumentError(_NO_SUBSYSTEMS)
            if suits and (dt is None if subsystems is None else subsystems):
                self._settings["subsystems"] = True
            with self._ranks.agreement("the arguments") as agreement:
                if dt is not None:
                    self._settings["dt"] = validate.positive("dt", dt)
                elif dt_max is not None:
                    self._settings["dt_max"] = power_of_two(validate.positive("dt_max", dt_max))
                agreement.same_contents("the settings", repr(sorted(self._settings.items())))
                bodies = mass, pos, vel, *([] if own_ids is None else [own_ids])
                agreement.same_contents("the bodies", *bodies)
            self._open(n, backend, precision, threads)
            if subsystems is None and self.precision == "single":
                self._settings.pop("subsystems", None)
            if place.device is not None:
                self._forces._board.move_to(place.device)
            if dt is None and dt_max is None:
                scale = time_scale(mass * self.G, pos, vel, eps, outside, self._options)
                dt_max = 2.0 ** round(math.log2(scale / 8))
                self._settings["dt_max"] = power_of_two(validate.positive("dt_max", dt_max))
            self._take(mass, outside)
            self._ids = own_ids
            self._blocks.put({"pos": pos, "vel": vel})
            self._blocks.start(self._settings["eta_start"])

    def _restore(
        self, mass: Floats, state: State, outside: external.External | None, **options: Untyped
    ) -> None:
        self._open(len(mass), **options)
        self._take(mass, outside)
        self._blocks.put(state)

    @staticmethod
    def settings_from(attributes: Mapping[str, Untyped]) -> Attributes:
        """Settings among the attributes of a file."""
        a, step = attributes, "dt" if "dt" in attributes else "dt_max"
        settings = {"eps": validate.number("eps", a["eps"], negative=False)}
        settings |= {name: validate.positive(name, a[name]) for name in ("eta", "eta_start")}
        settings["passes"] = validate.integer("passes", a["passes"], 1)
        settings[step] = validate.positive(step, a[step])
        settings |= {"subsystems": True} if a.get("subsystems") else {}
        return settings | outside_settings(a)

    def _open(self, n: int, backend: str, precision: str | None, threads: int | None) -> None:
        """A session, which decides where n bodies are integrated."""
        with self._ranks.agreement("a session"):
            self._forces = Grape6(backend=backend, precision=precision, threads=threads, jerk=True)
            self._forces._board.prepare_for(max(n // _BLOCKS, 1), n)
        self._options = {"backend": kind_of(backend, self.backend), "threads": threads}
        self._options["comm"] = self._ranks.comm

    def _take(self, mass: Floats, outside: external.External | None) -> None:
        """Make the blocks, of bodies with these masses, where the sessions of all ranks compute."""
        s, board, mode = self._settings, self._forces._board, self.precision
        if mode == "single" and s.get("subsystems"):
            raise ArgumentError(_NO_SUBSYSTEMS)
        rule, more = (s["eta"], *limits(s)), (outside, self._ranks, s.get("subsystems", False))
        setup = Setup(board, mode, mass, rule, s["passes"], s["eps"], self.G, *more)
        with self._ranks.agreement("the bodies") as agreement:
            agreement.same_contents("the precisions", mode)
            is_on_host = agreement.maximum(
                setup.subsystems or board.option("DEVICE") < 0 or not _has_cupy()
            )
        self._blocks = Blocks(setup, HostArrays if is_on_host.value else DeviceArrays)
        self._begin()
        self._warned = self._warned_of_subsystems = False

    @property
    def jerk(self) -> Floats:
        """Time derivatives of :attr:`acc`; shape (n, 3), read-only."""
        return self._shown(self._synchronised().jerk)

    def _step_sizes(self) -> Floats:
        with self._lock:
            return self._blocks.step_sizes()

    @property
    def subsystems(self) -> list[Subsystem]:
        """Bound pairs and close encounters that are integrated by themselves."""
        with self._lock:
            own = self._own_ids()
            return [
                Subsystem(tuple(int(own[k]) for k in members), *map(float, elements))
                for members, elements in self._blocks.subsystems()
            ]

    def _call(self, name: str, *arguments: object, **options: object) -> Untyped:
        """A call of the blocks; on the CPU if the device fails and the session goes on there."""
        try:
            return super()._call(name, *arguments, **options)
        except Grape6Error:
            board = self._forces._board
            on_device = isinstance(self._blocks.bodies, DeviceArrays)
            is_lost = on_device and board.is_open and board.option("DEVICE") < 0
            if not is_lost or self._ranks.size > 1:  # of which none goes on alone
                raise
            self._blocks = self._blocks.on_host()
            return super()._call(name, *arguments, **options)

    def _after_step(self) -> None:
        if self._blocks.clamped and not self._warned and "dt" not in self._settings:
            self._warned = True
            warnings.warn(
                f"at time {self._blocks.clamped_time} a body needs a step below "
                f"{self._blocks.rule[1]:.3g}, the smallest there is: a collision, or softening "
                "is needed",
                Grape6Warning,
                stacklevel=4,
            )
        if self._settings.get("subsystems") and not self._warned_of_subsystems:
            text = self._forces._board.last_warning()
            if text.startswith("subsystems"):
                self._warned_of_subsystems = True
                warnings.warn(text, Grape6Warning, stacklevel=4)


def _has_cupy() -> bool:
    with contextlib.suppress(ImportError):
        import cupy  # noqa: F401

        return True
    return False
