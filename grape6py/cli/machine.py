"""What machine this is, and which instruction sets the library can use on it."""

import os
import platform
from contextlib import suppress

import numpy as np

from grape6py import __version__
from grape6py._arrays.kinds import Attributes
from grape6py._lib.declarations import ISAS, PRECISIONS
from grape6py._lib.library import lib, text


def describe() -> Attributes:
    """Machine and versions as a dictionary for JSON."""
    return {
        "version": __version__,
        "library": text(lib.g6x_version),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
    }


def isas() -> dict[str, bool]:
    """Whether this machine and this build have an instruction set, by the names of all."""
    sets = {name: number for name, number in ISAS.items() if name != "best"}
    return {name: lib.g6x_fma_rate(isa, PRECISIONS["grape"]) > 0 for name, isa in sets.items()}


def _cpu_model() -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
