"""What integrators of bodies share: files, copies.

How they evolve to a time is in evolving.py, what one asks of the bodies in quantities.py, how they
change in changes.py. The bodies, and how one step moves them, are the subclasses': see
:class:`Hermite` and :class:`Leapfrog`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import validate
from grape6py._arrays.kinds import Attributes, PathLike, Shapes, Untyped
from grape6py._arrays.quantities import Converter
from grape6py.errors import ArgumentError
from grape6py.files.runs import writer as run_writer
from grape6py.integrators import external, restored
from grape6py.integrators.blocks import SMALLEST
from grape6py.integrators.evolving import Evolving
from grape6py.integrators.state import EXTRA, extra_of

if TYPE_CHECKING:
    from grape6py.files.formats import Snapshot
    from grape6py.files.runs.outputs import Outputs
    from grape6py.integrators.hermite import Hermite
    from grape6py.integrators.leapfrog import Leapfrog


def kind_of(backend: str, name: str) -> str:
    """The backend that a session of this name was decided for, if it was asked for "auto"."""
    kind = name.split()[0]
    return kind if backend == "auto" and kind in ("cpu", "cuda") else backend


def no_others(**others: object) -> None:
    """Refuse what the constant step `dt`, which was given, makes void."""
    for other, value in others.items():
        if value is not None:
            raise ArgumentError(f"dt is one step for all: there is no {other} then")


def limits(settings: Attributes) -> tuple[float, float]:
    """Smallest and largest step of an integration with one step, `dt`, or steps up to `dt_max`."""
    if "dt" in settings:
        return settings["dt"], settings["dt"]
    return settings["dt_max"] * SMALLEST, settings["dt_max"]


def outside_settings(attributes: Mapping[str, Untyped]) -> Attributes:
    """Settings of units and field among the attributes of a file."""
    found: Attributes = {name: str(attributes[name]) for name in ("field", "orbit")
                         if name in attributes}  # fmt: skip
    if "G" in attributes:
        found["G"] = validate.positive("G", attributes["G"])
    return found


class Integration(Evolving):
    """Bodies on their way.

    A subclass has STATE, shapes by the names of :meth:`state`, and `_restore`. It sets `_settings`,
    `_options` (backend, threads and comm, for energies), `_forces`, which is closed at the end, and
    `_blocks`, which moves the bodies: see :class:`grape6py.integrators.blocks.Blocks`.
    """

    STATE: ClassVar[Shapes]
    _restore: Callable[..., None]

    @classmethod
    def of(cls, bodies: Snapshot, **options: Untyped) -> Self:
        """An integration of a snapshot's bodies from time 0, with its ids and in its units."""
        units, given = bodies.units, tuple(bodies)
        if units is not None:
            given = Converter(units).given(bodies, None)
        return cls(*given, **{"ids": bodies.ids} | options)

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
        field: external.AnyField | None = None,
        backend: str = "auto",
        precision: str | None = None,
        threads: int | None = None,
        comm: Untyped = None,
    ) -> Self:
        """An integration as :attr:`settings` and :meth:`state` have described it.

        With `comm`, all ranks of Hermite have all bodies, and each rank of Leapfrog its own. It
        continues with the same bits if backend, instruction set and mode are the same.

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
        field : callable, optional
            The field, if that is a function.
        backend, precision, threads
            As in :class:`Grape6`. A tree goes on with a tree, which "auto" then is.
        comm : Intracomm of mpi4py, optional
            As in :class:`Hermite`.
        """
        self = cls.__new__(cls)
        self._take_ranks(comm)
        with self._ranks.agreement(f"{cls.__name__}.restored()"):
            self._settings = dict(settings)
            self._G = float(settings.get("G", 1.0))
            mass = validate.floats("mass", mass, (None,)).copy()
            n = len(mass)
            extra = {name: extra_of(name, state[name]) for name in EXTRA if name in state}
            own = {k: validate.floats(k, state[k], (n, *shape)) for k, shape in cls.STATE.items()}
            outside = external.from_settings(settings, field)
            time = validate.number("time", time)
            ids = None if ids is None else self._checked_ids(ids, n)
            with self._ranks.agreement("the arguments") as agreement:
                agreement.same("time", time)
                agreement.same("number of steps", validate.number("number of steps", steps))
                agreement.same("number of blocks", validate.number("number of blocks", blocks))
                agreement.same_contents("the settings", repr(sorted(self._settings.items())))
                agreement.same_contents("the state", *extra.values())
                if not cls.SHARES_BODIES:
                    bodies = mass, *own.values(), *([] if ids is None else [ids])
                    agreement.same_contents("the bodies", *bodies)
            options = {"backend": backend, "precision": precision, "threads": threads}
            self._restore(mass, own | extra, outside, **options)
            self._blocks.set_counters(steps, blocks)
            self._time = time
            if ids is not None:
                self._set_ids(ids)
            if run_id is not None:
                self._run_id = str(run_id)
            self._take_extra(extra)
        return self

    def _take_extra(self, extra: Attributes) -> None:
        watch, outside = self._blocks.watch, self._blocks.external
        self._blocks.epoch = float(extra.get("epoch", 0.0))
        self._energy_change = float(extra.get("energy_change", 0.0))
        self._last_id = int(extra.get("last_id", -1))
        self._take_stars(extra)
        if "initial_energy" in extra:
            self._first_energy = float(extra["initial_energy"])
        if "watched_ids" in extra:
            watch.take(extra["watched_until"], extra["watched_ids"])
        if "escape" in extra:
            watch.farther, *centre = map(float, extra["escape"])
            watch.centre = centre[0], centre[1], centre[2]
        if outside is not None and outside.orbit_frame is not None and "frame" in extra:
            outside.orbit_frame.go_on(extra["frame"])

    def copy(self) -> Self:
        """Another integration of the same bodies, which goes on with the same bits.

        It has a :attr:`run_id` of its own.
        """
        with self._lock:
            make, given, rest = self._description(run_id=None)
            made = make(*given)
        for name in ("initial_energy", "changes"):
            rest["_about"].pop(name, None)  # it is another run
        vars(made).update(rest)
        return made

    __copy__ = copy

    def __deepcopy__(self, _: object) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Untyped, ...], Attributes]:
        with self._lock:
            return self._description(run_id=self._run_id)

    def _description(
        self, run_id: str | None
    ) -> tuple[Callable[..., Self], tuple[Untyped, ...], Attributes]:
        """What makes the bodies again, of what, and attributes that are set then."""
        outside = self._blocks.external
        more = {
            "time": self.time,
            "steps": self.steps,
            "blocks": self.blocks,
            "ids": self.ids,
            "run_id": run_id,
            "field": None if outside is None else outside.function,
            "precision": None if "method" in self._settings else self.precision,
            **self._options,
        }
        given = self.settings, np.array(self._blocks.mass), self.state()
        rest = {"_library": self._library, "_labels": self._labels, "_since": self._since}
        return functools.partial(self.restored, **more), given, rest | {"_about": {**self._about}}

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

    @property
    def run_id(self) -> str:
        """Names the run in its files, also after a restart."""
        return self._run_id

    def save(self, path: PathLike, *, overwrite: bool = False) -> None:
        """Add bodies and :meth:`state` to an HDF5 file (.h5), as :func:`archive.save`.

        With `overwrite` the file of another run is replaced.
        """
        run_writer.save(path, self._as_seen(), overwrite=overwrite)

    def plot(
        self, axes: Untyped = None, *, plane: str = "xy", size: float | None = None
    ) -> Untyped:
        """Draw the bodies that this rank has into matplotlib's axes, or a new figure: this is
        given, as by :func:`picture.draw_bodies`."""
        from grape6py import picture  # matplotlib takes its time

        (mass, pos, _), units = self.particles(), getattr(self._as_seen(), "units", None)
        view: Attributes = {"axes": axes, "plane": plane, "size": size}
        return picture.draw_bodies(mass, pos, time=self.time, units=units, **view)

    @staticmethod
    def load(
        path: PathLike | Outputs, which: int | None = None, **options: Untyped
    ) -> Hermite | Leapfrog:
        """The integration that a run ends with, or of one output, as :func:`archive.restore`."""
        return restored.restore(path, which, **options)
