"""A snapshot that the ranks of MPI read together: each gets its share of the bodies.

Of Gadget's formats, in one file or in several, and of runs each rank reads its own rows. Other
files are read by the first rank, which deals the bodies out.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from grape6py import formats, snapshot
from grape6py.errors import ArgumentError
from grape6py.formats import Snapshot, parts
from grape6py.formats.bodies import joined_ids, shares
from grape6py.formats.source import Given
from grape6py.ranks.ranks import Ranks

if TYPE_CHECKING:
    from grape6py._arrays.kinds import Untyped

_CALL = "read_snapshot()"


def read(
    ranks: Ranks,
    source: Untyped,
    which: int | None,
    format: str | None,
    lacking: tuple[Untyped, Untyped],
    only: str | None = None,
) -> Snapshot:
    """As :func:`~grape6py.read_snapshot`, on all ranks."""
    heads: list[parts.Head] = []
    name = file_name = ""
    found = None
    with ranks.step(_CALL) as said:
        if hasattr(source, "read"):
            raise ArgumentError("with comm= a snapshot is read from a path, and not an open file")
        path = os.fspath(source)
        given = Given.checked(*lacking)
        said.alike(
            "the arguments of read_snapshot()",
            *(path, str(which), str(format), str(given), str(only)),
        )
        if ranks.rank == 0:
            with snapshot.opened(path, given) as file:
                format_ = snapshot.format_of(file, format, is_path=True)
                if format_ is None:
                    file_name = file.name
                elif format_.layout and only is None and os.path.isfile(file.name):
                    file.check_which(-1 if which is None else which, 1)
                    name, heads = format_.name, format_.layout.heads(file)
                else:
                    found = snapshot.whole(file, format_, which, only)
    name, heads, file_name = ranks.comm.bcast((name, heads, file_name))
    if file_name:
        with ranks.step(_CALL):
            return snapshot.of_a_run(file_name, -1 if which is None else which, ranks)
    return _rows(ranks, name, heads, given) if heads else _dealt(ranks, found)


def _rows(ranks: Ranks, name: str, heads: list[parts.Head], given: Given) -> Snapshot:
    """What this rank reads of files."""
    with ranks.step(_CALL):
        layout = formats.FORMATS[name].layout
        assert layout is not None
        ends = shares(parts.total(heads), ranks.size)
        found = layout.between(heads, ends[ranks.rank], ends[ranks.rank + 1], given=given)
    if found.ids is not None:  # on all ranks alike
        extremes = np.array([found.ids.min(initial=0), found.ids.max(initial=0)], found.ids.dtype)
        with ranks.step(_CALL):
            of_all = joined_ids(ranks.comm.allgather(extremes), heads[0].wrong)
        found.ids = found.ids.astype(of_all.dtype, copy=False)
    found.format = name
    return found


def _dealt(ranks: Ranks, found: Snapshot | None) -> Snapshot:
    """What this rank gets of a snapshot that the first one has."""
    about = None
    if found is not None:
        kind = None if found.ids is None else found.ids.dtype
        about = len(found.mass), found.time, found.units, kind, found.format, found.is_of_a_run
    n, time, units, kind, name, is_of_a_run = ranks.comm.bcast(about)
    if found is None:
        ids = None if kind is None else np.zeros(0, kind)
        found = Snapshot(np.zeros(0), np.zeros((0, 3)), np.zeros((0, 3)), ids=ids)
    ends = shares(n, ranks.size) if ranks.rank == 0 else [0] * (ranks.size + 1)
    cuts = np.array(ends, np.int64)
    columns = [ranks.exchanged(array, cuts)[0] for array in found]
    own_ids = None if found.ids is None else ranks.exchanged(found.ids, cuts)[0]
    dealt = Snapshot(*columns, time=time, ids=own_ids, units=units)
    dealt.format, dealt.is_of_a_run = name, is_of_a_run
    return dealt
