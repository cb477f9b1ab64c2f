"""Gadget's snapshots in HDF5, and those of AMUSE's store: opened, and told apart.

Damage is a SnapshotError, and no array is made that the file cannot have the numbers of.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import h5py
import numpy as np

from grape6py._arrays.kinds import HDF5, AnyArray, Floats, Untyped
from grape6py._io.output_file import explained
from grape6py.formats.source import Source

MAGIC = b"\x89HDF\r\n\x1a\n"
_BEST_COMPRESSION = 1032  # of deflate
_SMALL = 1 << 20  # bytes
_ROWS = 1 << 18  # of several columns read at a time


@contextlib.contextmanager
def opened(source: Source) -> Iterator[HDF5]:
    """Context with the file, in which what is wrong with it is a SnapshotError."""
    with explained(source.name), h5py.File(source.file, "r") as file:
        yield file


def kind(source: Source) -> str | None:
    """Whose layout a file has: "amuse", "gadget", "grape6py", or None for none of these."""
    if not source.head.startswith(MAGIC):
        return None
    with opened(source) as file:
        if str(file.attrs.get("format", "")).startswith("grape6py"):
            return "grape6py"
        if "AMUSE_INF" in file or _has_particles(file):
            return "amuse"
        if "Header" in file and "NumPart_ThisFile" in file["Header"].attrs:
            return "gadget"
    return ""


def _has_particles(file: HDF5) -> bool:
    return "particles" in file and isinstance(file["particles"], h5py.Group) and any(
        "number_of_particles" in group.attrs for group in file["particles"].values()
    )  # fmt: skip


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
    _check(source, dataset, shape, "fiu")
    rows = rows or slice(0, shape[0])
    found: Floats = np.empty((rows.stop - rows.start, *shape[1:]))
    if found.size:
        dataset.read_direct(found, rows)
    return found


def columns(
    source: Source, datasets: Sequence[Untyped], n: int, factors: Sequence[float]
) -> Floats:
    """Datasets of n numbers as columns, each times its factor; zeros for one that is None."""
    there = [of for of in enumerate(datasets) if of[1] is not None]
    for _, dataset in there:
        _check(source, dataset, (n,), "fiu")
    found: Floats = np.zeros((n, len(datasets)))
    some = np.empty(min(n, _ROWS))
    for first in range(0, n, _ROWS):
        rows = found[first : first + _ROWS]
        for k, dataset in there:
            dataset.read_direct(some[: len(rows)], slice(first, first + len(rows)))
            rows[:, k] = some[: len(rows)]
            if factors[k] != 1:
                rows[:, k] *= factors[k]
    return found


def ints(source: Source, dataset: Untyped, n: int, rows: slice | None = None) -> AnyArray:
    """A dataset of n numbers, or some of them, as int64, or uint64 if a number is larger."""
    _check(source, dataset, (n,), "iu")
    found: AnyArray = dataset[()] if rows is None else dataset[rows]
    if found.dtype == np.uint64:  # mostly
        return found if found.max(initial=0) >= 2**63 else found.view(np.int64)
    return found.astype(np.int64, copy=False)


def _check(source: Source, dataset: Untyped, shape: tuple[int, ...], kinds: str) -> None:
    if not isinstance(dataset, h5py.Dataset):
        raise source.wrong(f"{dataset.name} is no array")
    if dataset.shape != shape or dataset.dtype.kind not in kinds:
        raise source.wrong(
            f"{dataset.name} has shape {dataset.shape} of {dataset.dtype}, and not {shape} numbers"
        )
    stored, size = dataset.id.get_storage_size(), dataset.size * dataset.dtype.itemsize
    if size > _SMALL and stored * _BEST_COMPRESSION < size:
        raise source.wrong(f"{dataset.name} should have {size} bytes, and {stored} are stored")
