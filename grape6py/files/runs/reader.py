"""What files of runs say: bodies of an output, and the history of a run."""

import contextlib
import math
from typing import TypedDict

from grape6py._arrays import validate
from grape6py._arrays.ids import Labels
from grape6py._arrays.kinds import Attributes, Int8s, PathLike
from grape6py.diagnostics import Energy
from grape6py.errors import SnapshotError
from grape6py.files.formats.bodies import Snapshot
from grape6py.files.runs import index as run_index
from grape6py.files.runs.writer import labels_in
from grape6py.files.storage import output_file
from grape6py.models import Particles
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks
from grape6py.units import Units


class Record(TypedDict):
    """A line of a run's log: see :func:`record`."""

    time: float
    error: float
    virial_ratio: float
    radii: list[float]
    steps: int
    blocks: int


def record(numbers: Attributes, initial_energy: float) -> Record:
    """A line of a run's log from the attributes of an output.

    Returns
    -------
    dict
        `time`, `error` (relative, of the energy; NaN if there is none), `virial_ratio`,
        `radii`, `steps`, `blocks`, as Python's own numbers.
    """
    energy = Energy(
        *(float(numbers.get(name, 0.0)) for name in ("kinetic", "potential", "external"))
    )
    change = energy.total - float(numbers.get("change", 0.0)) - initial_energy
    return {
        "time": float(numbers["time"]),
        "error": change / abs(initial_energy) if initial_energy else math.nan,
        "virial_ratio": energy.virial_ratio,
        "radii": [float(radius) for radius in numbers["radii"]],
        "steps": int(numbers["steps"]),
        "blocks": int(numbers["blocks"]),
    }


def read_particles(path: PathLike, which: int = -1) -> Particles:
    """The bodies of one output of a file, by default the last.

    Returns
    -------
    Particles

    Raises
    ------
    SnapshotError
        (a ValueError) if there is no such output, or if it is damaged.
    OSError
        If the file cannot be opened.
    """
    return read_labelled(path, which)[0]


def read_snapshot(path: PathLike, which: int = -1, owners: Ranks = ONE) -> Snapshot:
    """As :func:`read_particles`, with time, ids and units; or a rank's share of the bodies."""
    run, saved = _saved(path, which)
    arrays, _, attributes = run.read(saved, (*Particles._fields, "ids"), owners=owners)
    with output_file.explained(run.path_of(saved)):
        units = units_of(run.about)
        particles, time = _particles(arrays), validate.number("time", attributes["time"])
    return Snapshot(*particles, time=time, ids=arrays.get("ids"), units=units)


def read_labelled(
    path: PathLike, which: int = -1, owners: Ranks = ONE
) -> tuple[Particles, Int8s | None]:
    """As :func:`read_particles`, and what each body belongs to, if the file says so.

    Returns
    -------
    Particles, ndarray of int8 or None
    """
    run, saved = _saved(path, which)
    arrays = run.read(saved, (*Particles._fields, "component"), owners=owners).arrays
    with output_file.explained(run.path_of(saved)):
        return _particles(arrays), arrays.get("component")


def units_of(about: Attributes) -> Units | None:
    """Those of a run, from the attributes of its file's root."""
    return Units.from_text(str(about["units"])) if "units" in about else None


def _particles(arrays: Attributes) -> Particles:
    n = len(arrays["mass"])
    shapes = {"mass": (n,), "pos": (n, 3), "vel": (n, 3)}
    return Particles(*(validate.floats(k, arrays[k], shape) for k, shape in shapes.items()))


def _saved(path: PathLike, which: int) -> tuple[run_index.Run, run_index.Saved]:
    run = run_index.find(path)
    which = validate.integer("which", which)
    if not -len(run.outputs) <= which < len(run.outputs):
        raise SnapshotError(f"{run.path} has {len(run.outputs)} outputs, and not number {which}")
    return run, run.outputs[which]


def read_component(path: PathLike) -> Labels | None:
    """What the bodies of a run's last output belong to, with their ids; None if it does not say.

    Raises
    ------
    SnapshotError, OSError
        As :func:`read_particles`.
    """
    run = run_index.find(path)
    for saved in reversed(run.outputs):
        with contextlib.suppress(SnapshotError):
            return labels_in(run, saved)
    return None


def history(path: PathLike) -> tuple[Attributes, list[Record]]:
    """Attributes of a file's root, and a :func:`record` of each of its outputs.

    Raises
    ------
    SnapshotError, OSError
        As :func:`read_particles`.
    """
    run = run_index.find(path)
    with output_file.explained(run.path):
        start = validate.number("initial_energy", run.about["initial_energy"])
    return run.about, [record(output.numbers, start) for output in run.outputs]
