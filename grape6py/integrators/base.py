"""What integrators of bodies share: evolving to a time, stopping, looking, files.

The bodies, and how one step moves them, are the subclasses': see :class:`Hermite` and
:class:`Leapfrog`.
"""

from __future__ import annotations

import math
import threading
import uuid
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from grape6py import diagnostics
from grape6py._arrays import validate
from grape6py._arrays.kinds import Attributes, Floats, Int64s, PathLike, Shapes, State, Untyped
from grape6py._lib.library import ffi
from grape6py.errors import AccuracyWarning, ArgumentError
from grape6py.integrators.energy_check import LIMIT, EnergyCheck, remedies
from grape6py.integrators.progress import Bar, multiples
from grape6py.models import Particles

if TYPE_CHECKING:
    from grape6py.grape6 import Grape6
    from grape6py.integrators.gravity import Gravity
    from grape6py.integrators.hermite import Hermite
    from grape6py.integrators.hermite_device import DeviceBlocks
    from grape6py.integrators.hermite_steps import HostBlocks
    from grape6py.integrators.leapfrog import Leapfrog
    from grape6py.integrators.leapfrog_steps import Leaps

# Smallest step, as a fraction of the largest. Times are exact in double precision up to
# 2^53 smallest steps, which is 2^23 largest ones.
SMALLEST = 2.0**-30
_LONGEST = 2.0**53


def power_of_two(step: float) -> float:
    """The power of two that is not above a step."""
    return 2.0 ** (math.frexp(step)[1] - 1)


def kind_of(backend: str, name: str) -> str:
    """The backend that a session of this name was decided for, if it was asked for "auto"."""
    kind = name.split()[0]
    return kind if backend == "auto" and kind in ("cpu", "cuda") else backend


def limits(settings: Attributes) -> tuple[float, float]:
    """Smallest and largest step of an integration with one step, `dt`, or steps up to `dt_max`."""
    if "dt" in settings:
        return settings["dt"], settings["dt"]
    return settings["dt_max"] * SMALLEST, settings["dt_max"]


