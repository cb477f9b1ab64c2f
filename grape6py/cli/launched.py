"""``grape6 run`` under mpirun or srun: one run of all ranks, of which the first one speaks."""

import os
import socket
import time

from grape6py._arrays.kinds import Untyped
from grape6py.errors import ArgumentError, MissingPackageError
from grape6py.integrators.base import Integration
from grape6py.ranks import ranks
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.share import Share

# Number of processes and which of them this is: of Open MPI; MVAPICH; MPICH, Intel MPI and Slurm by
# PMI; srun. The first one that is set is the innermost. A batch script, which is started once, has
# SLURM_NTASKS and SLURM_PROCID, too; and of the shells of srun --pty one stays.
_LAUNCHERS = {
    "OMPI_COMM_WORLD_SIZE": "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_SIZE": "MV2_COMM_WORLD_RANK",
    "PMI_SIZE": "PMI_RANK",
    "SLURM_STEP_NUM_TASKS": "SLURM_PROCID",
}
_OF_SLURM = ("PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_HEAD_START = 3  # s, for the message of the first: a launcher may end all when one has failed


def join() -> ranks.Ranks:
    """The ranks that a launcher of MPI programs has started; ONE for a process of its own.

    From now on only the first one is heard.

    Raises
    ------
    ArgumentError
        On the first of several processes that are no ranks of one MPI program for mpi4py.
    SystemExit
        On the others: status 1, and no message.
    """
    several = _several()
    if several is None:
        return ONE
    name, rank = several
    try:
        comm = ranks.mpi().COMM_WORLD
        why = "" if comm.Get_size() > 1 else "the MPI library of mpi4py is not the launcher's"
    except MissingPackageError:
        why = "to be one run of all of them it needs mpi4py: pip install grape6py[mpi]"
    if why and rank > 0:
        time.sleep(_HEAD_START)
        raise SystemExit(1)
    if why:
        raise ArgumentError(
            f"grape6 run was started several times at once ({name}={os.environ[name]}), and all "
            f"would write the same files; {why}. Or start it without mpirun or srun; or, if each "
            f"one has its own files, by: env -u {name} grape6 run"
        )
    if comm.Get_rank() > 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):  # of the library, too
            os.dup2(nowhere, stream)
        os.close(nowhere)
    return ranks.Ranks(comm)


def info(cluster: Integration) -> list[str]:
    """A line for each rank: where it is, and what it sums."""
    forces: Untyped = cluster._forces
    blocks: Untyped = cluster._blocks
    if cluster.SHARES_BODIES:  # the bodies that it has; else those whose forces it sums
        first, end = blocks.first, blocks.first + len(blocks.mass)
    else:
        first, end = Share(cluster.n, cluster._ranks.size).of(cluster._ranks.rank)
    mine = f"{socket.gethostname()}, {cluster.backend}, threads {forces.threads}"
    mine += f", bodies {first} to {end}"
    return [f"rank {rank}: {what}" for rank, what in enumerate(cluster._ranks.from_each(mine))]


def _several() -> tuple[str, int] | None:
    """What says that this is one of several processes, and which one; None if it is alone."""
    numbers = {name: int(text) for name, text in os.environ.items() if text.isdecimal()}
    for size, rank in _LAUNCHERS.items():
        if size in _OF_SLURM and "SLURM_PTY_PORT" in os.environ:
            continue
        if rank in numbers:
            return (size, numbers[rank]) if numbers.get(size, 1) > 1 else None
    if numbers.get("PMIX_RANK", 0) > 0:  # PMIx alone: the first one cannot know
        return "PMIX_RANK", numbers["PMIX_RANK"] - 1
    return None
