"""A snapshot written into numbered files, by one process or by the ranks of MPI: `parts.py`.

All files are whole, and synced, before the first one gets its name: until then an error on any
rank, or its end, leaves all as it was. Names are given one after the other. If that is cut short,
as by a crash of the machine, files of two snapshots may stand side by side: their marks tell them
apart, and what reads them says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import AnyArray, PathLike
from grape6py._io import atomic_files
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.formats import FORMATS, Format, Source, parts
from grape6py.formats.bodies import Snapshot, check_files
from grape6py.ranks.ranks import Ranks, together

_CALL = "write_snapshot()"
_DIGEST = 8  # bytes, of parts.Place


class _About(NamedTuple):
    """What all need to know of the bodies of one file."""

    n: int
    ids: AnyArray | None  # the least and the largest
    digest: bytes

    @classmethod
    def of(cls, content: Snapshot) -> _About:
        found = hashlib.sha256(f"{content.time!r} {content.units!r} {len(content.mass)}".encode())
        ids = content.ids
        for array in (*content, *([] if ids is None else [ids])):
            found.update(np.ascontiguousarray(array).data)
        if ids is not None and len(ids):
            ids = np.array([ids.min(), ids.max()])
        return cls(len(content.mass), ids, found.digest())


def check(path: PathLike, format_: Format, files: int) -> None:
    """Raise an ArgumentError if a snapshot of a format cannot be in so many files."""
    if format_.layout is None:
        able = [f.name for f in FORMATS.values() if f.layout is not None]
        raise ArgumentError(
            f"{os.fspath(path)}: {format_.title} is one file; in several there are the formats "
            f"{', '.join(able)}"
        )
    check_files(files)
    if atomic_files.is_stream(path) and not os.path.isdir(path):
        raise ArgumentError(f"{os.fspath(path)} is no name of files: a device has no numbers")


def write(
    path: PathLike,
    contents: Sequence[Snapshot],
    format_: Format,
    comment: str = "",
    *,
    ranks: Ranks | None = None,
    keep: Callable[[list[str]], object] | None = None,
) -> list[str]:
    """Write the numbered files of a snapshot.

    Parameters
    ----------
    path : path-like
        The name without a number.
    contents : sequence of Snapshot
        The bodies of each file. With `ranks` those of this one's file, in a call of all, with the
        same time and units.
    format_ : Format
    comment : str
    ranks : Ranks, optional
    keep : callable, optional
        Called with the names of the files that are there, before they are replaced. By default
        those that no new one replaces are removed in the end.

    Returns
    -------
    list of str
        The names of all files.

    Raises
    ------
    ArgumentError, OSError
        As `write_snapshot`.
    """
    with together(ranks, _CALL):
        about = [_About.of(content) for content in contents]
    first = 0
    if ranks is not None:
        about, first = ranks.comm.allgather(about[0]), ranks.rank
    names = [parts.part_name(path, k) for k in range(len(about))]
    standing: list[str] = []
    with contextlib.ExitStack() as written:
        with together(ranks, _CALL):
            check(path, format_, len(names))
            ids = _all_ids(about)
            lost = format_.lost(contents[0].with_ids(ids))
            if lost and first == 0:
                format_.warn(os.fspath(path), lost)
            if any(what.startswith("ids") for what in lost):
                ids = None
            files = _encoded(contents, first, about, ids, format_, comment)
            asides = [
                written.enter_context(atomic_files.Aside(name, pieces))
                for name, pieces in zip(names[first:], files, strict=False)
            ]
            if first == 0:
                standing = _standing(path, names, format_)
        with together(ranks, _CALL):
            if keep is not None:
                keep(standing)
            for aside in asides:
                aside.put()
    with together(ranks, _CALL):
        for name in [] if keep is not None else standing:
            if name not in names:
                os.unlink(name)
    return names


def _encoded(
    contents: Sequence[Snapshot],
    first: int,
    about: Sequence[_About],
    ids: AnyArray | None,
    format_: Format,
    comment: str,
) -> Iterator[Iterator[bytes]]:
    """The pieces of each file, of which `first` is the number of the first one."""
    ends = np.cumsum([one.n for one in about]).tolist()
    largest = ends[-1] if ids is None else int(ids.max(initial=0))
    digest = hashlib.sha256(b"".join(one.digest for one in about)).digest()[:_DIGEST]
    for k, content in enumerate(contents, start=first):
        if ids is None or content.ids is None:
            own = np.arange(ends[k] - about[k].n + 1, ends[k] + 1)
        else:
            own = content.ids.astype(ids.dtype, copy=False)
        place = parts.Place(k, len(about), ends[-1], largest, digest)
        yield format_.write(content.with_ids(own), comment, place)


def _all_ids(about: Sequence[_About]) -> AnyArray | None:
    """The least and the largest ids of each file, of one dtype; None if there are none."""
    found = [one.ids for one in about if one.ids is not None]
    if not found:
        return None
    if any(one.ids is None for one in about if one.n):
        raise ArgumentError("ids are given on some ranks, and not on others")
    try:
        return parts.joined_ids(found)
    except ValueError as error:
        raise ArgumentError(str(error)) from error


def _standing(path: PathLike, names: Sequence[str], format_: Format) -> list[str]:
    """Files that are there: that of the name itself, numbered ones, and more of their snapshot."""
    found = [name for name in (os.fspath(path), *names) if os.path.isfile(name)]
    number = len(names)
    while _is_part(name := parts.part_name(path, number), number, format_):
        found.append(name)
        number += 1
    return found


def _is_part(name: str, number: int, format_: Format) -> bool:
    """Whether a file is one of a snapshot in more files than its number."""
    if format_.layout is None or not os.path.isfile(name):
        return False
    try:
        with atomic_files.opened(name) as file:
            return format_.layout.head(Source(file, name)).files > number
    except (SnapshotError, OSError):
        return False
