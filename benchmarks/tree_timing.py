"""Times, stages, memory and errors of the octree on a GPU; for tree_gpu.py.

A run is the whole evaluation: sort, cells, moments, walk, sums; arrays are on the GPU before and
after it. Times are medians by the clock, the GPU having come to rest before and after each.
"""

import functools
import statistics
import time
from collections import defaultdict

import numpy as np
from harness import HERE

from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda import launcher
from grape6py.cuda.tree.build import numbers
from grape6py.cuda.tree.octree import Octree
from grape6py.errors import Grape6Error

EPS = 1e-4  # softening, in units of the models' size
CANCELLED = 0.05  # of the lengths of the terms: errors asked for are shares of no less
TARGETS = 1 << 15  # whose errors are found: the largest depends on how many there are
PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.9, 99.99, 100)

# Stages, and words of which the names of their kernels have one; the first that has decides.
STAGES = {
    "far": "expand shift", "near": "near close", "moments": "moments barnes_hut",
    "keys": "extent begin keys", "sort": "sort gather", "cells": "count levels cells",
    "walk": "traverse groups ranks",
}  # fmt: skip


class Gpu(launcher.TreeLauncher):
    """A GPU with a clock and a direct sum in double precision."""

    backend = "cuda"

    def __init__(self):
        super().__init__()
        self._events = None

    def launch(self, name, blocks, threads, job):
        if self._events is None:
            super().launch(name, blocks, threads, job)
        else:
            self._timed(name, super().launch, name, blocks, threads, job)

    def sort(self, keys):
        if self._events is None:
            return super().sort(keys)
        return self._timed("sort", super().sort, keys)

    def _timed(self, name, do, *arguments):
        begin, end = self.xp.cuda.Event(), self.xp.cuda.Event()
        begin.record()
        result = do(*arguments)
        end.record()
        self._events.append((name, begin, end))
        return result

    def wait(self):
        self.xp.cuda.get_current_stream().synchronize()

    def stages(self, run):
        """Milliseconds of a run's stages, without what lies between its kernels."""
        self._events, found = [], defaultdict(float)
        run()
        self.wait()
        for name, begin, end in self._events:
            found[stage_of(name)] += self.xp.cuda.get_elapsed_time(begin, end)
        self._events = None
        return dict(found)

    def bytes_taken(self, run):
        """Memory that a run takes from the GPU beside what it gives back."""
        pool = self.xp.get_default_memory_pool()
        pool.free_all_blocks()
        before = pool.total_bytes()
        result = run()
        given = sum(array.nbytes for array in result[:-1] if array is not None)
        taken = pool.total_bytes() - before - given
        del result
        pool.free_all_blocks()
        return taken

    @functools.cached_property
    def _exact(self):
        return self.xp.RawKernel((HERE / "tree_exact.cu").read_text(), "tree_exact")

    def exact(self, pos, mass, rows):
        """Acceleration of some particles, and the sums of the lengths of their terms: (k, 4)."""
        xp, n = self.xp, len(mass)
        found = xp.zeros((len(rows), 4))
        blocks = -(-len(rows) // 256)
        shares = max(1, min(-(-n // 256), 4096 // blocks))
        self._exact((blocks, shares), (256,), (pos, mass, np.int32(n), rows, np.int32(len(rows)),
                                               np.float64(EPS * EPS), found))  # fmt: skip
        return found


def stage_of(kernel):
    return next((stage for stage, words in STAGES.items()
                 if any(word in kernel for word in words.split())), "other")  # fmt: skip


class Model:
    """A model on a GPU, with exact forces on some of its particles, drawn at random."""

    def __init__(self, gpu, make, n, seed, targets=TARGETS):
        self.gpu, self.name, self.seed = gpu, make.__name__, seed
        pos, self.mass = make(gpu.xp, n, seed)
        self.pos = gpu.xp.ascontiguousarray(pos)
        self.n = len(self.mass)
        rows = np.random.default_rng((seed or 0, 4)).choice(self.n, min(targets, self.n), False)
        self.rows = gpu.xp.asarray(rows.astype(np.int32))
        self.exact = gpu.exact(self.pos, self.mass, self.rows)

    def relative_errors(self, acc, least=0.0):
        """Errors of the targets' accelerations, ascending: see :func:`relative_errors`."""
        return relative_errors(self.gpu.xp, acc[self.rows], self.exact, least)

    def run(self, theta, order, bound=0.0, last_acc=None):
        """One whole evaluation: what Octree.forces gives."""
        grown = Octree(self.gpu, self.pos, self.mass)
        return grown.forces(Setting(theta, order, EPS * EPS, bound), Targets(last_acc=last_acc))


def relative_errors(xp, acc, exact, least):
    """Ascending, as shares of the length of the acceleration, or of `least` times the sum of the
    lengths of its terms if that is more."""
    norm = xp.linalg.norm
    scale = xp.maximum(norm(exact[:, :3], axis=1), least * exact[:, 3])
    return xp.sort(norm(acc - exact[:, :3], axis=1) / scale)


def median_ms(gpu, run, seconds=0.3, most=15):
    """Median of as many times as there is time for, from 3 to `most`."""

    def take():
        gpu.wait()
        began = time.perf_counter()
        run()
        gpu.wait()
        return 1e3 * (time.perf_counter() - began)

    times = [take()]
    while len(times) < 3 or (len(times) < most and sum(times) < 1e3 * seconds):
        times.append(take())
    return statistics.median(times)


def summary(errors):
    """Median, 99 %, 99.9 %, largest and mean of errors in ascending order."""
    return {"median": _percentile(errors, 50), "p99": _percentile(errors, 99),
            "p999": _percentile(errors, 99.9), "largest": float(errors[-1]),
            "mean": float(errors.mean())}  # fmt: skip


def _percentile(ascending, percent):
    return float(ascending[round((len(ascending) - 1) * percent / 100)])


def measure(model, setting, *, stages=False, memory=False, distribution=False, seconds=0.3):
    """A setting (theta, order; bound) on a model: time, errors, terms a particle, and more."""
    figure = {"model": model.name, "n": model.n, "seed": model.seed, "theta": setting[0],
              "order": setting[1], "bound": (*setting, 0.0)[2]}  # fmt: skip
    try:
        last_acc = None
        if figure["bound"]:
            last_acc = model.gpu.xp.linalg.norm(model.run(*setting[:2])[0], axis=1)
        run = functools.partial(model.run, *setting, last_acc=last_acc)
        acc, *_, counts = run()  # compiles the kernels, and lets lists grow
        errors = model.relative_errors(acc)
        del acc, _
        figure["error"] = summary(errors)
        if distribution:
            figure["percentiles"] = [_percentile(errors, p) for p in PERCENTILES]
        figure |= {"pairs": counts.pairs / model.n, "points": counts.points / model.n,
                   "locals": counts.locals * numbers.TREE_GROUP / model.n}  # fmt: skip
        figure["ms"] = median_ms(model.gpu, run, seconds)
        if stages:
            figure["stages"] = model.gpu.stages(run)
        if memory:
            figure["bytes"] = model.gpu.bytes_taken(run) / model.n
    except (Grape6Error, MemoryError) as error:  # a figure less, and the part goes on
        figure["failed"] = str(error)
    return figure
