"""Times legacy_examples/mpi_hermite.f90 on ranks of MPI, a GPU each: table 5.1 of the thesis.

    python benchmarks/mpi_hermite.py [--name NAME] [--n 8192 16384 ...] [--ranks 1 2] [--times 3]
                                     [--backend cuda] [--program PATH]

Builds the program by the Makefile of the examples with the library that Python finds, and runs it
over Plummer spheres to t = 0.25 with eps = 1/256 and eta = 0.02, in calls of 16384 pipes as kirin
had. `seconds` are those of the steps on rank 0, `wall` those of the whole run: mpirun, reading the
file, opening the GPU, the energies, and up to N = 65536 those that the host sums. On a machine
without gfortran --program names one that was linked elsewhere, against the library's name:
make -C legacy_examples LDFLAGS=-static-libgfortran.
"""

import re

from harness import run
from mpi_programs import ARGUMENTS, by_ranks, columns

EPS, ETA, END, PIPES = 1 / 256, 0.02, 0.25, 16384


def read(text):
    steps, blocks = re.search(r"steps\s+(\d+)\s+blocks\s+(\d+)", text).groups()
    figure = {"steps": int(steps), "blocks": int(blocks),
              "seconds": float(re.search(r"seconds of the steps\s+(\S+)", text)[1]),
              "error": float(re.search(r"error by pot\s+(\S+)", text)[1])}  # fmt: skip
    return figure, re.search(r"state (\w+)", text)[1]


def measured(options):
    thesis = columns("5.1", thesis_wall="total, {}", thesis="integration, {}")
    arguments = "-e", EPS, "-a", ETA, "-t", END, "-w"
    return by_ranks("mpi_hermite", arguments, read, options, thesis, GRAPE6_NPIPES=PIPES)


if __name__ == "__main__":
    run(__doc__, {"mpi-hermite": measured}, gpu=lambda part, options: options.backend == "cuda",
        about=lambda options: {"backend": options.backend, "eps": EPS, "eta": ETA, "t_end": END,
                               "pipes": PIPES},
        n={"type": int, "nargs": "+", "default": list(columns("5.1", wall="total, {}"))},
        **ARGUMENTS)  # fmt: skip
