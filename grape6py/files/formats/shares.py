"""A snapshot that the ranks of MPI read together: each gets its share of the bodies.

Of Gadget's formats, in one file or in several, and of runs each rank reads its own rows. Other
files are read by the first rank, which deals the bodies out.
"""

import numpy as np

from grape6py.files import formats
from grape6py.files.formats import Snapshot, parts
from grape6py.files.formats.bodies import joined_ids, shares
from grape6py.files.formats.source import Given
from grape6py.ranks.ranks import Ranks


def rows_of(ranks: Ranks, name: str, heads: list[parts.Head], given: Given) -> Snapshot:
    """What this rank reads of files of a format."""
    with ranks.agreement("own rows"):
        layout = formats.FORMATS[name].layout
        assert layout is not None
        ends = shares(parts.total(heads), ranks.size)
        found = layout.between(heads, ends[ranks.rank], ends[ranks.rank + 1], given=given)
    if found.ids is not None:  # on all ranks alike
        extremes = np.array([found.ids.min(initial=0), found.ids.max(initial=0)], found.ids.dtype)
        with ranks.agreement("ids"):
            of_all = joined_ids(ranks.from_each(extremes), heads[0].wrong)
        found.ids = found.ids.astype(of_all.dtype, copy=False)
    found.format = name
    return found


def dealt(ranks: Ranks, found: Snapshot | None) -> Snapshot:
    """What this rank gets of a snapshot that the first one has."""
    about = None
    if found is not None:
        kind = None if found.ids is None else found.ids.dtype
        about = len(found.mass), found.time, found.units, kind, found.format, found.is_of_a_run
    n, time, units, kind, name, is_of_a_run = ranks.broadcast(about)
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
