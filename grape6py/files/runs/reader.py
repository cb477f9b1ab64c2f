"""What files of runs say: bodies of an output, and numbers of each.

A run as a whole is run.py's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self, TypedDict, TypeVar

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import AnyArray, Attributes, Floats, Int64s, PathLike
from grape6py._arrays.particles import Particles
from grape6py._arrays.quantities import Converter
from grape6py.errors import NoOutputError
from grape6py.files.formats.bodies import Snapshot
from grape6py.files.runs import index as run_index
from grape6py.files.storage import output_file
from grape6py.forces.energies import Energy
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks
from grape6py.units import Units

T = TypeVar("T")


class History(NamedTuple):
    """Numbers of m outputs, arrays of shape (m,), in their order.

    As of :class:`Hermite`: `steps`, `blocks`, the energies and `virial_ratio` of ``energy()``,
    `energy_change` as `change`, and the `radii`, (m, 3), of diagnostics.FRACTIONS of the mass.
    `error` is that of `total` less `change`, relative to the start; NaN if that was 0.
    """

    time: Floats
    steps: Int64s
    blocks: Int64s
    kinetic: Floats
    potential: Floats
    external: Floats
    change: Floats
    total: Floats
    error: Floats
    virial_ratio: Floats
    radii: Floats

    @classmethod
    def of(cls, rows: AnyArray, initial_energy: float) -> Self:
        """That of rows of numbers as an index has them."""
        numbers, radii = np.split(np.array(rows), [len(run_index.NUMBERS)], axis=1)
        time, steps, blocks, kinetic, potential, external, change = numbers.T
        parts = kinetic, potential, external
        energies = [Energy(*row) for row in np.transpose(parts).tolist()]
        total = np.array([energy.total for energy in energies])
        error = (total - change - initial_energy) / (abs(initial_energy) or math.nan)
        virial_ratio = np.array([energy.virial_ratio for energy in energies])
        counters = steps.astype(np.int64), blocks.astype(np.int64)
        return cls(time, *counters, *parts, change, total, error, virial_ratio, radii)

    def records(self) -> list[Record]:
        """A :func:`record` of each output."""
        names = Record.__annotations__
        columns = [getattr(self, name).tolist() for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]  # type: ignore[misc]


class Record(TypedDict):
    """A line of a run's log, in Python's own numbers; as of :class:`History`."""

    time: float
    error: float
    virial_ratio: float
    radii: list[float]
    steps: int
    blocks: int


def record(numbers: Attributes, initial_energy: float) -> Record:
    """A line of a run's log from the attributes of an output."""
    return History.of(run_index.rows_of([numbers]), initial_energy).records()[0]


def read_snapshot(path: PathLike, which: int = -1, owners: Ranks = ONE) -> Snapshot:
    """The bodies of one output of a file, by default the last; or a rank's share of them.

    Raises
    ------
    SnapshotError
        (a ValueError) if there is no such output, or if it is damaged.
    OSError
        If the file cannot be opened.
    """
    run = run_index.find(path)
    return snapshot_of(run, chosen(run.path, run.outputs, which), owners)


def snapshot_of(run: run_index.Run, saved: run_index.Saved, owners: Ranks = ONE) -> Snapshot:
    """The bodies of an output, or a rank's share of them."""
    arrays, _, attributes = run.read(saved, (*Particles._fields, "ids", "component"), owners=owners)
    with output_file.explained(run.path_of(saved)):
        n = len(arrays["mass"])
        shapes = {"mass": (n,), "pos": (n, 3), "vel": (n, 3)}
        particles = [validate.floats(k, arrays[k], shape) for k, shape in shapes.items()]
        time, units = validate.number("time", attributes["time"]), units_of(run.about)
        found = Snapshot(*particles, time=time, ids=arrays.get("ids"), units=units)
        found.external = validate.number("external", attributes.get("external", 0.0))
        if "origin" in attributes:
            found.origin = validate.floats("origin", attributes["origin"], (6,)).reshape(2, 3)
    found.check(run.path_of(saved))
    found.format, found.is_of_a_run, found.moments = "gadget-hdf5", True, len(run.outputs)
    found.component = arrays.get("component")
    return found


def units_of(about: Attributes) -> Units | None:
    """Those of a run, from the attributes of its file's root."""
    return Units.from_text(str(about["units"])) if "units" in about else None


def converter_of(about: Attributes) -> Converter | None:
    """What makes quantities of the numbers of a run that was made with such."""
    units = units_of(about)
    if units is None or "quantities" not in about:
        return None
    return Converter(units, str(about["quantities"]))


def chosen(path: str, outputs: Sequence[T], which: int) -> T:
    """One of the outputs of a file; a NoOutputError if there is none of this number."""
    which = validate.integer("which", which)
    if not -len(outputs) <= which < len(outputs):
        raise NoOutputError(f"{path} has {len(outputs)} outputs, and not number {which}")
    return outputs[which]
