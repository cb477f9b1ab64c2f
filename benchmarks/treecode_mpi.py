"""Times legacy_examples/treecode.c on ranks of MPI, a GPU each.

    python benchmarks/treecode_mpi.py [--name NAME] [--n 1048576] [--ranks 1 2 4] [--most 512 2048]
                                      [--t-end 1] [--backend cuda]

Builds treecode_mpi by the Makefile of the examples with the library that Python finds, and runs it
over a Plummer sphere with eps = 1/256 and dt = 1/64, for each number of bodies that may share a
list. A rank has as many threads on one rank as on the most of them. Seconds are those of the steps
on rank 0, without the energies; whether all numbers of ranks print the same is kept beside.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import ROOT, run
from programs import times_of

import grape6py

EPS, STEP = 1 / 256, 1 / 64
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


def build(folder):
    program = Path(folder, "treecode_mpi")
    place = Path(grape6py.__file__).parent.parent
    subprocess.run(
        ["make", "-s", "-C", ROOT / "legacy_examples", program, f"BUILD={folder}",
         f"GRAPE6=env PYTHONPATH='{place}' '{sys.executable}' -m grape6py"],
        check=True,
    )  # fmt: skip
    return program


def take(program, file, ranks, most, threads, options):
    """A figure, and the program's output without its times."""
    command = ["mpirun", "-n", ranks, program, file, "-e", EPS, "-d", STEP, "-t", options.t_end,
               "-g", most, "-w"]  # fmt: skip
    env = os.environ | MPI | {"GRAPE6_BACKEND": options.backend, "GRAPE6_THREADS": str(threads)}
    began = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env)
    if done.returncode:
        sys.exit(f"{ranks} ranks: {done.stderr.strip()}")
    line, times = times_of(done.stdout)
    steps, lists, length = re.search(
        r"steps (\d+)\s+lists (\d+)\s+mean length (\S+)", done.stdout
    ).groups()
    figure = {"n": options.n, "ranks": ranks, "most": most, "threads": threads,
              "steps": int(steps), "lists": int(lists), "mean_length": float(length),
              **times,
              "error": float(done.stdout.split()[-1]),
              "wall": time.perf_counter() - began}  # fmt: skip
    return figure, done.stdout.replace(line, "")


def measured(options):
    threads = max(1, len(os.sched_getaffinity(0)) // max(options.ranks))
    with tempfile.TemporaryDirectory() as folder:
        program, file = build(folder), Path(folder, "plummer.dat")
        grape6py.write_snapshot(file, *grape6py.plummer(options.n, seed=1))
        for most in options.most:
            one = text = None
            for ranks in options.ranks:
                figure, printed = take(program, file, ranks, most, threads, options)
                one, text = one or figure, text or printed
                figure["speedup"] = one["seconds"] / figure["seconds"]
                figure["equal"] = printed == text
                yield figure


if __name__ == "__main__":
    run(__doc__, {"treecode-mpi": measured}, gpu=lambda part, options: options.backend == "cuda",
        about=lambda options: {"backend": options.backend, "eps": EPS, "step": STEP,
                               "t_end": options.t_end, "theta": 0.5},
        n={"type": int, "default": 1 << 20},
        ranks={"type": int, "nargs": "+", "default": [1, 2, 4], "help": "first: to compare with"},
        most={"type": int, "nargs": "+", "default": [512, 2048], "help": "of a group"},
        t_end={"type": float, "default": 1.0},
        backend={"choices": ["cpu", "cuda"], "default": "cuda"})  # fmt: skip
