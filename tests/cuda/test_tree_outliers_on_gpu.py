"""Particles that no one box resolves, in arrays of a CUDA device: as good as the host's tree.

The device is the stand-in for a GPU, CuPy that of fake_arrays.py.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import capi
import fake_arrays
from fake_gpu import assert_equal_bits
from grape6py import Leapfrog, Tree, plummer
from grape6py._lib.tree_setting import Setting
from grape6py.cuda.tree import request as host_tree
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
def test_forces_are_the_hosts(put, unresolved, method, eps):
    mass, pos, vel = unresolved
    which = np.arange(0, len(pos), 3)
    with Tree(put(pos), put(mass), put(vel)) as device, Tree(pos, mass, vel) as host:
        found = device.forces(eps=eps, method=method)
        assert_equal_bits(found, host.forces(eps=eps, method=method))
        targets = (put(pos[which]), put(vel[which]))
        found = device.forces(*targets, eps=eps, method=method, self_index=put(which))
        expected = host.forces(pos[which], vel[which], eps=eps, method=method, self_index=which)
        assert_equal_bits(found, expected)


def test_searches_are_the_hosts(put, unresolved):
    mass, pos, _ = unresolved
    with Tree(put(pos), put(mass)) as device, Tree(pos, mass) as host:
        assert_equal_bits(device.nearest(3), host.nearest(3))
        radius = np.full(len(pos), 1e-7)
        found = device.neighbours(put(radius), csr=True)
        assert_equal_bits(found, host.neighbours(radius, csr=True))


def test_particles_that_one_box_resolves_stay_on_the_device(put, cupy):
    """Places of a few particles each, and far bodies that leave the others their digits."""
    pos = np.vstack([POS, POS[:50], POS[:50], [1e4, 0, 0]])
    from grape6py.cuda.tree import device_tree

    tree = Octree(device_tree.gpu_of(0), put(pos), put(np.ones(len(pos))))
    tree.forces(Setting(0.5, 5, 1e-4))
    assert not tree.unresolved


def test_a_leapfrog_does_not_feel_a_massless_far_body(put):
    with_one = np.append(MASS, 1e-30), np.vstack([POS, [1e16, 0, 0]]), np.vstack([VEL, [0, 0, 0]])
    device = Leapfrog(*map(put, with_one), eps=0.1, dt=1 / 16)
    host = Leapfrog(*with_one, eps=0.1, dt=1 / 16, backend="cpu-tree")
    for bodies in device, host:
        bodies.evolve(0.25)
    assert isinstance(device.pos, fake_arrays.Array)
    for ours, theirs in zip(device.particles()[:3], host.particles()[:3], strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_the_session_is_told(tree_gpu):
    """Of a tree behind the force calls: the library then sums it by itself."""
    pos, mass, eps2, acc, pot = SETS["far"], np.ones(N + 1), np.zeros(N + 1), [None], []
    job = SimpleNamespace(x=pos, v=None, m=mass, at=pos, velocity=None, eps2=eps2, acc=acc,
                          jerk=None, pot=pot, self=None, sources=N + 1, targets=N + 1, changed=1,
                          devices=1, device=[0], order=5, theta=0.5, unresolved=0)  # fmt: skip
    host_tree.SessionTree(tree_gpu).answer(job, lambda field, *shape: field)
    assert job.unresolved == 1
    assert acc == [None]


SESSION = """
pos, mass = np.vstack([cloud(3000).x, [1e13, 0, 0]]), np.full(3001, 1 / 3001)
source = cloud(3001); source.x[:], source.mass[:] = pos, mass
s = Session(0); s.put_cloud(source)
found = s.force(3001, source.x, source.v, source.index, eps2=1e-4)
right = direct(source.x[::9], source.v[::9], source.index[::9], source, eps2=1e-4)
print(found.code, np.median(relative(found.acc[::9], right[0])))
"""


def test_a_session_is_as_good_as_on_the_cpu(fake_gpu, library_of):
    env = {"GRAPE6_TEST_FAKE_GPU": str(fake_gpu),
           "GRAPE6_TEST_LIBRARY": str(library_of("cuda-tree")),
           "GRAPE6_TEST_TREE": "always"}  # fmt: skip
    found = [capi.run_python(SESSION, GRAPE6_BACKEND=backend, **env).stdout.split()
             for backend in ("cuda-tree", "cpu-tree")]  # fmt: skip
    (code, error), (_, expected) = found
    assert (int(code), float(error)) == (0, pytest.approx(float(expected), rel=0.01))
