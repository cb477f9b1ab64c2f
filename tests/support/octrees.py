"""Sessions of the backend cpu-tree, or cuda-tree where a test runs on that; what they are compared
with, and sets that get a tree.

Fixtures: `tree`, `board`, `oracle`; conftest.py hands them to the tests.
"""

import itertools

import numpy as np
import pytest

import capi
from capi import CONSTANTS, call
from particles import cloud

N = 5000  # more than the 4096 that are summed directly
EPS2 = 1e-4
_ids = itertools.count(500_000)


def new_id():
    return next(_ids)


def opened(backend, **options):
    cluster = new_id()
    assert call("g6x_open", cluster, CONSTANTS[f"G6X_BACKEND_{backend}"]) == 0
    session = capi.Session(cluster, **options)
    set_double(session, "G6X_THETA", 0.5)
    return session


def tree_of(backend):
    return "CUDA_TREE" if backend == "cuda-tree" else "CPU_TREE"


@pytest.fixture
def tree(on_backend):
    session = opened(tree_of(on_backend))
    yield session
    session.close()


@pytest.fixture
def board(on_backend):
    """The direct sum with the bits that the tree's own direct sums have."""
    session = opened("CUDA" if on_backend == "cuda-tree" else "CPU")
    yield session
    session.close()


@pytest.fixture
def oracle():
    session = opened("CPU", precision="double")
    yield session
    session.close()


def set_double(session, key, value):
    assert call("g6x_set_double", session.cluster, CONSTANTS[key], value) == 0


def plummer(n, rng):
    radius = 1 / np.sqrt(rng.uniform(0.001, 0.999, n) ** (-2 / 3) - 1)
    direction = rng.standard_normal((n, 3))
    return radius[:, None] * direction / np.linalg.norm(direction, axis=1)[:, None]


def sample(name, n=N):
    rng = np.random.default_rng(7)
    source = cloud(n, seed=8)
    if name == "plummer":
        source.x[:] = plummer(n, rng)
    elif name == "lattice":
        side = np.arange(np.ceil(n ** (1 / 3)))
        source.x[:] = np.stack(np.meshgrid(side, side, side), -1).reshape(-1, 3)[:n]
    elif name == "clustered":
        source.x[:] = plummer(n, rng) * 0.01 + rng.standard_normal((20, 3))[rng.integers(0, 20, n)]
    elif name == "flat":
        source.x[:, 2] = 0
    elif name == "offset":
        source.x[:] = plummer(n, rng) + np.array([1e5, -1e5, 3e4])
    elif name == "unequal":
        source.mass[:] = 10.0 ** rng.uniform(-6, 0, n)
    return source


def filled(name, *sessions, n=N):
    """A sample that all of them hold."""
    source = sample(name, n)
    for session in sessions:
        session.put_cloud(source)
    return source


def force_of(session, source, rows=slice(None), **more):
    return session.force(len(source), source.x[rows], source.v[rows], source.index[rows], **more)
