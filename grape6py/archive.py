"""HDF5 files of a run: one for each output, any of which can be gone on from, and their index.

The outputs of ``cluster.h5`` are ``cluster/000000.hdf5``, ``cluster/000001.hdf5``, ...
(output_file.py). ``cluster.h5`` itself is made anew with each of them. Its groups ``000000``,
``000001``, ... are links to the groups `grape6py` of the outputs, its attributes the settings of
the integration (:attr:`Hermite.settings`), `integrator` if it is "leapfrog", `precision`,
`backend`, `initial_energy`, `run` (an id), what the writer adds, and `history`, a row for each
output.

Every file is written aside, synced and renamed, with a checksum at its end, so that whatever was
saved is whole at every moment, and damage is found. If the index is lost or damaged, it is made
again from the outputs. Files of version 0.1 have a group for each output instead of a link: they
are read as well, and changed to the new form when they are written to.
"""

import contextlib
import math
import os
import re
import warnings
from typing import Self, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from grape6py import in_units
from grape6py._arrays import validate
from grape6py._arrays.kinds import HDF5, Attributes, Floats, Int8s, Int64s, PathLike, State, Untyped
from grape6py._io import atomic_files, output_file, run_index
from grape6py._lib.declarations import BACKENDS, PRECISIONS
from grape6py.bound_pairs import Binaries
from grape6py.diagnostics import Energy
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from grape6py.formats.bodies import Snapshot
from grape6py.grape6 import Grape6
from grape6py.integrators.base import EXTRA, extra_of
from grape6py.integrators.hermite import Hermite
from grape6py.integrators.leapfrog import Leapfrog
from grape6py.models import Particles
from grape6py.quantities import Converter
from grape6py.ranks.ranks import Ranks, ranks_of, together
from grape6py.units import Units

Cluster: TypeAlias = Hermite | Leapfrog
Kind: TypeAlias = type[Hermite] | type[Leapfrog]

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
) -> None:
    """Add the present state of an integration to a file; make the file if there is none.

    A state at the time of the last output takes its place.

    Parameters
    ----------
    path : path-like
        A name that ends in .h5 or .hdf5. The outputs go to a folder of the same name.
    cluster : Hermite or Leapfrog
    about : dict of str to str, int or float, optional
        Attributes of the root, if the file is made.
    component : array_like of int, shape (n at the start,), optional
        What each body belongs to (:class:`models.Labelled`), by its number in `ids`: pictures tell
        bodies apart by it. By default that of the output before, if there is one.

    binaries : Binaries, optional
        What :meth:`Hermite.binaries` gave: the output's group `binaries`.

    Raises
    ------
    ArgumentError
        (a ValueError) for another ending, or if `component` lacks a body.
    SnapshotError
        (a ValueError) if the file is there and is not such a file, that of another run or of
        other settings, or one that goes on to a later time.
    FileInUseError
        (an OSError) if another run is writing to it.
    OSError
        If it cannot be written. What was saved before is whole.
    """
    with Writer(path) as writer:
        writer.save(cluster, about=about, component=component, binaries=binaries)


def describe(cluster: Cluster) -> Attributes:
    """The attributes of an output: time, counters, energies and Lagrangian radii, by name.

    `external` and `change` (:attr:`Hermite.energy_change`) are there if they are not 0.
    """
    energy = cluster.energy()
    found = {
        "time": cluster.time,
        "steps": cluster.steps,
        "blocks": cluster.blocks,
        "kinetic": energy.kinetic,
        "potential": energy.potential,
        "radii": cluster.lagrangian_radii(),
    }
    return found | {
        name: value
        for name, value in (("external", energy.external), ("change", cluster.energy_change))
        if value
    }


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
        GRAPE6_BACKEND names no other.

    Returns
    -------
    Hermite or Leapfrog
        With `comm`, each rank of a Leapfrog has a share of the bodies, in their order.

    Raises
    ------
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
    ranks = ranks_of(options.get("comm"))
    with together(ranks, "load()"):
        run = run_index.find(path)
        with output_file.explained(run.path):
            mode, backend = str(run.about["precision"]), str(run.about["backend"])
            validate.choice("precision", mode, PRECISIONS)
            kind = INTEGRATORS[str(run.about.get("integrator", "hermite"))]
            settings = kind.settings_from(run.about)
        parts = ranks if kind.SHARES_BODIES else None
        mass, state, about = _last_whole(run, kind, parts)
        options = {"precision": mode} | options
        about |= {"run_id": run.id}
        cluster = _restored_by(kind, backend, options, settings, mass, state, about)
        package = run.about.get("quantities")
        for name, was in (("backend", backend), ("precision", mode)):
            if getattr(cluster, name) != was:
                warnings.warn(
                    f"{run.path} was made with {name} {was}; this is {getattr(cluster, name)}: the "
                    "numbers will differ in the last digits",
                    Grape6Warning,
                    stacklevel=2,
                )
        if package is not None:
            units = Units.from_text(str(run.about["units"]))
            found: Untyped = in_units.InUnits(cluster, Converter(units, str(package)))
            return found  # type: ignore[no-any-return]
        return cluster


