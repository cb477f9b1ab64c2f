"""CuPy's own arrays in the calls of Grape6 and Tree, on a true GPU: what it alone has, streams and
memory. The rest of test_arrays_*.py and test_tree_on_gpu.py that runs there is marked so. Which
of several GPUs computes is tested on a stand-in (test_cuda_devices.py)."""

import gc
import time

import numpy as np
import pytest

from fake_gpu import assert_equal_bits
from grape6py import Grape6, Tree, errors, plummer

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu
N = 5000
MASS, POS, VEL = plummer(N, seed=21)
SLOW = r"""
extern "C" __global__ void late(double *to, const double *from, int n, long long cycles)
{
    const long long start = clock64();
    while (clock64() - start < cycles) continue;
    for (int k = threadIdx.x; k < n; k += blockDim.x) to[k] = from[k];
}
"""


@pytest.fixture
def late():
    """Makes arrays of all particles that a slow kernel is still writing."""
    kernel = cupy.RawKernel(SLOW, "late")
    truth = [cupy.asarray(a) for a in (MASS, POS, VEL)]
    cupy.cuda.Device().synchronize()

    def make():
        made = [cupy.full_like(a, cupy.nan) for a in truth]
        for to, source in zip(made, truth, strict=True):
            kernel((1,), (256,), (to, source, np.int32(source.size), np.int64(200_000_000)))
        return made

    return make


@pytest.fixture(params=[False, True], ids=["blocking", "non-blocking"])
def stream(request):
    return cupy.cuda.Stream(non_blocking=request.param)


@pytest.fixture
def device():
    with Grape6(backend="cuda") as grape:
        yield grape


def test_the_current_stream_comes_first(device, late, stream):
    with Grape6(backend="cuda") as host:
        host.set_particles(MASS, POS, VEL)
        expected = host.forces(POS[:3000], VEL[:3000], np.arange(3000), nn=True)
    index = cupy.arange(3000, dtype=cupy.int32)
    with stream:
        late()
        stream.synchronize()
        start = time.perf_counter()
        made = late()
        assert time.perf_counter() - start < 0.1  # the kernels are still at work
        device.set_particles(*made)
        _, pos, vel = late()
        found = device.forces(pos[:3000], vel[:3000], index, nn=True)
        doubled = (found.acc * 2).get()
    assert_equal_bits(found[:5], expected[:5])
    assert np.array_equal(doubled, expected.acc * 2)


def test_the_current_stream_comes_first_for_trees(late, stream):
    expected = Tree(POS, MASS).nearest(3, POS[:3000])
    with stream:
        mass, pos, _ = late()
        tree = Tree(pos, mass)
        found = tree.nearest(3, late()[1][:3000])
    assert_equal_bits(found, expected)
    with cupy.cuda.Stream(non_blocking=True):  # a tree may be used on any
        assert_equal_bits(tree.nearest(3, cupy.asarray(POS[:3000])), expected)


def test_memory_does_not_leak(device):
    with cupy.cuda.Device(device._board.option("DEVICE")):  # there may be several
        arrays = [cupy.asarray(a) for a in (MASS, POS, VEL)]
    pool, used = cupy.get_default_memory_pool(), []
    for _ in range(20):
        device.set_particles(*arrays)
        device.forces(arrays[1], arrays[2], nn=True)
        used.append(pool.used_bytes())
    assert used[-1] == used[5]


def test_memory_of_trees_comes_back():
    pos, mass = cupy.asarray(POS), cupy.asarray(MASS)
    pool, used = cupy.get_default_memory_pool(), []
    for _ in range(5):
        with Tree(pos, mass) as tree:
            tree.forces(pos[:100])
            tree.nearest(3)
        used.append(pool.used_bytes())
    assert used[-1] == used[1]
    tree = Tree(pos, mass)
    before, many = tree.nearest(3).index, cupy.tile(pos, (64, 1))
    gc.collect()  # what other tests have left
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + 1_000_000)
    try:
        with pytest.raises(errors.OutOfMemoryError):
            tree.neighbours(np.inf, many)  # more than is free in blocks that are in use
    finally:
        pool.set_limit(size=0)
    assert_equal_bits([tree.nearest(3).index], [before.get()])
