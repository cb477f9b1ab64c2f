"""The one writer of a run's files: :class:`archive.Writer`."""

from __future__ import annotations

import contextlib
import math
import os
import re
import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from grape6py import in_units
from grape6py._arrays import validate
from grape6py._arrays.ids import Labels
from grape6py._arrays.kinds import Attributes, Int8s, PathLike
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from grape6py.files.formats.parts import split_number
from grape6py.files.runs import index as run_index
from grape6py.files.storage import atomic_files, output_file
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks

if TYPE_CHECKING:
    from grape6py.bound_pairs import Binaries
    from grape6py.integrators.base import Integration

_CALL = "save()"


def describe(cluster: Integration) -> Attributes:
    """The attributes of an output: time, counters, energies and Lagrangian radii, by name.

    `external`, `change` (:attr:`Hermite.energy_change`) and `origin` are there if they are not 0.
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
    also = {"external": energy.external, "change": cluster.energy_change}
    found |= {name: value for name, value in also.items() if value}
    return found | ({"origin": np.ravel(cluster.origin)} if np.any(cluster.origin) else {})


def labels_in(run: run_index.Run, saved: run_index.Saved) -> Labels | None:
    """What each body belongs to, or None if the output does not say."""
    arrays = run.read(saved, ("ids", "component")).arrays
    if "component" not in arrays:
        return None
    with output_file.explained(run.path_of(saved)):
        return Labels(arrays["ids"].astype(np.uint64), arrays["component"])


class Writer(contextlib.AbstractContextManager["Writer"]):
    """The one writer of a file, from when it is made until it is closed.

    Parameters
    ----------
    path : path-like
    ranks : Ranks
        Those that write it together, by calls that all make. The first one writes the index, and
        outputs that are one file.
    overwrite : bool
        As of :func:`archive.save`.

    Raises
    ------
    ArgumentError, FileInUseError, OSError
        As :func:`archive.save`.
    """

    def __init__(self, path: PathLike, ranks: Ranks = ONE, *, overwrite: bool = False) -> None:
        self.path, self._overwrite = os.fspath(path), overwrite
        self._ranks, self._is_first = ranks, ranks.rank == 0
        if not atomic_files.is_hdf5_name(self.path):
            raise ArgumentError(
                f"{self.path}: an integration is saved in a file whose name ends in .h5 or .hdf5 "
                "(write_snapshot writes other formats)"
            )
        self._index = os.path.realpath(path)
        self._folder = atomic_files.outputs_folder(self._index)
        self._lock: atomic_files.Lock | None = None
        self._run: run_index.Run | None = None  # not looked for yet
        self._labels: Labels | None = None
        self._replaced: str | None = None  # the name that the index of an old run has meanwhile
        try:
            with ranks.agreement(_CALL) as agreement:
                agreement.same("overwrite", int(overwrite))
                if self._is_first:
                    self._lock = atomic_files.Lock(self._folder, self.path)
                    folder, name = os.path.split(self._index)
                    for pattern in (self._folder, r"\d+(\.\d+)?\.hdf5"), (folder, re.escape(name)):
                        atomic_files.remove_aside(*pattern)  # what a killed writer has left
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others write."""
        if self._replaced is not None:
            text = f"{self.path}: what was there before is {self._shown(self._replaced)} now"
            warnings.warn(text, Grape6Warning, stacklevel=2)
        if self._lock is not None:
            self._lock.release()

    def keep(self) -> str | None:
        """Rename the file that is there, and the folder of its outputs.

        A crash on the way leaves both names, or the new one whole. With `overwrite` the first
        :meth:`save` removes them.

        Returns
        -------
        str or None
            The new name, on the first rank, if it stays.
        """
        if self._lock is None:
            return None
        name = self._put_aside(self._lock)
        if self._overwrite:
            self._replaced, name = name, None
        return self._shown(name)

    def _put_aside(self, lock: atomic_files.Lock) -> str | None:
        if not run_index.outputs_in(self._folder):
            return atomic_files.keep(self._index)
        (name,) = atomic_files.backup_names([self._index])
        folder = atomic_files.outputs_folder(name)
        if os.path.lexists(self._index):
            run = None
            with contextlib.suppress(SnapshotError, Grape6Warning), warnings.catch_warnings():
                warnings.simplefilter("error", Grape6Warning)
                run = run_index.find(self._index)
            if run is None or run.is_output:  # no index of these outputs, or a damaged one
                os.rename(self._index, name)
            else:
                atomic_files.write_whole(name, run_index.Run(name, run.about, run.table).index())
        os.rename(self._folder, folder)
        if os.path.lexists(self._index):
            os.unlink(self._index)
        lock.release()
        self._lock = atomic_files.Lock(self._folder, self.path)
        return name

    def _remove_replaced(self) -> None:
        """Remove the run that was put aside: another one is in its place."""
        if self._replaced is None:
            return
        folder = atomic_files.outputs_folder(self._replaced)
        outputs = [os.path.join(folder, name) for name in run_index.outputs_in(folder)]
        for path in (self._replaced, *outputs, os.path.join(folder, ".lock")):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        self._replaced = None
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:  # it is not empty
            left = f"{folder}: files that are no outputs were left there"
            warnings.warn(left, Grape6Warning, stacklevel=2)

    def _shown(self, name: str | None) -> str | None:
        """A new name of the index as the caller names the old one."""
        return name and self.path + name.removeprefix(self._index)

    def save(
        self,
        cluster: Integration,
        *,
        about: Attributes | None = None,
        component: ArrayLike | None = None,
        binaries: Binaries | None = None,
    ) -> None:
        """As :func:`archive.save`."""
        converter = in_units.converter_of(cluster)
        if converter is not None:
            about = {"units": str(converter.units), "quantities": converter.package} | (about or {})
            cluster = in_units.without_units(cluster)
            binaries = converter.numbers("binaries", binaries, None)
        for name, values in {} if binaries is None else binaries._asdict().items():
            validate.numbers(f"binaries.{name}", values)
        numbers, ids = describe(cluster), cluster.ids
        particles, state = cluster.particles()._asdict(), cluster.state()
        run = self._begin(cluster, numbers, about or {})
        with self._ranks.agreement(_CALL):
            _check_same(run, cluster)
            if component is not None:
                self._labels = Labels(ids.astype(np.uint64), _checked(component, len(ids)))
        owners = cluster._owners
        saved = self._next(run, numbers, owners, len(ids))
        writes = saved.numbered is not None or self._is_first
        with contextlib.ExitStack() as asides:
            with self._ranks.agreement(_CALL):
                if writes:
                    labels = None if self._labels is None else self._labels.of(ids)
                    data = output_file.written(
                        run.about, numbers, ids, particles, state, labels,
                        None if binaries is None else binaries._asdict(),
                        counts=saved.numbered and saved.numbered.counts,
                        mark=saved.mark(owners.rank),
                    )  # fmt: skip
                    path = run.path_of(saved, owners.rank)
                    if os.path.islink(path):  # which would be followed
                        atomic_files.keep_all([path])
                    aside = asides.enter_context(atomic_files.Aside(path, [data]))
            with self._ranks.agreement(_CALL):
                if writes:
                    aside.put()
        self._add(run, saved)
        cluster._since = numbers["time"]

    def _next(
        self, run: run_index.Run, numbers: Attributes, owners: Ranks, n: int
    ) -> run_index.Saved:
        """The output that is to be written: each of the owners has a file of its own n bodies."""
        numbered = None
        if owners.size > 1:
            counts = tuple(owners.counts(n).tolist())
            numbered = run_index.Numbered(owners.broadcast(os.urandom(run_index.DIGEST)), counts)
        number, last = 0, run.outputs[-1] if run.outputs else None
        if last is not None:  # one file takes the place of one at once; several get own names
            is_again = last.numbers["time"] == numbers["time"]
            is_one = numbered is None and last.numbered is None
            number = int(last.name) + (not (is_again and is_one))
        return run_index.Saved(f"{number:06d}", numbers, numbered)

    def _add(self, run: run_index.Run, saved: run_index.Saved) -> None:
        """Write the index with an output that is there, and remove what it takes the place of."""
        old = run.add(saved)
        names = {saved.name} | ({old.name} if old else set())
        with self._ranks.agreement(_CALL):
            if not self._is_first:
                return
            atomic_files.write_whole(self._index, run.index())
            for name in os.listdir(self._folder):  # also of a run that was killed
                is_old = name.split(".", 1)[0] in names and name not in saved.files
                if is_old and run_index.NAME.fullmatch(name):
                    os.unlink(os.path.join(self._folder, name))
            self._remove_replaced()

    def _begin(self, cluster: Integration, numbers: Attributes, about: Attributes) -> run_index.Run:
        """The run that is added to, known to all ranks."""
        if self._run is None:
            with self._ranks.agreement(_CALL):
                if self._is_first:
                    self._run = self._begun(cluster, numbers, about)
            self._run, self._labels = self._ranks.broadcast((self._run, self._labels))
            self._labels = self._labels or cluster._labels
        assert self._run is not None
        return self._run

    def _begun(self, cluster: Integration, numbers: Attributes, about: Attributes) -> run_index.Run:
        """The run that is added to."""
        names = run_index.outputs_in(self._folder)
        if not os.path.lexists(self._index) and not names:
            return self._new(cluster, numbers, about)
        if self._overwrite and not self._is_of(cluster):
            self.keep()
            return self._new(cluster, numbers, about)
        try:
            run = run_index.find(self.path)
        except FileNotFoundError:
            if any(split_number(name)[1] is None for name in names):
                raise
            # of a first output whose writers were killed before all files had their names
            atomic_files.keep_all([os.path.join(self._folder, name) for name in names])
            return self._new(cluster, numbers, about)
        if run.is_output:
            raise SnapshotError(f"{self.path} is one output of a run: take another name")
        was, now = (str(about.get("changes", "")) for about in (run.about, cluster._about))
        if run.id == cluster.run_id and now != was and now.startswith(was):
            run.about |= {"precision": cluster.precision} | cluster.settings | cluster._about
        while run.outputs:
            try:
                self._labels = labels_in(run, run.outputs[-1])
                break
            except SnapshotError:
                paths = [os.path.join(run.folder, name) for name in run.take_away().files]
                atomic_files.keep_all([path for path in paths if os.path.lexists(path)])
        return run

    def _is_of(self, cluster: Integration) -> bool:
        """Whether what is there is of this run, or one output of one, which is never replaced."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Grape6Warning)
            with contextlib.suppress(SnapshotError, FileNotFoundError):
                run = run_index.find(self.path)
                return run.is_output or run.id == cluster.run_id
        return False

    def _new(self, cluster: Integration, numbers: Attributes, about: Attributes) -> run_index.Run:
        start = sum(numbers.get(name, 0.0) for name in ("kinetic", "potential", "external"))
        start -= numbers.get("change", 0.0)
        mode = {"precision": cluster.precision, "backend": cluster.backend}
        about = mode | cluster.settings | {"initial_energy": start} | cluster._about | about
        return run_index.Run(self.path, about | {"run": cluster.run_id})


def _checked(component: ArrayLike, n: int) -> Int8s:
    """Labels of n bodies."""
    found = validate.ints("component", component)
    if len(found) != n:
        raise ArgumentError(f"component has {len(found)} entries, for {n} bodies")
    if found.size and not 0 <= found.min() <= found.max() <= 127:
        raise ArgumentError(f"component goes from {found.min()} to {found.max()}, not in 0 to 127")
    return found.astype(np.int8)


def _check_same(run: run_index.Run, cluster: Integration) -> None:
    if run.id != cluster.run_id:
        what = f"{run.path} holds another run"
        if not os.path.lexists(run.path):
            folder = atomic_files.outputs_folder(run.path)
            what = f"{run.path} is not there, but {folder} has the outputs of another run"
        raise SnapshotError(f"{what}: overwrite=True replaces it, or take another name")
    requested = {"precision": cluster.precision} | cluster.settings
    other = [name for name, value in requested.items() if run.about.get(name) != value]
    if other:
        raise SnapshotError(f"{run.path} has other settings: {', '.join(other)}")
    last = run.outputs[-1].numbers["time"] if run.outputs else -math.inf
    since = cluster.time if cluster._since is None else cluster._since
    if last > since:  # also where this is later: two histories are not put into one file
        what = f", gone on from time {since}" if since < cluster.time else ""
        raise SnapshotError(
            f"{run.path} goes on to time {last}, and this is {cluster.time}{what}: take another "
            "name"
        )


def save(
    path: PathLike,
    cluster: Integration,
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
        (a ValueError) if the file is there and is of this run with other settings, or has gone on
        without this integration, or is one output of a run; without `overwrite` also if it is of
        another run, or no such file.
    FileInUseError
        (an OSError) if another run is writing to it.
    OSError
        If it cannot be written. What was saved before is whole.
    RankError
        If another rank has failed.
    """
    ranks = in_units.without_units(cluster)._ranks
    with ranks.agreement("save()"), Writer(path, ranks, overwrite=overwrite) as writer:
        writer.save(cluster, about=about, component=component, binaries=binaries)
