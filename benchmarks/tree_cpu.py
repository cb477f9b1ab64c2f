"""Times the octree on the CPU: build and walk of Plummer spheres, configurations alternating, and
errors; medians and best of the rounds. `shapes`: the error that was asked for, on systems of all
shapes, and the time; `search`: nearest particles, beside scipy's cKDTree, with one thread each.

    python benchmarks/tree_cpu.py [cpu] [shapes] [search] [--name NAME] [--rounds 5] [--largest N]
"""

import ctypes
import statistics
import time
from typing import NamedTuple

import numpy as np
import tree_models as models
from harness import relative, run
from tree_timing import EPS, summary

from grape6py import Grape6, Tree, paths, plummer

# Method, theta, order: for median errors near 1e-3 and 0.9e-4, and in fmm for the 99th percentiles
# that bh has at these.
SETTINGS = (
    ("fmm", 0.85, 5), ("fmm", 0.68, 5), ("bh", 0.9, 0), ("fmm", 0.5, 5), ("fmm", 0.42, 5),
    ("bh", 0.47, 0),
)  # fmt: skip
SIZES = ((100_000, (1,)), (1_000_000, (1, 2)))  # N, threads
TARGETS = 4000
SHAPES_SIZES, SHAPES_TARGETS = (10**4, 10**5, 10**6), 4096
ACCURACIES, NEAREST = (1e-2, 1e-3, 1e-4, 1e-5), (1, 8, 32)


class Model(NamedTuple):
    pos: np.ndarray
    mass: np.ndarray


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


def speeds(options):
    """Figures of all configurations; rounds take every one in turn."""
    sizes = [(n, threads) for n, threads in SIZES if n <= options.largest]
    models = {n: plummer(n, seed=7) for n, _ in sizes}
    keys = [(n, t, s) for n, counts in sizes for s in SETTINGS for t in counts]
    times, errors = {key: [] for key in keys}, {}
    right = {}
    for n, model in models.items():
        rows = np.random.default_rng(n).choice(n, TARGETS, False).astype(np.int32)
        right[n] = rows, exact(model, rows)
    for _ in range(options.rounds):
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
        yield {
            "n": n, "threads": threads, "method": method, "theta": theta, "order": order,
            "seconds": seconds, "least": min(taken)[0], "cpu_seconds": busy, "build": build,
            "million_per_s": n / seconds / 1e6, "fma_rate": rate,
            "error": errors[n, (method, theta, order)],
        }  # fmt: skip


def shapes(options):
    for n in (n for n in SHAPES_SIZES if n <= options.largest):
        for make in models.SHAPES:
            model = Model(*make(np, n, 81))
            rows = np.random.default_rng(n).choice(n, SHAPES_TARGETS, False).astype(np.int32)
            right = exact(model, rows)
            for accuracy in ACCURACIES:
                yield {"model": make.__name__, "n": n} | as_asked(model, accuracy, rows, right)


def as_asked(model, accuracy, rows, right):
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        with Tree(model.pos, model.mass, backend="cpu") as tree:
            acc = tree.forces(eps=EPS, accuracy=accuracy).acc
        seconds.append(time.perf_counter() - began)
    errors = summary(np.sort(relative(acc[rows], right)))
    return {"accuracy": accuracy, "error": errors, "ms": 1e3 * statistics.median(seconds)}


def search(options):
    from scipy import __version__ as version
    from scipy.spatial import cKDTree

    def ours(pos, k):
        with Tree(pos, 1.0, threads=1) as tree:
            return tree.nearest(k)

    for n in (n for n in SHAPES_SIZES[1:] if n <= options.largest):
        for make in models.uniform, models.clustered:
            pos = make(np, n, 91)[0]
            for k in NEAREST:
                times = [[], []]
                for _ in range(3):
                    for kept, find in zip(times, (ours, lambda x, k: cKDTree(x).query(x, k + 1)),
                                          strict=True):  # fmt: skip
                        began = time.process_time()
                        find(pos, k)
                        kept.append(time.process_time() - began)
                seconds, peer = map(statistics.median, times)
                yield {"model": make.__name__, "n": n, "k": k, "seconds": seconds,
                       "scipy_seconds": peer, "scipy": version}  # fmt: skip


if __name__ == "__main__":
    parts = {"cpu": speeds, "shapes": shapes, "search": search}
    run(__doc__, parts, prefix="tree-", about=lambda options: {"eps": EPS},
        rounds={"type": int, "default": 5},
        largest={"type": int, "default": 1_000_000, "help": "N"})  # fmt: skip
