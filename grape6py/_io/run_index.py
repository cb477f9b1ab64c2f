"""The outputs of a run as a file names them: found, read, and written down in an index.

An output is one file, or, of bodies that no rank of MPI has all of, several: 000003.0.hdf5,
000003.1.hdf5, ..., those of each rank. The index has the number of bodies of each, and a
digest that is in the files, too: so files of two outputs, which a crash can leave side by side, are
never taken for one.

Where the files are follows from the name of the index alone: what stands in it is no path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self, overload

import h5py
import numpy as np

from grape6py._arrays.kinds import HDF5, AnyArray, Attributes, PathLike, Untyped
from grape6py._io import atomic_files, output_file
from grape6py.errors import Grape6Warning, SnapshotError
from grape6py.formats import parts
from grape6py.formats.bodies import MOST_FILES

if TYPE_CHECKING:
    from grape6py.ranks.ranks import Ranks

# Run 2 has its table in attributes, which end at 64 kB or need HDF5's newer form, whose checksums
# HDF5 before 2.0 writes wrong in memory; run 1 has the outputs themselves in it.
_FORMAT, _OF_ATTRIBUTES, _OLD_FORMAT = "grape6py run 3", "grape6py run 2", "grape6py run 1"
_HDF5 = b"\x89HDF\r\n\x1a\n"
NAME = re.compile(r"\d{6,}(\.\d+)?\.hdf5")
_TABLE = "index"  # the group of the datasets of a Table
_COLUMNS = ("time", "steps", "blocks", "kinetic", "potential")  # and radii: a row of `history`
_MORE = ("external", "change")
_DATASETS = ("history", "outputs", "counts")
_ROWS = 64  # of a chunk
_WHOLE = "ids", "component"
DIGEST = 8  # bytes, of Numbered


class Numbered(NamedTuple):
    """Of an output in several files: its digest, and the bodies of each file."""

    digest: bytes
    counts: tuple[int, ...]


class Saved(NamedTuple):
    """One output."""

    name: str  # as "000003"
    numbers: Attributes  # what ``archive.describe`` gave
    numbered: Numbered | None = None

    @property
    def files(self) -> list[str]:
        """All its files, in the folder of the run."""
        file = f"{self.name}.hdf5"
        if self.numbered is None:
            return [file]
        return [parts.part_name(file, k) for k in range(len(self.numbered.counts))]

    def mark(self, number: int) -> str:
        """What a file says of the output that it is of, if that has several."""
        return "" if self.numbered is None else parts.mark(self.numbered.digest, number)


class Table(Sequence[Saved]):
    """Outputs as an index has them, each made when it is asked for: a save needs the last alone.

    `history` has a row of each: `_COLUMNS`, `_MORE`, radii; `outputs` its number, how many files it
    has if these are numbered, else 0, and their digest; `counts` the bodies of each such file.
    """

    def __init__(self, history: AnyArray, outputs: AnyArray, counts: AnyArray) -> None:
        self.history, self.outputs, self.counts = history, outputs, counts

    @classmethod
    def of(cls, outputs: Sequence[Saved]) -> Self:
        """Of some outputs."""
        width = len(_COLUMNS) + len(_MORE) + (len(outputs[0].numbers["radii"]) if outputs else 3)
        none = np.empty(0, np.int64)
        return cls(np.empty((0, width)), none.reshape(0, 3), none).plus(outputs)

    def plus(self, some: Sequence[Saved]) -> Self:
        """With some more."""
        rows, outputs = [self.history], [self.outputs]
        counts = [self.counts]
        for name, numbers, numbered in some:
            row = [*(numbers.get(k, 0.0) for k in (*_COLUMNS, *_MORE)), *numbers["radii"]]
            rows.append(np.array([row], float))
            digest, of_each = (b"", ()) if numbered is None else numbered
            counts.append(np.array(of_each, np.int64))
            output = [[int(name), len(of_each), int.from_bytes(digest, "little", signed=True)]]
            outputs.append(np.array(output, np.int64))
        return type(self)(*map(np.concatenate, (rows, outputs, counts)))

    def without_last(self) -> Self:
        """With one less."""
        rest = len(self.counts) - int(self.outputs[-1, 1])
        return type(self)(self.history[:-1], self.outputs[:-1], self.counts[:rest])

    def check(self) -> None:
        """Raise a ValueError for what no index has."""
        number, files = self.outputs[:, 0], self.outputs[:, 1]
        time, width = self.history[:, 0], len(_COLUMNS) + len(_MORE)
        if not (
            self.outputs.dtype.kind == self.counts.dtype.kind == "i"
            and len(self.history) == len(self.outputs)
            and self.history.shape[1] >= width
            and (number >= 0).all()
            and (np.diff(number) > 0).all()
            and np.isfinite(time).all()
            and (np.diff(time) > 0).all()
            and (files >= 0).all()
            and files.sum() == len(self.counts)
            and (self.counts >= 0).all()
        ):
            raise ValueError("its table of outputs contradicts itself")

    def __len__(self) -> int:
        return len(self.outputs)

    @overload
    def __getitem__(self, k: int) -> Saved: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Saved]: ...
    def __getitem__(self, k: int | slice) -> Saved | Sequence[Saved]:
        which = range(len(self))[k]
        if isinstance(which, range):
            return [self[one] for one in which]
        number, files, digest = self.outputs[which].tolist()
        names = *_COLUMNS, *_MORE
        row = self.history[which].tolist()
        numbers = dict(zip(names, row, strict=False)) | {"radii": self.history[which, len(names) :]}
        numbered = None
        if files:
            first = int(self.outputs[:which, 1].sum())
            counts = tuple(self.counts[first : first + files].tolist())
            numbered = Numbered(digest.to_bytes(8, "little", signed=True), counts)
        return Saved(_name(number), numbers, numbered)


def _name(number: int) -> str:
    return f"{number:06d}"


class Found(NamedTuple):
    """What is read of an output: arrays by body, others, and attributes, by name."""

    arrays: Attributes
    others: Attributes
    attributes: Attributes


class Run:
    """What a file holds: outputs, ascending in time, of a run, whose `id` no other has.

    `about` are the root's attributes. By its `kind` the file is an "index" of outputs, one
    "output", or an "old" file, which has the outputs in it. `data` are the bytes of an index that
    has all of `outputs`, or of an old file.
    """

    def __init__(
        self,
        path: PathLike,
        about: Mapping[str, Untyped],
        outputs: Sequence[Saved] = (),
        kind: str = "index",
        data: bytes = b"",
    ) -> None:
        self.path, self.kind, self._data = os.fspath(path), kind, data
        own = "format", "history", "history_of_energy", output_file.MARK
        self.about = {k: v for k, v in about.items() if k not in own}
        self.id = str(self.about["run"])
        made = kind != "index" or isinstance(outputs, Table)
        self.outputs = outputs if made else Table.of(outputs)
        self._indexed = len(self.outputs), dict(self.about)  # what `data` have, of an index
        real = os.path.realpath(path)
        self.folder = (
            atomic_files.outputs_folder(real) if kind == "index" else os.path.dirname(real)
        )

    def add(self, saved: Saved) -> Saved | None:
        """Add an output. One of the same time, whose place it takes, is returned."""
        old = self.outputs[-1] if self.outputs else None
        if old is not None and old.numbers["time"] == saved.numbers["time"]:
            self.take_away()
        else:
            old = None
        self.outputs = self._table.plus([saved]) if self.outputs else Table.of([saved])
        return old

    def take_away(self) -> Saved:
        """Forget the last output, which is returned."""
        last = self.outputs[-1]
        self.outputs, self._data = self._table.without_last(), b""
        return last

    @property
    def _table(self) -> Table:
        if not isinstance(self.outputs, Table):
            raise SnapshotError(f"{self.path} is no index of outputs")
        return self.outputs

    def read(
        self,
        saved: Saved,
        names: Iterable[str],
        others: Iterable[str] = (),
        share: Ranks | None = None,
    ) -> Found:
        """Arrays by body of an output, or the share of a rank, and others; those that there are.

        What is wrong with its files is a SnapshotError; those of other bodies are not read.
        """
        pieces: dict[str, list[AnyArray]] = {name: [] for name in names}
        found = Found({}, {}, {})
        stored = output_file.stored
        with output_file.explained(self.path_of(saved)):
            for count, (group, rows) in enumerate(self._groups(saved, share)):
                n = len(stored(group, "mass"))
                for name in filter(group.__contains__, pieces):
                    array = stored(group, name)
                    if len(array) != n or (name in _WHOLE and array.dtype.kind not in "iu"):
                        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
                    pieces[name].append(array[rows])
                if wrong := [
                    name for name, some in pieces.items() if len(some) not in (0, count + 1)
                ]:
                    raise ValueError(f"{wrong[0]} is in some of its files alone")
                found.attributes.update(group.attrs)
                found.others.update({k: stored(group, k)[()] for k in others if k in group})
            found.arrays.update(
                {
                    name: some[0] if len(some) == 1 else _joined(some)
                    for name, some in pieces.items()
                    if some
                }
            )
        return found

    def _groups(self, saved: Saved, share: Ranks | None) -> Iterator[tuple[HDF5, slice]]:
        """The groups of an output, one after the other, and which of their rows are meant."""
        if saved.numbered is None:
            with self.opened(saved) as group:
                n = len(output_file.stored(group, "mass"))
                yield group, slice(n) if share is None else share.rows(n)
            return
        counts = saved.numbered.counts
        rows = slice(0, sum(counts)) if share is None else share.rows(sum(counts))
        some = list(parts.overlap(counts, rows.start, rows.stop))
        for k, own in some or [(0, slice(0))]:  # without bodies for the attributes
            with self.opened(saved, k) as group:
                yield group, own

    def path_of(self, saved: Saved, number: int | None = None) -> str:
        """The name of an output, or of one of its files, for messages."""
        if self.kind == "old":
            return f"{self.path}, output {saved.name},"
        file = f"{saved.name}.hdf5" if number is None else saved.files[number]
        return os.path.join(self.folder, file)

    def opened(self, saved: Saved, number: int = 0) -> output_file.Output:
        """Context with the group of one file; what is wrong with it is a SnapshotError."""
        path = self.path_of(saved, number)
        if self.kind == "old":
            return output_file.Output(path, self._data, saved.name)
        try:
            data = _bytes(path)
        except OSError as error:
            raise SnapshotError(f"{self.path}: its output {path}: {error.strerror}") from error
        if not output_file.is_sealed(data):
            raise SnapshotError(f"{path} is damaged: its checksum is not that of its contents")
        output = output_file.Output(path, data, "grape6py")
        output.check(self.id, saved.mark(number))
        return output

    def has_all(self, saved: Saved) -> bool:
        """Whether all files of an output are there, and whole."""
        try:
            for number in range(len(saved.files)):
                self.opened(saved, number)
        except SnapshotError:
            return False
        return True

    def index(self, path: PathLike | None = None) -> bytes:
        """The bytes of the index of these outputs, under another name if one is given.

        Those of the last call, or of the file that was read, get what is new: to make all links
        anew would take as long as there are outputs.
        """
        table, folder = (
            self._table,
            os.path.basename(atomic_files.outputs_folder(path or self.path)),
        )

        def fill(file: HDF5) -> None:
            file.attrs.update(self.about | {"format": _FORMAT})
            file.create_group(_TABLE).attrs["folder"] = os.fsencode(folder)
            for name in _DATASETS:
                array = getattr(table, name)
                file.create_dataset(f"{_TABLE}/{name}", (0, *array.shape[1:]), array.dtype,
                                    chunks=(_ROWS, *array.shape[1:]),
                                    maxshape=(None, *array.shape[1:]))  # fmt: skip
            add(file, 0)

        def add(file: HDF5, first: int) -> None:
            for name in _DATASETS:
                array, dataset = getattr(table, name), file[f"{_TABLE}/{name}"]
                begin = len(dataset)
                dataset.resize(len(array), 0)
                dataset[begin:] = array[begin:]
            for saved in table[first:]:
                links = [h5py.ExternalLink(f"{folder}/{name}", "/grape6py") for name in saved.files]
                if saved.numbered is None:
                    file[saved.name] = links[0]
                for number, link in enumerate(links if saved.numbered else ()):
                    file[f"{saved.name}/{number}"] = link

        count, about = self._indexed
        data = b""
        if self._data and path is None and about == self.about:
            with contextlib.suppress(*output_file.DAMAGE):
                data = output_file.changed(self._data, lambda file: add(file, count))
        data = data or output_file.in_memory(fill)
        if path is None:
            self._data, self._indexed = data, (len(table), dict(self.about))
        return data


def _joined(some: list[AnyArray]) -> AnyArray:
    """Arrays one behind the other; ids of which one file has int64, another uint64, exactly."""
    kinds = {array.dtype.kind for array in some}
    kind = np.uint64 if kinds == {"i", "u"} else None
    found: AnyArray = np.concatenate(some, dtype=kind, casting="unsafe")
    return found


def find(path: PathLike) -> Run:
    """The run that a file is the index of, or one output of; a SnapshotError if it is none.

    Warns if the index is lost or damaged, and the outputs are there.
    """
    path = os.fspath(path)
    try:
        data = _bytes(path)
    except FileNotFoundError:
        return _from_outputs(path, "is not there", FileNotFoundError)
    if output_file.is_sealed(data):
        try:
            return _from_sealed(path, data)
        except SnapshotError:
            raise
        except output_file.DAMAGE as error:  # as by an HDF5 that cannot read it
            return _from_outputs(path, f"is damaged or incomplete: {error}", SnapshotError)
    with output_file.explained(path):
        if _OLD_FORMAT.encode() in data:
            return _from_old(path, data)
    if not data.startswith(_HDF5):
        wrong = "is not an HDF5 file"
    elif b"grape6py run " in data:
        wrong = "is damaged: its checksum is not that of its contents"
    else:
        wrong = "is no file of a run made by grape6py, or is damaged"
    return _from_outputs(path, wrong, SnapshotError)


def _bytes(path: PathLike) -> bytes:
    with atomic_files.opened(path) as file:
        return file.read()


def _from_sealed(path: PathLike, data: bytes) -> Run:
    with output_file.opened(data) as file:
        about = dict(file.attrs)
        if about["format"] == output_file.FORMAT:
            return Run(path, about, [_saved(os.path.realpath(path), file)], "output")
        if about["format"] == _OF_ATTRIBUTES:
            return Run(path, about, _linked(file, about))
        if about["format"] != _FORMAT:
            raise SnapshotError(f"{path} is of a newer grape6py: its form is {about['format']!r}")
        table = Table(*(output_file.stored(file, f"{_TABLE}/{k}")[()] for k in _DATASETS))
        table.check()
        if len(file) != len(table) + 1:
            raise ValueError(f"it has {len(file) - 1} links to {len(table)} outputs")
        folder = os.path.basename(atomic_files.outputs_folder(path))
        is_renamed = os.fsencode(file[_TABLE].attrs["folder"]) != os.fsencode(folder)
        return Run(path, about, table, data=b"" if is_renamed else data)  # its links lead nowhere


def _linked(file: HDF5, about: Attributes) -> list[Saved]:
    """The outputs of an index whose table is in its attributes."""
    n, found = len(_COLUMNS), []
    rows = np.array(about["history"], float)
    more = np.array(about.get("history_of_energy", np.zeros((len(rows), len(_MORE)))), float)
    for name, row, of_energy in zip(sorted(file), rows, more, strict=True):
        numbers = dict(zip(_COLUMNS, row[:n], strict=True)) | dict(
            zip(_MORE, of_energy, strict=True)
        )
        numbered = None
        if not isinstance(file.get(name, getlink=True), h5py.ExternalLink):
            group = output_file.own(file, name)
            numbered = _numbered(group.attrs["digest"], output_file.stored(group, "counts")[()])
        found.append(Saved(name, numbers | {"radii": row[n:]}, numbered))
    return found


def _saved(path: str, file: HDF5) -> Saved:
    """The output that a file is, or is one file of."""
    name, group = os.path.basename(path), output_file.own(file, "grape6py")
    numbered = None
    if "counts" in group:
        digest, of = file.attrs[output_file.MARK].split(" ")
        numbered = _numbered(digest, output_file.stored(group, "counts")[()])
        stem, number, ending = parts.split_number(name)
        if number is None or str(number) != of:
            raise SnapshotError(
                f"{path}: it is one of {len(numbered.counts)} files, and not named like the "
                f"others: NAME.{of}.hdf5"
            )
        name = stem + ending
    return Saved(name.removesuffix(".hdf5"), _numbers(group), numbered)


def _numbered(digest: str, counts: AnyArray) -> Numbered:
    found = Numbered(bytes.fromhex(digest), tuple(int(n) for n in counts))
    if (
        len(found.digest) != DIGEST
        or not 0 < len(found.counts) <= MOST_FILES
        or min(found.counts) < 0
    ):
        raise ValueError(f"it is in {len(found.counts)} files")
    return found


def _numbers(group: HDF5) -> Attributes:
    """What ``archive.describe`` gave, from the attributes of a group."""
    names = (*_COLUMNS, *(name for name in _MORE if name in group.attrs))
    numbers = {name: float(group.attrs[name]) for name in names}
    if not np.isfinite(numbers["time"]):
        raise ValueError(f"its time is {numbers['time']}")
    return numbers | {"radii": np.array(group.attrs["radii"], float)}


def _from_old(path: PathLike, data: bytes) -> Run:
    with output_file.opened(data) as file:
        about = dict(file.attrs) | {"run": hashlib.sha256(data).hexdigest()[:32]}
        outputs = []
        for name in sorted(file):
            try:
                outputs.append(Saved(name, _numbers(output_file.own(file, name))))
            except output_file.DAMAGE as error:
                warnings.warn(
                    f"{path}: output {name} is incomplete ({error}) and left out",
                    Grape6Warning,
                    stacklevel=4,
                )
    if about["format"] != _OLD_FORMAT or not outputs:
        raise SnapshotError(f"{path} is no file of a run made by grape6py, or is damaged")
    return Run(path, about, outputs, "old", data)


def outputs_in(folder: str) -> list[str]:
    """The files of outputs in a folder, ascending."""
    try:
        return sorted(name for name in os.listdir(folder) if NAME.fullmatch(name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _from_outputs(path: PathLike, wrong: str, kind: Callable[[str], Exception]) -> Run:
    """The run whose outputs are in the folder that belongs to a path, without its index."""
    folder = atomic_files.outputs_folder(path)
    names = outputs_in(folder)
    found: Run | None = None
    outputs: list[Saved] = []
    for name in reversed(names):
        if parts.split_number(name)[1]:
            continue  # seen by the first one of its output
        with contextlib.suppress(*output_file.DAMAGE):  # it is left out
            data = _bytes(os.path.join(folder, name))
            if not output_file.is_sealed(data):
                continue
            with output_file.opened(data) as file:
                run = found or Run(path, file.attrs)
                is_of_it = file.attrs["run"] == run.id
                saved = _saved(os.path.join(folder, name), file)
            if outputs and not outputs[0].numbers["time"] > saved.numbers["time"]:
                continue  # which the later one has taken the place of
            Table.of([saved, *outputs[:1]]).check()
            if is_of_it and (saved.numbered is None or run.has_all(saved)):
                outputs.insert(0, saved)
                found = run
    if found is None:
        raise kind(f"{path} {wrong}" + f", nor is one of its outputs in {folder}" * bool(names))
    warnings.warn(f"{path} {wrong}: read from its outputs in {folder}", Grape6Warning, stacklevel=4)
    return Run(path, found.about, outputs)