class Integration:
    """Bodies on their way.

    A subclass has STATE, shapes by the names of :meth:`state`, NUMBERS, names of numbers that this
    may have too, and `_restore`. It sets `_settings`,
    `_options` (backend and threads, for energies), `_forces`, which is closed at the end, and
    `_blocks`, which moves the bodies: see :class:`grape6py.integrators.hermite_steps.HostBlocks`.
    """

    STATE: ClassVar[Shapes]
    NUMBERS: ClassVar[tuple[str, ...]] = ()
    _settings: Attributes
    _options: Attributes
    _forces: Grape6 | Gravity
    _blocks: HostBlocks | DeviceBlocks | Leaps
    _restore: Callable[..., None]

    _ids: Int64s | None
    _seen: tuple[Floats, Floats] | None
    _potential: Floats | None
    _energy_check: EnergyCheck | None

    def _begin(self, time: float = 0.0) -> None:
        self._time = time
        self._run_id = uuid.uuid4().hex
        self._ids = None  # 0 to n - 1
        self._seen = self._potential = None
        self._stopping = ffi.new("int *")  # read by the library, too
        self._turn = threading.RLock()  # of a thread that moves the bodies or looks at them
        self._energy_check = EnergyCheck()

    @classmethod
    def restored(
        cls,
        settings: Attributes,
        mass: ArrayLike,
        state: Mapping[str, ArrayLike],
        *,
        time: float,
        steps: int = 0,
        blocks: int = 0,
        run_id: str | None = None,
        ids: ArrayLike | None = None,
        backend: str = "auto",
        precision: str | None = None,
        threads: int | None = None,
    ) -> Self:
        """An integration as :attr:`settings` and :meth:`state` have described it.

        It continues with the same bits if backend, instruction set and mode are the same.

        Parameters
        ----------
        settings : dict
        mass : array_like, shape (n,)
        state : dict of str to array_like
        time : float
        steps, blocks : int
            Counters to go on from.
        run_id : str, optional
            :attr:`run_id` of the run that goes on; a new one by default.
        ids : array_like of int, shape (n,), optional
            :attr:`ids`; 0 to n - 1 by default.
        backend, precision, threads
            As in :class:`Grape6`. A tree goes on with a tree, which "auto" then is.

        Returns
        -------
        Hermite or Leapfrog
        """
        self = cls.__new__(cls)
        self._settings = dict(settings)
        mass = validate.floats("mass", mass, (None,)).copy()
        n = len(mass)
        numbers = {
            k: np.array(validate.number(k, state[k], negative=False))
            for k in cls.NUMBERS
            if k in state
        }
        state = {k: validate.floats(k, state[k], (n, *shape)) for k, shape in cls.STATE.items()}
        state |= numbers
        ids = None if ids is None else validate.ints("ids", ids, n).astype(np.int64)
        options = {"backend": backend, "precision": precision, "threads": threads}
        self._restore(mass, state, steps, blocks, ids, **options)
        self._time = validate.number("time", time)
        if run_id is not None:
            self._run_id = str(run_id)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the session of the library.

        Integrating needs it, and so does a look at the bodies at a time at which nobody
        has looked before.
        """
        self._forces.close()

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind}, {self.n} bodies at time {self.time:g}, {self.steps} steps>"

    @property
    def n(self) -> int:
        """Number of bodies."""
        return len(self._blocks.mass)

    @property
    def ids(self) -> Int64s:
        """Numbers of the bodies in files, which stay theirs; shape (n,)."""
        return np.arange(self.n) if self._ids is None else self._ids.copy()

    @property
    def run_id(self) -> str:
        """Names the run in its files, also after a restart."""
        return self._run_id

    @property
    def time(self) -> float:
        """Time of the system."""
        return max(self._time, self._blocks.latest())

    @property
    def mass(self) -> Floats:
        """Masses; shape (n,), a copy."""
        return self._out("mass")

    @property
    def pos(self) -> Floats:
        """Positions at :attr:`time`; shape (n, 3), a copy."""
        return self._out("pos")

    @property
    def vel(self) -> Floats:
        """Velocities at :attr:`time`; shape (n, 3), a copy."""
        return self._out("vel")

    def _out(self, name: str) -> Floats:
        """An array of all bodies for the caller, a copy."""
        if name == "mass":
            return self._blocks.mass.copy()
        return self._synchronised()[("pos", "vel").index(name)].copy()

    @property
    def step_sizes(self) -> Floats:
        """Present steps of the bodies; shape (n,), a copy."""
        return self.state()["dt"]

    @property
    def steps(self) -> int:
        """Steps of single bodies done so far."""
        return self._blocks.steps

    @property
    def blocks(self) -> int:
        """Blocks done so far."""
        return self._blocks.blocks

    @property
    def force_seconds(self) -> float:
        """Wall time spent in force calls so far."""
        return self._blocks.force_seconds

    @property
    def backend(self) -> str:
        """Backend and its instruction set or device, as :attr:`Grape6.backend`."""
        return self._forces.backend

    @property
    def precision(self) -> str:
        """Arithmetic mode, as :attr:`Grape6.precision`."""
        return self._forces.precision

    @property
    def settings(self) -> Attributes:
        """What the numbers depend on, besides the bodies and the arithmetic: a dict."""
        return dict(self._settings)

    def particles(self) -> Particles:
        """Masses, and positions and velocities at :attr:`time`, as :class:`Particles` of NumPy."""
        return Particles(
            self._blocks.mass.copy(), *(array.copy() for array in self._synchronised())
        )

    def state(self) -> State:
        """All that the integration goes on from, by name: arrays by body, as in :attr:`STATE`,
        and numbers, as in :attr:`NUMBERS`.

        Each body is given at its own time t, which differs from :attr:`pos` and :attr:`vel`
        unless all bodies are at :attr:`time`.
        """
        with self._turn:
            return self._blocks.state()

    def save(self, path: PathLike) -> None:
        """Add bodies and :meth:`state` to an HDF5 file (.h5), as :func:`archive.save`."""
        from grape6py import archive

        cluster: Untyped = self
        archive.save(path, cluster)

    @staticmethod
    def load(path: PathLike, **options: Untyped) -> Hermite | Leapfrog:
        """The integration that an HDF5 file ends with, as :func:`archive.restore`."""
        from grape6py import archive

        return archive.restore(path, **options)

    def evolve(
        self,
        t: float,
        callback: Callable[[Self], object] | None = None,
        *,
        every: float | None = None,
        progress: bool = False,
    ) -> None:
        """Integrate up to a time.

        Parameters
        ----------
        t : float
            The new :attr:`time`. Block steps that end later are not begun.
        callback : callable, optional
            Called with this object after every block step, or as `every` says.
        every : float, optional
            Call at each multiple of this time instead, and at `t`.
        progress : bool
            Show a bar with the time left on stderr, if that is a terminal.

        Raises
        ------
        ArgumentError
            (a ValueError) if `t` lies in the past, or too far in the future for the step.
        Grape6Error
            Whatever the library reports; the bodies are then left at the last good block.
        """
        t = validate.number("t", t)
        if t < self.time:
            raise ArgumentError(f"t = {t} is before the present time {self.time}")
        _, smallest, largest = self._blocks.rule
        if t > _LONGEST * smallest:
            raise ArgumentError(
                f"t = {t} is more than 2^{math.log2(_LONGEST * smallest / largest):.0f} steps of "
                f"{largest}, beyond which times are not exact any more; give a larger "
                f"{'dt' if smallest == largest else 'dt_max'}"
            )
        if every is not None:
            every = validate.positive("every", every)
        try:
            with Bar(self.time, t, progress) as shown:
                for target in [t] if every is None else multiples(self.time, t, every):
                    self._advance(target, shown, callback if every is None else None)
                    if every is not None and callback is not None and self.time == target:
                        callback(self)  # also if stopped in the very block that ends there
                    if self._stopping[0]:
                        break
        finally:
            self._stopping[0] = 0

    def stop(self) -> None:
        """Let :meth:`evolve` return after the block under way; for callbacks and signals.

        A long block may be given up in its midst: it is then made anew by the next one.

        Called at another time, it lets the next one return before its first block.
        """
        self._stopping[0] = 1

    def _advance(
        self,
        target: float,
        shown: Callable[[float], None],
        callback: Callable[[Self], object] | None,
    ) -> None:
        one = callback is not None
        while not self._stopping[0]:
            with self._turn:
                moved = self._call("advance", target, self._stopping, one=one)
                if moved is None:
                    break
                self._seen = self._potential = None
                self._time = self._blocks.latest()
            shown(self._time)
            if moved:
                self._after_step()
            if moved and callback is not None:
                callback(self)
        if not self._stopping[0] and self.time < target:  # a callback may have gone farther
            self._time = target
            self._seen = self._potential = None
            shown(target)

    def _call(self, name: str, *arguments: object, **options: object) -> Untyped:
        """A call of the blocks."""
        return getattr(self._blocks, name)(*arguments, **options)

    def _after_step(self) -> None:
        """What a step may have a word about."""

    def _synchronised(self) -> tuple[Floats, Floats]:
        with self._turn:
            if self._seen is None:
                self._seen = self._call("at", self.time)
            return self._seen

    def potential(self) -> Floats:
        """Potential at each body at :attr:`time`, in mode double; shape (n,)."""
        return self._known_potential().copy()

    def _known_potential(self) -> Floats:
        if self._potential is None:
            self._potential = self._find_potential()
        return self._potential

    def _find_potential(self) -> Floats:
        """The potential, for NumPy."""
        pos = self._synchronised()[0]
        return diagnostics.potential(self._blocks.mass, pos, self._settings["eps"], **self._options)

    def energy(self) -> diagnostics.Energy:
        """Energy at :attr:`time`, with the potential of :meth:`potential`.

        Returns
        -------
        Energy
            With `kinetic`, `potential`, `total` and `virial_ratio`.

        Warns
        -----
        AccuracyWarning
            Once, if it differs by more than 1e-3 from the first one computed, other than by what
            bodies have taken with them.
        """
        mass, (pos, vel) = self._blocks.mass, self._synchronised()
        energy = diagnostics.energy(mass, pos, vel, pot=self._known_potential())
        if self._energy_check is not None:
            error = self._energy_check.error(len(mass), energy)
            if abs(error) > LIMIT:
                self._energy_check = None  # once
                self._warn_of_energy(error)
        return energy

    def _warn_of_energy(self, error: float) -> None:
        advice = remedies(self._settings, self.precision)
        text = f"at time {self.time:g} the relative energy error is {error:.1e}: take {advice}"
        warnings.warn(text, AccuracyWarning, stacklevel=3)

    def momentum(self) -> Floats:
        """Total momentum; shape (3,)."""
        return diagnostics.momentum(self._blocks.mass, self._synchronised()[1])

    def angular_momentum(self) -> Floats:
        """Total angular momentum about the origin; shape (3,)."""
        return diagnostics.angular_momentum(self._blocks.mass, *self._synchronised())

    def virial_ratio(self) -> float:
        """Kinetic energy over minus the potential one, 1/2 in equilibrium."""
        return self.energy().virial_ratio

    def lagrangian_radii(
        self, fractions: ArrayLike = diagnostics.FRACTIONS, centre: ArrayLike | None = None
    ) -> Floats:
        """Radii that hold fractions of the mass, as :func:`diagnostics.lagrangian_radii`."""
        pos = self._synchronised()[0]
        return diagnostics.lagrangian_radii(self._blocks.mass, pos, fractions, centre)
