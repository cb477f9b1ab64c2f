"""Times the octree on a GPU, and measures its errors.

    python benchmarks/tree_gpu.py [PART]... [--name NAME] [--largest N] [--backend cuda|cpu]

A run is the whole evaluation: sort, cells, moments, walk, sums; arrays are on the GPU before and
after it. Times are medians by the clock, the GPU having come to rest before and after each. Each
part writes results/tree-PART-NAME.json, in well under two minutes on an H200:

cdf, stages   distributions of errors, stage times against N: figures 4.6 to 4.9 of Bonsai's paper
flat          very many particles without thickness
plot, equal   time against error: by theta; and of several shapes, by bounds, too
active        targets are a hundredth of the groups, drawn at random or the densest
shapes        the error that was asked for, on systems of all shapes
softening     of any size, one for all; splines, and that of each body
published-    order: GASPHiA, a lattice row by row and shuffled, and the sum without the sort of the
              targets, in these orders and in the tree's own. operations: Hamada and others (2009),
              terms of Barnes and Hut's walk, in groups as it is, and for one particle a walk, the
              mean of some drawn at random; direct sums. square: Chiu (2020), a step in a square,
              the only part that runs on a CPU (--backend cpu)
"""

import copy
import functools
import statistics
import time
import warnings
from collections import defaultdict

import numpy as np
import tree_models as models
from harness import HERE, run
from published import CODES
from tree_models import CANCELLED, EPS, percentile, relative_errors, summary

from grape6py import Grape6, Tree
from grape6py._lib.tree import bound_of
from grape6py._lib.tree_setting import WIDEST_BY_BOUND, Setting, Targets
from grape6py.cuda import launcher
from grape6py.cuda.tree.build import numbers
from grape6py.cuda.tree.octree import Octree
from grape6py.cuda.tree.search import Search
from grape6py.errors import Grape6Error

GROUP, TARGETS = numbers.TREE_GROUP, 1 << 15  # of a group; of which errors are found
PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.9, 99.99, 100)
M = 1 << 20
# Stages, and words of which the names of their kernels have one; the first that has decides.
STAGES = {
    "far": "expand shift", "near": "near close", "moments": "moments barnes_hut",
    "keys": "extent begin keys", "sort": "sort gather", "cells": "count levels cells",
    "walk": "traverse groups ranks",
}  # fmt: skip

# Settings are (theta, order; bound of a term's error as a share of the last acceleration).
ROWS = list(zip(CODES["ryoanji and Bonsai"]["rows"], (
    (0.53, 6), (0.74, 6), (0.58, 6), (0.76, 5), (0.585, 6), (0.765, 5)), strict=True))  # fmt: skip
ANGLES = 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8
BOUNDS = {5: (0.1, 3e-2, 1e-2, 3e-3, 1e-3, 2e-4, 5e-5), 0: (1.0, 0.1, 3e-2, 1e-2, 3e-3, 1e-3, 2e-4)}
BY_BOUND = [setting for order, bounds in BOUNDS.items() for setting in (
    *((theta, order) for theta in (1.0, 0.9, 0.75, 0.6, 0.5, 0.42)),
    *((WIDEST_BY_BOUND, order, bound) for bound in bounds))]  # fmt: skip
LATTICE, NEAREST, ACTIVE = 10**6, (1, 8, 32), ((0.75, 5), 0.01)
SOFTENINGS = 0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0
SINGLES, HAMADA_EPS, DIRECT, STEP = 512, 0.025, 65536, 1e-3


