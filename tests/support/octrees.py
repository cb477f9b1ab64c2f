"""Sessions of the backend cpu-tree, or cuda-tree where a test runs on that; what they are compared
with, and sets that get a tree.

Fixtures: `tree`, `board`, `oracle`; conftest.py hands them to the tests."""

import itertools

import numpy as np
import pytest

import capi
from capi import CONSTANTS, call
from particles import cloud
from samples import bodies

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


def whole_of(mass, pos, vel=None):
    """The numbers of a struct tree_whole."""
    fastest = -1.0 if vel is None else np.abs(vel).max()
    mean = np.zeros(3) if vel is None else np.abs(mass) @ vel / np.abs(mass).sum()
    scalars = [np.abs(mass).max(), len(mass), fastest]
    return np.array([*pos.min(axis=0), *pos.max(axis=0), *scalars, *mean, np.abs(mass).sum()])


def sample(name, n=N):
    """A cloud, or one with the places and masses of a set of samples.py."""
    source = cloud(n, seed=8)
    if name == "unequal":
        source.mass[:] = 10.0 ** np.random.default_rng(7).uniform(-6, 0, n)
    elif name != "blob":
        mass, pos, _ = bodies(name, n)
        source = source.take(range(len(mass)))
        source.mass[:], source.x[:] = mass, pos
    return source


def filled(name, *sessions, n=N):
    source = sample(name, n)
    for session in sessions:
        session.put_cloud(source)
    return source


def force_of(session, source, rows=slice(None), **more):
    return session.force(len(source), source.x[rows], source.v[rows], source.index[rows], **more)
