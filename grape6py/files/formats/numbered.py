"""A snapshot written into numbered files, by one process or by the ranks of MPI: `parts.py`.

All files are whole, and synced, before the first one gets its name. Names are given one after the
other, and the old files have second names meanwhile: an error on any rank undoes it. If it is cut
short, as by a crash of the machine, `parts.py` finds the rest of the snapshot that the first file
is of under the names aside.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import AnyArray, PathLike
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.files.formats import FORMATS, Format, parts
from grape6py.files.formats.bodies import Snapshot, check_files, joined_ids
from grape6py.files.storage import atomic_files
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks

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
        raise ArgumentError(
            f"{os.fspath(path)}: {format_.title} is one file; in several there are the formats "
            f"{', '.join(f.name for f in FORMATS.values() if f.layout is not None)}"
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
    ranks: Ranks = ONE,
    keep: Callable[[list[str]], object] | None = None,
) -> list[str]:
    """Write the numbered files of a snapshot, of which `path` has no number; their names.

    `contents` are the bodies of each file; of several `ranks` those of this one's, in a call of all
    with the same time and units. `keep` is called with the names of files that are there, before
    they are replaced, and may give them other names. Those that no new one replaces are removed in
    the end. Errors are those of `write_snapshot`.
    """
    with ranks.agreement(_CALL):
        about = [_About.of(content) for content in contents]
    about, first = list(itertools.chain.from_iterable(ranks.from_each(about))), ranks.rank
    names = [parts.part_name(path, k) for k in range(len(about))]
    standing: list[str] = []
    with contextlib.ExitStack() as written:
        with ranks.agreement(_CALL):
            check(path, format_, len(names))
            found = [one.ids for one in about if one.ids is not None]
            if found and any(one.ids is None for one in about if one.n):
                raise ArgumentError("ids are given on some ranks, and not on others")
            ids = joined_ids(found, ArgumentError) if found else None  # the ends of each file's
            lost = format_.lost(contents[0].with_ids(ids))
            if lost and first == 0:
                format_.warn(os.fspath(path), lost)
            if any(what.startswith("ids") for what in lost):
                ids = None
            ends = np.cumsum([one.n for one in about]).tolist()
            largest = ends[-1] if ids is None else int(ids.max(initial=0))
            digest = hashlib.sha256(b"".join(one.digest for one in about)).digest()[:_DIGEST]
            if first == 0:  # before there are new files, which may be equal to old ones
                with atomic_files.naming(path):
                    _finish(path, format_)
            asides = []
            for k, content in enumerate(contents, start=first):
                if ids is None or content.ids is None:
                    own = np.arange(ends[k] - about[k].n + 1, ends[k] + 1)
                else:
                    own = content.ids.astype(ids.dtype, copy=False)
                place = parts.Place(k, len(about), ends[-1], largest, digest)
                pieces = format_.write(content.with_ids(own), comment, place)
                aside = atomic_files.Aside(names[k], pieces, holds=False)
                asides.append(written.enter_context(aside))
            if first == 0:
                written.enter_context(atomic_files.naming(path))
                standing = _standing(path, names, format_)
                if keep is not None and standing:
                    keep(standing)
        with ranks.agreement(_CALL):
            for aside in asides:
                aside.hold_old()
        with contextlib.ExitStack() as undo:
            for aside in asides:
                undo.callback(aside.undo)
            with ranks.agreement(_CALL):
                if first == 0:  # what reads the others goes by it
                    asides[0].put()
            with ranks.agreement(_CALL):
                for aside in asides[first == 0 :]:
                    aside.put()
            with ranks.agreement(_CALL):
                if first == 0 and os.path.isfile(path):
                    old = atomic_files.taken_away(path)
                    written.callback(_remove, [old])
                    undo.callback(os.replace, old, path)
            undo.pop_all()
        _remove(set(standing) - {*names, os.fspath(path)})
    return names


def write_one(
    path: PathLike,
    pieces: Iterable[bytes],
    format_: Format,
    keep: Callable[[list[str]], object] | None = None,
) -> None:
    """Write a snapshot that is one file, which takes the place of numbered ones of this project."""
    if atomic_files.is_stream(path):
        atomic_files.write_whole(path, pieces)
        return
    with atomic_files.Aside(path, pieces) as aside, atomic_files.naming(path):
        first = parts.part_name(path, 0)
        head = _head(first, format_)
        is_own = head is not None and head.mark != "" and head.files > 1
        if is_own:
            _finish(path, format_)
        standing = _standing(path, [first], format_) if is_own else []
        if keep is not None:
            keep(standing or [os.fspath(path)])
        aside.put()
        _remove(set(standing) - {os.fspath(path)})


def _remove(names: Iterable[str]) -> None:
    """Remove files of the snapshot before, of which no other is read any more."""
    for name in sorted(names):
        try:
            os.unlink(name)
        except FileNotFoundError:
            pass
        except OSError as error:
            atomic_files.warn(f"{name} is of the snapshot before, and there: {error.strerror}")


def _finish(path: PathLike, format_: Format) -> None:
    """Give the files of a snapshot their names of which some, after a crash, are aside."""
    first = parts.part_name(path, 0)
    with contextlib.suppress(SnapshotError, OSError), parts.opened(first) as source:
        assert format_.layout is not None
        for k, head in enumerate(format_.layout.heads(source)):
            if head.name != (name := parts.part_name(path, k)):
                os.replace(head.name, name)


def _standing(path: PathLike, names: Sequence[str], format_: Format) -> list[str]:
    """Files that are there: that of the name itself, numbered ones, and more of their snapshot."""
    found = [name for name in (os.fspath(path), *names) if os.path.isfile(name)]
    for number in itertools.count(len(names)):
        head = _head(name := parts.part_name(path, number), format_)
        if head is None or head.files <= number:  # of no snapshot in more files
            break
        found.append(name)
    return found


def _head(name: str, format_: Format) -> parts.Head | None:
    """Of a file of a snapshot that may be in several, if it is one."""
    if format_.layout is None or not os.path.isfile(name):
        return None
    with contextlib.suppress(SnapshotError, OSError), parts.opened(name) as source:
        return format_.layout.head(source)
    return None
