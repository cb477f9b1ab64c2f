"""Particles that no one box resolves, on the stand-in for a GPU: as good as the host's tree."""

import numpy as np
import pytest

from fake_gpu import assert_equal_bits
from grape6py import Tree, plummer
from grape6py._lib.tree_setting import Setting
from grape6py.cuda.tree import device_tree
from grape6py.cuda.tree.octree import Octree

N = 600
MASS, POS, VEL = plummer(N, seed=5)
RNG = np.random.default_rng(6)
SETS = {
    "far": np.vstack([POS, [1e13, 0, 0]]),
    "places": RNG.normal(size=(7, 3))[RNG.integers(0, 7, N + 1)],
    "one place": np.ones((N + 1, 3)),
    "clump": np.vstack([POS[: N - 39], 0.3 + 1e-12 * RNG.normal(size=(40, 3))]),
    "scales": np.vstack([POS[:400], POS[400:] * 10 ** RNG.uniform(0, 150, (200, 1)), POS[:1]]),
    "two": np.array([[0, 0, 0], [1e-9, 0, 0], [1, 0, 0]]),
}


@pytest.fixture(params=SETS)
def unresolved(request, monkeypatch):
    monkeypatch.setattr("grape6py.cuda.tree.build.CROWD", 32)
    pos = SETS[request.param]
    rng = np.random.default_rng(7)
    return rng.random(len(pos)), pos, rng.normal(size=pos.shape)


@pytest.mark.filterwarnings("ignore:.*pairs of a tree at one place")
@pytest.mark.parametrize("eps", [0.1, 0.0])
@pytest.mark.parametrize("method", ["fmm", "bh"])
def test_all_is_the_hosts(put, unresolved, method, eps):
    mass, pos, vel = unresolved
    which, radius = np.arange(0, len(pos), 3), np.full(len(pos), 1e-7)
    device, host = Tree(put(mass), put(pos), put(vel)), Tree(mass, pos, vel)
    setting = {"eps": eps, "method": method}
    assert_equal_bits(device.forces(**setting), host.forces(**setting))
    found = device.forces(put(pos[which]), put(vel[which]), **setting, self_index=put(which))
    expected = host.forces(pos[which], vel[which], **setting, self_index=which)
    assert_equal_bits(found, expected)
    assert_equal_bits(device.nearest(3), host.nearest(3))
    found = device.neighbours(put(radius), csr=True)
    assert_equal_bits(found, host.neighbours(radius, csr=True))


def test_particles_that_one_box_resolves_stay_on_the_device(put, cupy):
    """Places of a few particles each, and far bodies that leave the others their digits."""
    pos = np.vstack([POS, POS[:50], POS[:50], [1e4, 0, 0]])
    tree = Octree(device_tree.gpu_of(0), put(pos), put(np.ones(len(pos))))
    tree.forces(Setting(0.5, 5, 1e-4))
    assert not tree.unresolved
