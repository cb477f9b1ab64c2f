"""Times the octree on the CPU: build and walk of Plummer spheres, configurations alternating, and
errors; medians and best of the rounds. `shapes`: the error that was asked for, on systems of all
shapes, and the time; `dominant`: errors with a body of any mass in the centre of a Plummer sphere;
`search`: nearest particles, beside scipy's cKDTree, with one thread each.

    python benchmarks/tree_cpu.py [cpu] [shapes] [dominant] [search] [--name NAME] [--rounds 5]
                                  [--largest N]
"""

import ctypes
import functools
import statistics
import tempfile
import time
from typing import NamedTuple

import numpy as np
import tree_models as models
from harness import HERE, compile_c, relative, run
from tree_models import CANCELLED, EPS, relative_errors, summary

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
DOMINANT, SHARES = 10**5, (0.0, *(10.0**k for k in range(-3, 7)))  # N; mass over that of the others
DOMINANT_SETTINGS = (
    {"accuracy": 1e-3, "method": "fmm"}, {"accuracy": 1e-3, "method": "bh"},
    {"theta": 0.5, "method": "fmm"}, {"theta": 0.5, "method": "bh"},
)  # fmt: skip


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
            right = by_terms(model)
            for accuracy in ACCURACIES:
                yield {"model": make.__name__, "n": n} | as_asked(model, right, accuracy=accuracy)


def dominant(options):
    n = min(DOMINANT, options.largest)
    for share in SHARES:
        model = Model(*models.central(np, n, 81, share))
        right = by_terms(model)
        for setting in DOMINANT_SETTINGS:
            yield {"n": n, "share": share} | as_asked(model, right, **setting)


@functools.cache
def tree_exact():
    """tree_exact.c, compiled."""
    with tempfile.TemporaryDirectory() as folder:
        flags = "-O3 -march=native -fno-math-errno -fopenmp -shared -fPIC".split()
        return ctypes.CDLL(compile_c(HERE / "tree_exact.c", folder, *flags)).tree_exact


def by_terms(model):
    """Rows drawn at random, their accelerations, and the sums of the lengths of the terms."""
    n = len(model.mass)
    rows = np.random.default_rng(n).choice(n, min(n, SHAPES_TARGETS), False).astype(np.int32)
    found, x = np.empty((len(rows), 4)), np.ascontiguousarray(model.pos.T)
    x_at, mass_at, rows_at, found_at = (
        ctypes.c_void_p(array.ctypes.data) for array in (x, model.mass, rows, found)
    )
    tree_exact()(n, x_at, mass_at, len(rows), rows_at, ctypes.c_double(EPS * EPS), found_at)
    return rows, found


def as_asked(model, right, **setting):
    rows, exactly = right
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        with Tree(pos=model.pos, mass=model.mass, backend="cpu") as tree:
            acc = tree.forces(eps=EPS, **setting).acc
        seconds.append(time.perf_counter() - began)
    errors = summary(relative_errors(np, acc[rows], exactly, CANCELLED))
    return setting | {"error": errors, "ms": 1e3 * statistics.median(seconds)}


def search(options):
    from scipy import __version__ as version
    from scipy.spatial import cKDTree

    def ours(pos, k):
        with Tree(1.0, pos, threads=1) as tree:
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
    parts = {"cpu": speeds, "shapes": shapes, "dominant": dominant, "search": search}
    run(__doc__, parts, prefix="tree-", about=lambda options: {"eps": EPS},
        rounds={"type": int, "default": 5},
        largest={"type": int, "default": 1_000_000, "help": "N"})  # fmt: skip
