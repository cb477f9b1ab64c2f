"""Times legacy_examples/treecode.c on ranks of MPI, a GPU each: table 5.2 of the thesis.

    python benchmarks/treecode_mpi.py [--name NAME] [--n 256 512 ...] [--ranks 1 2] [--times 3]
                                      [--most 2048] [--backend cuda] [--program PATH]

Builds treecode_mpi by the Makefile of the examples with the library that Python finds, and runs it
over Plummer spheres for one time unit with the defaults of Makino's program, which is public for
one machine only: 64 steps, eps = 0.025, theta = 0.75. --most bodies share a list. `seconds` are
those of the steps on rank 0, without the energies, `wall` those of the whole run: mpirun, reading
the file, opening the GPU, the energies. --program names one that was linked elsewhere.
"""

import re

from harness import run
from mpi_programs import ARGUMENTS, by_ranks, columns
from programs import times_of
from thesis import TREE_EPS, TREE_STEPS, TREE_THETA

END = 1.0


def measured(options):
    def read(text):
        line, times = times_of(text)
        lists, length = re.search(r"lists (\d+)\s+mean length (\S+)", text).groups()
        figure = {"most": options.most, "lists": int(lists), "mean_length": float(length), **times,
                  "error": float(text.split()[-1])}  # fmt: skip
        return figure, text.replace(line, "")

    thesis = columns("5.2", thesis_wall="{} GPU")
    arguments = (
        "-e",
        TREE_EPS,
        "-o",
        TREE_THETA,
        "-d",
        1 / TREE_STEPS,
        "-t",
        END,
        "-g",
        options.most,
        "-w",
    )
    return by_ranks("treecode_mpi", arguments, read, options, thesis)


if __name__ == "__main__":
    run(__doc__, {"treecode-mpi": measured}, gpu=lambda part, options: options.backend == "cuda",
        about=lambda options: {"backend": options.backend, "eps": TREE_EPS, "step": 1 / TREE_STEPS,
                               "t_end": END, "theta": TREE_THETA},
        n={"type": int, "nargs": "+", "default": list(columns("5.2", wall="{} GPU"))},
        most={"type": int, "default": 2048, "help": "bodies that share a list"},
        **ARGUMENTS)  # fmt: skip
