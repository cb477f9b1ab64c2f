"""The outputs of a run as a file names them: found, read, and written down in an index."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import h5py
import numpy as np

from grape6py._arrays.kinds import HDF5, Attributes, PathLike, Untyped
from grape6py._io import atomic_files, output_file
from grape6py.errors import Grape6Warning, SnapshotError

_FORMAT, _OLD_FORMAT = "grape6py run 2", "grape6py run 1"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_NAME = re.compile(r"\d{6,}\.hdf5")
_COLUMNS = ("time", "steps", "blocks", "kinetic", "potential")  # and radii: a row of `history`
_MORE = ("external", "change")  # a row of `history_of_energy`, if any of them is not 0


class Saved(NamedTuple):
    """One output."""

    name: str  # as "000003"
    file: str | None  # from the folder of the index; None: it is a group of the index
    numbers: Attributes  # what ``archive.describe`` gave


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
        own = "format", "history", "history_of_energy"
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

    def read(self, saved: Saved) -> output_file.Output:
        """Context with the group of one output; what is wrong with it is a SnapshotError."""
        if saved.file is None:
            name = f"{self.path}, output {saved.name},"
            return output_file.Output(name, self._old or b"", saved.name)
        path = os.path.join(os.path.dirname(os.path.realpath(self.path)), saved.file)
        try:
            data = _bytes(path)
        except OSError as error:
            raise SnapshotError(f"{self.path}: its output {path}: {error.strerror}") from error
        if not output_file.is_sealed(data):
            raise SnapshotError(f"{path} is damaged: its checksum is not that of its contents")
        output = output_file.Output(path, data, "grape6py")
        output.check_run(self.id)
        return output

    def index(self) -> bytes:
        """The bytes of the index of these outputs."""

        def fill(file: HDF5) -> None:
            rows = [[*(o.numbers[k] for k in _COLUMNS), *o.numbers["radii"]] for o in self.outputs]
            file.attrs.update(self.about | {"format": _FORMAT, "history": np.array(rows, float)})
            more = np.array([[o.numbers.get(k, 0.0) for k in _MORE] for o in self.outputs], float)
            if more.any():
                file.attrs["history_of_energy"] = more
            for output in self.outputs:
                file[output.name] = h5py.ExternalLink(output.file, "/grape6py")

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
            name = os.path.basename(os.path.realpath(path))
            return Run(path, about, [Saved(name, name, _numbers(file["grape6py"]))], "output")
        if about["format"] != _FORMAT:
            raise SnapshotError(f"{path} is of a newer grape6py: its form is {about['format']!r}")
        links = [(name, file.get(name, getlink=True).filename) for name in sorted(file)]
        n = len(_COLUMNS)
        rows = [
            dict(zip(_COLUMNS, r[:n], strict=True)) | {"radii": r[n:]} for r in about["history"]
        ]
        return Run(path, about, [Saved(*a, b) for a, b in zip(links, rows, strict=True)])


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
    """The numbered files in a folder, ascending."""
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
        data = _bytes(os.path.join(folder, name))
        if not output_file.is_sealed(data):
            continue
        with output_file.opened(data) as file:
            found = found or Run(path, file.attrs)
            if file.attrs.get("run") == found.id:
                file_name = os.path.join(os.path.basename(folder), name)
                numbers = _numbers(file["grape6py"])
                found.outputs.insert(0, Saved(name.removesuffix(".hdf5"), file_name, numbers))
    if found is None:
        raise kind(f"{path} {wrong}" + f", nor is one of its outputs in {folder}" * bool(names))
    warnings.warn(f"{path} {wrong}: read from its outputs in {folder}", Grape6Warning, stacklevel=4)
    return found