def _restored_by(
    kind: Kind,
    name: str,
    options: Attributes,
    settings: Attributes,
    mass: Floats,
    state: State,
    about: Attributes,
) -> Cluster:
    """The integration on the backend of this name, unless another is asked for or needed."""
    asked = options.get("backend", "auto"), os.environ.get("GRAPE6_BACKEND", "auto")
    kind_of_backend = name.split()[0]
    is_here = kind_of_backend in BACKENDS and ("cuda" not in kind_of_backend or _has_gpu())
    if asked == ("auto", "auto") and is_here:
        options = options | {"backend": kind_of_backend}
    return kind.restored(settings, mass, state, **about, **options)


def _has_gpu() -> bool:
    with Grape6() as session:
        session._board.prepare_for(0, 0)
        return session._board.option("DEVICE") >= 0


def _last_whole(
    run: run_index.Run, kind: Kind, parts: Ranks | None
) -> tuple[Floats, State, Attributes]:
    """Masses, state, and what else is restored, of the last output that is whole."""
    first = None
    for saved in reversed(run.outputs):
        try:
            with run.read(saved) as group:
                found = _read(group, kind, parts)
        except SnapshotError as error:
            first = first or error
            continue
        if first:
            warnings.warn(
                f"{first}; gone on from time {found[2]['time']:g} instead",
                Grape6Warning,
                stacklevel=3,
            )
        return found
    raise SnapshotError(f"{run.path} has no output that is whole. The last one: {first}") from first


def _read(group: HDF5, kind: Kind, parts: Ranks | None) -> tuple[Floats, State, Attributes]:
    """Of all bodies, or of this rank's share."""
    n = len(group["mass"])
    rows = slice(n) if parts is None else parts.rows(n)
    mass = validate.floats("mass", group["mass"][rows], (None,))
    state = {
        name: validate.floats(name, group[f"state/{name}"][rows], (len(mass), *shape))
        for name, shape in kind.STATE.items()
    }
    state |= {
        name: extra_of(name, group[f"state/{name}"][()])
        for name in EXTRA
        if f"state/{name}" in group
    }
    if not (state["dt"] > 0).all():
        raise ArgumentError("a step is not above zero")
    return mass, state, {
        "ids": group["ids"][rows] if "ids" in group else None,
        "time": float(group.attrs["time"]),
        "steps": int(group.attrs["steps"]),
        "blocks": int(group.attrs["blocks"]),
    }  # fmt: skip


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


def read_snapshot(path: PathLike, which: int = -1) -> Snapshot:
    """As :func:`read_particles`, with time, ids and units."""
    run, saved = _saved(path, which)
    units = Units.from_text(str(run.about["units"])) if "units" in run.about else None
    with run.read(saved) as group:
        particles = [group[name][()] for name in Particles._fields]
        ids = group["ids"][()] if "ids" in group else None
        time = float(group.attrs["time"])
        return Snapshot(*particles, time=time, ids=ids, units=units)


def read_labelled(path: PathLike, which: int = -1) -> tuple[Particles, Int8s | None]:
    """As :func:`read_particles`, and what each body belongs to, if the file says so.

    Returns
    -------
    Particles, ndarray of int8 or None
    """
    run, saved = _saved(path, which)
    with run.read(saved) as group:
        particles = Particles(*(group[name][()] for name in Particles._fields))
        return particles, group["component"][()] if "component" in group else None


