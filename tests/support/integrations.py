"""Integrations of every kind, and the ways in which they go on: for tests of what they share."""

import copy
import pickle

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, plummer, reference

HERMITE = [(Hermite, {"dt_max": 1 / 8}), (Hermite, {"dt": 1 / 64, "passes": 2})]
LEAPFROG = [(Leapfrog, {"dt": 1 / 64, "backend": "cpu"}),
            (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu"})]  # fmt: skip
DIRECT = HERMITE + LEAPFROG
TREES = [(Leapfrog, {"dt": 1 / 64, "backend": "cpu-tree"}),
         (Leapfrog, {"dt_max": 1 / 16, "backend": "cpu-tree"}),
         (Leapfrog, {"dt": 1 / 64, "backend": "cpu-tree", "accuracy": 1e-3})]  # fmt: skip
MIXED = [DIRECT[0], DIRECT[1], DIRECT[2], TREES[1]]
BOTH = [(Hermite, {}), DIRECT[2]]


def each(cases):
    """A test runs on all of these."""
    names = [f"{kind.__name__} {' '.join(map(str, o.values()))}" for kind, o in cases]
    return pytest.mark.parametrize(("kind", "options"), cases, ids=names)


def made(kind=Hermite, n=32, seed=1, particles=None, eps=1 / 16, **options):
    """An integration of Plummer's sphere, or of these bodies; of direct sums in double."""
    more = {} if "tree" in options.get("backend", "") else {"precision": "double"}
    particles = plummer(n, seed) if particles is None else particles
    return kind(*particles, eps=eps, **more | options)


def total_of(h, field=None):
    """The energy, by the oracle."""
    m, x, v = h.particles()
    total = float(reference.energy(m, x, v, eps2=1 / 256, extended=True).total)
    return total if field is None else total + (m * field(0.0, x, v).pot).sum()


def error_of(cluster, *times):
    """The largest relative error of the energy at these times, by the oracle."""

    def energy():
        eps2 = cluster.settings["eps"] ** 2
        return reference.energy(*cluster.particles(), eps2=eps2, extended=True).total

    start, worst = energy(), 0.0
    for time in times:
        cluster.evolve(time)
        worst = max(worst, float(abs(energy() / start - 1)))
    return worst


def evolve(integrations, *times):
    for time in times:
        for each in integrations:
            each.evolve(time)


def same(one, other):
    """Whether their states have the same bits."""
    states = one.state(), other.state()
    return all(np.array_equal(states[0][k], states[1][k]) for k in states[0])


def assert_same(one, other, names=None):
    """Bodies, counts and state, or these names of it, have the same bits."""
    states = one.state(), other.state()
    assert names or states[0].keys() == states[1].keys()
    for name in names or states[0]:
        assert np.array_equal(states[0][name], states[1][name]), name
    for name in ("time", "steps", "blocks", "ids", "mass", "pos", "origin"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def _through_file(h, folder, **more):
    h.save(folder / "a.h5")
    return type(h).load(folder / "a.h5", **more)


WAYS = {
    "copy": lambda h, *_, **__: h.copy(), "deepcopy": lambda h, *_, **__: copy.deepcopy(h),
    "pickle": lambda h, *_, **__: pickle.loads(pickle.dumps(h)), "file": _through_file,
}  # fmt: skip
