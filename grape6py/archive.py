"""HDF5 files of a run: one for each output, any of which can be gone on from, and their index.

The outputs of ``cluster.h5`` are ``cluster/000000.hdf5``, ``cluster/000001.hdf5``, ...
(output_file.py); of a Leapfrog of several ranks each is in numbered files, ``000000.0.hdf5``,
``000000.1.hdf5``, ..., of which each rank writes its own. ``cluster.h5`` itself is added to with
each of them. Its groups ``000000``, ``000001``, ... are links to the groups `grape6py` of the
outputs, or have such links to numbered files. Its attributes are the settings of the integration
(:attr:`Hermite.settings`), `integrator` if it is "leapfrog", `precision`, `backend`,
`initial_energy`, `run` (an id), `changes` of settings by a restart, and what the writer adds. Its
group `index` has a row for each output (run_index.Table).

Every file is written aside, synced and renamed, with a checksum at its end, so that whatever was
saved is whole at every moment, and damage is found. If the index is lost or damaged, it is made
again from the outputs.
"""

import contextlib
import math
import os
import warnings
from typing import TypeAlias, TypedDict

from numpy.typing import ArrayLike

from grape6py import in_units
from grape6py._arrays import validate
from grape6py._arrays.ids import Labels, of, once
from grape6py._arrays.kinds import Attributes, Floats, Int8s, PathLike, State, Untyped
from grape6py._io import output_file, run_index
from grape6py._io.run_writer import Writer as Writer
from grape6py._io.run_writer import describe as describe
from grape6py._io.run_writer import labels_in
from grape6py._lib.declarations import BACKENDS, PRECISIONS
from grape6py.bound_pairs import Binaries
from grape6py.diagnostics import Energy
from grape6py.errors import (
    ArgumentError,
    Grape6Warning,
    NotFiniteError,
    RangeError,
    SnapshotError,
)
from grape6py.formats.bodies import Snapshot
from grape6py.grape6 import Grape6
from grape6py.integrators import external
from grape6py.integrators.base import EXTRA, extra_of
from grape6py.integrators.hermite import Hermite
from grape6py.integrators.leapfrog import Leapfrog
from grape6py.models import Particles
from grape6py.quantities import Converter
from grape6py.ranks.one_rank import ONE, ranks_of
from grape6py.ranks.ranks import Ranks
from grape6py.units import Units

Cluster: TypeAlias = Hermite | Leapfrog
Kind: TypeAlias = type[Hermite] | type[Leapfrog]

_OPTIONS = "backend", "precision", "threads", "comm", "field", "eta"  # of restore
INTEGRATORS: dict[str, Kind] = {"hermite": Hermite, "leapfrog": Leapfrog}


class Record(TypedDict):
    """A line of a run's log: see :func:`record`."""

    time: float
    error: float
    virial_ratio: float
    radii: list[float]
    steps: int
    blocks: int


def save(
    path: PathLike,
    cluster: Cluster,
    *,
    about: Attributes | None = None,
    component: ArrayLike | None = None,
    binaries: Binaries | None = None,
    overwrite: bool = False,
) -> None:
    """Add the present state of an integration to a file; make the file if there is none.

    A state at the time of the last output takes its place.

    Parameters
    ----------
    path : path-like
        A name that ends in .h5 or .hdf5. The outputs go to a folder of the same name.
    cluster : Hermite or Leapfrog
        If it is of several ranks, all of them make this call.
    about : dict of str to str, int or float, optional
        Attributes of the root, if the file is made.
    component : array_like of int, shape (n,), optional
        What each body belongs to (:class:`models.Labelled`): pictures tell bodies apart by it. By
        default that of the output before, by `ids`, if there is one.
    binaries : Binaries, optional
        What :meth:`Hermite.binaries` gave: the output's group `binaries`.
    overwrite : bool
        Replace what is there if it is not of this run: it is put aside, and removed when the first
        output is in its place.

    Raises
    ------
    ArgumentError
        (a ValueError) for another ending, or if `component` is not of n bodies.
    SnapshotError
        (a ValueError) if the file is there and is of this run with other settings, or goes on to a
        later time, or is one output of a run; without `overwrite` also if it is of another run, or
        no such file.
    FileInUseError
        (an OSError) if another run is writing to it.
    OSError
        If it cannot be written. What was saved before is whole.
    RankError
        If another rank has failed.
    """
    ranks = in_units.bare(cluster)._ranks
    with ranks.agreement("save()"), Writer(path, ranks, overwrite=overwrite) as writer:
        writer.save(cluster, about=about, component=component, binaries=binaries)


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


