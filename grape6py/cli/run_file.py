"""Bodies of a file that ``grape6 run`` begins with; each rank of MPI may read a share of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grape6py import archive, snapshot
from grape6py.errors import ArgumentError
from grape6py.ranks.ranks import together

if TYPE_CHECKING:
    from grape6py._arrays.kinds import AnyArray, Int8s, PathLike, Untyped
    from grape6py.ranks.ranks import Ranks

_LARGEST_ID = 2**31 - 1


def read(
    path: PathLike, share: Ranks | None, **given: Untyped
) -> tuple[snapshot.Snapshot, Int8s | None]:
    """Bodies of a file, or of the last output of a run, and what all of them belong to."""
    found = snapshot.read_snapshot(path, comm=share and share.comm, **given)
    if found.expansion is not None:
        raise ArgumentError(
            f"{path} is of a cosmological run, and space does not expand here: grape6 convert "
            f"{path} still.hdf5 --units 'Msun kpc km/s' makes bodies that can be run, in "
            "physical units and without the expansion"
        )
    component = None
    if found.is_of_a_run:
        with together(share, "the components"):
            component = archive.read_labelled(path, share=share)[1]
        if component is not None and share is not None:
            component = np.concatenate(share.gathered(component))
        found.ids = None  # numbered anew, as the components are
    return found, component


def set_ids(cluster: archive.Cluster, ids: AnyArray | None, share: Ranks | None) -> None:
    """Give bodies the ids of their file; numbers that do not fit, or come twice, are no ids."""
    if ids is None:
        return
    with together(share, "the ids") as said:
        is_wrong = len(ids) > 0 and not 0 <= ids.min() <= ids.max() <= _LARGEST_ID
        said.most[0] = is_wrong
    if said.most[0]:
        return
    ids = ids.astype(np.int64)
    all_ = ids
    if share is not None:  # those that are equal meet on a rank
        rank = ids % share.size
        order = np.argsort(rank, kind="stable")
        cuts = np.searchsorted(rank[order], np.arange(share.size + 1))
        all_, _ = share.exchanged(ids[order], cuts)
    with together(share, "the ids") as said:
        said.most[0] = len(np.unique(all_)) < len(all_)
    if not said.most[0]:
        cluster._set_ids(ids)