def _saved(path: PathLike, which: int) -> tuple[run_index.Run, run_index.Saved]:
    run = run_index.find(path)
    which = validate.integer("which", which)
    if not -len(run.outputs) <= which < len(run.outputs):
        raise SnapshotError(f"{run.path} has {len(run.outputs)} outputs, and not number {which}")
    return run, run.outputs[which]


def read_component(path: PathLike) -> Int8s | None:
    """What each body of a run belongs to, by its number in `ids`, or None if the file has none.

    Bodies that left through a boundary have 0.

    Raises
    ------
    SnapshotError, OSError
        As :func:`read_particles`.
    """
    run = run_index.find(path)
    for saved in reversed(run.outputs):
        with contextlib.suppress(SnapshotError), run.read(saved) as group:
            return _component_in(group)
    return None


def _component_in(group: HDF5) -> Int8s | None:
    if "component" not in group:
        return None
    ids = group["ids"][()]
    component = np.zeros(ids.max(initial=-1) + 1, np.int8)
    component[ids] = group["component"][()]
    return component


def history(path: PathLike) -> tuple[Attributes, list[Record]]:
    """Attributes of a file's root, and a :func:`record` of each of its outputs.

    Raises
    ------
    SnapshotError, OSError
        As :func:`read_particles`.
    """
    run = run_index.find(path)
    start = float(run.about["initial_energy"])
    return run.about, [record(output.numbers, start) for output in run.outputs]


