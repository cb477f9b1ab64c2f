"""Times legacy_examples/mpi_hermite.f90 on ranks of MPI, as table 5.1 of the thesis (kirin 2007).

    python benchmarks/mpi_hermite.py [--name NAME] [--n 8192 16384 ...] [--ranks 1 2] [--times 3]
                                     [--backend cuda] [--program PATH]

Builds the program by the Makefile of the examples with the library that Python finds, and runs it
over a Plummer sphere to t = 0.25 with eps = 1/256 and eta = 0.02. Seconds are those of the steps on
rank 0, "total" those of the program with its start and the energies on the host; medians. On a
machine without gfortran --program names one that was linked elsewhere, against the library's name:
make -C legacy_examples LDFLAGS=-static-libgfortran.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import ROOT, run
from treecode_mpi import MPI

import grape6py

EPS, ETA, END = 1 / 256, 0.02, 0.25
THESIS = {  # N: total on one machine and two, integration on one and two
    8192: (5.11, 6.15, 4.19, 5.22), 16384: (16.9, 17.3, 13.0, 13.4),
    32768: (62.9, 57.4, 45.7, 40.2), 65536: (206, 169, 134, 97.8),
    131072: (750, 583, 461, 292), 262144: (2875, 2145, 1711, 981),
    524288: (11207, 8178, 6569, 3535),
}  # fmt: skip


def build(folder):
    program = Path(folder, "mpi_hermite")
    place = Path(grape6py.__file__).parent.parent
    subprocess.run(
        ["make", "-s", "-C", ROOT / "legacy_examples", program, f"BUILD={folder}",
         f"GRAPE6=env PYTHONPATH='{place}' '{sys.executable}' -m grape6py"],
        check=True,
    )  # fmt: skip
    return program


def take(program, file, ranks, options):
    """Seconds of the steps and of all, and the bits of the state."""
    command = ["mpirun", "-n", ranks, program, file, "-e", EPS, "-a", ETA, "-t", END, "-w"]
    library = str(Path(grape6py.paths.LIBRARY).parent)
    env = os.environ | MPI | {"GRAPE6_BACKEND": options.backend, "LD_LIBRARY_PATH": library}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env)
    if done.returncode:
        sys.exit(f"{ranks} ranks: {done.stderr.strip()}")
    seconds, total = re.search(
        r"seconds of the steps\s+(\S+)\s+of all\s+(\S+)", done.stdout
    ).groups()
    return float(seconds), float(total), re.search(r"state (\w+)", done.stdout)[1]


def measured(options):
    with tempfile.TemporaryDirectory() as folder:
        program, file = options.program or build(folder), Path(folder, "plummer.dat")
        for n in options.n:
            grape6py.write_snapshot(file, *grape6py.plummer(n, seed=1))
            bits = {}
            for ranks in options.ranks:
                taken = [take(program, file, ranks, options) for _ in range(options.times)]
                steps, totals, states = zip(*taken, strict=True)
                seconds, total = statistics.median(steps), statistics.median(totals)
                bits[ranks] = set(states)
                figure = {"n": n, "ranks": ranks, "seconds": seconds, "total": total}
                figure["equal"] = bits[ranks] == bits[options.ranks[0]]
                if n in THESIS and ranks <= 2:
                    figure["thesis"] = THESIS[n][ranks + 1]
                    figure["thesis_total"] = THESIS[n][ranks - 1]
                yield figure


if __name__ == "__main__":
    run(__doc__, {"mpi-hermite": measured}, gpu=lambda part, options: options.backend == "cuda",
        about=lambda options: {"backend": options.backend, "eps": EPS, "eta": ETA, "t_end": END},
        n={"type": int, "nargs": "+", "default": list(THESIS)},
        ranks={"type": int, "nargs": "+", "default": [1, 2], "help": "first: to compare with"},
        times={"type": int, "default": 3},
        program={"help": "one that is linked already"},
        backend={"choices": ["cpu", "cuda"], "default": "cuda"})  # fmt: skip
