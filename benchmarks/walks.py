"""Times many walks a call against one call a group.

    python benchmarks/walks.py [--name NAME] [--n 4000000] [--group 2000] [--theta 0.5] [--rounds 5]
                               [--backend cuda]

Lists are those of Barnes and Hut's walk over an octree of a Plummer sphere, with monopoles, for
groups of cells of at most so many bodies; making them is not timed. A list once is numbers of
bodies and cells (`numbers`), once they themselves one behind the other (`copies`, a tenth of the
groups). `plain` writes a group's list to addresses 0.. and asks for its forces by first half and
last half, group by group.
"""

import statistics
import time
from dataclasses import dataclass

import numpy as np
from harness import relative, run

from grape6py import plummer
from grape6py._lib.library import check, ffi, lib, pointer, text

EPS2 = 1e-6
LEAF = 16
BITS = 21  # of a Morton key, per dimension
GROUPS_AT_ONCE = 64
GOAL_RATE, GOAL_SLACK, GOAL_GAIN = 1.5e12, 1.25, 3.0
CLUSTER = 0


@dataclass
class Octree:
    """Bodies in Morton order, and cells level by level; the root is cell 0."""

    x: np.ndarray
    m: np.ndarray
    first: np.ndarray  # body of each cell
    end: np.ndarray
    child: np.ndarray  # the first child; 0: none
    children: np.ndarray
    side: np.ndarray
    com: np.ndarray
    mass: np.ndarray


def spread(a):
    """Bits of a number, two zeros between each."""
    a = a.astype(np.uint64)
    for shift, mask in ((32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F),
                        (4, 0x10C30C30C30C30C3), (2, 0x1249249249249249)):  # fmt: skip
        a = (a | a << np.uint64(shift)) & np.uint64(mask)
    return a


def octree(x, m):
    low, side = x.min(0), np.ptp(x, axis=0).max() * (1 + 1e-9)
    grid = ((x - low) / side * 2**BITS).astype(np.int64)
    key = sum(spread(grid[:, c]) << np.uint64(2 - c) for c in range(3))
    order = np.argsort(key, kind="stable")
    x, m, key = x[order], m[order], key[order]
    first, end = [np.array([0])], [np.array([len(x)])]
    child, children, level_of = [], [], [np.zeros(1, int)]
    number = 1
    for level in range(1, BITS + 1):
        divided = end[-1] - first[-1] > LEAF
        starts = np.flatnonzero(np.diff(key >> np.uint64(3 * (BITS - level)), prepend=0) != 0)
        starts = np.union1d(starts, first[-1][divided])
        owner = np.searchsorted(first[-1], starts, side="right") - 1
        mine = divided[owner] & (starts < end[-1][owner])
        starts, owner = starts[mine], owner[mine]
        counts = np.bincount(owner, minlength=len(divided))
        child.append(np.where(divided, number + np.cumsum(counts) - counts, 0))
        children.append(counts)
        number += len(starts)
        if not len(starts):
            break
        last = np.append(owner[1:] != owner[:-1], True)
        first.append(starts)
        end.append(np.where(last, end[-1][owner], np.append(starts[1:], 0)))
        level_of.append(np.full(len(starts), level))
    else:
        child.append(np.zeros(len(first[-1]), int))
        children.append(np.zeros(len(first[-1]), int))
    first, end, level = (np.concatenate(a) for a in (first, end, level_of))
    child, children = (np.concatenate(a)[: len(first)] for a in (child, children))
    before = np.zeros((len(x) + 1, 4))
    np.cumsum(np.column_stack([m[:, None] * x, m]), axis=0, out=before[1:])
    sums = before[end] - before[first]
    com, mass = np.ascontiguousarray(sums[:, :3] / sums[:, 3:]), sums[:, 3].copy()
    return Octree(x, m, first, end, child, children, side * 0.5**level, com, mass)


def groups_of(t, most):
    """The largest cells of at most so many bodies, in the order of the bodies."""
    front, found = np.zeros(1, int), []
    while len(front):
        small = (t.end[front] - t.first[front] <= most) | (t.children[front] == 0)
        found.append(front[small])
        front = ranges(t.child[front[~small]], t.children[front[~small]])
    found = np.concatenate(found)
    return found[np.argsort(t.first[found])]


