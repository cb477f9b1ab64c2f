"""What tests of the CUDA backend share: its sessions, and those of the CPU beside."""

import contextlib

import pytest

import backends
import capi
from particles import cloud

N = 3000
TIME = 0.375
SOURCE = cloud(N, seed=71, moving=True)
X, V = (a.astype(float) for a in SOURCE.at(TIME))


def on_gpu(session):
    return capi.text("g6x_backend", session.cluster)[1].startswith("cuda ")


@pytest.fixture
def cpu():
    @contextlib.contextmanager
    def context(**options):
        with backends.chosen("cpu"):
            session = capi.Session(1, **options)
            assert not on_gpu(session)
            yield session
            session.close()

    return context


@pytest.fixture
def make(new_session, mode):
    def filled(source=SOURCE, time=TIME, **options):
        session = new_session(**{"precision": mode} | options)
        assert on_gpu(session)
        return fill(session, source, time)

    return filled


def fill(session, source=SOURCE, time=TIME):
    assert session.put_cloud(source) == 0
    assert session.set_ti(time) == 0
    return session


def run(session, rows=slice(None), **options):
    options = {"eps2": 1e-6, **options}
    found = session.force(N, X[rows], V[rows], SOURCE.index[rows], **options)
    assert found.code == 0, session.error()
    return found


def bits(found):
    return found.bits() + found.nearest.tobytes()
