"""A run that was saved, as a sequence of its outputs: :func:`open_run`."""

from __future__ import annotations

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import Attributes, PathLike, Untyped
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.files.formats.bodies import Snapshot
from grape6py.files.runs import index as run_index
from grape6py.files.runs import reader
from grape6py.files.runs.outputs import Outputs
from grape6py.files.storage import output_file
from grape6py.in_units import without_units
from grape6py.integrators.restored import restore
from grape6py.integrators.state import integrator

_MODES = ("before", "nearest", "exact")


def open_run(path: PathLike) -> Run:
    """The :class:`Run` of an HDF5 file of a run, or of one of its outputs.

    Raises
    ------
    SnapshotError, OSError
        If it is no such file, or cannot be opened.
    """
    try:
        return Run(run_index.find(path))
    except SnapshotError as error:
        hint = "If it is a snapshot, and no run, read_snapshot reads it"
        raise SnapshotError(f"{error}. {hint}") from error


class Run(Outputs):
    """The outputs of a run, ascending in time, as a sequence; :func:`open_run` makes one.

    ``run[k]`` is a :class:`Snapshot` in plain numbers of its `units`, read at that moment;
    ``run[a:b:c]`` a `Run` of some outputs, of which nothing is read. A NoOutputError (an
    IndexError) says how many there are. An output that is missing or damaged is a SnapshotError
    that names its file: a loop over ``next(outputs)``, of ``outputs = iter(run)``, that catches it
    goes on with the next one.

    A run that is being written has the outputs that were there when it was opened, until
    :meth:`refresh`. `times`, `history` and :meth:`track` are in quantities if the bodies were.
    """

    @property
    def settings(self) -> Attributes:
        """:attr:`Hermite.settings`, as they were last."""
        with output_file.explained(self.path):
            kind = integrator(str(self.about.get("integrator", "hermite")))
            return dict(kind.settings_from(self.about))

    def at(self, t: float, mode: str = "before", **options: Untyped) -> Snapshot:
        """The bodies at a time, a quantity or a number as that of a snapshot.

        Parameters
        ----------
        t : float
            One that differs by rounding from that of an output is meant as that.
        mode : {"before", "nearest", "exact"}
            Of the last output that is not later, or of the nearest; or what :meth:`Hermite.load`,
            with `options`, evolves that before to: without what callbacks and events have done.

        Raises
        ------
        ArgumentError
            (a ValueError) for a time outside of `times`, or another mode.
        """
        if mode not in _MODES:
            raise ArgumentError(f"mode = {mode!r}: there are {', '.join(_MODES)}")
        converter = reader.converter_of(self._index.about)
        t = validate.number(
            "t", t if converter is None else converter.numbers("t", t, "time", unitless=True)
        )
        times = self._rows[:, 0]
        distance = np.abs(times - t)
        is_same = distance <= 4 * np.spacing(abs(t))
        if not (is_same | (times < t)).any() or not (is_same | (times > t)).any():
            have = f"times from {times.min()} to {times.max()}" if len(times) else "no outputs"
            raise ArgumentError(f"t = {t}: {self.path} has {have}")
        before = int(np.where(is_same | (times < t), times, -np.inf).argmax())
        if mode != "exact" or is_same.any():
            return self[before if mode == "before" else int(distance.argmin())]
        with without_units(restore(self, before, **options)) as cluster:
            cluster.evolve(t)
            return Snapshot(*cluster.particles(), time=t, ids=cluster.ids, units=self.units)

    def plot(self, path: PathLike | None = None) -> Untyped:
        """The figure that :func:`picture.draw_file` draws, written to a path if that is given."""
        from grape6py import picture  # matplotlib takes its time

        return picture.draw_file(path, self)
