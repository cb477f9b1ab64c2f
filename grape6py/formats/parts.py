"""Snapshots of Gadget's kind that are in several files, name.0, name.1, ... or name.0.hdf5, ..."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable

import numpy as np

from grape6py._arrays.kinds import AnyArray
from grape6py.errors import Grape6Warning
from grape6py.formats.bodies import Snapshot
from grape6py.formats.source import Source

_MOST = 1 << 16


def joined(
    source: Source, first: Snapshot, files: int, read: Callable[[Source], Snapshot]
) -> Snapshot:
    """A snapshot of which `first` is what this file has, and `files` the number of files."""
    if files <= 1:
        return first
    match = re.search(r"\.(\d+)((?:\.h5|\.hdf5)?)$", source.name)
    if not match or files > _MOST or not os.path.isfile(source.name):
        raise source.wrong(f"it is one of {files} files, and not named like the others: NAME.0")
    number, ending = int(match[1]), match[2]
    found = []
    for k in range(files):
        if k == number:
            found.append(first)
            continue
        name = f"{source.name[: match.start()]}.{k}{ending}"
        try:
            with open(name, "rb") as file:
                found.append(read(Source(file, name)))
        except FileNotFoundError:
            raise source.wrong(f"it is one of {files} files, and {name} is not there") from None
    arrays = [np.concatenate(arrays) for arrays in zip(*found, strict=True)]
    ids = [part.ids for part in found if part.ids is not None]
    all_ids = joined_ids(ids) if len(ids) == len(found) else None
    return Snapshot(*arrays, time=first.time, ids=all_ids, units=first.units)


def joined_ids(ids: list[AnyArray]) -> AnyArray:
    """Ids of one file after the other; a ValueError if 64 bits have no place for all of them."""
    if len({part.dtype for part in ids}) > 1:  # NumPy would make doubles of int64 and uint64
        if min(int(part.min(initial=0)) for part in ids) < 0:
            raise ValueError("some ids are below zero, and some above 2^63")
        ids = [part.astype(np.uint64) for part in ids]
    return ids[0] if len(ids) == 1 else np.concatenate(ids)


def is_cosmological(omega: float, redshift: float) -> bool:
    """Whether lengths are comoving: a file of an expanding universe."""
    return omega > 0 and redshift != 0


def warn_of_cosmology(name: str) -> None:
    """Say that numbers are not what this project integrates."""
    warnings.warn(
        f"{name}: of a cosmological run; positions are comoving, and all numbers are those of the "
        "file",
        Grape6Warning,
        stacklevel=2,
    )
