"""Times the octree on a GPU, and measures its errors.

    python benchmarks/tree_gpu.py [table] [cdf] [stages] [lattice] [flat] [plot] [active]
                                  [shapes] [equal] [search] [close] [--name NAME] [--largest N]

Each part writes results/tree-PART-NAME.json, in well under two minutes on an H200. tables.toml
and figures.py say what is made of them.
"""

import functools
import time

import numpy as np
import tree_models as models
from harness import run
from published import CODES
from tree_timing import CANCELLED, EPS, PERCENTILES, Gpu, Model, measure, median_ms, summary

from grape6py import Grape6
from grape6py._lib.tree import bound_of
from grape6py._lib.tree_setting import WIDEST_BY_BOUND, Setting, Targets
from grape6py.cuda.tree import build
from grape6py.cuda.tree.octree import Octree
from grape6py.cuda.tree.search import Search

GROUP = build.numbers.TREE_GROUP  # targets
M = 1 << 20


# Times that peers take for some errors, the goal, and (theta, order) that reach it.
ROWS = [row | {"setting": setting} for row, setting in zip(
    CODES["ryoanji and Bonsai"]["rows"],
    ((0.53, 6), (0.74, 6), (0.58, 6), (0.76, 5), (0.585, 6), (0.765, 5)), strict=True)]  # fmt: skip
