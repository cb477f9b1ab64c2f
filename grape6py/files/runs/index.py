"""The outputs of a run as a file names them: found, read, and written down in an index.

An output is one file, or, of bodies that no rank of MPI has all of, several: 000003.0.hdf5,
000003.1.hdf5, ..., those of each rank. The index has the number of bodies of each, and a
digest that is in the files, too: so files of two outputs, which a crash can leave side by side, are
never taken for one.

Where the files are follows from the name of the index alone: what stands in it is no path.
"""

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import h5py
import numpy as np

from grape6py._arrays.kinds import HDF5, AnyArray, Attributes, Floats, PathLike, Untyped
from grape6py.errors import Grape6Warning, SnapshotError
from grape6py.files.formats import hdf5, parts
from grape6py.files.formats.bodies import MOST_FILES, joined_ids
from grape6py.files.storage import atomic_files, output_file
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks

_FORMAT, _OLDER = "grape6py run 3", "grape6py run 2"
_OLDEST = b"grape6py run 1"  # one file
NAME = re.compile(r"\d{6,}(\.\d+)?\.hdf5")
_TABLE = "index"  # the group of the datasets of a Table
_COLUMNS = ("time", "steps", "blocks", "kinetic", "potential")
_MORE = ("external", "change")
NUMBERS = (*_COLUMNS, *_MORE)  # and radii: a row of `history`
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

    `history` has a row of each: `NUMBERS`, radii; `outputs` its number, how many files it has if
    these are numbered, else 0, and their digest; `counts` the bodies of each such file.
    """

    def __init__(self, history: AnyArray, outputs: AnyArray, counts: AnyArray) -> None:
        self.history, self.outputs, self.counts = history, outputs, counts

    @classmethod
    def of(cls, some: Sequence[Saved]) -> Self:
        """Of some outputs."""
        outputs: list[list[int]] = []
        counts: list[int] = []
        for name, _, numbered in some:
            digest, of_each = numbered or (b"", ())
            outputs.append([int(name), len(of_each), int.from_bytes(digest, "little", signed=True)])
            counts += of_each
        return cls(
            rows_of([saved.numbers for saved in some]),
            np.array(outputs, np.int64).reshape(-1, 3),
            np.array(counts, np.int64),
        )

    def check(self) -> None:
        """Raise a ValueError for what no index has."""
        number, files = self.outputs[:, 0], self.outputs[:, 1]
        time = self.history[:, 0]
        if not (
            self.outputs.dtype.kind == self.counts.dtype.kind == "i"
            and len(self.history) == len(self.outputs)
            and self.history.shape[1] >= len(NUMBERS)
            and np.isfinite(time).all()
            and all((np.diff(each) > 0).all() for each in (number, time))
            and all((each >= 0).all() for each in (number, files, self.counts))
            and files.sum() == len(self.counts)
        ):
            raise ValueError("its table of outputs contradicts itself")

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, k: int) -> Saved:  # type: ignore[override]
        which = range(len(self))[k]
        number, files, digest = self.outputs[which].tolist()
        numbered = None
        if files:
            first = int(self.outputs[:which, 1].sum())
            counts = tuple(self.counts[first : first + files].tolist())
            numbered = Numbered(digest.to_bytes(DIGEST, "little", signed=True), counts)
        return Saved(f"{number:06d}", _named(self.history[which]), numbered)


def rows_of(outputs: Sequence[Attributes]) -> Floats:
    """A row of `history` for each output, of which these are the numbers."""
    rows = [[*(n.get(k, 0.0) for k in NUMBERS), *n["radii"]] for n in outputs]
    return np.array(rows or np.empty((0, len(NUMBERS))), float)


def _named(row: AnyArray) -> Attributes:
    """The numbers of an output, from its row of `history`."""
    n = len(NUMBERS)
    return dict(zip(NUMBERS, row[:n].tolist(), strict=True)) | {"radii": row[n:]}


class Found(NamedTuple):
    """What is read of an output: arrays by body, others, and attributes, by name."""

    arrays: Attributes
    others: Attributes
    attributes: Attributes


class Run:
    """What a file holds: outputs, ascending in time, of a run, whose `id` no other has.

    `about` are the root's attributes. The file is an index of a Table, of which it has all in its
    bytes, `data`; or it is one of the outputs.
    """

    def __init__(
        self,
        path: PathLike,
        about: Mapping[str, Untyped],
        outputs: Table | None = None,
        data: bytes = b"",
        *,
        output: Saved | None = None,
    ) -> None:
        self.path, self.is_output, self._data = os.fspath(path), output is not None, data
        self.about = {k: v for k, v in about.items() if k not in ("format", output_file.MARK)}
        self.id = str(self.about["run"])
        self.table = Table.of([]) if outputs is None else outputs
        self._output = output
        self._about_indexed = dict(self.about)  # what `data` have
        real = os.path.realpath(path)
        self.folder = os.path.dirname(real) if output else atomic_files.outputs_folder(real)

    @property
    def outputs(self) -> Sequence[Saved]:
        """All of them, or the one that the file is."""
        return self.table if self._output is None else [self._output]

    @property
    def history(self) -> AnyArray:
        """A row of numbers for each output, as :class:`Table` has them."""
        return self.table.history if self._output is None else rows_of([self._output.numbers])

    def alone(self, saved: Saved) -> Self:
        """One output as its file says what it is: with the settings that the run had then."""
        with self.opened(saved) as group:
            about = dict(group.file.attrs)
        return type(self)(self.path_of(saved, 0), about, output=saved)

    def add(self, saved: Saved) -> Saved | None:
        """Add an output. One of the same time, whose place it takes, is returned."""
        last = self.table[-1] if len(self.table) else None
        is_again = last is not None and last.numbers["time"] == saved.numbers["time"]
        if is_again:
            self.take_away()
        one = Table.of([saved])
        pairs = ([getattr(table, name) for table in (self.table, one)] for name in _DATASETS)
        self.table = Table(*map(np.concatenate, pairs)) if len(self.table) else one
        return last if is_again else None

    def take_away(self) -> Saved:
        """Forget the last output, which is returned."""
        last, table = self.table[-1], self.table
        counts = table.counts[: len(table.counts) - int(table.outputs[-1, 1])]
        self.table, self._data = Table(table.history[:-1], table.outputs[:-1], counts), b""
        return last

    def read(
        self, saved: Saved, names: Iterable[str], others: Collection[str] = (), owners: Ranks = ONE
    ) -> Found:
        """Arrays by body of an output, or the share of a rank, and others; those that there are.

        If others are asked for, a state has nothing but what is named. What is wrong with its files
        is a SnapshotError; those of other bodies are not read.
        """
        pieces: dict[str, list[AnyArray]] = {name: [] for name in names}
        known, found = {*pieces, *others}, Found({}, {}, {})
        stored = output_file.stored
        with output_file.explained(self.path_of(saved)):
            for count, (group, rows) in enumerate(self._groups(saved, owners), 1):
                n = len(stored(group, "mass"))
                if others and (odd := {f"state/{name}" for name in group["state"]} - known):
                    raise SnapshotError(
                        f"{self.path_of(saved)} is of another version of grape6py: nothing here "
                        f"goes on from {min(odd)}"
                    )
                for name in filter(group.__contains__, pieces):
                    array = stored(group, name)
                    if len(array) != n or (name in _WHOLE and array.dtype.kind not in "iu"):
                        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}")
                    pieces[name].append(array[rows])
                if wrong := [name for name, some in pieces.items() if len(some) not in (0, count)]:
                    raise ValueError(f"{wrong[0]} is in some of its files alone")
                found.attributes.update(group.attrs)
                found.others.update({k: stored(group, k)[()] for k in others if k in group})
            for name, some in filter(lambda piece: piece[1], pieces.items()):
                if name == "ids":
                    found.arrays[name] = joined_ids(some, ValueError)
                else:
                    found.arrays[name] = some[0] if len(some) == 1 else np.concatenate(some)
        return found

    def _groups(self, saved: Saved, owners: Ranks) -> Iterator[tuple[HDF5, slice]]:
        """The groups of an output, one after the other, and which of their rows are meant."""
        if saved.numbered is None:
            with self.opened(saved) as group:
                yield group, owners.rows(len(output_file.stored(group, "mass")))
            return
        counts = saved.numbered.counts
        rows = owners.rows(sum(counts))
        some = list(parts.overlap(counts, rows.start, rows.stop))
        for k, own in some or [(0, slice(0))]:  # without bodies for the attributes
            with self.opened(saved, k) as group:
                yield group, own

    def path_of(self, saved: Saved, number: int | None = None) -> str:
        """The name of an output, or of one of its files, for messages."""
        file = f"{saved.name}.hdf5" if number is None else saved.files[number]
        return os.path.join(self.folder, file)

    @contextlib.contextmanager
    def opened(self, saved: Saved, number: int = 0) -> Iterator[HDF5]:
        """Context with the group of one file; what is wrong with it is a SnapshotError."""
        path = self.path_of(saved, number)
        try:
            data = _bytes(path)
        except OSError as error:
            raise SnapshotError(f"{self.path}: its output {path}: {error.strerror}") from error
        if not output_file.is_sealed(data):
            raise SnapshotError(f"{path} is damaged: its checksum is not that of its contents")
        with output_file.explained(path), output_file.opened(data) as file:
            if (its_run := file.attrs["run"]) != self.id:
                raise SnapshotError(f"{path} is of another run, {its_run} instead of {self.id}")
            if file.attrs.get(output_file.MARK, "") != saved.mark(number):
                raise SnapshotError(f"{path} is of another output than the files beside it")
            yield output_file.own(file, "grape6py")

    def index(self) -> bytes:
        """The bytes of the index of these outputs.

        Those of the last call, or of the file that was read, get what is new: to make all links
        anew would take as long as there are outputs.
        """
        table, folder = self.table, os.path.basename(self.folder)

        def fill(file: HDF5) -> None:
            file.attrs.update(self.about | {"format": _FORMAT})
            file.create_group(_TABLE).attrs["folder"] = os.fsencode(folder)
            for name in _DATASETS:
                array = getattr(table, name)
                file.create_dataset(f"{_TABLE}/{name}", (0, *array.shape[1:]), array.dtype,
                                    chunks=(_ROWS, *array.shape[1:]),
                                    maxshape=(None, *array.shape[1:]))  # fmt: skip
            add(file)

        def add(file: HDF5) -> None:
            for k in range(len(file[f"{_TABLE}/outputs"]), len(table)):
                name, _, numbered = saved = table[k]
                links = [h5py.ExternalLink(f"{folder}/{file}", "/grape6py") for file in saved.files]
                if numbered is None:
                    file[name] = links[0]
                    continue
                for number, link in enumerate(links):
                    file[f"{name}/{number}"] = link
            for name in _DATASETS:
                array, dataset = getattr(table, name), file[f"{_TABLE}/{name}"]
                begin = len(dataset)
                dataset.resize(len(array), 0)
                dataset[begin:] = array[begin:]

        data = b""
        if self._data and self._about_indexed == self.about:
            with contextlib.suppress(*output_file.DAMAGE):
                data = output_file.changed(self._data, add)
        self._data = data or output_file.seal(output_file.image(fill))
        self._about_indexed = dict(self.about)
        return self._data


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
    if _OLDEST in data:
        raise SnapshotError(f"{path} is of a version before the first release")
    if not data.startswith(hdf5.MAGIC):
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
            return Run(path, about, output=_saved(os.path.realpath(path), file))
        folder = atomic_files.outputs_folder(path)
        if about["format"] == _OLDER:
            raise SnapshotError(
                f"{path} is of a version before the first release: its form is {_OLDER!r}; its "
                f"outputs in {folder} are files of their own"
            )
        if about["format"] != _FORMAT:
            raise SnapshotError(f"{path} is of a newer grape6py: its form is {about['format']!r}")
        table = Table(*(output_file.stored(file, f"{_TABLE}/{k}")[()] for k in _DATASETS))
        if len(file) != len(table) + 1:
            raise ValueError(f"it has {len(file) - 1} links to {len(table)} outputs")
        if os.fsencode(file[_TABLE].attrs["folder"]) != os.fsencode(os.path.basename(folder)):
            data = b""  # it was renamed: its links lead nowhere
        table.check()
        return Run(path, about, table, data)


def _saved(path: str, file: HDF5) -> Saved:
    """The output that a file is, or is one file of."""
    name, group = os.path.basename(path), output_file.own(file, "grape6py")
    numbered = None
    if "counts" in group:
        digest, of = file.attrs[output_file.MARK].split(" ")
        counts = tuple(int(n) for n in output_file.stored(group, "counts")[()])
        numbered = Numbered(bytes.fromhex(digest), counts)
        if not (
            len(numbered.digest) == DIGEST and 0 < len(counts) <= MOST_FILES and min(counts) >= 0
        ):
            raise ValueError(f"it is in {len(counts)} files")
        stem, number, ending = parts.split_number(name)
        if number is None or str(number) != of:
            raise SnapshotError(
                f"{path}: it is one of {len(counts)} files, and not named like the "
                f"others: NAME.{of}.hdf5"
            )
        name = stem + ending
    return Saved(name.removesuffix(".hdf5"), _numbers(group), numbered)


def _numbers(group: HDF5) -> Attributes:
    """What ``archive.describe`` gave, from the attributes of a group."""
    names = (*_COLUMNS, *(name for name in _MORE if name in group.attrs))
    numbers = {name: float(group.attrs[name]) for name in names}
    if not np.isfinite(numbers["time"]):
        raise ValueError(f"its time is {numbers['time']}")
    return numbers | {"radii": np.array(group.attrs["radii"], float)}


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
    about: Attributes = {}
    outputs: list[Saved] = []
    for name in reversed(names):
        if parts.split_number(name)[1]:
            continue  # seen by the first one of its output
        with contextlib.suppress(*output_file.DAMAGE):  # it is left out
            file = os.path.join(folder, name)
            data = _bytes(file)
            if not output_file.is_sealed(data):
                continue
            run = _from_sealed(file, data)
            saved = run.outputs[0]
            if outputs and not outputs[0].numbers["time"] > saved.numbers["time"]:
                continue  # which the later one has taken the place of
            Table.of([saved, *outputs[:1]]).check()
            if not run.is_output or run.id != about.get("run", run.id):
                continue
            for number in range(1, len(saved.files)):  # which all are there, and whole
                with run.opened(saved, number):
                    pass
            outputs.insert(0, saved)
            about = about or run.about
    if not outputs:
        raise kind(f"{path} {wrong}" + f", nor is one of its outputs in {folder}" * bool(names))
    warnings.warn(f"{path} {wrong}: read from its outputs in {folder}", Grape6Warning, stacklevel=4)
    return Run(path, about, Table.of(outputs))