def restore(path: PathLike, **options: Untyped) -> Cluster:
    """The integration that a file ends with; it continues with the same bits.

    Parameters
    ----------
    path : path-like
        Of a run, or of one output.
    **options
        backend, precision, threads, comm, as in :class:`Hermite`, and field, if that is a function;
        mode and backend are the file's by default, the backend if it can be had and
        GRAPE6_BACKEND names no other. With another `eta` or `precision` the bits are no longer
        those of a run that was never stopped: files written from then on say so in `changes`.

    Returns
    -------
    Hermite or Leapfrog
        With `comm`, each rank of a Leapfrog has a share of the bodies, in their order.

    Raises
    ------
    ArgumentError
        (a ValueError) for a setting that cannot be changed.
    SnapshotError
        (a ValueError) if it is not a file of :func:`save`.
    OSError
        If it cannot be opened.

    Warns
    -----
    Grape6Warning
        If backend, instruction set or mode differ from the file's: so will the bits. If the last
        output is damaged, and an earlier one is taken.
    """
    if wrong := [name for name in options if name not in _OPTIONS]:
        raise ArgumentError(
            f"{', '.join(wrong)}: a run that goes on takes {', '.join(_OPTIONS)}; for another "
            "setting begin a new one with its particles()"
        )
    ranks, eta = ranks_of(options.get("comm")), options.pop("eta", None)
    with ranks.agreement("load()"):
        run = run_index.find(path)
        with output_file.explained(run.path):
            mode, backend = str(run.about["precision"]), str(run.about["backend"])
            validate.choice("precision", mode, PRECISIONS)
            kind = INTEGRATORS[str(run.about.get("integrator", "hermite"))]
            settings = before = kind.settings_from(run.about)
            external.parsed(settings)
            units, converter = units_of(run.about), None
            if units is not None and "quantities" in run.about:
                converter = Converter(units, str(run.about["quantities"]))
        if eta is not None:
            if "dt" in settings:
                raise ArgumentError(f"eta: {run.path} is of one constant step")
            settings = settings | {"eta": validate.positive("eta", eta)}
        if "method" in settings and options.get("precision") not in (None, mode):
            raise ArgumentError("precision: the sums of a tree have one of their own")
        owners = ranks if kind.SHARES_BODIES else ONE
        mass, state, about = _last_whole(run, kind, owners)
        component = about.pop("component")
        about |= {"run_id": run.id, "precision": mode} | options | _backend(backend, options)
        try:
            cluster = kind.restored(settings, mass, state, **about)
        except (NotFiniteError, RangeError) as error:  # of what is predicted from the state
            raise SnapshotError(f"{run.path} cannot go on: {error}") from error
        own = {*before, "precision", "backend", "run"}
        cluster._about = {k: v for k, v in run.about.items() if k not in own}
        if component is not None:
            cluster._labels = Labels(cluster._own_ids(), component)
        note_change(cluster, "eta", before.get("eta"), settings.get("eta"))
        note_change(cluster, "precision", mode, cluster.precision)
        for name, was in (("backend", backend), ("precision", mode)):
            if getattr(cluster, name) != was:
                warnings.warn(
                    f"{run.path} was made with {name} {was}; this is {getattr(cluster, name)}: the "
                    "numbers will differ in the last digits",
                    Grape6Warning,
                    stacklevel=2,
                )
        if converter is not None:
            found: Untyped = in_units.InUnits(cluster, converter)
            return found  # type: ignore[no-any-return]
        return cluster


def note_change(cluster: Cluster, name: str, old: object, new: object) -> None:
    """Let files to come say that a run has gone on with another setting."""
    if new != old:
        instead = "" if old is None else f" instead of {old}"
        line = f"at time {cluster.time!r}: {name} {new}{instead}"
        known = cluster._about.get("changes")
        cluster._about["changes"] = f"{known}; {line}" if known else line


def _backend(name: str, options: Attributes) -> Attributes:
    """The option that is a file's backend, unless another is asked for or needed."""
    asked = options.get("backend", "auto"), os.environ.get("GRAPE6_BACKEND", "auto")
    kind = name.partition(" ")[0]
    is_here = kind in BACKENDS and ("cuda" not in kind or _has_gpu())
    return {"backend": kind} if asked == ("auto", "auto") and is_here else {}


def _has_gpu() -> bool:
    with Grape6() as session:
        session._board.prepare_for(0, 0)
        return session._board.option("DEVICE") >= 0


def _last_whole(run: run_index.Run, kind: Kind, owners: Ranks) -> tuple[Floats, State, Attributes]:
    """Masses, state, and what else is restored, of the last output that is whole on all ranks."""
    first = None
    for saved in reversed(run.outputs):
        found, error = None, None
        with owners.agreement("load()") as agreement:
            try:
                found = _read(run, saved, kind, owners)
            except SnapshotError as its:
                error = its
            is_damaged = agreement.maximum(error is not None)
        if is_damaged.value:
            first = first or next(filter(None, owners.from_each(error)))
            continue
        assert found is not None
        if first:
            text = f"{first}; gone on from time {found[2]['time']:g} instead"
            warnings.warn(text, Grape6Warning, stacklevel=3)
        return found
    raise SnapshotError(f"{run.path} has no output that is whole. The last one: {first}") from first


def _read(
    run: run_index.Run, saved: run_index.Saved, kind: Kind, owners: Ranks
) -> tuple[Floats, State, Attributes]:
    """Of all bodies, or of this rank's share."""
    by_body = ("mass", "ids", "component", *(f"state/{name}" for name in kind.STATE))
    arrays, extra, attributes = run.read(saved, by_body, [f"state/{k}" for k in EXTRA], owners)
    with output_file.explained(run.path_of(saved)):
        mass = validate.floats("mass", arrays["mass"], (None,))
        state = {
            name: validate.floats(name, arrays[f"state/{name}"], (len(mass), *shape))
            for name, shape in kind.STATE.items()
        }
        state |= {
            name: extra_of(name, extra[f"state/{name}"])
            for name in EXTRA
            if f"state/{name}" in extra
        }
        if not (state["dt"] > 0).all():
            raise ArgumentError("a step is not above zero")
        return mass, state, {
            "ids": once("ids", of("ids", arrays["ids"], len(mass))) if "ids" in arrays else None,
            "component": arrays.get("component"),
            "time": validate.number("time", attributes["time"]),
            **{name: _count(name, attributes[name]) for name in ("steps", "blocks")},
        }  # fmt: skip


def _count(name: str, value: Untyped) -> int:
    found = int(validate.number(name, value, negative=False))
    if found >= 2**63:
        raise ArgumentError(f"{name} = {found} is beyond 64 bits")
    return found


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