def ranges(start, count):
    """start[0], start[0] + 1, ..., start[1], ..."""
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.repeat(start, count) + within


def lists_of(t, groups, theta):
    """Lengths of the groups' lists, and these one behind the other: bodies, and cells beyond."""
    low = np.array([t.x[a:b].min(0) for a, b in zip(t.first[groups], t.end[groups], strict=True)])
    high = np.array([t.x[a:b].max(0) for a, b in zip(t.first[groups], t.end[groups], strict=True)])
    g, c, owners, entries = np.arange(len(groups)), np.zeros(len(groups), int), [], []
    while len(g):
        d = np.maximum(np.maximum(low[g] - t.com[c], t.com[c] - high[g]), 0)
        far = theta**2 * np.einsum("ij,ij->i", d, d) > t.side[c] ** 2
        leaf = ~far & (t.children[c] == 0)
        bodies = t.end[c[leaf]] - t.first[c[leaf]]
        owners += [g[far], np.repeat(g[leaf], bodies)]
        entries += [len(t.x) + c[far], ranges(t.first[c[leaf]], bodies)]
        near = ~far & ~leaf
        g, c = (
            np.repeat(g[near], t.children[c[near]]),
            ranges(t.child[c[near]], t.children[c[near]]),
        )
    owner, entry = np.concatenate(owners), np.concatenate(entries).astype(np.int32)
    return np.bincount(owner, minlength=len(groups)), entry[np.argsort(owner, kind="stable")]


def offsets(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.longlong)


@dataclass
class Job:
    """The arguments of g6x_walks; i particles are the first of xj."""

    i_start: np.ndarray
    j_start: np.ndarray
    chosen: np.ndarray
    xj: np.ndarray
    mj: np.ndarray

    @property
    def ni(self):
        return int(self.i_start[-1])

    @property
    def interactions(self):
        return int((np.diff(self.i_start) * np.diff(self.j_start)).sum())

    def first(self, walks):
        n = self.j_start[walks]
        return Job(self.i_start[: walks + 1], self.j_start[: walks + 1], self.chosen[:n], self.xj,
                   self.mj)  # fmt: skip


def job_of(n, most, theta):
    model = plummer(n, seed=1)
    t = octree(model.pos, model.mass)
    groups = groups_of(t, most)
    parts = [lists_of(t, groups[k : k + GROUPS_AT_ONCE], theta)
             for k in range(0, len(groups), GROUPS_AT_ONCE)]  # fmt: skip
    counts, lists = zip(*parts, strict=True)
    return Job(offsets(t.end[groups] - t.first[groups]), offsets(np.concatenate(counts)),
               np.concatenate(lists), np.concatenate([t.x, t.com]),
               np.concatenate([t.m, t.mass]))  # fmt: skip


def pointers(*arrays):
    """Pointers to rows of three and to single numbers."""
    return [pointer(a, "double[][3]" if a.ndim == 2 else "double[]") for a in arrays]


def seconds_of(call, *arguments):
    began = time.perf_counter()
    check(call(CLUSTER, *arguments), CLUSTER)
    return time.perf_counter() - began


def walk(job, acc, pot, copies=None):
    """A call's seconds; `copies`: the entries themselves."""
    walks = len(job.i_start) - 1
    start = [pointer(a, "long long[]") for a in (job.i_start, job.j_start)]
    chosen = ffi.NULL if copies else pointer(job.chosen, "int[]")
    x, xj, mj, to, phi = pointers(job.xj, *(copies or (job.xj, job.mj)), acc, pot)
    return seconds_of(lib.g6x_walks, walks, start[0], x, start[1], chosen, len(job.xj), xj, mj,
                      EPS2, to, phi)  # fmt: skip


