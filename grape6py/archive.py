"""HDF5 files of a run: one for each output, any of which can be gone on from, and their index.

The outputs of ``cluster.h5`` are ``cluster/000000.hdf5``, ``cluster/000001.hdf5``, ...
(output_file.py); of a Leapfrog of several ranks each is in numbered files, ``000000.0.hdf5``,
``000000.1.hdf5``, ..., of which each rank writes its own. ``cluster.h5`` itself is made anew with
each of them. Its groups ``000000``, ``000001``, ... are links to the groups `grape6py` of the
outputs, or have such links to numbered files. Its attributes are the settings of the integration
(:attr:`Hermite.settings`), `integrator` if it is "leapfrog", `precision`, `backend`,
`initial_energy`, `run` (an id), what the writer adds, and `history`, a row for each output.

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
from grape6py._arrays.kinds import Attributes, Floats, Int8s, Int64s, PathLike, State, Untyped
from grape6py._io import atomic_files, output_file, run_index
from grape6py._lib.declarations import BACKENDS, PRECISIONS
from grape6py.bound_pairs import Binaries
from grape6py.diagnostics import Energy
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from grape6py.formats.bodies import Snapshot
from grape6py.formats.parts import split_number
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

_CALL = "save()"
_DIGEST = 8  # bytes, of run_index.Numbered

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
        If it is of several ranks, all of them make this call.
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
    RankError
        If another rank has failed.
    """
    with Writer(path, in_units.bare(cluster)._ranks) as writer:
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
    """Masses, state, and what else is restored, of the last output that is whole on all ranks."""
    first = None
    for saved in reversed(run.outputs):
        found, error = None, None
        with together(parts, "load()") as said:
            try:
                found = _read(run, saved, kind, parts)
            except SnapshotError as its:
                error, said.most[0] = its, 1
        if said.most[0]:
            told = [error] if parts is None else parts.comm.allgather(error)
            first = first or next(filter(None, told))
            continue
        assert found is not None
        if first:
            warnings.warn(
                f"{first}; gone on from time {found[2]['time']:g} instead",
                Grape6Warning,
                stacklevel=3,
            )
        return found
    raise SnapshotError(f"{run.path} has no output that is whole. The last one: {first}") from first


def _read(
    run: run_index.Run, saved: run_index.Saved, kind: Kind, parts: Ranks | None
) -> tuple[Floats, State, Attributes]:
    """Of all bodies, or of this rank's share."""
    by_body = ("mass", "ids", *(f"state/{name}" for name in kind.STATE))
    arrays, extra, attributes = run.read(saved, by_body, [f"state/{k}" for k in EXTRA], parts)
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
            "ids": arrays.get("ids"),
            "time": float(attributes["time"]),
            "steps": int(attributes["steps"]),
            "blocks": int(attributes["blocks"]),
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


def read_snapshot(path: PathLike, which: int = -1, share: Ranks | None = None) -> Snapshot:
    """As :func:`read_particles`, with time, ids and units; or a rank's share of the bodies."""
    run, saved = _saved(path, which)
    units = Units.from_text(str(run.about["units"])) if "units" in run.about else None
    arrays, _, attributes = run.read(saved, (*Particles._fields, "ids"), share=share)
    with output_file.explained(run.path_of(saved)):
        particles, time = _particles(arrays), float(attributes["time"])
    return Snapshot(*particles, time=time, ids=arrays.get("ids"), units=units)


def read_labelled(
    path: PathLike, which: int = -1, share: Ranks | None = None
) -> tuple[Particles, Int8s | None]:
    """As :func:`read_particles`, and what each body belongs to, if the file says so.

    Returns
    -------
    Particles, ndarray of int8 or None
    """
    run, saved = _saved(path, which)
    arrays = run.read(saved, (*Particles._fields, "component"), share=share).arrays
    with output_file.explained(run.path_of(saved)):
        return _particles(arrays), arrays.get("component")


