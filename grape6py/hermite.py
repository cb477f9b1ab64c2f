"""``Hermite``: star clusters integrated with the fourth-order Hermite scheme in block steps."""

import contextlib
import math
import warnings

from grape6py import _inputs, diagnostics
from grape6py._block import STATE, HostBlocks
from grape6py._device_block import DeviceBlocks
from grape6py._progress import Bar, multiples
from grape6py.errors import ArgumentError, Grape6Error, Grape6Warning
from grape6py.session import Grape6

# Smallest step, as a fraction of the largest. Times are exact in double precision up to
# 2^53 smallest steps, which is 2^23 largest ones.
SMALLEST = 2.0**-30
_LONGEST = 2.0**53


class Hermite:
    """N bodies, integrated with the fourth-order Hermite scheme.

    Every body has its own step, a power of two times the largest (block steps), or all share
    one constant step. Forces come from a session of the library in any of its modes.

    Parameters
    ----------
    mass : array_like, shape (n,)
    pos, vel : array_like, shape (n, 3)
        At time 0, in any units with G = 1.
    eps : float
        Softening length.
    eta : float
        Accuracy parameter of Aarseth's criterion; the error goes as its square.
    eta_start : float, optional
        The first steps are eta_start |a| / |da/dt|; by default eta / 8.
    passes : int
        Passes of evaluation and correction a step: 1 is PEC, n is P(EC)^n.
    dt : float, optional
        Constant step shared by all bodies, instead of block steps.
    dt_max : float, optional
        Largest step, rounded down to a power of two. By default the power of two nearest
        to an eighth of sqrt(r^3 / M), where M / r is the bodies' mean potential at the
        start: with equal masses r is the virial radius, and the step 1/8 in Henon units.
    backend, precision, threads
        As in :class:`Grape6`.

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

    def __init__(
        self,
        mass,
        pos,
        vel,
        *,
        eps=0.0,
        eta=0.02,
        eta_start=None,
        passes=1,
        dt=None,
        dt_max=None,
        backend="auto",
        precision=None,
        threads=None,
    ):
        mass = _inputs.floats("mass", mass, (None,)).copy()
        n = len(mass)
        pos, vel = (_inputs.floats(*a, (n, 3)) for a in (("pos", pos), ("vel", vel)))
        eps = _inputs.number("eps", eps, negative=False)
        eta = _inputs.positive("eta", eta)
        self._settings = {
            "eps": eps,
            "eta": eta,
            "eta_start": _inputs.positive("eta_start", eta / 8 if eta_start is None else eta_start),
            "passes": _inputs.integer("passes", passes),
        }
        if passes < 1:
            raise ArgumentError(f"passes = {passes} is not at least 1")
        if dt is not None and dt_max is not None:
            raise ArgumentError("dt is one step for all: there is no dt_max then")
        if dt is not None:
            self._settings["dt"] = largest = smallest = _inputs.positive("dt", dt)
        else:
            if dt_max is None:
                scale = _time_scale(mass, pos, eps, backend, threads)
                dt_max = 2.0 ** round(math.log2(scale / 8))
            largest = 2.0 ** (math.frexp(_inputs.positive("dt_max", dt_max))[1] - 1)
            smallest = largest * SMALLEST
            self._settings["dt_max"] = largest
        self._open((smallest, largest), mass, backend, precision, threads)
        self._blocks.put({"pos": pos, "vel": vel})
        self._blocks.start(self._settings["eta_start"])

    @classmethod
    def restored(cls, settings, mass, state, *, time, steps=0, blocks=0, **options):
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
        **options
            backend, precision, threads, as in :class:`Grape6`.

        Returns
        -------
        Hermite
        """
        self = cls.__new__(cls)
        mass = _inputs.floats("mass", mass, (None,)).copy()
        self._settings = dict(settings)
        if "dt" in settings:
            limits = settings["dt"], settings["dt"]
        else:
            limits = settings["dt_max"] * SMALLEST, settings["dt_max"]
        self._open(
            limits, mass, **{"backend": "auto", "precision": None, "threads": None} | options
        )
        n = len(mass)
        self._blocks.put(
            {name: _inputs.floats(name, state[name], (n, *shape)) for name, shape in STATE.items()}
        )
        self._blocks.steps, self._blocks.blocks = steps, blocks
        self._time = _inputs.number("time", time)
        return self

    def _open(self, limits, mass, backend, precision, threads):
        self._grape = Grape6(backend=backend, precision=precision, threads=threads)
        self._wishes = {"backend": backend, "threads": threads}
        rule = (self._settings["eta"], *limits)
        passes, eps = self._settings["passes"], self._settings["eps"]
        self._blocks = _blocks(self._grape._board, self.precision, mass, rule, passes, eps)
        self._time = 0.0
        self._seen = self._potential = None
        self._stopping = self._warned = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Release the session of the library.

        Integrating needs it, and so does a look at the bodies at a time at which nobody
        has looked before.
        """
        self._grape.close()

    def __repr__(self):
        return f"<Hermite, {self.n} bodies at time {self.time:g}, {self.steps} steps>"

    @property
    def n(self):
        """Number of bodies."""
        return len(self._blocks.mass)

    @property
    def time(self):
        """Time of the system."""
        return max(self._time, self._blocks.latest())

    @property
    def mass(self):
        """Masses; shape (n,), a copy."""
        return self._blocks.mass.copy()

    @property
    def pos(self):
        """Positions at :attr:`time`; shape (n, 3), a copy."""
        return self._synchronised()[0].copy()

    @property
    def vel(self):
        """Velocities at :attr:`time`; shape (n, 3), a copy."""
        return self._synchronised()[1].copy()

    @property
    def step_sizes(self):
        """Present steps of the bodies; shape (n,), a copy."""
        return self._blocks.state()["dt"]

    @property
    def steps(self):
        """Steps of single bodies done so far."""
        return self._blocks.steps

    @property
    def blocks(self):
        """Blocks done so far."""
        return self._blocks.blocks

    @property
    def force_seconds(self):
        """Wall time spent in force calls so far."""
        return self._blocks.force_seconds

    @property
    def settings(self):
        """What the numbers depend on, besides the bodies and the arithmetic: a dict."""
        return dict(self._settings)

    @property
    def backend(self):
        """Backend and its instruction set, as :attr:`Grape6.backend`."""
        return self._grape.backend

    @property
    def precision(self):
        """Arithmetic mode, as :attr:`Grape6.precision`."""
        return self._grape.precision

    def state(self):
        """All that the integration goes on from, by name: arrays t, dt, pos, vel, acc, jerk.

        Each body is given at its own time t, which differs from :attr:`pos` and :attr:`vel`
        unless all bodies are at :attr:`time`.
        """
        return self._blocks.state()

    def save(self, path):
        """Add bodies and :meth:`state` to an HDF5 file, as :func:`archive.save`."""
        from grape6py import archive

        archive.save(path, self)

    @staticmethod
    def load(path, **options):
        """The integration that an HDF5 file ends with, as :func:`archive.restore`."""
        from grape6py import archive

        return archive.restore(path, **options)

    def evolve(self, t, callback=None, *, every=None, progress=False):
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
        t = _inputs.number("t", t)
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
            every = _inputs.positive("every", every)
        try:
            with Bar(self.time, t, progress) as shown:
                for target in [t] if every is None else multiples(self.time, t, every):
                    self._advance(target, shown, callback if every is None else None)
                    if every is not None and callback is not None and self.time == target:
                        callback(self)  # also if stopped in the very block that ends there
                    if self._stopping:
                        break
        finally:
            self._stopping = False

    def stop(self):
        """Let :meth:`evolve` return after the block under way; for callbacks and signals.

        Called at another time, it lets the next one return before its first block.
        """
        self._stopping = True

    def _advance(self, target, shown, callback):
        while (time := self._safely("next_time")) <= target and not self._stopping:
            self._seen = self._potential = None
            self._safely("step", time)
            self._time = time
            shown(time)
            self._warn_if_held()
            if callback is not None:
                callback(self)
        if not self._stopping and self.time < target:  # a callback may have gone farther
            self._time = target
            self._seen = self._potential = None
            shown(target)

    def _safely(self, call, *arguments):
        """A call of the blocks; on the CPU if the device fails and the session goes on there."""
        try:
            return getattr(self._blocks, call)(*arguments)
        except Grape6Error:
            board = self._grape._board
            on_device = isinstance(self._blocks, DeviceBlocks)
            if not on_device or not board.is_open or board.option("DEVICE") >= 0:
                raise
            self._blocks = self._blocks.on_host()
            return getattr(self._blocks, call)(*arguments)

    def _warn_if_held(self):
        if self._blocks.held and not self._warned and "dt" not in self._settings:
            self._warned = True
            warnings.warn(
                f"at time {self._time} a body needs a step below {self._blocks.rule[1]:.3g}, the "
                "smallest there is: a collision, or softening is wanted",
                Grape6Warning,
                stacklevel=4,
            )

    def _synchronised(self):
        if self._seen is None:
            self._seen = self._safely("at", self.time)
        return self._seen

    def potential(self):
        """Potential at each body at :attr:`time`, in mode double; shape (n,)."""
        if self._potential is None:
            pos = self._synchronised()[0]
            self._potential = diagnostics.potential(
                self._blocks.mass, pos, self._settings["eps"], **self._wishes
            )
        return self._potential.copy()

    def energy(self):
        """Energy at :attr:`time`, in mode double whatever mode integrates.

        Returns
        -------
        Energy
            With `kinetic`, `potential`, `total` and `virial_ratio`.
        """
        mass, (pos, vel) = self._blocks.mass, self._synchronised()
        return diagnostics.energy(mass, pos, vel, pot=self.potential())

    def momentum(self):
        """Total momentum; shape (3,)."""
        return diagnostics.momentum(self._blocks.mass, self._synchronised()[1])

    def virial_ratio(self):
        """Kinetic energy over minus the potential one, 1/2 in equilibrium."""
        return self.energy().virial_ratio

    def lagrangian_radii(self, fractions=diagnostics.FRACTIONS, centre=None):
        """Radii that hold fractions of the mass, as :func:`diagnostics.lagrangian_radii`."""
        pos = self._synchronised()[0]
        return diagnostics.lagrangian_radii(self._blocks.mass, pos, fractions, centre)


def _blocks(board, *arguments):
    """Blocks of bodies that live where the session computes."""
    if board.option("DEVICE") >= 0:
        with contextlib.suppress(ImportError):
            import cupy

            return DeviceBlocks(board, *arguments, cupy)
    return HostBlocks(board, *arguments)


def _time_scale(mass, pos, eps, backend, threads):
    """sqrt(r^3 / M) with M / r the mean potential; 1 if nothing attracts.

    The mean is over bodies, not over mass, or the one body that dominates a planetary
    system, and feels next to nothing, would set the scale.
    """
    pot = diagnostics.potential(mass, pos, eps, backend=backend, threads=threads)
    total, depth = math.fsum(mass), -math.fsum(pot) / max(len(mass), 1)
    if not (total > 0 and depth > 0):
        return 1.0
    radius = total / depth
    return radius * math.sqrt(radius / total)
