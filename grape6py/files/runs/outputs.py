"""The outputs of a run as a sequence, whose files are read when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from grape6py._arrays import html, validate
from grape6py._arrays import ids as id_numbers
from grape6py._arrays.closed import Closed
from grape6py._arrays.kinds import AnyArray, Attributes, Floats, PathLike, Untyped
from grape6py.errors import CallOrderError, SnapshotError
from grape6py.files.formats.bodies import Snapshot
from grape6py.files.runs import index as run_index
from grape6py.files.runs import reader
from grape6py.files.storage import atomic_files, output_file

if TYPE_CHECKING:
    from grape6py.units import Units


class Track(NamedTuple):
    """K bodies at m outputs: `ids`, shape (k,), `time` (m,), `mass` (m, k), `pos`, `vel` (m, k, 3).

    They are NaN where a body is not there.
    """

    ids: AnyArray
    time: Floats
    mass: Floats
    pos: Floats
    vel: Floats


class Outputs(Closed):
    """Outputs of a run, ascending in time, as a sequence: the part of :class:`Run` that integrates
    nothing."""

    def __init__(self, index: run_index.Run, numbers: range | None = None) -> None:
        self._index, self._is_slice = index, numbers is not None
        self._numbers = range(len(index.outputs)) if numbers is None else numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, which: int) -> Snapshot: ...
    @overload
    def __getitem__(self, which: slice) -> Self: ...
    def __getitem__(self, which: int | slice) -> Snapshot | Self:
        if isinstance(which, slice):
            return type(self)(self._index, self._numbers[which])
        return reader.snapshot_of(self._index, self._saved(which))

    def __iter__(self) -> Iterator[Snapshot]:
        return map(self.__getitem__, range(len(self)))  # which an error does not end

    def __repr__(self) -> str:
        times, units = self._rows[:, 0], f" in {self.units}" if self.units else ""
        ends = f" from time {times[0]:g} to {times[-1]:g}" if len(times) else ""
        return f"<{type(self).__name__} {self.path}, {len(self)} outputs{ends}{units}>"

    def _repr_html_(self) -> str:
        times = self._rows[:, 0]
        ends = f"{times[0]:g} to {times[-1]:g}" if len(times) else None
        facts = {"outputs": len(self), "times": ends, "units": self.units}
        return html.table(f"{type(self).__name__} {self.path}", facts)

    def _saved(self, which: int) -> run_index.Saved:
        return self._index.outputs[reader.chosen(self.path, self._numbers, which)]

    def outputs_for(self, which: int | None) -> tuple[run_index.Run, Iterable[run_index.Saved]]:
        """For :func:`archive.restore`: what to go on from, the first of these that is whole."""
        if which is None:
            return self._index, map(self._saved, reversed(range(len(self))))
        alone = self._index.alone(self._saved(which))  # settings may have changed since
        return alone, alone.outputs

    @property
    def _rows(self) -> AnyArray:
        return self._index.history[list(self._numbers)]

    def _given(self, value: Untyped, dimension: str | None = None) -> Untyped:
        converter = reader.converter_of(self._index.about)
        return value if converter is None else converter.given(value, dimension)

    @property
    def path(self) -> str:
        """Of the file that was opened."""
        return self._index.path

    @property
    def id(self) -> str:
        """Names the run in its files: :attr:`Hermite.run_id`."""
        return self._index.id

    @property
    def about(self) -> Attributes:
        """Attributes of the file's root: settings, `precision`, `backend`, and others."""
        return dict(self._index.about)

    @property
    def changes(self) -> list[str]:
        """Changes of settings by restarts, each with its time."""
        return [line for line in str(self.about.get("changes", "")).split("; ") if line]

    @property
    def units(self) -> Units | None:
        """In which the numbers are, if the file says so."""
        with output_file.explained(self.path):
            return reader.units_of(self._index.about)

    @property
    def times(self) -> Untyped:
        """Of the outputs; shape (m,)."""
        return self._given(self._rows[:, 0].copy(), "time")

    @property
    def history(self) -> reader.History:
        """Energies, radii and counters of all outputs, none of which is opened."""
        found: reader.History = self._given(self._history())
        return found

    def records(self) -> list[reader.Record]:
        """The same as plain numbers, a dict for each output."""
        return self._history().records()

    def _history(self) -> reader.History:
        with output_file.explained(self.path):
            start = validate.number("initial_energy", self._index.about["initial_energy"])
        return reader.History.of(self._rows, start)

    def track(self, ids: ArrayLike) -> Track:
        """Bodies of some numbers, shape (k,), at all outputs, one of which is in memory at a time.

        Raises
        ------
        SnapshotError
            (a ValueError) if an output is missing or damaged.
        """
        wanted = id_numbers.of("ids", [ids] if np.ndim(ids) == 0 else ids)
        shape = len(self), len(wanted)
        mass, pos, vel = (np.full((*shape, *more), np.nan) for more in ((), (3,), (3,)))
        for row, bodies in enumerate(self):
            own = np.arange(len(bodies.mass)) if bodies.ids is None else bodies.ids
            at, there = id_numbers.rows(own.astype(np.uint64), wanted)
            for found, array in zip((mass, pos, vel), bodies, strict=True):
                found[row, there] = array[at[there]]
        track = Track(id_numbers.shown(wanted), self._rows[:, 0].copy(), mass, pos, vel)
        return self._given(track)  # type: ignore[no-any-return]

    def missing(self) -> list[str]:
        """Files of outputs that are not there. Damaged ones are found when they are read."""
        names = [name for k in range(len(self)) for name in self._saved(k).files]
        files = (os.path.join(self._index.folder, name) for name in names)
        return [file for file in files if not os.path.exists(file)]

    def is_being_written(self) -> bool:
        """Whether a writer has it open, as ``grape6 run`` all the time."""
        return atomic_files.is_locked(self._index.folder)

    def refresh(self) -> None:
        """Find what has been written since. A slice keeps its outputs: a CallOrderError."""
        if self._is_slice:
            raise CallOrderError("a slice keeps its outputs: refresh the run, and slice it anew")
        index = run_index.find(self.path)
        if index.id != self.id:
            raise SnapshotError(f"{self.path} holds another run now: open it anew")
        self._index, self._numbers = index, range(len(index.outputs))


def outputs_of(path: PathLike) -> Outputs:
    """All outputs of the run that a file holds."""
    return Outputs(run_index.find(path))


def history(path: PathLike) -> tuple[Attributes, list[reader.Record]]:
    """Attributes of a file's root, and a record of each output: of :class:`Outputs`."""
    run = outputs_of(path)
    return run.about, run.records()
