"""Bodies of a file that ``grape6 run`` begins with; each rank of MPI may read a share of them."""

from grape6py import snapshot
from grape6py._arrays.kinds import Int8s, PathLike, Untyped
from grape6py.errors import ArgumentError
from grape6py.files.runs import reader
from grape6py.ranks.ranks import Ranks


def read(path: PathLike, owners: Ranks, **given: Untyped) -> tuple[snapshot.Snapshot, Int8s | None]:
    """Bodies of a file, or of the last output of a run, and what they belong to."""
    found = snapshot.read_snapshot(path, comm=owners.comm, **given)
    if found.expansion is not None:
        raise ArgumentError(
            f"{path} is of a cosmological run, and space does not expand here: grape6 convert "
            f"{path} still.hdf5 --units 'Msun kpc km/s' makes bodies that can be run, in "
            "physical units and without the expansion"
        )
    component = None
    if found.is_of_a_run:
        with owners.agreement("the components"):
            component = reader.read_labelled(path, owners=owners)[1]
    return found, component
