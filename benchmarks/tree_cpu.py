"""Times the octree on the CPU, and keeps the figures as JSON.

    python benchmarks/tree_cpu.py [--part speed|kirin|all] [--name NAME] [--rounds 5]

Part speed: build and walk of Plummer spheres, configurations alternating, medians and best of the
rounds; results/tree-cpu-NAME.json. Part kirin: one time unit by leapfrog, for small N;
results/tree-cpu-kirin-NAME.json.
"""

import argparse
import ctypes
import json
import platform
import statistics
import time
from pathlib import Path

import numpy as np
import tree_kirin
from accuracy import relative
from card_tree import EPS, summary
from cpu import HERE, commit, machine

from grape6py import Grape6, Tree, paths, plummer

# Method, theta, order: for median errors near 1e-3 and 0.9e-4, and in fmm for the 99th percentiles
# that bh has at these.
SETTINGS = (
    ("fmm", 0.85, 5), ("fmm", 0.68, 5), ("bh", 0.9, 0), ("fmm", 0.5, 5), ("fmm", 0.42, 5),
    ("bh", 0.47, 0),
)  # fmt: skip
SIZES = ((100_000, (1,)), (1_000_000, (1, 2)))  # N, threads
TARGETS = 4000
KIRIN_LARGEST = 16384


def exact(model, rows):
    with Grape6(backend="cpu", precision="double", jerk=False) as board:
        board.set_particles(model.mass, model.pos)
        return board.forces(model.pos[rows], index=rows, eps=EPS).acc


def take(model, setting, threads):
    """One evaluation: forces; seconds of all, of the build, of all by CPU time. One thread's are by
    CPU time, several threads' by the clock."""
    method, theta, order = setting
    clock = time.process_time if threads == 1 else time.perf_counter
    began, busy = clock(), time.process_time()
    with Tree(model.pos, model.mass, threads=threads) as tree:
        built = clock() - began
        found = tree.forces(eps=EPS, method=method, theta=theta, order=order or 5)
        return found, (clock() - began, built, time.process_time() - busy)


def fma_rate():
    """512-bit multiply-adds a second that a core issues, in G: of 256 bits two count as one."""
    rate = ctypes.CDLL(str(paths.LIBRARY)).g6x_fma_rate
    rate.restype = ctypes.c_double
    return next(rate(isa, 0) / width / 1e9 for isa, width in ((3, 1), (2, 2), (1, 4))
                if rate(isa, 0) > 0)  # fmt: skip


def speeds(rounds):
    """Figures of all configurations; rounds take every one in turn."""
    models = {n: plummer(n, seed=7) for n, _ in SIZES}
    keys = [(n, t, s) for n, counts in SIZES for s in SETTINGS for t in counts]
    times, errors = {key: [] for key in keys}, {}
    right = {}
    for n, model in models.items():
        rows = np.random.default_rng(n).choice(n, TARGETS, False).astype(np.int32)
        right[n] = rows, exact(model, rows)
    for _ in range(rounds):
        rate = fma_rate()
        for key in keys:
            n, threads, setting = key
            found, seconds = take(models[n], setting, threads)
            times[key].append((*seconds, rate))
            rows, acc = right[n]
            errors[n, setting] = summary(np.sort(relative(found.acc[rows], acc)))
        print(f"FMA rate {rate:.2f} G/s", flush=True)
    for (n, threads, (method, theta, order)), taken in times.items():
        seconds, build, busy, rate = map(statistics.median, zip(*taken, strict=True))
        figure = {
            "n": n, "threads": threads, "method": method, "theta": theta, "order": order,
            "seconds": seconds, "least": min(taken)[0], "cpu_seconds": busy, "build": build,
            "million_per_s": n / seconds / 1e6, "fma_rate": rate,
            "error": errors[n, (method, theta, order)],
        }  # fmt: skip
        print(json.dumps(figure), flush=True)
        yield figure


def kirin(largest):
    for n in (n for n in tree_kirin.SIZES if n <= largest):
        figure = tree_kirin.on_cpu(n, threads=0)
        print(json.dumps(figure), flush=True)
        yield figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="all", choices=("speed", "kirin", "all"))
    parser.add_argument("--name", default=platform.node())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--largest", type=int, default=KIRIN_LARGEST, help="N of part kirin")
    parser.add_argument("--commit", default=commit())
    parser.add_argument("--out", default=str(HERE / "results"))
    options = parser.parse_args()
    parts = {"speed": ("cpu", lambda: speeds(options.rounds)),
             "kirin": ("cpu-kirin", lambda: kirin(options.largest))}  # fmt: skip
    for part, (name, figures) in parts.items():
        if options.part in (part, "all"):
            result = {"machine": machine(), "commit": options.commit, "eps": EPS}
            result["figures"] = list(figures())
            path = Path(options.out, f"tree-{name}-{options.name}.json")
            path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
