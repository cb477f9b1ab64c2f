"""Times many walks a call against one call a group.

    python benchmarks/walks.py [--name NAME] [--n 4000000] [--backend cuda]

Lists are those of Barnes and Hut's walk over an octree of a Plummer sphere, with monopoles, for
groups of cells of at most so many bodies; making them is not timed. `numbers`: a list is numbers of
bodies and cells. `plain` writes a group's list to addresses 0.. and asks for its forces by first
half and last half, group by group, for a tenth of the groups.
"""

import statistics
import time
from types import SimpleNamespace

import numpy as np
from harness import relative, run

from grape6py import plummer
from grape6py._lib.library import check, lib, pointers, text

EPS2 = 1e-6
LEAF, BITS = 16, 20  # bodies of a leaf; of a Morton key, per dimension
GROUPS_AT_ONCE, CLUSTER = 64, 0
MOST, THETA, ROUNDS = 2000, 0.5, 5  # bodies of a group


def octree(x, m):
    """Bodies in Morton order, and cells level by level: first body, end, first child and how many,
    side, centre of mass and mass; the root is cell 0."""
    low, side = x.min(0), np.ptp(x, axis=0).max() * (1 + 1e-9)
    grid = ((x - low) / side * 2**BITS).astype(np.int64)
    key = sum((grid[:, c] >> bit & 1) << (3 * bit + c) for bit in range(BITS) for c in range(3))
    order = np.argsort(key, kind="stable")
    x, m, key = x[order], m[order], key[order]
    levels, count, first, end = [], 1, np.array([0]), np.array([len(x)])
    for level in range(BITS + 1):
        divided = (end - first > LEAF) & (level < BITS)
        shift = 3 * (BITS - level - 1) if level < BITS else 0
        octants = ((key[first] >> shift + 3 << 3)[:, None] + np.arange(9)) << shift
        edges = np.searchsorted(key, octants)
        there = (edges[:, 1:] > edges[:, :-1]) & divided[:, None]
        children = there.sum(1)
        child = np.where(divided, count + np.cumsum(children) - children, 0)
        levels.append((first, end, child, children, np.full(len(first), side * 0.5**level)))
        first, end = edges[:, :-1][there], edges[:, 1:][there]
        count += len(first)
    first, end, child, children, side = map(np.concatenate, zip(*levels, strict=True))
    before = np.zeros((len(x) + 1, 4))
    np.cumsum(np.column_stack([m[:, None] * x, m]), axis=0, out=before[1:])
    sums = before[end] - before[first]
    return SimpleNamespace(x=x, m=m, first=first, end=end, child=child, children=children,
                           side=side, com=sums[:, :3] / sums[:, 3:], mass=sums[:, 3])  # fmt: skip


def ranges(start, count):
    """start[0], start[0] + 1, ..., start[1], ..."""
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(start, count) + within


def groups_of(t, most):
    """The largest cells of at most so many bodies, in the order of the bodies."""
    front, found = np.zeros(1, int), []
    while len(front):
        small = (t.end[front] - t.first[front] <= most) | (t.children[front] == 0)
        found.append(front[small])
        front = ranges(t.child[front[~small]], t.children[front[~small]])
    found = np.concatenate(found)
    return found[np.argsort(t.first[found])]


def lists_of(t, groups, theta):
    """Lengths of the groups' lists, and these one behind the other: bodies, and cells beyond."""
    rows = [t.x[a:b] for a, b in zip(t.first[groups], t.end[groups], strict=True)]
    low, high = (np.array([extreme(x, 0) for x in rows]) for extreme in (np.min, np.max))
    g, c, owners, entries = np.arange(len(groups)), np.zeros(len(groups), int), [], []
    while len(g):
        d = np.maximum(np.maximum(low[g] - t.com[c], t.com[c] - high[g]), 0)
        far = theta**2 * np.einsum("ij,ij->i", d, d) > t.side[c] ** 2
        leaf = ~far & (t.children[c] == 0)
        bodies = t.end[c[leaf]] - t.first[c[leaf]]
        owners += [g[far], np.repeat(g[leaf], bodies)]
        entries += [len(t.x) + c[far], ranges(t.first[c[leaf]], bodies)]
        near = ~far & ~leaf
        some = t.children[c[near]]
        g, c = np.repeat(g[near], some), ranges(t.child[c[near]], some)
    owner, entry = np.concatenate(owners), np.concatenate(entries).astype(np.int32)
    return np.bincount(owner, minlength=len(groups)), entry[np.argsort(owner, kind="stable")]


