"""What the ranks of a test of trees do: `mpirun -n P python tree_programs.py NAME [argument ...]`.

Every rank makes the same particles, gives those that are its own, and knows what all should get."""

import ctypes
import functools
import os
import sys
from pathlib import Path

import numpy as np

from grape6py import Tree
from grape6py._arrays.modules import on_host
from grape6py.cuda.tree import device_tree, octree
from grape6py.errors import Grape6Error
from rank_programs import COMM, LAST, RANK, SIZE, say

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
import fake_arrays
from fake_device import FakeGpu
from samples import bodies, truth

EPS = 0.01


def place():
    """What puts this rank's arrays where KINDS says: on the "cpu", or on the stand-in for a GPU."""
    if not os.environ.get("KINDS"):
        return np.asarray
    cupy = sys.modules["cupy"] = fake_arrays.Module()
    library = ctypes.CDLL(os.environ["FAKE_GPU"])
    device_tree.gpu_of = functools.cache(lambda _: FakeGpu(library, cupy))
    octree.BLOCKS = 0
    return cupy.asarray if os.environ["KINDS"].split()[RANK] == "gpu" else np.asarray


class Case:
    """Particles of all ranks, those of this one, and a tree of them."""

    def __init__(self, name, n):
        self.mass, self.pos, self.vel = bodies(name, n)
        owner = np.random.default_rng(3).integers(0, max(SIZE - 1, 1), n)  # the last has none
        self.mine = np.flatnonzero(owner == RANK)
        self.numbers = np.concatenate(COMM.allgather(self.mine))
        own = self.mass[self.mine], self.pos[self.mine], self.vel[self.mine]
        self.tree = Tree(*map(place(), own), comm=COMM, threads=1)

    def all(self, found):
        """Rows of all particles, by their numbers here."""
        rows = [np.concatenate(COMM.allgather(on_host(array))) for array in found]
        back = np.argsort(self.numbers)
        return type(found)(*(array[back] for array in rows))


def forces(name, n):
    """Errors of forces over those of one tree; net forces; distances of neighbours."""
    case = Case(name, int(n))
    given = case.mass, case.pos, case.vel
    true, one = truth(*given, EPS), Tree(*given, backend="cpu", threads=1)
    for setting in ({"theta": 0.6}, {"method": "bh", "theta": 0.7},
                    {"accuracy": 1e-4, "momentum": True}):  # fmt: skip
        usual = one.forces(eps=EPS, **setting)
        found = case.all(case.tree.forces(eps=EPS, **setting))
        ratios = {}
        for of in ("acc", "jerk", "pot"):
            ours, theirs = (true.errors(forces, of) for forces in (found, usual))
            ratios[of] = float(np.median(ours) / np.median(theirs))
            ratios[f"{of} tail"] = float(np.quantile(ours, 0.99) / np.quantile(theirs, 0.99))
        net = np.linalg.norm(case.mass @ found.acc)
        net /= np.abs(case.mass) @ np.linalg.norm(found.acc, axis=1)
        say(setting=str(setting), **ratios, net=float(net))
    near = case.all(case.tree.nearest(7)).distance
    say(near=bool(np.array_equal(near, one.nearest(7).distance)))


def wrong():
    """An error of one rank is one of all, and the tree goes on."""
    case = Case("plummer", 500)
    texts, bad = [], np.full((1, 3), np.nan if LAST else 0.0)
    calls = [
        lambda: Tree(bad, [1.0], comm=COMM),
        lambda: Tree(np.zeros((1, 3)), [1.0], comm=COMM, threads=-5 if LAST else 1),
        lambda: Tree(np.zeros((1, 3)), [1.0], np.zeros((1, 3)) if LAST else None, comm=COMM),
        lambda: case.tree.forces(theta=7 if LAST else 0.5),
        lambda: case.tree.forces(theta=0.4 if LAST else 0.5),
        lambda: case.tree.forces(bad),
        lambda: case.tree.forces(np.zeros((1, 3)), self_index=[700 if LAST else -1]),
        lambda: case.tree.nearest(2 + LAST),
        lambda: case.tree.forces(theta=0.5, method="bh" if LAST else "fmm"),
        lambda: case.tree.forces(None if LAST else bad[:0]),
        lambda: case.tree.nearest(2) if LAST else case.tree.forces(theta=0.5),
    ]
    for call in calls:
        try:
            call()
            texts.append("no error")
        except Grape6Error as error:
            texts.append(f"{type(error).__name__}: {error}")
    assert np.isfinite(case.tree.forces(eps=EPS).acc).all()
    say(texts=COMM.gather(texts))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
