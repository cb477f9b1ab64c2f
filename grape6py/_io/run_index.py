"""The outputs of a run as a file names them: found, read, and written down in an index.

An output is one file, or, of bodies that no rank of MPI has all of, several: 000003.0.hdf5,
000003.1.hdf5, ..., those of each rank. The index has the number of bodies of each, and a
digest that is in the files, too: so files of two outputs, which a crash can leave side by side, are
never taken for one.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import h5py
import numpy as np

from grape6py._arrays.kinds import HDF5, AnyArray, Attributes, PathLike, Untyped
from grape6py._io import atomic_files, output_file
from grape6py.errors import Grape6Warning, SnapshotError
from grape6py.formats import parts

if TYPE_CHECKING:
    from grape6py.ranks.ranks import Ranks

_FORMAT, _OLD_FORMAT = "grape6py run 2", "grape6py run 1"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_NAME = re.compile(r"\d{6,}(\.\d+)?\.hdf5")
_COLUMNS = ("time", "steps", "blocks", "kinetic", "potential")  # and radii: a row of `history`
_MORE = ("external", "change")  # a row of `history_of_energy`, if any of them is not 0


class Numbered(NamedTuple):
    """Of an output in several files: its digest, and the bodies of each file."""

    digest: bytes
    counts: tuple[int, ...]


class Saved(NamedTuple):
    """One output."""

    name: str  # as "000003"
    file: str | None  # from the folder of the index; None: it is a group of the index
    numbers: Attributes  # what ``archive.describe`` gave
    numbered: Numbered | None = None  # `file` is then the name without numbers

    @property
    def files(self) -> list[str]:
        """All its files."""
        if self.file is None:
            return []
        if self.numbered is None:
            return [self.file]
        return [parts.part_name(self.file, k) for k in range(len(self.numbered.counts))]

    def mark(self, number: int) -> str:
        """What a file says of the output that it is of, if that has several."""
        return "" if self.numbered is None else parts.mark(self.numbered.digest, number)


class Found(NamedTuple):
    """What is read of an output: arrays by body, others, and attributes, by name."""

    arrays: Attributes
    others: Attributes
    attributes: Attributes


class Run:
    """What a file holds: outputs, ascending in time, of a run, whose `id` no other has.

    `about` are the root's attributes. By its `kind` the file is an "index" of outputs, one
    "output", or an "old" file, of version 0.1.
    """

    def __init__(
        self,
        path: PathLike,
        about: Mapping[str, Untyped],
        outputs: Iterable[Saved] = (),
        kind: str = "index",
        old: bytes | None = None,
    ) -> None:
        self.path, self.outputs, self.kind = os.fspath(path), list(outputs), kind
        own = "format", "history", "history_of_energy", output_file.MARK
        self.about = {k: v for k, v in about.items() if k not in own}
        self.id = str(self.about["run"])
        self._old = old  # the bytes of a file that has its outputs in it

    def moved(self, folder: str, to: str) -> Run:
        """The same run with outputs that were renamed from one folder into another."""
        folder, to = os.path.basename(folder), os.path.basename(to)
        outputs = []
        for output in self.outputs:
            if output.file is None:
                raise SnapshotError(f"{self.path} has its outputs in it")
            at, name = os.path.split(output.file)
            file = os.path.join(to, name) if at == folder else output.file
            outputs.append(output._replace(file=file))
        return Run(self.path, self.about, outputs)

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
        with output_file.explained(self.path_of(saved)):
            for group, rows in self._groups(saved, share):
                for name in pieces:
                    if name in group:
                        pieces[name].append(group[name][rows])
                found.attributes.update(group.attrs)
                found.others.update({name: group[name][()] for name in others if name in group})
            found.arrays.update(
                {
                    name: some[0] if len(some) == 1 else np.concatenate(some)
                    for name, some in pieces.items()
                    if some
                }
            )
        return found

    def _groups(self, saved: Saved, share: Ranks | None) -> Iterator[tuple[HDF5, slice]]:
        """The groups of an output, one after the other, and which of their rows are meant."""
        if saved.numbered is None:
            with self.opened(saved) as group:
                n = len(group["mass"])
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
        if saved.file is None:
            return f"{self.path}, output {saved.name},"
        file = saved.file if number is None else saved.files[number]
        return os.path.join(os.path.dirname(os.path.realpath(self.path)), file)

    def opened(self, saved: Saved, number: int = 0) -> output_file.Output:
        """Context with the group of one file; what is wrong with it is a SnapshotError."""
        path = self.path_of(saved, number)
        if saved.file is None:
            return output_file.Output(path, self._old or b"", saved.name)
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

    def index(self) -> bytes:
        """The bytes of the index of these outputs."""

        def fill(file: HDF5) -> None:
            rows = [[*(o.numbers[k] for k in _COLUMNS), *o.numbers["radii"]] for o in self.outputs]
            file.attrs.update(self.about | {"format": _FORMAT, "history": np.array(rows, float)})
            more = np.array([[o.numbers.get(k, 0.0) for k in _MORE] for o in self.outputs], float)
            if more.any():
                file.attrs["history_of_energy"] = more
            for output in self.outputs:
                links = [h5py.ExternalLink(name, "/grape6py") for name in output.files]
                if output.numbered is None:
                    file[output.name] = links[0]
                    continue
                group = file.create_group(output.name)
                group.attrs["digest"] = output.numbered.digest.hex()
                group["counts"] = np.array(output.numbered.counts, np.int64)
                for number, link in enumerate(links):
                    group[str(number)] = link

        return output_file.in_memory(fill, libver=("v108", "v110"))  # else attributes end at 64 kB


def find(path: PathLike) -> Run:
    """The run that a file is the index of, or one output of; a SnapshotError if it is none.

    Warns if the index is lost or damaged, and the outputs are there.
    """
    path = os.fspath(path)
    try:
        data = _bytes(path)
    except FileNotFoundError:
        return _from_outputs(path, "is not there", FileNotFoundError)
    with output_file.explained(path):
        if output_file.is_sealed(data):
            return _from_sealed(path, data)
        if _OLD_FORMAT.encode() in data:
            return _from_old(path, data)
    if not data.startswith(_HDF5):
        wrong = "is not an HDF5 file"
    elif _FORMAT.encode() in data:
        wrong = "is damaged: its checksum is not that of its contents"
    else:
        wrong = "is no file of a run made by grape6py, or is damaged"
    return _from_outputs(path, wrong, SnapshotError)


def _bytes(path: PathLike) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _from_sealed(path: PathLike, data: bytes) -> Run:
    with output_file.opened(data) as file:
        about = dict(file.attrs)
        if about["format"] == output_file.FORMAT:
            return Run(path, about, [_saved(os.path.realpath(path), file)], "output")
        if about["format"] != _FORMAT:
            raise SnapshotError(f"{path} is of a newer grape6py: its form is {about['format']!r}")
        saved = [_linked(file, name) for name in sorted(file)]
        n = len(_COLUMNS)
        rows = [
            dict(zip(_COLUMNS, r[:n], strict=True)) | {"radii": r[n:]} for r in about["history"]
        ]
        outputs = [one._replace(numbers=row) for one, row in zip(saved, rows, strict=True)]
        return Run(path, about, outputs)


def _linked(file: HDF5, name: str) -> Saved:
    """An output of an index, without its numbers."""
    link = file.get(name, getlink=True)
    if isinstance(link, h5py.ExternalLink):
        return Saved(name, link.filename, {})
    group = file[name]
    stem, _, ending = parts.split_number(group.get("0", getlink=True).filename)
    return Saved(name, stem + ending, {}, _numbered(group.attrs["digest"], group["counts"][()]))


def _saved(path: str, file: HDF5, folder: str = "") -> Saved:
    """The output that a file in a folder is, or is one file of."""
    name, group = os.path.basename(path), file["grape6py"]
    numbered = None
    if "counts" in group:
        digest, of = file.attrs[output_file.MARK].split(" ")
        numbered = _numbered(digest, group["counts"][()])
        stem, number, ending = parts.split_number(name)
        if number is None or str(number) != of:
            raise SnapshotError(
                f"{path}: it is one of {len(numbered.counts)} files, and not named like the "
                f"others: NAME.{of}.hdf5"
            )
        name = stem + ending
    name_of_it = name.removesuffix(".hdf5")
    return Saved(name_of_it, os.path.join(folder, name), _numbers(group), numbered)


def _numbered(digest: str, counts: AnyArray) -> Numbered:
    return Numbered(bytes.fromhex(digest), tuple(int(n) for n in counts))


def _numbers(group: HDF5) -> Attributes:
    """What ``archive.describe`` gave, from the attributes of a group."""
    names = (*_COLUMNS, *(name for name in _MORE if name in group.attrs))
    numbers = {name: float(group.attrs[name]) for name in names}
    return numbers | {"radii": np.array(group.attrs["radii"], float)}


def _from_old(path: PathLike, data: bytes) -> Run:
    with output_file.opened(data) as file:
        about = dict(file.attrs) | {"run": hashlib.sha256(data).hexdigest()[:32]}
        outputs = []
        for name in sorted(file):
            try:
                outputs.append(Saved(name, None, _numbers(file[name])))
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
        return sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _from_outputs(path: PathLike, wrong: str, kind: Callable[[str], Exception]) -> Run:
    """The run whose outputs are in the folder that belongs to a path, without its index."""
    folder = atomic_files.outputs_folder(path)
    names = outputs_in(folder)
    found = None
    for name in reversed(names):
        number = parts.split_number(name)[1]
        data = _bytes(os.path.join(folder, name)) if not number else b""
        if not output_file.is_sealed(data):
            continue
        with output_file.opened(data) as file:
            run = found or Run(path, file.attrs)
            is_of_it = file.attrs.get("run") == run.id
            saved = _saved(os.path.join(folder, name), file, os.path.basename(folder))
        if found is not None and found.outputs[0].numbers["time"] == saved.numbers["time"]:
            continue  # which the later one has taken the place of
        if is_of_it and (saved.numbered is None or run.has_all(saved)):
            run.outputs.insert(0, saved)
            found = run
    if found is None:
        raise kind(f"{path} {wrong}" + f", nor is one of its outputs in {folder}" * bool(names))
    warnings.warn(f"{path} {wrong}: read from its outputs in {folder}", Grape6Warning, stacklevel=4)
    return found
