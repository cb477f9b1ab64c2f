"""Whether a launcher of MPI programs has started this command several times at once."""

import os
import time

from grape6py.errors import ArgumentError

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


def refuse_several(command: str) -> None:
    """Go on only if `command` was started once.

    Raises
    ------
    ArgumentError
        On the first of several processes.
    SystemExit
        On the others: status 1, and no message.
    """
    several = _several()
    if several is None:
        return
    name, rank = several
    if rank > 0:
        time.sleep(_HEAD_START)
        raise SystemExit(1)
    raise ArgumentError(
        f"{command} was started several times at once ({name}={os.environ[name]}), and all would "
        "write the same files: start it without mpirun or srun, it uses all cores by itself; or, "
        f"if each one has its own files, by: env -u {name} {command}"
    )


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