class Gpu(launcher.TreeLauncher):
    """A GPU with a clock and a direct sum in double precision."""

    _events = None

    def launch(self, name, blocks, threads, job):
        self._timed(name, super().launch, name, blocks, threads, job)

    def sort(self, keys):
        return self._timed("sort", super().sort, keys)

    def _timed(self, name, do, *arguments):
        if self._events is None:
            return do(*arguments)
        begin, end = self.xp.cuda.Event(), self.xp.cuda.Event()
        begin.record()
        result = do(*arguments)
        end.record()
        self._events.append((name, begin, end))
        return result

    def wait(self):
        self.xp.cuda.get_current_stream().synchronize()

    def free(self):
        self.xp.get_default_memory_pool().free_all_blocks()

    def stages(self, run):
        """Milliseconds of a run's stages, without what lies between its kernels."""
        self._events, found = [], defaultdict(float)
        run()
        self.wait()
        for kernel, begin, end in self._events:
            stage = next((stage for stage, words in STAGES.items()
                          if any(word in kernel for word in words.split())), "other")  # fmt: skip
            found[stage] += self.xp.cuda.get_elapsed_time(begin, end)
        self._events = None
        return dict(found)

    def bytes_taken(self, run):
        """Memory that a run takes from the GPU beside what it gives back."""
        pool = self.xp.get_default_memory_pool()
        self.free()
        before = pool.total_bytes()
        result = run()
        given = sum(array.nbytes for array in result[:-1] if array is not None)
        taken = pool.total_bytes() - before - given
        del result
        self.free()
        return taken

    def median_ms(self, run, seconds=0.3, most=15):
        """Median of as many times as there is time for, from 3 to `most`."""
        times = []
        while len(times) < 3 or (len(times) < most and sum(times) < 1e3 * seconds):
            self.wait()
            began = time.perf_counter()
            run()
            self.wait()
            times.append(1e3 * (time.perf_counter() - began))
        return statistics.median(times)

    @functools.cached_property
    def _exact(self):
        return self.xp.RawKernel((HERE / "tree_exact.cu").read_text(), "tree_exact")

    def exact(self, pos, mass, rows, eps):
        """Acceleration of some particles, and the sums of the lengths of their terms: (k, 4)."""
        n, k = len(mass), len(rows)
        found, blocks = self.xp.zeros((k, 4)), -(-k // 256)
        shares = max(1, min(-(-n // 256), 4096 // blocks))
        self._exact((blocks, shares), (256,), (pos, mass, np.int32(n), rows, np.int32(k),
                                               np.float64(eps * eps), found))  # fmt: skip
        return found


one_gpu = functools.cache(Gpu)  # which keeps the kernels that it has compiled


class Model:
    """A model on a GPU, with exact forces on some of its particles, drawn at random."""

    def __init__(self, make, n, seed, targets=TARGETS, eps=EPS):
        self.gpu, self.name, self.seed, self.eps = one_gpu(), make.__name__, seed, eps
        self.gpu.free()
        pos, self.mass = make(self.gpu.xp, n, seed)
        self.pos, self.n = self.gpu.xp.ascontiguousarray(pos), len(self.mass)
        rows = np.random.default_rng((seed or 0, 4)).choice(self.n, min(targets, self.n), False)
        self.rows = self.gpu.xp.asarray(rows.astype(np.int32))
        self.exact = self.gpu.exact(self.pos, self.mass, self.rows, eps)

    def relative_errors(self, acc, least=0.0):
        return relative_errors(self.gpu.xp, acc[self.rows], self.exact, least)

    def run(self, theta, order, bound=0.0, last_acc=None):
        """One whole evaluation: what Octree.forces gives."""
        grown = Octree(self.gpu, self.pos, self.mass)
        return grown.forces(Setting(theta, order, self.eps**2, bound), Targets(last_acc=last_acc))

    def terms(self, counts):
        """A particle's."""
        return {"pairs": counts.pairs / self.n, "points": counts.points / self.n,
                "locals": counts.locals * GROUP / self.n}  # fmt: skip


def measure(model, setting, *, stages=False, memory=False, distribution=False, seconds=0.3):
    """A setting on a model: time, errors, terms a particle, and more."""
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
        figure |= {"error": summary(errors)} | model.terms(counts)
        if distribution:
            figure["percentiles"] = [percentile(errors, p) for p in PERCENTILES]
        figure["ms"] = model.gpu.median_ms(run, seconds)
        if stages:
            figure["stages"] = model.gpu.stages(run)
        if memory:
            figure["bytes"] = model.gpu.bytes_taken(run) / model.n
    except (Grape6Error, MemoryError) as error:  # a figure less, and the part goes on
        figure["failed"] = str(error)
    return figure


def sweep(makes, sizes, settings, **how):
    """A part: all models (a function, a seed) of all sizes with all settings."""

    def part(options):
        for n in (n for n in sizes if n <= options.largest):
            for make, seed in makes:
                model = Model(make, n, seed)
                yield from (measure(model, setting, **how) for setting in settings)

    return part


def direct_sum(model, pairs_per_ms=None):
    """The fastest direct sum, mode single without jerk; estimated if pairs a millisecond are given,
    since it takes a time that goes with N^2."""
    figure = {"what": "direct", "model": model.name, "n": model.n}
    if pairs_per_ms:
        return figure | {"ms": model.n**2 / pairs_per_ms, "estimated": True}
    with Grape6(backend="cuda", precision="single", jerk=False) as board:
        board.set_particles(model.mass, model.pos)
        acc = board.forces(eps=EPS).acc
        ms = model.gpu.median_ms(lambda: board.forces(eps=EPS), 0)
    error = summary(model.relative_errors(acc))
    return figure | {"ms": ms, "estimated": False, "error": error}


# ---- parts -------------------------------------------------------------------------


def table(options):
    """Time and memory against N; then every row on two Plummer spheres and a clustered model, whose
    longer lists other trees keep."""
    scaling = sweep([(models.plummer, 14)], (M, 4 * M, 16 * M, 64 * M), [(0.8, 5)], stages=True,
                    memory=True, seconds=0.6)  # fmt: skip
    for figure in scaling(options):
        yield {"what": "scaling"} | figure
    for make, seed in ((models.plummer, 11), (models.plummer, 12), (models.clustered, 13)):
        for n in sorted({row["n"] for row, _ in ROWS if row["n"] <= options.largest}):
            model = Model(make, n, seed)
            for row, setting in ROWS:
                if row["n"] == n:
                    yield {"what": "row", "goal": row} | measure(model, setting)


def lattice(options):
    n = min(LATTICE, options.largest)
    both = [Model(models.lattice, n, seed, targets=100_000) for seed in (None, 41)]
    yield direct_sum(both[0])
    for order in (5, 0):
        for theta in (0.1, *ANGLES):
            for model in both:
                yield {"what": "tree"} | measure(model, (theta, order))


def plot(options):
    rate = None
    for n in (n for n in (M, 4 * M) if n <= options.largest):
        model = Model(models.plummer, n, 61)
        yield (figure := direct_sum(model, rate))
        rate = rate or n * n / figure["ms"]
        for order in (4, 5, 6, 0):
            for theta in (*ANGLES, 0.9):
                yield {"what": "tree"} | measure(model, (theta, order), seconds=0.1)


def shapes(options):
    """The time of all, and of a step of a run, which knows the last accelerations."""
    for n in (n for n in (10**4, 10**5, M, 4 * M, 16 * M) if n <= options.largest):
        for make in models.SHAPES:
            model = Model(make, n, 81)
            for accuracy in (1e-2, 1e-3, 1e-4, 1e-5):
                yield as_asked(model, accuracy)


def as_asked(model, accuracy, order=5):
    gpu, bound = model.gpu, bound_of(order, accuracy)
    first = functools.partial(model.run, WIDEST_BY_BOUND, order, bound)
    acc, *_, counts = first()
    errors = model.relative_errors(acc, CANCELLED)
    again = functools.partial(first, last_acc=gpu.xp.linalg.norm(acc, axis=1))
    del acc, _
    return {
        "model": model.name, "n": model.n, "accuracy": accuracy, "order": order,
        "bound": bound, "error": summary(errors), **model.terms(counts),
        "ms": gpu.median_ms(first, 0.1), "known_ms": gpu.median_ms(again, 0.1),
    }  # fmt: skip


def search(options):
    """Nearest particles and neighbours of all particles, the tree's making included."""
    gpu = one_gpu()
    for n in (n for n in (10**4, 10**5, 10**6, 10**7) if n <= options.largest):
        for make in models.uniform, models.clustered:
            gpu.free()
            bodies = make(gpu.xp, n, 91)
            tree = functools.partial(Octree, gpu, *bodies)
            figure = {"model": make.__name__, "n": n, "build_ms": gpu.median_ms(tree)}
            for k in NEAREST:
                ms = gpu.median_ms(lambda k=k, tree=tree: Search(tree()).nearest(k))
                figure[f"nearest_{k}_ms"] = ms
            radius2 = Search(tree()).nearest(NEAREST[-1])[1][:, -1].copy()
            figure["neighbours"] = float(Search(tree()).within(radius2)[0][-1]) / n
            ms = gpu.median_ms(lambda tree=tree, r2=radius2: Search(tree()).within(r2))
            yield figure | {"neighbours_ms": ms}


def softening(options):
    gpu, n = one_gpu(), min(M, options.largest)
    for make in models.plummer, models.clustered:
        for eps in SOFTENINGS:
            model = Model(make, n, 83, eps=eps)
            for setting in ((0.75, 5), (0.75, 0)):
                yield {"what": "one", "eps": eps} | measure(model, setting)
    pos, mass = models.plummer(gpu.xp, n, 83)

    def grown(**how):
        return Tree(mass, pos, **how).forces(theta=0.75)

    rows, two = gpu.xp.arange(0, n, n // 1000, dtype=np.int32), 0.01 + 0.02 * (gpu.xp.arange(n) % 2)
    for law in ("plummer", "spline"):
        for name, eps in ("0.01", 0 * two + 0.01), ("0.01 and 0.03", two), ("0.1", 0 * two + 0.1):
            with Grape6(softening=law, backend="cuda") as board:
                board.set_particles(mass, pos, eps=eps)
                exact = gpu.xp.pad(board.forces(pos[rows], index=rows).acc, ((0, 0), (0, 1)))
            run = functools.partial(grown, eps=eps, softening=law)
            errors = relative_errors(gpu.xp, run().acc[rows], exact, 0.0)
            yield {"what": "own", "law": law, "eps": name, "n": n, "ms": gpu.median_ms(run, 0.1),
                   "error": summary(errors)}  # fmt: skip


def close(options):
    """Bodies in close pairs, at the same places, far from the origin, and from all others."""
    warnings.simplefilter("ignore")  # of pairs at one place
    gpu = one_gpu()
    pos, mass = models.plummer(gpu.xp, min(10**6, options.largest), 95)
    some, half = len(mass) // 10, len(mass) // 2
    paired, doubled, far, few_far, crowd = (pos.copy() for _ in range(5))
    paired[:some] = pos[some : 2 * some] + 1e-7 * gpu.xp.random.standard_normal((some, 3))
    doubled[:half] = pos[half : 2 * half]
    far[: some // 10] *= 1e6
    few_far[: some // 1000] *= 1e6
    crowd[: some // 5] = pos[0]
    sets = {"plain": pos, "one in ten in a pair 1e-7 apart": paired,
            "half at the places of others": doubled, "20000 at one place": crowd,
            "10000 a million times as far away": far, "100 a million times as far away": few_far,
            "a million diameters from the origin": pos + 1e6 * float(gpu.xp.ptp(pos))}  # fmt: skip
    for eps in (1e-3, 0.0):
        for name, at in sets.items():
            ms = gpu.median_ms(lambda at=at, e=eps: Tree(mass, at).forces(eps=e, theta=0.75))
            yield {"n": len(mass), "model": name, "eps": eps, "ms": ms}


def active(options):
    gpu, setting = one_gpu(), Setting(*ACTIVE[0], EPS * EPS)
    for n in (n for n in (M, 4 * M, 16 * M, 64 * M) if n <= options.largest):
        model = Model(models.plummer, n, 71)
        tree = Octree(gpu, model.pos, model.mass)
        groups = tree.order[: n // GROUP * GROUP].reshape(-1, GROUP)
        count = int(ACTIVE[1] * len(groups))
        spread = gpu.xp.linalg.norm(gpu.xp.ptp(model.pos[groups], axis=1), axis=1)
        chosen = {
            "random": np.random.default_rng(model.seed).choice(len(groups), count, False),
            "densest": gpu.take(gpu.xp.argsort(spread)[:count]),
        }
        figure = {
            "n": n, "theta": setting.theta, "order": setting.order, "active": count * GROUP,
            "build": gpu.median_ms(lambda m=model: Octree(gpu, m.pos, m.mass)),
            "walk": gpu.median_ms(lambda t=tree: t.forces(setting)),
        }  # fmt: skip
        for name, which in chosen.items():
            rows = gpu.xp.sort(groups[gpu.put(which)].ravel()).astype(np.int32)
            targets = Targets(model.pos[rows], number=rows)
            ms = gpu.median_ms(lambda tree=tree, targets=targets: tree.forces(setting, targets))
            figure[name] = {"ms": ms, "share_of_walk": ms / figure["walk"]}
        yield figure
        del model, tree, groups  # before larger ones


# ---- as published ------------------------------------------------------------------


def order(options):
    gpu = one_gpu()
    unsorted = copy.copy(gpu)  # takes keys as if they were in order already
    unsorted.sort = lambda keys: gpu.xp.arange(len(keys), dtype=np.int64)
    for seed in (None, 41):
        model = Model(models.lattice, min(LATTICE, options.largest), seed)
        for method in (5, 0):
            yield {"what": "stages"} | measure(model, (0.5, method), stages=True)
            tree, setting = Octree(gpu, model.pos, model.mass), Setting(0.5, method, EPS * EPS)
            orders = {"random" if seed else "regular": gpu.xp.arange(model.n, dtype=np.int32)}
            if not seed:
                orders["tree-sorted"] = tree.order.astype(np.int32)
            for name, rows in orders.items():
                targets = Targets(gpu.xp.ascontiguousarray(model.pos[rows]), number=rows)
                figure = {"what": "targets", "targets": name, "n": model.n, "order": method}
                for sort, tree.gpu in (("sorted", gpu), ("as_given", unsorted)):
                    forces = functools.partial(tree.forces, setting, targets)
                    figure[sort] = gpu.median_ms(forces)
                yield figure


def operations(options):
    gpu, setting = one_gpu(), Setting(0.75, 0, HAMADA_EPS**2)
    for n in (n for n in (4 * M, 64 * M) if n <= options.largest):
        gpu.free()
        pos, mass = models.plummer(gpu.xp, n, 31)
        tree = Octree(gpu, pos, mass)
        *_, counts = tree.forces(setting)
        ms = gpu.median_ms(lambda p=pos, m=mass: Octree(gpu, p, m).forces(setting))
        singles = []  # terms of walks for one particle
        for row in np.random.default_rng(n).choice(n, (SINGLES, 1), False):
            rows = gpu.xp.asarray(row, np.int32)
            one = Targets(gpu.xp.ascontiguousarray(pos[rows]), number=rows)
            *_, counts_of_one = tree.forces(setting, one)
            singles.append(counts_of_one.pairs + counts_of_one.points)
        yield {"n": n, "theta": 0.75, "ms": ms, "terms": (counts.pairs + counts.points) / n,
               "single_terms": statistics.mean(singles),
               "single_error": statistics.stdev(singles) / SINGLES**0.5}  # fmt: skip
        del tree, pos, mass
    pos, mass = models.plummer(gpu.xp, DIRECT, 31)
    for precision in ("single", "grape"):
        with Grape6(backend="cuda", precision=precision, jerk=False) as board:
            board.set_particles(mass, pos)
            ms = gpu.median_ms(lambda b=board: b.forces(pos, eps=HAMADA_EPS))
        yield {"n": DIRECT, "precision": precision, "ms": ms}


def square(options):
    gpu = one_gpu() if options.backend == "cuda" else None
    for n in (n for n in (10**5, 10**6, 10**7, 10**8) if n <= options.largest):
        pos, mass = models.sheet(gpu.xp if gpu else np, n, 51)
        for method in ("fmm", "bh"):
            steps = [step(pos, mass, method, options.backend, gpu)
                     for _ in range(6 if n < 10**8 else 3)]  # fmt: skip
            middle = {k: statistics.median(one[k] for one in steps[1:]) for k in steps[0]}
            yield {"n": n, "method": method, "theta": 0.5} | middle
        del pos, mass
        if gpu:
            gpu.free()


def step(pos, mass, method, backend, gpu):
    """Milliseconds of a step from rest; it is counted from the second on."""
    times = []

    def mark():
        if gpu:
            gpu.wait()
        times.append(1e3 * time.perf_counter())

    vel = 0 * pos
    mark()
    with Tree(mass, pos, backend=backend) as tree:
        mark()
        forces = tree.forces(eps=EPS, method=method, theta=0.5)
        mark()
    mark()
    vel += STEP * forces.acc
    pos = pos + STEP * vel
    mark()
    float((mass * (0.5 * (vel * vel).sum(axis=1) + 0.5 * forces.pot)).sum())
    mark()
    tree, force, _, update, energy = np.diff(times).tolist()  # not: to close the tree
    return {"tree": tree, "force": force, "update": update, "energy": energy,
            "total": tree + force + update}  # fmt: skip


PARTS = {
    "table": table,
    "cdf": sweep([(models.plummer, 21)], (1 << 15, 1 << 17, M),
                 [(theta, order) for order in (5, 0) for theta in ANGLES],
                 distribution=True, seconds=0.1),
    "stages": sweep([(models.plummer, 31)], [1 << k for k in range(14, 27, 2)],
                    [(0.8, 5), (0.58, 6), (0.75, 0)], stages=True, memory=True),
    "lattice": lattice,
    "flat": sweep([(models.sheet, 51), (models.disk, 52)], [10**8],
                  [(0.35, 6), (0.38, 6), (0.45, 6), (0.6, 6)], stages=True, memory=True),
    "plot": plot,
    "active": active,
    "shapes": shapes,
    "equal": sweep([(make, 81) for make in (models.plummer, models.clustered, models.fractal,
                                            models.thin_disk)], [4 * M], BY_BOUND, seconds=0.1),
    "search": search,
    "softening": softening,
    "close": close,
    "published-order": order,
    "published-operations": operations,
    "published-square": square,
}  # fmt: skip

if __name__ == "__main__":
    run(__doc__, PARTS, prefix="tree-", gpu=lambda part, options: options.backend == "cuda",
        about=lambda options: {"eps": EPS, "percentiles": PERCENTILES},
        largest={"type": int, "default": 10**9, "help": "N"},
        backend={"choices": ["cuda", "cpu"], "default": "cuda"})  # fmt: skip
