"""``Tree`` and ``Leapfrog`` with CuPy's own arrays on a true GPU: as many particles as the fake
device would take too long for. See also test_tree_on_gpu.py and test_leapfrog_on_gpu.py."""

import numpy as np
import pytest

from fake_gpu import assert_equal_bits
from grape6py import Leapfrog, Tree, models, reference
from integrations import same
from particles import relative
from samples import SAMPLES

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu
N = 20000


@pytest.fixture(scope="module", params=SAMPLES)
def pair(request):
    """Mass and positions of a sample, its tree on the GPU and that on the host."""
    mass, pos = SAMPLES[request.param](N, 41)
    with Tree(cupy.asarray(pos), cupy.asarray(mass)) as device, Tree(pos, mass) as host:
        yield mass, pos, device, host


@pytest.mark.parametrize("blocks", [0, 8192], ids=["warps", "blocks"])  # a group
@pytest.mark.parametrize("method", ["fmm", "bh"])
def test_forces_are_as_good_as_the_hosts(pair, method, blocks, monkeypatch):
    monkeypatch.setattr("grape6py.cuda.tree.octree.BLOCKS", blocks)
    mass, pos, device, host = pair
    rows = np.arange(0, len(pos), 100)
    exact = reference.direct_sum(mass, pos, rows=rows, eps2=1e-4).acc
    found, expected = (tree.forces(eps=0.01, theta=0.5, method=method) for tree in (device, host))
    assert isinstance(found.acc, cupy.ndarray)
    for share in (0.5, 0.99):
        error, usual = (np.quantile(relative(acc[rows], exact), share)
                        for acc in (found.acc.get(), expected.acc))  # fmt: skip
        assert error < 6 * usual + 2e-6
    assert np.median(np.abs(found.pot.get() / expected.pot - 1)) < 1e-4
    again = device.forces(eps=0.01, theta=0.5, method=method)
    assert_equal_bits(again[:2], [found.acc.get(), found.pot.get()])
    few = {"targets": cupy.asarray(pos[rows]), "self_index": cupy.asarray(rows)}
    alone = device.forces(eps=0.01, theta=0.5, method=method, **few)
    error = relative(alone.acc.get(), exact)
    assert np.median(error) < 6 * np.median(relative(expected.acc[rows], exact)) + 2e-6
    again = device.forces(eps=0.01, theta=0.5, method=method, **few)
    assert_equal_bits(again[:2], [alone.acc.get(), alone.pot.get()])


def test_searches_have_the_hosts_bits(pair):
    _, pos, device, host = pair
    rng = np.random.default_rng(1)
    low, high = pos.min(axis=0), pos.max(axis=0)
    targets = rng.uniform(low - (high - low) / 5, high + (high - low) / 5, (999, 3))
    own = np.full(len(targets), -1)  # a third of them are particles
    own[::3] = rng.integers(0, len(pos), 333)
    targets[::3] = pos[own[::3]]
    on_gpu = {"targets": cupy.asarray(targets), "self_index": cupy.asarray(own)}
    on_host = {"targets": targets, "self_index": own}
    for k in (1, 8, 100):
        assert_equal_bits(device.nearest(k), host.nearest(k))
        assert_equal_bits(device.nearest(k, **on_gpu), host.nearest(k, **on_host))
    near = host.nearest(30).distance[:, -1]
    for radius in (0.0, near, 2 * np.median(near)):
        there = cupy.asarray(radius) if np.ndim(radius) else radius
        assert_equal_bits(device.neighbours(there, csr=True), host.neighbours(radius, csr=True))
    radius = np.where(np.arange(999) % 50, np.median(near), np.inf)
    found = device.neighbours(cupy.asarray(radius), **on_gpu, csr=True)
    assert_equal_bits(found, host.neighbours(radius, **on_host, csr=True))
    found = device.neighbours(0.0, **on_gpu)
    assert_equal_bits(found, host.neighbours(0.0, **on_host))


STEPS = [{"dt": 1 / 64}, {"dt_max": 1 / 32, "eta": 0.01}]


def make(xp=np, **options):
    return Leapfrog(*map(xp.asarray, models.plummer(N, 1)), eps=0.02, theta=0.5, **options)


@pytest.mark.parametrize("options", STEPS, ids=str)
def test_bodies_move_as_on_the_host_wherever_they_come_from_and_files_go_on(tmp_path, options):
    device, put, half = make(cupy, **options), make(**options), make(**options)
    host, start = make(backend="cpu-tree", **options), device.energy().total
    assert isinstance(device.pos, cupy.ndarray)
    assert isinstance(put.pos, np.ndarray)
    half.evolve(0.11)
    half.save(tmp_path / "a.h5")
    again = Leapfrog.load(tmp_path / "a.h5")
    for galaxy in (device, put, again, host):
        galaxy.evolve(0.25)
    for galaxy in (put, again):
        assert galaxy.backend == device.backend
        assert same(device, galaxy)
    assert device.backend.startswith("cuda-tree")
    assert device.steps == pytest.approx(host.steps, rel=0.001)
    assert np.median(np.abs(device.pos.get() - host.pos)) < 1e-5
    assert device.energy().total == pytest.approx(host.energy().total, rel=1e-5)
    assert device.energy().total == pytest.approx(start, rel=1e-3)