def _particles(arrays: Attributes) -> Particles:
    return Particles(*(arrays[name] for name in Particles._fields))


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
        with contextlib.suppress(SnapshotError):
            return _component_in(run, saved)
    return None


def _component_in(run: run_index.Run, saved: run_index.Saved) -> Int8s | None:
    arrays = run.read(saved, ("ids", "component")).arrays
    if "component" not in arrays:
        return None
    with output_file.explained(run.path_of(saved)):
        ids = arrays["ids"]
        component = np.zeros(ids.max(initial=-1) + 1, np.int8)
        component[ids] = arrays["component"]
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
    ranks : Ranks, optional
        Those that write it together, by calls that all make. The first one writes the index, and
        outputs that are one file.

    Raises
    ------
    ArgumentError, FileInUseError, OSError
        As :func:`save`.
    """

    def __init__(self, path: PathLike, ranks: Ranks | None = None) -> None:
        self.path = os.fspath(path)
        self._ranks, self._is_first = ranks, ranks is None or ranks.rank == 0
        if not atomic_files.is_hdf5_name(self.path):
            raise ArgumentError(
                f"{self.path}: an integration is saved in a file whose name ends in .h5 or .hdf5 "
                "(write_snapshot writes other formats)"
            )
        self._index = os.path.realpath(path)
        self._folder = atomic_files.outputs_folder(self._index)
        self._lock: atomic_files.Lock | None = None
        self._run: run_index.Run | None = None  # not looked for yet
        self._component: Int8s | None = None  # by number in ids
        try:
            with together(ranks, _CALL):
                self._take_hold()
        except BaseException:
            self.close()
            raise

    def _take_hold(self) -> None:
        """Lock the folder, and remove what a writer that was killed has left."""
        if self._is_first:
            self._lock = atomic_files.Lock(self._folder, self.path)
            atomic_files.remove_aside(self._folder, r"\d+(\.\d+)?\.hdf5")
            folder, name = os.path.split(self._index)
            atomic_files.remove_aside(folder, re.escape(name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.release()

    def keep(self) -> str | None:
        """Rename the file that is there, and the folder of its outputs.

        A crash on the way leaves both names, or the new one whole.

        Returns
        -------
        str or None
            The new name, on the first rank.
        """
        if self._lock is None:
            return None
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
        for name, values in {} if binaries is None else binaries._asdict().items():
            validate.numbers(f"binaries.{name}", values)
        numbers, ids = describe(cluster), cluster.ids
        particles, state = cluster.particles()._asdict(), cluster.state()
        run = self._begin(cluster, numbers, about or {})
        with together(self._ranks, _CALL):
            _check_same(run, cluster)
            if component is not None:
                self._component = _by_number(component, ids)
        parts = cluster._parts
        saved = self._next(run, numbers, parts, len(ids))
        with contextlib.ExitStack() as asides:
            with together(self._ranks, _CALL):
                if saved.numbered is not None or self._is_first:
                    data = output_file.written(
                        run.about,
                        numbers,
                        ids,
                        particles,
                        state,
                        None if self._component is None else _component_of(self._component, ids),
                        None if binaries is None else binaries._asdict(),
                        counts=saved.numbered and saved.numbered.counts,
                        mark=saved.mark(0 if parts is None else parts.rank),
                    )
                    file = saved.files[0 if parts is None else parts.rank]
                    path = os.path.join(os.path.dirname(self._index), file)
                    aside = asides.enter_context(atomic_files.Aside(path, [data]))
            with together(self._ranks, _CALL):
                if saved.numbered is not None or self._is_first:
                    aside.put()
        self._add(run, saved)

    def _next(
        self, run: run_index.Run, numbers: Attributes, parts: Ranks | None, n: int
    ) -> run_index.Saved:
        """The output that is to be written: of `parts` each has a file of its own n bodies."""
        numbered = None
        if parts is not None and parts.size > 1:
            counts = tuple(parts.counts(n).tolist())
            numbered = run_index.Numbered(parts.told(os.urandom(_DIGEST)), counts)
        last = run.outputs[-1] if run.outputs else None
        if last is None:
            number = 0
        else:  # one file takes the place of one at once; several get names of their own
            is_again = last.numbers["time"] == numbers["time"]
            is_one = numbered is None and last.numbered is None
            number = int(last.name) + (not (is_again and is_one))
        return self._saved(f"{number:06d}", numbers, numbered)

    def _add(self, run: run_index.Run, saved: run_index.Saved) -> None:
        """Write the index with an output that is there, and remove what it takes the place of."""
        time = saved.numbers["time"]
        old = [one for one in run.outputs if one.numbers["time"] == time]
        run.outputs = [*(one for one in run.outputs if one.numbers["time"] != time), saved]
        with together(self._ranks, _CALL):
            if not self._is_first:
                return
            atomic_files.write_whole(self._index, run.index())
            names = {one.name for one in (*old, saved)}
            kept = {os.path.basename(name) for name in saved.files}
            for name in run_index.outputs_in(self._folder):  # also of a run that was killed
                if name.split(".")[0] in names and name not in kept:
                    os.unlink(os.path.join(self._folder, name))

    def _write(self, name: str, data: bytes) -> None:
        atomic_files.write_whole(os.path.join(self._folder, f"{name}.hdf5"), data)

    def _saved(
        self, name: str, numbers: Attributes, numbered: run_index.Numbered | None = None
    ) -> run_index.Saved:
        file = os.path.join(os.path.basename(self._folder), f"{name}.hdf5")
        return run_index.Saved(name, file, numbers, numbered)

    def _begin(self, cluster: Cluster, numbers: Attributes, about: Attributes) -> run_index.Run:
        """The run that is added to, known to all ranks."""
        if self._run is None:
            with together(self._ranks, _CALL):
                if self._is_first:
                    self._run = self._begun(cluster, numbers, about)
            if self._ranks is not None:
                self._run, self._component = self._ranks.told((self._run, self._component))
        assert self._run is not None
        return self._run

    def _begun(self, cluster: Cluster, numbers: Attributes, about: Attributes) -> run_index.Run:
        """The run that is added to."""
        names = run_index.outputs_in(self._folder)
        if not os.path.lexists(self._index) and not names:
            return self._new(cluster, numbers, about)
        try:
            run = run_index.find(self.path)
        except FileNotFoundError:
            if any(split_number(name)[1] is None for name in names):
                raise
            # of a first output whose writers were killed before all files had their names
            atomic_files.keep_all([os.path.join(self._folder, name) for name in names])
            return self._new(cluster, numbers, about)
        if run.kind == "output":
            raise SnapshotError(f"{self.path} is one output of a run: take another name")
        if run.kind == "old":
            return self._converted(run, cluster)
        while run.outputs:
            try:
                self._component = _component_in(run, run.outputs[-1])
                break
            except SnapshotError:
                for name in run.outputs.pop().files:
                    atomic_files.keep(os.path.join(os.path.dirname(self._index), name))
        return run

    def _new(self, cluster: Cluster, numbers: Attributes, about: Attributes) -> run_index.Run:
        start = sum(numbers.get(name, 0.0) for name in ("kinetic", "potential", "external"))
        start -= numbers.get("change", 0.0)
        mode = {"precision": cluster.precision, "backend": cluster.backend}
        about = mode | cluster.settings | {"initial_energy": start} | about
        return run_index.Run(self.path, about | {"run": cluster.run_id})

    def _converted(self, old: run_index.Run, cluster: Cluster) -> run_index.Run:
        """A file of version 0.1 as an index and its outputs; it is kept under another name."""
        _check_same(old, cluster)
        run = run_index.Run(self.path, old.about)
        for saved in old.outputs:
            with old.opened(saved) as group:
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
