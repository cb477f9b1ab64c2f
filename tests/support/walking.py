"""Many walks as the tests make them: lists, plain sums of them, and the calls."""

import ctypes
from dataclasses import dataclass, replace

import numpy as np

import capi
from once import by_content


@dataclass
class Walks:
    """Targets of walk w: x[i_start[w]:i_start[w + 1]]; its list: j_start[w] on, among chosen."""

    i_start: np.ndarray
    x: np.ndarray
    j_start: np.ndarray
    chosen: np.ndarray
    xj: np.ndarray
    mj: np.ndarray
    eps2: float = 0.0

    def __len__(self):
        return len(self.i_start) - 1

    def targets(self, w):
        return slice(self.i_start[w], self.i_start[w + 1])

    def entries(self, w):
        return self.chosen[self.j_start[w] : self.j_start[w + 1]]

    def take(self, walks):
        """These walks alone, in this order."""
        xs = [self.x[self.targets(w)] for w in walks]
        lists = [self.entries(w) for w in walks]
        return replace(self, i_start=starts(xs), x=np.concatenate(xs), j_start=starts(lists),
                       chosen=np.concatenate(lists))  # fmt: skip

    def scaled(self, length, mass):
        x, xj, eps2 = map(np.ldexp, (self.x, self.xj, self.eps2), (length, length, 2 * length))
        return replace(self, x=x, xj=xj, mj=np.ldexp(self.mj, mass), eps2=eps2)


def one_walk(x, xj, mj, eps2):
    """All targets with all entries."""
    return Walks(starts([x]), x, starts([xj]), np.arange(len(xj), dtype=np.int32), xj, mj, eps2)


def starts(parts):
    """Offsets of parts that lie one behind the other."""
    return np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.longlong)


def together(job, other):
    """The walks of both, behind each other."""
    return Walks(np.concatenate([job.i_start, other.i_start[1:] + len(job.x)]),
                 np.concatenate([job.x, other.x]),
                 np.concatenate([job.j_start, other.j_start[1:] + len(job.chosen)]),
                 np.concatenate([job.chosen, other.chosen + np.int32(len(job.xj))]),
                 np.concatenate([job.xj, other.xj]),
                 np.concatenate([job.mj, other.mj]),
                 job.eps2)  # fmt: skip


def random_walks(seed=1, sizes=(0, 1, 7, 32, 33, 64, 200, 513, 1100), lengths=None, n=4000,
                 eps2=0.0):  # fmt: skip
    """Groups of neighbours in a clumpy cloud; each group's list has itself, some bodies, and more
    of the others than fit a chunk."""
    rng = np.random.default_rng(seed)
    xj = rng.standard_normal((n, 3)) * rng.uniform(0.01, 3.0, n)[:, None] ** 2
    mj = rng.uniform(0.5, 1.5, n) / n
    order = np.argsort(xj[:, 0])
    xs, lists = [], []
    for k, size in enumerate(sizes):
        own = order[(at := rng.integers(0, n - size)) : at + size]
        others = np.setdiff1d(np.arange(n), own)
        length = lengths[k] if lengths else rng.integers(0, 1500)
        lists.append(rng.permutation(np.concatenate([own, rng.choice(others, length, False)])))
        xs.append(xj[own])
    return Walks(starts(xs), np.concatenate(xs), starts(lists),
                 np.concatenate(lists).astype(np.int32), xj, mj, eps2)  # fmt: skip


@by_content
def expected(job):
    """acc, pot, and the sizes of their terms, by plain sums, a target at a time."""
    acc, pot, size = np.zeros((len(job.x), 3)), *np.zeros((2, len(job.x)))
    for w in range(len(job)):
        x, m = job.xj[job.entries(w)], job.mj[job.entries(w)]
        for i in range(job.i_start[w], job.i_start[w + 1]):
            d = x - job.x[i]
            r = np.sqrt((d * d).sum(axis=1))
            apart = r > 0
            s = np.sqrt(r[apart] ** 2 + job.eps2)
            terms = m[apart, None] * d[apart] / s[:, None] ** 3
            acc[i], pot[i] = terms.sum(axis=0), -(m[apart] / s).sum()
            size[i] = np.sqrt((terms * terms).sum(axis=1)).sum()
    return acc, pot, size


@dataclass
class Found:
    acc: np.ndarray
    pot: np.ndarray
    code: int = 0

    @classmethod
    def blank(cls, n):
        return cls(np.full((n, 3), capi.UNTOUCHED), np.full(n, capi.UNTOUCHED))

    def bits(self, rows=slice(None)):
        return self.acc[rows].tobytes() + self.pot[rows].tobytes()


def by_numbers(session, job, copies=False):
    """g6x_walks with a list of numbers, or with the entries themselves one behind the other."""
    found = Found.blank(len(job.x))
    entries = (None, 0, job.xj[job.chosen], job.mj[job.chosen]) if copies else (
        job.chosen, len(job.xj), job.xj, job.mj)  # fmt: skip
    found.code = capi.call("g6x_walks", session.cluster, len(job), job.i_start, job.x, job.j_start,
                           *entries, job.eps2, found.acc, found.pot)  # fmt: skip
    return found


def by_copies(session, job):
    return by_numbers(session, job, copies=True)


def pointers(arrays):
    """Addresses of arrays, as C has them."""
    return (ctypes.c_void_p * max(len(arrays), 1))(*[a.ctypes.data for a in arrays])


class Flight:
    """A dispatch and its retrieval; of each list the last `cells` entries go as cells."""

    def __init__(self, session, tag, job, cells=0):
        self.session, self.tag, self.job = session, tag, job
        self.ni = np.diff(job.i_start).astype(np.int32)
        lists = [job.entries(w) for w in range(len(job))]
        bodies = [c[: max(len(c) - cells, 0)] for c in lists]
        beyond = [c[max(len(c) - cells, 0) :] for c in lists]
        x = [job.x[job.targets(w)].copy() for w in range(len(job))]
        given = [x] + [[a[c] for c in part] for part in (bodies, beyond) for a in (job.xj, job.mj)]
        nj, nc = (np.array([len(c) for c in part], np.int32) for part in (bodies, beyond))
        xi, xj, mj, xc, mc = (pointers(arrays) for arrays in given)
        self.code = capi.call("g6x_walks_dispatch", session.cluster, tag, len(job), self.ni, xi,
                              nj, xj, mj, nc if cells else None, xc, mc, job.eps2)  # fmt: skip
        for arrays in given:  # the inputs are free again
            for array in arrays:
                array[:] = np.nan

    def retrieve(self, ni=None):
        found = Found.blank(len(self.job.x))
        rows = [self.job.targets(w) for w in range(len(self.job))]
        acc, pot = pointers([found.acc[r] for r in rows]), pointers([found.pot[r] for r in rows])
        found.code = capi.call("g6x_walks_retrieve", self.session.cluster, self.tag,
                               len(self.job), self.ni if ni is None else ni, acc, pot)  # fmt: skip
        return found


def by_pointers(session, job, cells=0, tag=0):
    """The same by dispatch and retrieve."""
    flight = Flight(session, tag, job, cells)
    found = flight.retrieve()
    assert flight.code in (0, found.code)
    return found


FORMS = [by_numbers, by_copies, by_pointers]
LIMITS = {"grape": 2e-6, "single": 2e-6, "double": 1e-13}  # as shares of the sizes of the terms
