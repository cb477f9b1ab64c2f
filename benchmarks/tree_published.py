"""Measures with the octree what three publications of other trees printed.

    python benchmarks/tree_published.py [order] [operations] [square] [--name NAME] [--largest N]
                                        [--backend cuda|cpu]

order       GASPHiA: stages on a lattice of a million particles at theta 0.5, row by row and
            shuffled; and the sum without the sort of the targets, in these orders and in the
            tree's own
operations  Hamada and others (2009): terms of Barnes and Hut's walk over a Plummer sphere, in
            groups as it is, and for one particle a walk, the mean of particles drawn at random;
            direct sums beside it
square      Chiu (2020): a step of uniform particles in a square: tree, forces (theta 0.5),
            update, energy; of the tree's two methods, on the GPU or the CPU

Writes results/tree-published-PART-NAME.json.
"""

import contextlib
import statistics
import time

import numpy as np
import tree_models as models
from harness import run
from tree_gpu import LATTICE, one_gpu
from tree_timing import EPS, Model, measure, median_ms

from grape6py import Grape6, Tree
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda.tree.octree import Octree

ANGLE, METHODS = 0.5, (5, 0)  # orders of the expansions; 0: Barnes and Hut
OPERATIONS, SINGLES, HAMADA_EPS = ((4 << 20, 0.75), (64 << 20, 0.75)), 512, 0.025
DIRECT = 65536
SQUARE, STEP = (10**5, 10**6, 10**7, 10**8), 1e-3


class Unsorted:
    """A GPU that takes keys as if they were in order already."""

    def __init__(self, gpu):
        self._gpu = gpu

    def __getattr__(self, name):
        return getattr(self._gpu, name)

    def sort(self, keys):
        return self.xp.arange(len(keys), dtype=np.int64)


def order(options):
    gpu = one_gpu()
    n = min(LATTICE, options.largest)
    for seed in (None, 41):
        model = Model(gpu, models.lattice, n, seed)
        for method in METHODS:
            yield {"what": "stages"} | measure(model, (ANGLE, method), stages=True)
            yield from unsorted(gpu, model, method)


def unsorted(gpu, model, method):
    tree = Octree(gpu, model.pos, model.mass)
    given = gpu.xp.arange(model.n, dtype=np.int32)
    orders = {"random" if model.seed else "regular": given}
    if not model.seed:
        orders["tree-sorted"] = tree.order.astype(np.int32)
    for name, rows in orders.items():
        at = gpu.xp.ascontiguousarray(model.pos[rows])
        figure = {"what": "targets", "targets": name, "n": model.n, "order": method}
        for sort, machine in (("sorted", gpu), ("as_given", Unsorted(gpu))):
            tree.gpu = machine
            setting = Setting(ANGLE, method, EPS * EPS)
            figure[sort] = median_ms(
                gpu, lambda at=at, rows=rows, s=setting: tree.forces(s, Targets(at, number=rows))
            )
        yield figure


def operations(options):
    gpu = one_gpu()
    for n, theta in OPERATIONS:
        if n > options.largest:
            continue
        pos, mass = models.plummer(gpu.xp, n, 31)
        tree, setting = Octree(gpu, pos, mass), Setting(theta, 0, HAMADA_EPS**2)
        *_, counts = tree.forces(setting)
        ms = median_ms(gpu, lambda p=pos, m=mass, s=setting: Octree(gpu, p, m).forces(s))
        figure = {"n": n, "theta": theta, "ms": ms, "terms": (counts.pairs + counts.points) / n}
        singles = [alone(tree, setting, pos, row)
                   for row in np.random.default_rng(n).choice(n, SINGLES, False)]  # fmt: skip
        error = statistics.stdev(singles) / SINGLES**0.5
        yield figure | {"single_terms": statistics.mean(singles), "single_error": error}
        del tree, pos, mass
        gpu.xp.get_default_memory_pool().free_all_blocks()
    for precision in ("single", "grape"):
        yield {"n": DIRECT, "precision": precision, "ms": direct(gpu, precision)}


def alone(tree, setting, pos, row):
    """Terms of the walk for one particle."""
    xp = tree.gpu.xp
    rows = xp.asarray([row], np.int32)
    *_, counts = tree.forces(setting, Targets(xp.ascontiguousarray(pos[rows]), number=rows))
    return counts.pairs + counts.points


def direct(gpu, precision):
    pos, mass = models.plummer(gpu.xp, DIRECT, 31)
    with Grape6(backend="cuda", precision=precision, jerk=False) as board:
        board.set_particles(mass, pos)
        return median_ms(gpu, lambda: board.forces(pos, eps=HAMADA_EPS))


def square(options):
    is_gpu = options.backend == "cuda"
    xp = one_gpu().xp if is_gpu else np
    wait = one_gpu().wait if is_gpu else lambda: None
    for n in (n for n in SQUARE if n <= options.largest):
        pos, mass = models.sheet(xp, n, 51)
        for method in ("fmm", "bh"):
            yield {"n": n, "method": method, "theta": ANGLE} | step(
                pos, mass, method, options.backend, wait
            )
        del pos, mass
        if is_gpu:
            xp.get_default_memory_pool().free_all_blocks()


def step(pos, mass, method, backend, wait):
    """Medians of milliseconds; the first step is not counted."""
    found = []

    @contextlib.contextmanager
    def clock(name):
        wait()
        began = time.perf_counter()
        yield
        wait()
        found[-1][name] = 1e3 * (time.perf_counter() - began)

    vel = 0 * pos
    takes = 5 if len(pos) < SQUARE[-1] else 2
    for _ in range(takes + 1):
        found.append({})
        with clock("tree"):
            tree = Tree(mass, pos, backend=backend)
        with tree, clock("force"):
            forces = tree.forces(eps=EPS, method=method, theta=ANGLE)
        with clock("update"):
            vel += STEP * forces.acc
            pos = pos + STEP * vel
        with clock("energy"):
            float((mass * (0.5 * (vel * vel).sum(axis=1) + 0.5 * forces.pot)).sum())
        found[-1]["total"] = sum(found[-1][name] for name in ("tree", "force", "update"))
    return {name: statistics.median(one[name] for one in found[1:]) for name in found[0]}


if __name__ == "__main__":
    run(__doc__, {"order": order, "operations": operations, "square": square},
        prefix="tree-published-", gpu=lambda part, options: options.backend == "cuda",
        about=lambda options: {"eps": EPS},
        largest={"type": int, "default": 10**9, "help": "N"},
        backend={"choices": ["cuda", "cpu"], "default": "cuda"})  # fmt: skip