class Writer:
    """The one writer of a file, from when it is made until it is closed.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    ArgumentError, FileInUseError, OSError
        As :func:`save`.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = os.fspath(path)
        if not atomic_files.is_hdf5_name(self.path):
            raise ArgumentError(
                f"{self.path}: an integration is saved in a file whose name ends in .h5 or .hdf5 "
                "(write_snapshot writes other formats)"
            )
        self._index = os.path.realpath(path)
        self._folder = atomic_files.outputs_folder(self._index)
        self._lock = atomic_files.Lock(self._folder, self.path)
        atomic_files.remove_aside(self._folder, r"\d+\.hdf5")
        folder, name = os.path.split(self._index)
        atomic_files.remove_aside(folder, re.escape(name))
        self._run: run_index.Run | None = None  # not looked for yet
        self._component: Int8s | None = None  # by number in ids

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others write."""
        self._lock.release()

    def keep(self) -> str | None:
        """Rename the file that is there, and the folder of its outputs.

        A crash on the way leaves both names, or the new one whole.

        Returns
        -------
        str or None
            The new name.
        """
        if not run_index.outputs_in(self._folder):
            return self._shown(atomic_files.keep(self._index))
        name = atomic_files.backup_name(self._index)
        folder = atomic_files.outputs_folder(name)
        if os.path.lexists(self._index):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", Grape6Warning)
                    index = run_index.find(self._index).moved(self._folder, folder).index()
            except (SnapshotError, Grape6Warning):  # no index of these outputs, or a damaged one
                os.rename(self._index, name)
            else:
                atomic_files.write_whole(name, index)
        os.rename(self._folder, folder)
        if os.path.lexists(self._index):
            os.unlink(self._index)
        self._lock.release()
        self._lock = atomic_files.Lock(self._folder, self.path)
        return self._shown(name)

    def _shown(self, name: str | None) -> str | None:
        """A new name of the index as the caller names the old one."""
        return name and self.path + name.removeprefix(self._index)

    def save(
        self,
        cluster: Cluster,
        *,
        about: Attributes | None = None,
        component: ArrayLike | None = None,
        binaries: Binaries | None = None,
    ) -> None:
        """As :func:`save`."""
        converter = in_units.converter_of(cluster)
        if converter is not None:
            about = {"units": str(converter.units), "quantities": converter.package} | (about or {})
            cluster = in_units.bare(cluster)
            binaries = converter.numbers("binaries", binaries, None)
        cluster = cluster._whole()
        for name, values in {} if binaries is None else binaries._asdict().items():
            validate.numbers(f"binaries.{name}", values)
        numbers = describe(cluster)
        if self._run is None:
            self._run = self._begun(cluster, numbers, about or {})
        run = self._run
        _check_same(run, cluster)
        ids = cluster.ids
        if component is not None:
            self._component = _by_number(component, ids)
        before = run.outputs
        if before and before[-1].numbers["time"] == cluster.time:
            name, before = before[-1].name, before[:-1]
        else:
            name = f"{int(before[-1].name) + 1 if before else 0:06d}"
        data = output_file.written(
            run.about,
            numbers,
            ids,
            cluster.particles()._asdict(),
            cluster.state(),
            None if self._component is None else _component_of(self._component, ids),
            None if binaries is None else binaries._asdict(),
        )
        self._write(name, data)
        run.outputs = [*before, self._saved(name, numbers)]
        atomic_files.write_whole(self._index, run.index())

    def _write(self, name: str, data: bytes) -> None:
        atomic_files.write_whole(os.path.join(self._folder, f"{name}.hdf5"), data)

    def _saved(self, name: str, numbers: Attributes) -> run_index.Saved:
        file = os.path.join(os.path.basename(self._folder), f"{name}.hdf5")
        return run_index.Saved(name, file, numbers)

    def _begun(self, cluster: Cluster, numbers: Attributes, about: Attributes) -> run_index.Run:
        """The run that is added to."""
        if not os.path.lexists(self._index) and not run_index.outputs_in(self._folder):
            start = sum(numbers.get(name, 0.0) for name in ("kinetic", "potential", "external"))
            start -= numbers.get("change", 0.0)
            mode = {"precision": cluster.precision, "backend": cluster.backend}
            about = mode | cluster.settings | {"initial_energy": start} | about
            return run_index.Run(self.path, about | {"run": cluster.run_id})
        run = run_index.find(self.path)
        if run.kind == "output":
            raise SnapshotError(f"{self.path} is one output of a run: take another name")
        if run.kind == "old":
            return self._converted(run, cluster)
        while run.outputs:
            try:
                with run.read(run.outputs[-1]) as group:
                    self._component = _component_in(group)
                    break
            except SnapshotError:
                damaged = run.outputs.pop().file or ""  # an index names all
                atomic_files.keep(os.path.join(os.path.dirname(self._index), damaged))
        return run

    def _converted(self, old: run_index.Run, cluster: Cluster) -> run_index.Run:
        """A file of version 0.1 as an index and its outputs; it is kept under another name."""
        _check_same(old, cluster)
        run = run_index.Run(self.path, old.about)
        for saved in old.outputs:
            with old.read(saved) as group:
                found = {name: group[name][()] for name in Particles._fields}
                state = {name: data[()] for name, data in group["state"].items()}
            ids = np.arange(len(found["mass"]))
            self._write(
                saved.name, output_file.written(run.about, saved.numbers, ids, found, state)
            )
            run.outputs.append(self._saved(saved.name, saved.numbers))
        atomic_files.keep(self._index)
        return run


def _component_of(component: Int8s, ids: Int64s) -> Int8s:
    """Of bodies with some ids; 0 of those that came later."""
    known = ids < len(component)
    found: Int8s = np.where(known, component[np.where(known, ids, 0)], 0).astype(np.int8)
    return found


def _by_number(component: ArrayLike, ids: Int64s) -> Int8s:
    """Checked labels: there must be one for each of the bodies."""
    found, n = validate.ints("component", component), ids.max(initial=-1) + 1
    if len(found) < n:
        raise ArgumentError(f"component has {len(found)} entries, for {n} bodies")
    if found.size and not 0 <= found.min() <= found.max() <= 127:
        raise ArgumentError(f"component goes from {found.min()} to {found.max()}, not in 0 to 127")
    return found.astype(np.int8)


def _check_same(run: run_index.Run, cluster: Cluster) -> None:
    if run.id != cluster.run_id:
        raise SnapshotError(f"{run.path} holds another run: take another name")
    requested = {"precision": cluster.precision} | cluster.settings
    other = [name for name, value in requested.items() if run.about.get(name) != value]
    if other:
        raise SnapshotError(f"{run.path} has other settings: {', '.join(other)}")
    last = run.outputs[-1].numbers["time"] if run.outputs else -math.inf
    if last > cluster.time:
        raise SnapshotError(
            f"{run.path} goes on to time {last}, and this is {cluster.time}: take another name"
        )
