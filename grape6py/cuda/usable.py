"""Which CUDA devices a process may use: what GRAPE6_DEVICES says."""

from __future__ import annotations

import os

from grape6py import errors

SHARE = 1 << 27  # particles of each of several devices that have a tree: below, one less is as fast
# The variables of launchers of MPI: a rank uses one device (csrc/session/choice.c).
LOCAL_RANKS = (
    "OMPI_COMM_WORLD_LOCAL_RANK MPI_LOCALRANKID SLURM_LOCALID PMI_LOCAL_RANK PALS_LOCAL_RANKID"
).split()


def numbers_of(words: str, count: int) -> list[int]:
    """Numbers of the devices that GRAPE6_DEVICES names, of so many that there are."""
    try:
        all_of_them = words in ("", "all")
        numbers = list(range(count)) if all_of_them else [int(word) for word in words.split(",")]
    except ValueError:
        numbers = [-1]
    if not count or not all(0 <= number < count for number in numbers):
        raise errors.from_code(
            "NO_DEVICE",
            f"GRAPE6_DEVICES={words}: the devices here are 0 to {count - 1}"
            if count
            else "CUDA sees no device",
        )
    return numbers


def enough_for(n: int) -> int:
    """How many devices a tree of n particles is shared out to, at most."""
    return max(n // SHARE, 1)


def beside(first: int, count: int) -> list[int]:
    """Numbers of the devices that one sum may be shared out to, `first` of them first, of so many
    that there are: several only if GRAPE6_DEVICES names them, and this is no rank of MPI."""
    named = os.environ.get("GRAPE6_DEVICES", "")
    if (named != "all" and "," not in named) or any(name in os.environ for name in LOCAL_RANKS):
        return [first]
    usable = numbers_of(named, count)
    others = [device for device in usable if device != first]
    return [first, *others] if first in usable else [first]
