"""Times the octree on the CPU, and measures its errors.

    python benchmarks/tree_cpu.py [cpu] [shapes] [dominant] [search] [--name NAME] [--rounds 5]
                                  [--largest N]

cpu        build and walk of Plummer spheres, configurations alternating; medians of the rounds, by
           CPU time of one thread, by the clock of several
shapes     the error that was asked for, on systems of all shapes, and the time
dominant   errors with a body of any mass in the centre of a Plummer sphere
search     nearest particles, beside scipy's cKDTree, with one thread each
"""

import ctypes
import functools
import statistics
import tempfile
import time

import numpy as np
import tree_models as models
from harness import HERE, compile_c, run
from tree_models import CANCELLED, EPS, relative_errors, summary

from grape6py import Tree, paths, plummer

# Method, theta, order: for median errors near 1e-3 and 0.9e-4, and in fmm for the 99th percentiles
# that bh has at these.
SETTINGS = (
    ("fmm", 0.85, 5), ("fmm", 0.68, 5), ("bh", 0.9, 0), ("fmm", 0.5, 5), ("fmm", 0.42, 5),
    ("bh", 0.47, 0),
)  # fmt: skip
SIZES = ((100_000, (1,)), (1_000_000, (1, 2)))  # N, threads
SHAPES_SIZES, TARGETS = (10**4, 10**5, 10**6), 4096
SHARES = (0.0, *(10.0**k for k in range(-3, 7)))  # mass over that of the others
DOMINANT = [{name: value, "method": method} for name, value in (("accuracy", 1e-3), ("theta", 0.5))
            for method in ("fmm", "bh")]  # fmt: skip


@functools.cache
def tree_exact():
    """tree_exact.c, compiled."""
    with tempfile.TemporaryDirectory() as folder:
        flags = "-O3 -march=native -fno-math-errno -fopenmp -shared -fPIC".split()
        return ctypes.CDLL(compile_c(HERE / "tree_exact.c", folder, *flags)).tree_exact


def by_terms(pos, mass):
    """Rows drawn at random, their accelerations, and the sums of the lengths of the terms."""
    n = len(mass)
    rows = np.random.default_rng(n).choice(n, min(n, TARGETS), False).astype(np.int32)
    found, x = np.empty((len(rows), 4)), np.ascontiguousarray(pos.T)
    x_at, m_at, rows_at, found_at = (ctypes.c_void_p(a.ctypes.data) for a in (x, mass, rows, found))
    tree_exact()(n, x_at, m_at, len(rows), rows_at, ctypes.c_double(EPS * EPS), found_at)
    return rows, found


def take(pos, mass, setting, threads):
    """One evaluation: accelerations; seconds of all, of the build, of all by CPU time."""
    method, theta, order = setting
    clock = time.process_time if threads == 1 else time.perf_counter
    began, busy = clock(), time.process_time()
    with Tree(mass, pos, threads=threads) as tree:
        built = clock() - began
        acc = tree.forces(eps=EPS, method=method, theta=theta, order=order or 5).acc
        return acc, (clock() - began, built, time.process_time() - busy)


def fma_rate():
    """512-bit multiply-adds a second that a core issues, in G: of 256 bits two count as one."""
    rate = ctypes.CDLL(str(paths.LIBRARY)).g6x_fma_rate
    rate.restype = ctypes.c_double
    return next(rate(isa, 0) / width / 1e9 for isa, width in ((3, 1), (2, 2), (1, 4))
                if rate(isa, 0) > 0)  # fmt: skip


def speeds(options):
    sizes = [(n, threads) for n, threads in SIZES if n <= options.largest]
    spheres = {n: (plummer(n, seed=7).pos, np.full(n, 1 / n)) for n, _ in sizes}
    right = {n: by_terms(*sphere) for n, sphere in spheres.items()}
    times = {(n, t, s): [] for n, counts in sizes for s in SETTINGS for t in counts}
    errors = {}
    for _ in range(options.rounds):
        rate = fma_rate()
        for (n, threads, setting), taken in times.items():
            acc, seconds = take(*spheres[n], setting, threads)
            taken.append((*seconds, rate))
            rows, exact = right[n]
            errors[n, setting] = summary(relative_errors(np, acc[rows], exact, 0.0))
    for (n, threads, setting), taken in times.items():
        seconds, build, busy, rate = map(statistics.median, zip(*taken, strict=True))
        yield {
            "n": n, "threads": threads,
            "method": setting[0], "theta": setting[1], "order": setting[2],
            "seconds": seconds, "least": min(taken)[0], "cpu_seconds": busy, "build": build,
            "million_per_s": n / seconds / 1e6, "fma_rate": rate, "error": errors[n, setting],
        }  # fmt: skip


def shapes(options):
    for n in (n for n in SHAPES_SIZES if n <= options.largest):
        for make in models.SHAPES:
            asked = ({"accuracy": accuracy} for accuracy in (1e-2, 1e-3, 1e-4, 1e-5))
            for figure in as_asked(*make(np, n, 81), asked):
                yield {"model": make.__name__, "n": n} | figure


def dominant(options):
    n = min(10**5, options.largest)
    for share in SHARES:
        for figure in as_asked(*models.central(np, n, 81, share), DOMINANT):
            yield {"n": n, "share": share} | figure


def as_asked(pos, mass, settings):
    rows, exact = by_terms(pos, mass)
    for setting in settings:
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            with Tree(mass, pos, backend="cpu") as tree:
                acc = tree.forces(eps=EPS, **setting).acc
            seconds.append(time.perf_counter() - began)
        errors = summary(relative_errors(np, acc[rows], exact, CANCELLED))
        yield setting | {"error": errors, "ms": 1e3 * statistics.median(seconds)}


def search(options):
    from scipy import __version__ as version
    from scipy.spatial import cKDTree

    def ours(pos, k):
        with Tree(1.0, pos, threads=1) as tree:
            return tree.nearest(k)

    def theirs(pos, k):
        return cKDTree(pos).query(pos, k + 1)

    for n in (n for n in SHAPES_SIZES[1:] if n <= options.largest):
        for make in models.uniform, models.clustered:
            pos = make(np, n, 91)[0]
            for k in (1, 8, 32):
                times = {ours: [], theirs: []}
                for find in (*times,) * 3:
                    began = time.process_time()
                    find(pos, k)
                    times[find].append(time.process_time() - began)
                seconds, peer = map(statistics.median, times.values())
                yield {"model": make.__name__, "n": n, "k": k, "seconds": seconds,
                       "scipy_seconds": peer, "scipy": version}  # fmt: skip


if __name__ == "__main__":
    run(__doc__, {"cpu": speeds, "shapes": shapes, "dominant": dominant, "search": search},
        prefix="tree-", about=lambda options: {"eps": EPS}, rounds={"type": int, "default": 5},
        largest={"type": int, "default": 1_000_000, "help": "N"})  # fmt: skip
