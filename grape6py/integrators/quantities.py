"""What one asks of bodies on their way: arrays of them, and their energy.

Where each rank has bodies of its own (`_owners`), arrays are of those, and sums over the bodies of
all ranks, which all ask for.
"""

from __future__ import annotations

import threading
import uuid
import warnings
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from grape6py import diagnostics
from grape6py._arrays import html, ids, libraries, validate
from grape6py._arrays.closed import Closed
from grape6py._lib.library import ffi
from grape6py.errors import AccuracyWarning, CallOrderError
from grape6py.integrators.energy_check import LIMIT, EnergyCheck, SpecificCheck, remedies
from grape6py.models import Particles
from grape6py.ranks.one_rank import ONE, ranks_of

if TYPE_CHECKING:
    from grape6py._arrays.kinds import AnyArray, Attributes, Floats, State, UInt64s, Untyped
    from grape6py.events import Event
    from grape6py.forces.grape6 import Grape6
    from grape6py.integrators.blocks import Blocks, Moment
    from grape6py.integrators.gravity import Gravity
    from grape6py.integrators.leapfrog_steps import Leaps
    from grape6py.ranks.ranks import Ranks


class Quantities(Closed):
    """Bodies on their way, looked at; see :class:`~.base.Integration`.

    All ranks have all bodies, or, with SHARES_BODIES, each has its own: then these are the
    `_owners`, else each rank by itself is. A call that all make is an agreement of the ranks: it
    fails on all if it fails on one.
    """

    SHARES_BODIES: ClassVar[bool] = False
    _ranks: Ranks
    _owners: Ranks

    _settings: Attributes
    _options: Attributes
    _forces: Grape6 | Gravity
    _blocks: Blocks | Leaps

    _library: str | None = None  # whose arrays the bodies came in
    _G: float
    _last_id = -1  # the largest that a body had, if it has gone

    def _take_ranks(self, comm: Untyped) -> None:
        """Be one of the ranks of a communicator, or the only one."""
        self._ranks = ranks_of(comm)
        self._owners = self._ranks if self.SHARES_BODIES else ONE

    def _begin(self) -> None:
        """Begin a run, at the epoch of the blocks."""
        self._be_at(self._blocks.epoch)
        self._run_id: str = self._ranks.broadcast(uuid.uuid4().hex)
        self._ids: UInt64s | None = None  # 0 to n - 1
        self._asked_to_stop = False  # on this rank
        self._stopping = ffi.new("int *")  # read by the library, too
        self._lock = threading.RLock()  # of a thread that moves the bodies or looks at them
        self._energy_check, self._specific_check = EnergyCheck(), SpecificCheck()
        self._first_energy: float | None = None  # without changes; known if an event asks for it
        self._energy_change, self._net_change = 0.0, 0
        self._events: list[Event] = []
        # What the file that it was loaded from says of the run, for files to come: attributes of
        # the root that are no settings, and what this rank's bodies belong to.
        self._about: Attributes = {}
        self._labels: ids.Labels | None = None
        self._since: float | None = None  # time of the output that it was loaded from, or saved

    def _be_at(self, time: float) -> None:
        """Forget what has been seen at other times."""
        self._time = time
        self._seen: Moment | None = None
        self._potential: Floats | None = None

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, which: Untyped) -> Particles:
        """One body by its row, or some by a mask, rows or a slice, at :attr:`time`."""
        pos, vel, *_ = self._synchronised()
        return Particles._make(array[which].copy() for array in (self._blocks.mass, pos, vel))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.n} bodies at time {self.time:g}, {self.steps} steps>"

    def _repr_html_(self) -> str:
        facts = {"bodies": self.n, "time": f"{self.time:g}", "steps": self.steps}
        facts |= {"backend": self.backend, "precision": self.precision} | self.settings
        return html.table(type(self).__name__, facts)

    # ---- what it is --------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of bodies, of all ranks."""
        return self._blocks.n

    @property
    def G(self) -> float:
        """The gravitational constant."""
        return self._G

    @property
    def ids(self) -> AnyArray:
        """Numbers of the bodies, which stay theirs; int64, or uint64 for large ones; shape (n,).

        A body that a Leapfrog takes out takes its own with it. With `comm` its bodies are numbered
        through the ranks, if none are given.
        """
        return ids.shown(self._own_ids())

    def _own_ids(self) -> UInt64s:
        return np.arange(self.n, dtype=np.uint64) if self._ids is None else self._ids

    @property
    def time(self) -> float:
        """Time of the system."""
        return self._later(self._time, self._blocks.latest())

    def _later(self, *times: float) -> float:
        """The time that bodies are at last."""
        return max(times) if self._blocks.sense > 0 else min(times)

    @property
    def settings(self) -> Attributes:
        """What the numbers depend on, besides the bodies and the arithmetic: a dict."""
        return dict(self._settings)

    @property
    def backend(self) -> str:
        """Backend and its instruction set or device, as :attr:`Grape6.backend`."""
        return self._forces.backend

    @property
    def precision(self) -> str:
        """Arithmetic mode, as :attr:`Grape6.precision`."""
        return self._forces.precision

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

    # ---- arrays of all bodies ----------------------------------------------------------------

    @property
    def mass(self) -> Floats:
        """Masses; shape (n,), read-only: :meth:`set_mass` changes them."""
        return self._array("mass")

    @property
    def pos(self) -> Floats:
        """Positions at :attr:`time`; shape (n, 3), read-only: :meth:`kick` moves bodies."""
        return self._array("pos")

    @property
    def vel(self) -> Floats:
        """Velocities at :attr:`time`; shape (n, 3), read-only: :meth:`kick` changes them."""
        return self._array("vel")

    @property
    def acc(self) -> Floats:
        """Accelerations at :attr:`time`; shape (n, 3), read-only."""
        return self._array("acc")

    def _array(self, name: str) -> Floats:
        """An array of all bodies for the caller."""
        array = self._blocks.mass if name == "mass" else getattr(self._synchronised(), name)
        return self._shown(array)

    def _shown(self, array: Floats) -> Floats:
        """An array that others may look at, of the kind that the bodies came in."""
        view = array.view()
        view.flags.writeable = False
        shown: Floats = libraries.given_to(self._library, view)
        return shown

    @property
    def step_sizes(self) -> Floats:
        """Present steps of the bodies; shape (n,), read-only."""
        return self._shown(self._step_sizes())

    def _step_sizes(self) -> Floats:
        return self.state()["dt"]

    def particles(self) -> Particles:
        """Masses, and positions and velocities at :attr:`time`, as :class:`Particles` of NumPy."""
        pos, vel, *_ = self._synchronised()
        return Particles(self._blocks.mass.copy(), pos.copy(), vel.copy())

    def _all_particles(self) -> tuple[Particles, AnyArray]:
        """Particles and ids of all ranks, on the first one; the others get none of such."""
        particles, own_ids, to_first = self.particles(), self._own_ids(), self._owners.to_first
        with self._owners.agreement("a look at all ranks' bodies"):
            return Particles._make(map(to_first, particles)), ids.shown(to_first(own_ids))

    def state(self) -> State:
        """All that the integration goes on from, by name: arrays by body, as in :attr:`STATE`,
        and others, as in :attr:`EXTRA`.

        Each body is given at its own time t, which counts from `epoch`, and differs from
        :attr:`pos` and :attr:`vel` unless all bodies are at :attr:`time`.
        """
        with self._lock:
            blocks = self._blocks  # from the state of those that go back one goes on forward
            blocks = blocks if blocks.sense > 0 else self._call("mirrored", self.time)
            return blocks.state() | self._extra(blocks)

    def _extra(self, blocks: Blocks | Leaps) -> State:
        """Arrays of the state that not all integrations have."""
        own = {
            "epoch": blocks.epoch or None,
            "energy_change": self._energy_change or None,
            "initial_energy": self._first_energy,
        }
        found = {name: np.array(value) for name, value in own.items() if value is not None}
        if self._last_id >= 0 and self._last_id > self._largest_id():
            found["last_id"] = np.array(self._last_id, np.uint64)
        if blocks.watch.until:
            found["watched_until"], found["watched_ids"] = blocks.watch.as_arrays()
        if blocks.watch.farther:
            found["escape"] = np.array([blocks.watch.farther, *blocks.watch.centre])
        if blocks.external is not None and blocks.external.orbit_frame is not None:
            found["frame"] = blocks.external.orbit_frame.node_at(self.time)
        return found

    def _largest_id(self) -> int:
        """The largest number of a body, on any rank; -1 without bodies."""
        with self._owners.agreement("ids"):
            own = np.array([self._own_ids().max(initial=0)])
        largest = int(self._owners.largest(own)[0])
        return largest if self.n else -1

    @property
    def origin(self) -> tuple[Floats, Floats]:
        """Position and velocity of the frame of the bodies in the field, at :attr:`time`.

        Two arrays of shape (3,), which are zero without an `orbit`.
        """
        external = self._blocks.external
        if external is None or external.orbit_frame is None:
            return np.zeros(3), np.zeros(3)
        with self._lock:
            pos, vel, *_ = (np.array(list(row)) for row in external.origin(self.time))
        return pos, vel

    def _call(self, name: str, *arguments: object, **options: object) -> Untyped:
        """A call of the blocks, which a field that they have called cannot make."""
        external = self._blocks.external
        if external is not None and external.is_calling:
            raise CallOrderError(
                "a step is under way: a field cannot look at the bodies or change them; callbacks "
                "of evolve can"
            )
        return getattr(self._blocks, name)(*arguments, **options)

    def _synchronised(self) -> Moment:
        with self._lock:
            if self._seen is None:
                self._seen = self._call("at", self.time)
            return self._seen

    # ---- sums over bodies --------------------------------------------------------------------

    def potential(self) -> Floats:
        """Potential of the bodies at each of them at :attr:`time`, in mode double; shape (n,)."""
        return self._known_potential().copy()

    def _known_potential(self) -> Floats:
        if self._potential is None:
            self._potential = self._find_potential()
        return self._potential

    def _find_potential(self) -> Floats:
        """The potential, for NumPy."""
        mass, pos = self._blocks.mass, self._synchronised().pos
        mass = mass if self._G == 1 else mass * self._G
        find = diagnostics.summed_potential if self.SHARES_BODIES else diagnostics.potential
        return find(mass, pos, self._settings["eps"], **self._options)

    def energy(self) -> diagnostics.Energy:
        """Energy at :attr:`time`, with the potential of :meth:`potential` and that of the field.

        In rotating coordinates the total is Jacobi's energy. In a frame that moves the energy in
        the field is minus the work that it has done on the bodies since the start; of a Leapfrog,
        what they have above a body at the origin. All of these are conserved.

        Returns
        -------
        Energy
            With `kinetic`, `potential`, `external`, `total` and `virial_ratio`.

        Warns
        -----
        AccuracyWarning
            Once, if it differs by more than 1e-3 from the first one computed, other than by
            :attr:`energy_change` and by what bodies have taken with them. Where no more than one
            body has mass, it says nothing: then by the specific energies of those without mass,
            v^2/2 and the potential, in the frame of that body.
        """
        with self._owners.agreement("energy()"):
            energy = self._find_energy()
        error = self._energy_check.error(self.n - self._net_change, energy, self._energy_change)
        specific = self._specific_error()
        error = error if specific is None else specific
        if abs(error) > LIMIT and not self._energy_check.has_warned:
            self._energy_check.has_warned = True
            advice = remedies(self._settings, self.precision)
            text = f"at time {self.time:g} the relative energy error is {error:.1e}: take {advice}"
            warnings.warn(text, AccuracyWarning, stacklevel=2)
        return energy

    def _find_energy(self) -> diagnostics.Energy:
        mass, (pos, vel, *_) = self._blocks.mass, self._synchronised()
        energy = diagnostics.energy(mass, pos, vel, pot=self._known_potential(), ranks=self._owners)
        if self._blocks.external is None:
            return energy
        of_places = self._blocks.external_energy(self.time, mass, pos, vel)
        return energy._replace(external=of_places + self._call("energy_of_work", self.time))

    def _specific_error(self) -> float | None:
        """Mean relative error of the specific energies of bodies without mass, if they keep them:
        where one body acts on them, or a field from outside alone."""
        mass, external = self._blocks.mass, self._blocks.external
        heavy = mass != 0
        acting = self._owners.total(heavy.astype(float))
        if acting > 1 or (acting and external is not None) or acting == self.n:
            return None
        pos, vel, *_ = self._synchronised()
        light, motion = ~heavy, diagnostics.momentum(mass, vel, ranks=self._owners)
        pot = self._known_potential()[light]
        pos, vel = pos[light], vel[light] - motion / (self._owners.total(mass) or 1.0)
        with self._owners.agreement("the field"):
            if external is not None and len(pos):
                pot = pot + external.potential(self.time, pos, vel)
        half_v2 = (vel * vel).sum(axis=1) / 2
        return self._specific_check.error(self._own_ids()[light], half_v2, pot, self._owners)

    @property
    def energy_change(self) -> float:
        """Energy that changes of bodies have added so far.

        Each of :meth:`add`, :meth:`remove`, :meth:`merge`, :meth:`kick` and :meth:`set_mass` adds
        what it does to the total energy, in mode double: the total less this is conserved.
        """
        return self._energy_change

    def _set_constant(self, G: float) -> None:
        self._G = validate.positive("G", G)
        if self._G != 1:
            self._settings["G"] = self._G
