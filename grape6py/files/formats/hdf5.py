"""Gadget's snapshots in HDF5, and those of AMUSE's store: opened, and told apart.

Damage is a SnapshotError, and no array is made that the file cannot have the numbers of.
"""

import contextlib
from collections.abc import Iterator, Sequence

import h5py
import numpy as np

from grape6py._arrays.kinds import HDF5, AnyArray, Floats, Untyped
from grape6py.files.formats.source import Source
from grape6py.files.storage import hdf5_storage
from grape6py.files.storage.output_file import explained

MAGIC = b"\x89HDF\r\n\x1a\n"
AMUSE_NUMBER = "number_of_particles"  # attribute of a state
_MOST_LINKS = 16  # one after the other
_ROWS = 1 << 18  # of several columns read at a time


@contextlib.contextmanager
def opened(source: Source) -> Iterator[HDF5]:
    """Context with the file, in which what is wrong with it is a SnapshotError."""
    with explained(source.name), h5py.File(source.file, "r") as file:
        yield file


def kind(source: Source) -> str | None:
    """The format of an HDF5 file, "grape6py" of a run, "" of none of these; None if it is none."""
    if not source.head.startswith(MAGIC):
        return None
    with opened(source) as file:
        if str(file.attrs.get("format", "")).startswith("grape6py"):
            return "grape6py"
        if member(source, file, "AMUSE_INF") is not None:
            return "amuse"
        if "NumPart_ThisFile" in attributes(source, file, "Header"):
            return "gadget-hdf5"
        return "amuse" if amuse_states(source, file) else ""


def amuse_states(source: Source, file: HDF5) -> dict[str, list[HDF5]]:
    """Groups of the saved states of each of AMUSE's sets, in their order."""
    sets = {}
    for name, group in members(source, file):
        groups = (one for _, one in sorted(members(source, group)) if isinstance(one, h5py.Group))
        states = [state for state in groups if AMUSE_NUMBER in state.attrs]
        if states:
            sets[name] = states
    return sets


def member(source: Source, group: Untyped, path: str, links: int = _MOST_LINKS) -> Untyped | None:
    """What a group has of a name, or None; refused if it is in another file."""
    found = group
    for word in filter(None, path.split("/")):
        if not isinstance(found, h5py.Group):
            return None
        links_of, name = found.id.links, word.encode("utf-8", "surrogateescape")
        if word != "." and not links_of.exists(name):
            return None
        kind = h5py.h5l.TYPE_HARD if word == "." else links_of.get_info(name).type
        if kind == h5py.h5l.TYPE_HARD:
            found = found[word]
        elif kind == h5py.h5l.TYPE_SOFT and links:
            to = links_of.get_val(name).decode("utf-8", "surrogateescape")
            found = member(source, found.file if to.startswith("/") else found, to, links - 1)
        else:
            of = "too many others" if kind == h5py.h5l.TYPE_SOFT else "another file"
            raise source.wrong(
                f"{found.name.rstrip('/')}/{word} is a link to {of}, which is not followed"
            )
    return found


def members(source: Source, group: Untyped) -> Iterator[tuple[str, Untyped]]:
    """All that a group has, by name."""
    for name in group if isinstance(group, h5py.Group) else ():
        if (found := member(source, group, name)) is not None:
            yield name, found


def attributes(source: Source, file: HDF5, name: str) -> Untyped:
    """Those of a group of a name; none, if it is not there."""
    group = member(source, file, name)
    return {} if group is None else group.attrs


def scalar(value: Untyped) -> float:
    """A number of an attribute, which SWIFT writes as an array of one."""
    found = np.ravel(value)
    if found.dtype.kind not in "fiub":
        raise TypeError(f"{found[:1]} is no number")
    return float(found[0])


def floats(
    source: Source, dataset: Untyped, shape: tuple[int, ...], rows: slice | None = None
) -> Floats:
    """A dataset of a shape as float64, or some rows of it."""
    _check(source, dataset, shape)
    return _read(dataset, np.dtype(np.float64), rows or slice(0, shape[0]))


def columns(
    source: Source, datasets: Sequence[Untyped], n: int, factors: Sequence[float]
) -> Floats:
    """Datasets of n numbers as columns, each times its factor."""
    for dataset in datasets:
        _check(source, dataset, (n,))
    found: Floats = np.empty((n, len(datasets)))
    some = np.empty(min(n, _ROWS))
    for first in range(0, n, _ROWS):
        rows = found[first : first + _ROWS]
        for k, dataset in enumerate(datasets):
            dataset.read_direct(some[: len(rows)], slice(first, first + len(rows)))
            rows[:, k] = some[: len(rows)]
            if factors[k] != 1:
                rows[:, k] *= factors[k]
    return found


def ints(source: Source, dataset: Untyped, n: int, rows: slice | None = None) -> AnyArray:
    """A dataset of n integers, or some of them, as int64, or uint64 if one is larger.

    They may have any size: Gadget-4's ids of 48 bits have one that NumPy has no type of.
    """
    _check(source, dataset, (n,), (h5py.h5t.INTEGER,))
    is_signed = dataset.id.get_type().get_sign() == h5py.h5t.SGN_2
    found = _read(dataset, np.dtype(np.int64 if is_signed else np.uint64), rows or slice(0, n))
    return found if is_signed or found.max(initial=0) >= 2**63 else found.view(np.int64)


def _read(dataset: HDF5, dtype: np.dtype[Untyped], rows: slice) -> AnyArray:
    found: AnyArray = np.empty((rows.stop - rows.start, *dataset.shape[1:]), dtype)
    if found.size:
        dataset.read_direct(found, rows)
    return found


def _check(
    source: Source,
    dataset: Untyped,
    shape: tuple[int, ...],
    kinds: Sequence[int] = (h5py.h5t.INTEGER, h5py.h5t.FLOAT),
) -> None:
    if not isinstance(dataset, h5py.Dataset):
        raise source.wrong(f"{getattr(dataset, 'name', 'a dataset')} is no array, or not there")
    if wrong := hdf5_storage.fault(dataset):
        raise source.wrong(f"{dataset.name} {wrong}")
    if dataset.shape != shape:
        raise source.wrong(f"{dataset.name} has shape {dataset.shape}, not {shape}")
    if dataset.id.get_type().get_class() not in kinds:
        raise source.wrong(f"{dataset.name} has {dataset.dtype}: no such numbers are read")