TABLE_MODELS = ((models.plummer, 11), (models.plummer, 12), (models.clustered, 13))
SCALING = (0.8, 5), (M, 4 * M, 16 * M, 64 * M)
STAGES = ((0.8, 5), (0.58, 6), (0.75, 0)), tuple(1 << k for k in range(14, 27, 2))
CDF_SIZES, CDF_ANGLES, CDF_ORDERS = (
    (1 << 15, 1 << 17, M),
    (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
    (5, 0),
)
LATTICE, LATTICE_ANGLES, LATTICE_ORDERS = 10**6, (0.1, *CDF_ANGLES), (5, 0)
FLAT, FLAT_SETTINGS = 10**8, ((0.35, 6), (0.38, 6), (0.45, 6), (0.6, 6))
PLOT_SIZES, PLOT_ANGLES = (M, 4 * M), (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PLOT_ORDERS = (4, 5, 6, 0)
SHAPES_SIZES = 10**4, 10**5, M, 4 * M, 16 * M
ACCURACIES = tuple((a, 5) for a in (1e-2, 1e-3, 1e-4, 1e-5))  # and the order that Tree takes
EQUAL_SIZE, EQUAL_MODELS = (
    4 * M,
    (models.plummer, models.clustered, models.fractal, models.thin_disk),
)
EQUAL_ANGLES = 1.0, 0.9, 0.75, 0.6, 0.5, 0.42
EQUAL_BOUNDS = {
    5: (0.1, 3e-2, 1e-2, 3e-3, 1e-3, 2e-4, 5e-5),
    0: (1.0, 0.1, 3e-2, 1e-2, 3e-3, 1e-3, 2e-4),
}
SEARCH_SIZES, NEAREST = (10**4, 10**5, 10**6, 10**7), (1, 8, 32)
CLOSE = 10**6
ACTIVE_SIZES, ACTIVE_SETTING, ACTIVE_SHARE = (M, 4 * M, 16 * M, 64 * M), (0.75, 5), 0.01


def table(gpu, largest):
    """Time and memory against N; then every row on two Plummer spheres and a clustered model, whose
    longer lists other trees keep."""
    setting, sizes = SCALING
    for n in (n for n in sizes if n <= largest):
        model = Model(gpu, models.plummer, n, 14)
        yield {"what": "scaling"} | measure(model, setting, stages=True, memory=True, seconds=0.6)
    for make, seed in TABLE_MODELS:
        for n in sorted({row["n"] for row in ROWS if row["n"] <= largest}):
            model = Model(gpu, make, n, seed)
            for row in (row for row in ROWS if row["n"] == n):
                yield {"what": "row", "goal": row} | measure(model, row["setting"])


def cdf(gpu, largest):
    """Distributions of errors on 32768 targets, as in figures 4.8 and 4.9 of Bonsai's paper."""
    for n in (n for n in CDF_SIZES if n <= largest):
        model = Model(gpu, models.plummer, n, 21, targets=1 << 15)
        for order in CDF_ORDERS:
            for theta in CDF_ANGLES:
                yield measure(model, (theta, order), distribution=True, seconds=0.1)


def stages(gpu, largest):
    """Stage times against N, as in figure 4.6 of Bonsai's paper."""
    settings, sizes = STAGES
    for n in (n for n in sizes if n <= largest):
        model = Model(gpu, models.plummer, n, 31)
        for setting in settings:
            yield measure(model, setting, stages=True, memory=True)


def lattice(gpu, largest):
    """A cube lattice in order and shuffled, theta by theta, and the direct sum."""
    n = min(LATTICE, largest)
    ordered, shuffled = (
        Model(gpu, models.lattice, n, seed, targets=100_000) for seed in (None, 41)
    )
    yield direct_sum(ordered)
    for order in LATTICE_ORDERS:
        for theta in LATTICE_ANGLES:
            for model in (ordered, shuffled):
                yield {"what": "tree"} | measure(model, (theta, order))


def flat(gpu, largest):
    """Very many particles without thickness."""
    for make, seed in ((models.sheet, 51), (models.disk, 52)):
        model = Model(gpu, make, min(FLAT, largest), seed)
        for setting in FLAT_SETTINGS:
            yield measure(model, setting, stages=True, memory=setting == FLAT_SETTINGS[-1])
        del model
        gpu.xp.get_default_memory_pool().free_all_blocks()


def plot(gpu, largest):
    """Time against error."""
    rate = None
    for n in (n for n in PLOT_SIZES if n <= largest):
        model = Model(gpu, models.plummer, n, 61)
        yield (figure := direct_sum(model, rate))
        rate = rate or n * n / figure["ms"]
        for order in PLOT_ORDERS:
            for theta in PLOT_ANGLES:
                yield {"what": "tree"} | measure(model, (theta, order), seconds=0.1)


def active(gpu, largest):
    """Steps of few: a hundredth of the groups are targets, drawn at random or the densest."""
    for n in (n for n in ACTIVE_SIZES if n <= largest):
        model = Model(gpu, models.plummer, n, 71)
        yield few_targets(model)


def shapes(gpu, largest):
    """The error that was asked for, on systems of all shapes."""
    for n in (n for n in SHAPES_SIZES if n <= largest):
        for make in models.SHAPES:
            model = Model(gpu, make, n, 81)
            for accuracy, order in ACCURACIES:
                yield as_asked(model, accuracy, order)
            del model
            gpu.xp.get_default_memory_pool().free_all_blocks()


def as_asked(model, accuracy, order):
    """A sum with a wanted error: the time of all, and of a step of a run, which knows the last
    accelerations."""
    gpu, bound = model.gpu, bound_of(order, accuracy)

    def first():
        tree = Octree(gpu, model.pos, model.mass)
        return tree.forces(Setting(WIDEST_BY_BOUND, order, EPS * EPS, bound))

    acc, *_, counts = first()
    errors = model.relative_errors(acc, CANCELLED)
    last = gpu.xp.linalg.norm(acc, axis=1)
    del acc, _
    return {
        "model": model.name, "n": model.n, "accuracy": accuracy, "order": order,
        "bound": bound, "error": summary(errors),
        "pairs": counts.pairs / model.n, "points": counts.points / model.n,
        "locals": counts.locals * GROUP / model.n,
        "ms": median_ms(gpu, first, 0.1),
        "known_ms": median_ms(gpu, lambda: model.run(WIDEST_BY_BOUND, order, bound, last), 0.1),
    }  # fmt: skip


def equal(gpu, largest):
    """Time against errors on several shapes, by theta and by bounds with known accelerations."""
    for make in EQUAL_MODELS:
        model = Model(gpu, make, min(EQUAL_SIZE, largest), 81)
        for order, bounds in EQUAL_BOUNDS.items():
            settings = [(theta, order) for theta in EQUAL_ANGLES]
            for setting in settings + [(WIDEST_BY_BOUND, order, bound) for bound in bounds]:
                yield measure(model, setting, seconds=0.1)
        del model
        gpu.xp.get_default_memory_pool().free_all_blocks()


def search(gpu, largest):
    """Nearest particles and neighbours of all particles, the tree's making included."""
    for n in (n for n in SEARCH_SIZES if n <= largest):
        for make in models.uniform, models.clustered:
            pos, mass = make(gpu.xp, n, 91)
            yield searches(gpu, make.__name__, pos, mass)
            del pos, mass
            gpu.xp.get_default_memory_pool().free_all_blocks()


def searches(gpu, name, pos, mass):
    figure = {"model": name, "n": len(mass)}
    figure["build_ms"] = median_ms(gpu, lambda: Octree(gpu, pos, mass))
    for k in NEAREST:
        ms = median_ms(gpu, lambda k=k: Search(Octree(gpu, pos, mass)).nearest(k))
        figure[f"nearest_{k}_ms"] = ms
    radius2 = Search(Octree(gpu, pos, mass)).nearest(NEAREST[-1])[1][:, -1].copy()
    start, _ = Search(Octree(gpu, pos, mass)).within(radius2)
    figure["neighbours"] = float(start[-1]) / len(mass)
    ms = median_ms(gpu, lambda: Search(Octree(gpu, pos, mass)).within(radius2))
    return figure | {"neighbours_ms": ms}


def close(gpu, largest):
    """Bodies in close pairs, at the same places, and far from the origin."""
    pos, mass = models.plummer(gpu.xp, min(CLOSE, largest), 95)
    some, half = len(mass) // 10, len(mass) // 2
    paired, doubled = pos.copy(), pos.copy()
    paired[:some] = pos[some : 2 * some] + 1e-7 * gpu.xp.random.standard_normal((some, 3))
    doubled[:half] = pos[half : 2 * half]
    sets = {"plain": pos, "one in ten in a pair 1e-7 apart": paired,
            "half at the places of others": doubled,
            "a million diameters from the origin": pos + 1e6 * float(gpu.xp.ptp(pos))}  # fmt: skip
    for eps in (1e-3, 0.0):
        for name, at in sets.items():
            setting = Setting(*ACTIVE_SETTING, eps * eps)
            ms = median_ms(gpu, lambda at=at, s=setting: Octree(gpu, at, mass).forces(s))
            yield {"n": len(mass), "model": name, "eps": eps, "ms": ms}


def few_targets(model):
    gpu, setting = model.gpu, Setting(*ACTIVE_SETTING, EPS * EPS)
    tree = Octree(gpu, model.pos, model.mass)
    groups = tree.order[: model.n // GROUP * GROUP].reshape(-1, GROUP)
    count = int(ACTIVE_SHARE * len(groups))
    spread = gpu.xp.linalg.norm(gpu.xp.ptp(model.pos[groups], axis=1), axis=1)
    chosen = {
        "random": np.random.default_rng(model.seed).choice(len(groups), count, False),
        "densest": gpu.take(gpu.xp.argsort(spread)[:count]),
    }
    figure = {
        "n": model.n, "theta": setting.theta, "order": setting.order, "active": count * GROUP,
        "build": median_ms(gpu, lambda: Octree(gpu, model.pos, model.mass)),
        "walk": median_ms(gpu, lambda: tree.forces(setting)),
    }  # fmt: skip
    for name, which in chosen.items():
        rows = gpu.xp.sort(groups[gpu.put(which)].ravel()).astype(np.int32)
        at = model.pos[rows]
        ms = median_ms(gpu, lambda at=at, rows=rows: tree.forces(setting, Targets(at, number=rows)))
        figure[name] = {"ms": ms, "share_of_walk": ms / figure["walk"]}
    return figure


def direct_sum(model, pairs_per_ms=None):
    """The fastest direct sum, mode single without jerk; estimated if pairs a millisecond are given,
    since it takes a time that goes with N^2."""
    figure = {"what": "direct", "model": model.name, "n": model.n}
    if pairs_per_ms:
        figure |= {"ms": model.n**2 / pairs_per_ms, "estimated": True}
    else:
        with Grape6(backend=model.gpu.backend, precision="single", jerk=False) as board:
            board.set_particles(model.mass, model.pos)
            board.forces(eps=EPS)
            model.gpu.wait()
            began = time.perf_counter()
            acc = board.forces(eps=EPS).acc
            model.gpu.wait()
        figure |= {"ms": 1e3 * (time.perf_counter() - began), "estimated": False,
                   "error": summary(model.relative_errors(acc))}  # fmt: skip
    return figure


one_gpu = functools.cache(Gpu)  # which keeps the kernels that it has compiled


def on_gpu(part):
    return lambda options: part(one_gpu(), options.largest)


PARTS = (table, cdf, stages, lattice, flat, plot, active, shapes, equal, search, close)

if __name__ == "__main__":
    run(__doc__, {part.__name__: on_gpu(part) for part in PARTS},
        prefix="tree-", gpu=lambda part, options: True,
        about=lambda options: {"eps": EPS, "percentiles": PERCENTILES},
        largest={"type": int, "default": 10**9, "help": "N"})  # fmt: skip