def plain(job, acc, pot):
    """Seconds of the calls for each group in turn."""
    total, null = 0.0, ffi.NULL
    lib.g6x_set_int(CLUSTER, lib.G6X_JERK, 0)
    most = int(np.diff(job.i_start).max())
    zero, nothing = np.zeros((most, 3)), np.zeros(most)
    jerk = np.empty((most, 3))
    for w in range(len(job.i_start) - 1):
        rows = slice(job.i_start[w], job.i_start[w + 1])
        chosen = job.chosen[job.j_start[w] : job.j_start[w + 1]]
        label, index = pointer(chosen, "int[]"), np.arange(rows.start, rows.stop, dtype=np.int32)
        xj, mj, ni, nj = job.xj[chosen], job.mj[chosen], len(index), len(chosen)
        x, zeros, h2, to, j, phi, xs, ms = pointers(job.xj[rows], zero, nothing, acc[rows], jerk,
                                                    pot[rows], xj, mj)  # fmt: skip
        who = pointer(index, "int[]")
        total += seconds_of(lib.g6x_set_j_particles, nj, null, label, null, null, ms, null, null,
                            null, null, xs)  # fmt: skip
        total += seconds_of(lib.g6calc_firsthalf, nj, ni, who, x, zeros, zeros, zeros, h2, EPS2, h2)
        total += seconds_of(lib.g6calc_lasthalf, nj, ni, who, x, zeros, EPS2, h2, to, j, phi)
    return total


def summary(job, seconds):
    best = min(seconds)
    return {"walks": len(job.i_start) - 1, "targets": job.ni, "interactions": job.interactions,
            "seconds": seconds, "median": statistics.median(seconds), "best": best,
            "interactions_per_second": job.interactions / statistics.median(seconds)}  # fmt: skip


def timed(job, rounds):
    acc, pot = np.empty((job.ni, 3)), np.empty(job.ni)
    walk(job, acc, pot)  # compiles, and finds memory
    numbers = summary(job, [walk(job, acc, pot) for _ in range(rounds)])
    part = job.first(max(1, (len(job.i_start) - 1) // 10))
    single, one_by_one, phi = np.empty((part.ni, 3)), np.empty((part.ni, 3)), np.empty(part.ni)
    copies = job.xj[part.chosen], job.mj[part.chosen]
    walk(part, single, phi, copies)
    copied = summary(part, [walk(part, single, phi, copies) for _ in range(rounds)])
    plain(part.first(2), one_by_one, phi)
    grouped = summary(part, [plain(part, one_by_one, phi)])
    lib.g6x_set_int(CLUSTER, lib.G6X_PRECISION, 1)
    exact = np.empty((part.ni, 3))
    walk(part, exact, phi)
    rate, gain = numbers["interactions_per_second"], numbers["interactions_per_second"]
    gain /= grouped["interactions_per_second"]
    return {
        "numbers": numbers, "copies": copied, "plain": grouped,
        "median_error": float(np.median(relative(acc[: part.ni], exact))),
        "median_error_plain": float(np.median(relative(one_by_one, exact))),
        "time_over_goal": GOAL_RATE / rate, "gain": gain,
        "met": bool(rate >= GOAL_RATE / GOAL_SLACK and gain >= GOAL_GAIN),
    }  # fmt: skip


def walks(options):
    job = job_of(options.n, options.group, options.theta)
    check(lib.g6x_open(CLUSTER, getattr(lib, f"G6X_BACKEND_{options.backend.upper()}")))
    groups = len(job.i_start) - 1
    yield {
        "backend": text(lib.g6x_backend, CLUSTER), "n": options.n, "theta": options.theta,
        "eps2": EPS2, "mean_group": job.ni / groups,
        "mean_group_of_a_body": float((np.diff(job.i_start) ** 2).sum() / job.ni),
        "mean_list": len(job.chosen) / groups, "mean_list_of_a_body": job.interactions / job.ni,
        **timed(job, options.rounds),
    }  # fmt: skip


if __name__ == "__main__":
    run(__doc__, {"walks": walks}, gpu=lambda part, options: options.backend == "cuda",
        n={"type": int, "default": 4_000_000},
        group={"type": int, "default": 2000, "help": "most bodies"},
        theta={"type": float, "default": 0.5},
        rounds={"type": int, "default": 5},
        backend={"choices": ["cpu", "cuda"], "default": "cuda"})  # fmt: skip