class Job:
    """The arguments of g6x_walks; i particles are the first of xj."""

    def __init__(self, n):
        t = octree(plummer(n, seed=1).pos, np.full(n, 1 / n))
        groups = groups_of(t, MOST)
        parts = [lists_of(t, groups[k : k + GROUPS_AT_ONCE], THETA)
                 for k in range(0, len(groups), GROUPS_AT_ONCE)]  # fmt: skip
        counts, lists = map(np.concatenate, zip(*parts, strict=True))
        self.sizes, self.counts, self.chosen = t.end[groups] - t.first[groups], counts, lists
        self.i_start, self.j_start = (np.concatenate([[0], np.cumsum(of)]).astype(np.int64)
                                      for of in (self.sizes, counts))  # fmt: skip
        self.xj, self.mj = np.concatenate([t.x, t.com]), np.concatenate([t.m, t.mass])

    def figure(self, walks, seconds):
        """Of the first walks."""
        pairs = int((self.sizes * self.counts)[:walks].sum())
        median = statistics.median(seconds)
        return {"walks": walks, "targets": int(self.i_start[walks]), "interactions": pairs,
                "seconds": seconds, "median": median, "best": min(seconds),
                "interactions_per_second": pairs / median}  # fmt: skip


def seconds_of(call, *arguments):
    given = pointers(*arguments)
    began = time.perf_counter()
    check(call(CLUSTER, *given), CLUSTER)
    return time.perf_counter() - began


def walk(job, walks, acc, pot):
    """A call's seconds."""
    return seconds_of(lib.g6x_walks, walks, job.i_start, job.xj, job.j_start, job.chosen,
                      len(job.xj), job.xj, job.mj, EPS2, acc, pot)  # fmt: skip


def plain(job, walks, acc, pot):
    """Seconds of the calls for each group in turn."""
    total, most = 0.0, int(job.sizes.max())
    zeros, h2, jerk = np.zeros((most, 3)), np.zeros(most), np.empty((most, 3))
    for w in range(walks):
        rows = slice(job.i_start[w], job.i_start[w + 1])
        chosen = job.chosen[job.j_start[w] : job.j_start[w + 1]]
        index = np.arange(rows.start, rows.stop, dtype=np.int32)
        x, sizes = job.xj[rows], (len(chosen), len(index))
        total += seconds_of(lib.g6x_set_j_particles, len(chosen), None, chosen, None, None,
                            job.mj[chosen], None, None, None, None, job.xj[chosen])  # fmt: skip
        total += seconds_of(lib.g6calc_firsthalf, *sizes, index, x, zeros, zeros, zeros, h2, EPS2,
                            h2)  # fmt: skip
        total += seconds_of(lib.g6calc_lasthalf, *sizes, index, x, zeros, EPS2, h2, acc[rows], jerk,
                            pot[rows])  # fmt: skip
    return total


def walks(options):
    job = Job(options.n)
    check(lib.g6x_open(CLUSTER, getattr(lib, f"G6X_BACKEND_{options.backend.upper()}")))
    lib.g6x_set_int(CLUSTER, lib.G6X_JERK, 0)
    groups, bodies = len(job.sizes), len(job.mj)
    few = max(1, groups // 10)
    acc, grouped, exact = (np.empty((bodies, 3)) for _ in range(3))
    pot = np.empty(bodies)
    walk(job, groups, acc, pot)  # compiles, and finds memory
    numbers = job.figure(groups, [walk(job, groups, acc, pot) for _ in range(ROUNDS)])
    plain(job, min(2, few), grouped, pot)
    one_by_one = job.figure(few, [plain(job, few, grouped, pot)])
    lib.g6x_set_int(CLUSTER, lib.G6X_PRECISION, 1)
    walk(job, few, exact, pot)
    some = slice(job.i_start[few])
    errors = (np.median(relative(found[some], exact[some])) for found in (acc, grouped))
    yield {
        "backend": text(lib.g6x_backend, CLUSTER), "n": options.n, "theta": THETA,
        "eps2": EPS2, "mean_group": options.n / groups, "mean_list": len(job.chosen) / groups,
        "mean_group_of_a_body": float((job.sizes**2).sum() / options.n),
        "mean_list_of_a_body": numbers["interactions"] / options.n,
        "numbers": numbers, "plain": one_by_one,
        **dict(zip(("median_error", "median_error_plain"), map(float, errors), strict=True)),
        "gain": numbers["interactions_per_second"] / one_by_one["interactions_per_second"],
    }  # fmt: skip


if __name__ == "__main__":
    run(__doc__, {"walks": walks}, gpu=lambda part, options: options.backend == "cuda",
        n={"type": int, "default": 4_000_000},
        backend={"choices": ["cpu", "cuda"], "default": "cuda"})  # fmt: skip
