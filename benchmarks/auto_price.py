"""What mode auto costs at the default accuracy: seconds of `Hermite`, over those of mode grape.

    python benchmarks/auto_price.py [--name NAME] [--backend cpu] [--takes 5]

Plummer spheres, eps = 4/N, one thread of a CPU or a GPU, after the short steps of the start. The
modes take turns; seconds are medians, of the process on a CPU and of the clock on a GPU.
"""

import statistics
import time

from harness import run

from grape6py import Hermite, plummer
from grape6py._lib.library import ffi, lib

SPANS = {64: (0.5, 2), 256: (0.25, 1), 1024: (1 / 8, 1 / 2), 4096: (1 / 16, 3 / 16),
         16384: (1 / 16, 3 / 32)}  # fmt: skip
MODES = ("grape", "auto", "double")


def taken(mode, n, options):
    """Seconds of a span, and of its force calls' rows the share in double."""
    start, end = SPANS[n]
    clock = time.process_time if options.backend == "cpu" else time.perf_counter
    cluster = Hermite(*plummer(n, seed=3), eps=4 / n, precision=mode, backend=options.backend,
                      threads=1)  # fmt: skip
    counts = [ffi.new("long long[3]") for _ in range(2)]
    cluster.evolve(start)
    lib.g6x_counts(cluster._forces._board.cluster, counts[0])
    began = clock()
    cluster.evolve(end)
    seconds = clock() - began
    lib.g6x_counts(cluster._forces._board.cluster, counts[1])
    rows, fine = (counts[1][k] - counts[0][k] for k in (1, 2))
    return seconds, fine / rows


def price(options):
    for n in SPANS:
        takes = {mode: [] for mode in MODES}
        for _ in range(options.takes):
            for mode in MODES:
                takes[mode].append(taken(mode, n, options))
        figure = {mode: statistics.median(s for s, _ in takes[mode]) for mode in MODES}
        yield {"n": n, "share": takes["auto"][0][1]} | figure


if __name__ == "__main__":
    run(__doc__, {"auto-price": price}, gpu=lambda part, options: options.backend != "cpu",
        about=lambda options: {"backend": options.backend}, backend={"default": "cpu"},
        takes={"type": int, "default": 5})  # fmt: skip
