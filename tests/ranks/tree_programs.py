"""What the ranks of a test of trees do: `mpirun -n P python tree_programs.py NAME [argument ...]`.

Every rank makes the same particles, gives those that are its own, and knows what all should get.
"""

import json
import sys

import numpy as np
from mpi4py import MPI

from grape6py import Grape6, Tree, plummer
from grape6py.errors import Grape6Error

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
EPS = 0.01
FAR = 3e5  # of two clusters


def say(**found):
    if RANK == 0:
        print(json.dumps(found), flush=True)


def shape(name, n):
    """Particles of a shape."""
    mass, pos, vel = plummer(n, seed=2)
    rng = np.random.default_rng(7)
    if name == "clustered":  # a third of them in forty small clumps
        some = np.arange(0, n, 3)
        centre = rng.normal(size=(40, 3))[rng.integers(0, 40, len(some))]
        pos[some] = centre + 0.01 * pos[some]
    if name == "flat":
        pos[:, 2] *= 1e-3
        mass = rng.random(n) / n
    if name == "two":
        pos[: n // 3, 0] += FAR
        mass[: n // 3] *= 5
    if name == "both signs":
        mass[::5] *= -1
    if name == "one place":  # which no box resolves, far from the others
        pos[:100] = pos[0] + 1e-9 * pos[:100]
    return mass, pos, vel


class Case:
    """Particles of all ranks, those of this one, and a tree of them on each kind."""

    def __init__(self, name, n, **more):
        self.mass, self.pos, self.vel = shape(name, n)
        owner = np.random.default_rng(3).integers(0, max(SIZE - 1, 1), n)  # the last has none
        self.mine = np.flatnonzero(owner == RANK)
        self.numbers = np.concatenate(COMM.allgather(self.mine))
        own = self.pos[self.mine], self.mass[self.mine], self.vel[self.mine]
        self.tree = Tree(*own, comm=COMM, backend="cpu", threads=1, **more)
        self.one = Tree(self.pos, self.mass, self.vel, backend="cpu", threads=1)

    def all(self, rows):
        """Rows of all particles, by their numbers here."""
        rows = np.concatenate(COMM.allgather(rows))
        found = np.empty_like(rows)
        found[self.numbers] = rows
        return found

    def exact(self):
        with Grape6(precision="double", backend="cpu") as grape:
            grape.set_particles(self.mass, self.pos, self.vel)
            return grape.forces(eps=EPS)


def errors(found, exact):
    return np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)


def forces(name, n):
    """Errors of forces over those of one tree; net forces."""
    case = Case(name, int(n))
    exact = case.exact()
    for setting in ({"theta": 0.6}, {"method": "bh", "theta": 0.7}, {"accuracy": 1e-3},
                    {"accuracy": 1e-4, "momentum": True}):  # fmt: skip
        found = case.tree.forces(eps=EPS, **setting)
        one = case.one.forces(eps=EPS, **setting)
        ratios = {}
        for what in ("acc", "jerk"):
            e = errors(case.all(getattr(found, what)), getattr(exact, what))
            e1 = errors(getattr(one, what), getattr(exact, what))
            ratios[what] = float(np.median(e) / np.median(e1))
            ratios[f"{what} tail"] = float(np.quantile(e, 0.99) / np.quantile(e1, 0.99))
        pot = np.abs(case.all(found.pot) / exact.pot - 1)
        ratios["pot"] = float(np.median(pot) / np.median(np.abs(one.pot / exact.pot - 1)))
        acc = case.all(found.acc)
        force = case.mass[:, None] * acc
        net = np.abs(force.sum(axis=0)).max() / np.linalg.norm(force, axis=1).sum()
        say(setting=str(setting), **ratios, net=float(net), median=float(np.median(errors(
            acc, exact.acc))))  # fmt: skip


def others(n):
    """Targets of several kinds, searches, and few particles."""
    case = Case("clustered", int(n))
    targets = np.random.default_rng(RANK).normal(size=(100 * RANK + 5, 3))
    found = case.tree.forces(targets, targets / 3, eps=EPS, theta=0.3)
    one = case.one.forces(targets, targets / 3, eps=EPS, theta=0.3)
    assert np.median(errors(found.acc, one.acc)) < 1e-4
    assert np.median(errors(found.jerk, one.jerk)) < 1e-3
    some = np.arange(len(case.mine))[::7]
    size = np.linalg.norm(case.exact().acc, axis=1)
    which = case.mine[some]
    for options in ({"theta": 0.3}, {"bound": 1e-5, "last_acc": size[which]}):
        found = case.tree.forces(case.pos[which], eps=EPS, self_index=case.tree.first + some,
                                 **options)  # fmt: skip
        assert np.all(errors(found.acc, case.exact().acc[which]) < 5e-3)
    at_rest = np.where(np.arange(len(which)) % 5, size[which], 0)  # as where forces cancel
    found = case.tree.forces(case.pos[which], eps=EPS, self_index=case.tree.first + some,
                             bound=1e-5, last_acc=at_rest)  # fmt: skip
    assert np.all(errors(found.acc, case.exact().acc[which]) < 5e-3)
    lists, right = case.tree.neighbours(0.1), case.one.neighbours(0.1)
    for row, i in zip(lists, case.mine, strict=True):
        assert np.sort(case.numbers[row]).tolist() == right[i].tolist()
    for k in (1, 7):
        near, right = case.tree.nearest(k), case.one.nearest(k)
        assert np.array_equal(near.distance, right.distance[case.mine])
        assert np.array_equal(case.numbers[near.index], right.index[case.mine])
    near, right = case.tree.nearest(3, targets), case.one.nearest(3, targets)
    assert np.array_equal(near.distance, right.distance)
    radii = np.where(np.arange(len(targets)) % 3, 0.2, np.nan)
    lists, right = case.tree.neighbours(radii, targets), case.one.neighbours(radii, targets)
    for row, wanted in zip(lists, right, strict=True):
        assert np.sort(case.numbers[row]).tolist() == wanted.tolist()
    bound = case.tree.bound(1e-3, eps=EPS)
    assert COMM.allgather(bound) == [bound] * SIZE
    found = case.all(case.tree.forces(eps=EPS, bound=bound, order=4, last_acc=size[case.mine]).acc)
    assert 5e-5 < np.median(errors(found, case.exact().acc)) < 1.5e-3
    COMM.Barrier()
    say(ok=True)


def ties(scale):
    """Equally near ones on a lattice, among which two share each place: those of one tree, after
    the ranks have exchanged the particles, on any scale, and whatever masses and speeds are."""
    where = np.random.default_rng(4).permutation(2 * 216) // 2
    pos = np.stack(np.unravel_index(where, (6, 6, 6)), axis=1) * float(scale)
    large = np.full(len(pos), 1e300), np.full(pos.shape, 1e300)
    mine = np.array_split(np.arange(len(pos)), SIZE)[RANK]
    tree = Tree(pos[mine], large[0][mine], large[1][mine], comm=COMM, backend="cpu", threads=1)
    one = Tree(pos, np.ones(len(pos)), backend="cpu", threads=1)
    targets = (RANK + np.random.default_rng(5).integers(-1, 8, (20, 3))) * float(scale) / 2
    for k in (1, 2, 7, 40, 100):
        near, right = tree.nearest(k), one.nearest(k)
        assert np.array_equal(near.index, right.index[mine])
        assert np.array_equal(near.distance, right.distance[mine])
        near, right = tree.nearest(k, targets), one.nearest(k, targets)
        assert np.array_equal(near.index, right.index)
    COMM.Barrier()
    say(ok=True)


def few():
    """No particles at all, and fewer than ranks."""
    none = Tree(np.zeros((0, 3)), np.zeros(0), comm=COMM)
    assert none.forces(np.ones((2, 3))).acc.tolist() == [[0] * 3] * 2
    assert none.neighbours(1.0, np.ones((2, 3)))[0].size == 0
    assert none.nearest(2, np.ones((1, 3))).index.tolist() == [[-1, -1]]
    for n in (1, 2, 17):
        case = Case("plummer", n)
        found = case.all(case.tree.forces(eps=EPS, theta=0.5).acc)
        assert np.allclose(found, case.exact().acc, rtol=1e-5, atol=1e-12)
        for given in ({}, {"bound": 0.1, "last_acc": np.ones(len(case.mine))}):
            found = case.all(case.tree.forces(eps=EPS, **given).acc)
            assert np.allclose(found, case.exact().acc, rtol=1e-5, atol=1e-12)
        near = case.tree.nearest(2)
        assert np.array_equal(near.distance, case.one.nearest(2).distance[case.mine])
    COMM.Barrier()
    say(ok=True)


def balance(name, n):
    """The largest share of the work over the mean, after some trees."""
    case, work = Case(name, int(n)), None
    own = case.pos[case.mine], case.mass[case.mine]
    largest = []
    for _ in range(4):
        tree = Tree(*own, comm=COMM, work=work, threads=1)
        tree.forces(eps=EPS, accuracy=1e-3)
        work = tree.work
        domain = tree._tree._domain
        total = np.array(COMM.allgather(tree._tree._work * len(domain.pos)))
        largest.append(float(total.max() / total.mean()))
    say(largest=largest)


def asked(folder, *accuracies):
    """Accelerations of the bodies in a folder, with the accuracies asked for, into it."""
    mass, pos = (np.load(f"{folder}/{name}.npy") for name in ("mass", "pos"))
    heaviest, mine = np.abs(mass).argmax(), np.arange(RANK, len(mass), SIZE)
    mine = np.append(mine[mine != heaviest], [heaviest] * (RANK == 0)).astype(int)
    tree = Tree(pos=pos[mine], mass=mass[mine], comm=COMM, backend="cpu", threads=1)
    numbers = np.concatenate(COMM.allgather(mine))
    for accuracy in accuracies:
        acc = np.concatenate(COMM.allgather(tree.forces(accuracy=float(accuracy)).acc))
        if RANK == 0:
            np.save(f"{folder}/acc-{accuracy}.npy", acc[np.argsort(numbers)])


def wrong():
    """An error of one rank is one of all, and the tree goes on."""
    case = Case("plummer", 500)
    last = RANK == SIZE - 1
    texts = []
    bad = np.full((1, 3), np.nan) if last else np.zeros((1, 3))
    calls = [
        lambda: Tree(bad, [1.0], comm=COMM),
        lambda: Tree(np.zeros((1, 3)), [1.0], comm=COMM, threads=-5 if last else 1),
        lambda: Tree(np.zeros((1, 3)), [1.0], np.zeros((1, 3)) if last else None, comm=COMM),
        lambda: case.tree.forces(theta=7 if last else 0.5),
        lambda: case.tree.forces(theta=0.4 if last else 0.5),
        lambda: case.tree.forces(bad),
        lambda: case.tree.forces(np.zeros((1, 3)), self_index=[700 if last else -1]),
        lambda: case.tree.nearest(2 + last),
        lambda: case.tree.forces(theta=0.5, method="bh" if last else "fmm"),
        lambda: case.tree.forces(None if last else bad[:0]),
        lambda: case.tree.nearest(2) if last else case.tree.forces(theta=0.5),
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
