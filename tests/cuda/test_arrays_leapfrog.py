"""Leapfrog integrations of a session on a device. What is promised: bodies live there, with the
bits of the same integration with bodies on the host and forces of the device.
"""

import sys

import numpy as np
import pytest

import backends
from grape6py import Leapfrog, plummer
from grape6py.integrators.gravity import DeviceTrees, HostTrees

pytestmark = pytest.mark.backends("cuda")

BODIES, EPS = plummer(20000 if backends.has_gpu else 200, 1), 0.05


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize(
    "options",
    [{"dt": 1 / 64}, {"dt_max": 1 / 32, "eta": 0.01}, {"dt": 1 / 64, "boundary": 2.0},
     {"dt": 1 / 64, "precision": "grape"}], ids=str)  # fmt: skip
def test_leapfrogs_of_the_direct_sum_have_the_bits_of_the_host(cupy, monkeypatch, options):
    options = {"eps": EPS, "backend": "cuda", "precision": "double"} | options
    given = Leapfrog(*(cupy.asarray(array) for array in BODIES), **options)
    put = Leapfrog(*BODIES, **options)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cupy", None)
        host = Leapfrog(*BODIES, **options)
    start = host.energy().total
    for galaxy in (given, put, host):
        galaxy.evolve(0.3)
        for name, array in galaxy.state().items():
            assert array.tobytes() == given.state()[name].tobytes(), name
        assert galaxy.energy() == given.energy()
        assert (galaxy.n, galaxy.steps, galaxy.blocks) == (given.n, given.steps, given.blocks)
    assert isinstance(given.pos, cupy.ndarray)
    assert isinstance(put.pos, np.ndarray)
    assert host._blocks._arrays.xp is np
    assert "boundary" in options or host.energy().total == pytest.approx(start, rel=1e-3)


@pytest.mark.parametrize("backend", ["tree", "cuda-tree"])
def test_leapfrogs_of_trees_go_to_the_card_by_themselves(cupy, backend):
    options = {"dt": 1 / 64, "eps": EPS, "backend": backend}
    given, put = (Leapfrog(*map(to, BODIES), **options)
                  for to in (cupy.asarray, np.asarray))  # fmt: skip
    for galaxy in (given, put):
        assert isinstance(galaxy._forces, DeviceTrees)
        galaxy.evolve(0.1)
    assert isinstance(put.pos, np.ndarray)
    assert np.array_equal(put.pos, given.pos.get())
    assert put.backend == given.backend


def test_leapfrogs_of_trees_stay_on_the_host_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    galaxy = Leapfrog(*BODIES, dt=1 / 64, eps=EPS, backend="tree")
    assert isinstance(galaxy._forces, HostTrees)
    assert galaxy.backend.startswith("cpu-tree")
