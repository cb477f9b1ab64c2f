"""A GPU on the CPU (tests/c/fake_gpu.h): the kernels of grape6py/cuda are compiled for the CPU, if
they have changed, and their library takes the driver's place (fake_device.py). What launches the
kernels of the tree by themselves, and tests of these share."""

import ctypes
import functools
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import capi
import fake_arrays
import tools
from fake_device import FakeGpu
from grape6py._lib.device_place import is_on_device
from grape6py.cuda.tree import device_tree, octree, settings
from once import kept
from tools import run as compile_with

DRIVER = "libcuda.so.1"

# gcc 12's SLP vectoriser spoils the low parts of split doubles.
KERNELS = capi.ROOT / "grape6py/cuda/kernels"
FLAGS = """-std=c++17 -O1 -march=native -ffp-contract=off -fno-tree-slp-vectorize -fPIC -Wall
    -Wno-unknown-pragmas -Wno-unused-function -DGRAPE6_ON_CPU="fake_gpu.h" """.split()
FLAGS += [f"-I{folder}" for folder in (capi.ROOT / "csrc", KERNELS, capi.TESTS / "c")]


def build(folder):
    """Compiles the kernels in all modes, as a library of the driver's name."""
    compiler = tools.need("g++")
    tools.need_bridge()
    folder.mkdir(parents=True, exist_ok=True)
    jobs = []

    def add(source, out, *defines):
        jobs.append([compiler, "-x", "c++", *FLAGS, *defines, "-c", source, "-o", folder / out])

    add(capi.TESTS / "c/fake_gpu.cc", "fake_gpu.o", "-O3")
    for mode, number in capi.MODES.items():
        source = KERNELS / "direct/direct.cu"
        add(source, f"{mode}.o", f"-DMODE={number}", f"-DFAKE_GPU_MODE={mode}")
    of_trees = "-DFAKE_GPU_MODE=tree"
    orders = [[f"-DTREE_ORDER={order}", f"-DTREE_SOFT={soft}", f"-DTREE_OWN={own}"]
              for order in range(2, 7) for soft in range(2) for own in range(2)]  # fmt: skip
    for number, order in enumerate([[], *orders]):
        add(KERNELS / "tree/tree.cu", f"tree_{number}.o", "-DMODE=2", of_trees, *order)
    for name in ("leapfrog", "field"):
        add(KERNELS / f"{name}.cu", f"{name}.o", "-DMODE=1", of_trees)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_with, jobs))
    link = ["-shared", f"-Wl,-soname,{DRIVER}", *(job[-1] for job in jobs)]
    compile_with([compiler, *link, "-o", folder / DRIVER])


@pytest.fixture(scope="session")
def fake_gpu():
    """Path of the library that stands in for a GPU."""
    sources = [*KERNELS.rglob("*.cu*"), *KERNELS.rglob("*.h"), *(capi.ROOT / "csrc").rglob("*.h"),
               *(capi.TESTS / "c").glob("fake_gpu.*"), Path(__file__)]  # fmt: skip
    return kept("fake_gpu", sources, build) / DRIVER


@pytest.fixture
def cupy(on_backend, monkeypatch, request):
    """CuPy; without a GPU one whose arrays lie on the fake device, of which trees are then."""
    if on_backend == "gpu":
        return pytest.importorskip("cupy")
    module = fake_arrays.install(monkeypatch)
    made = functools.cache(
        lambda _: FakeGpu(ctypes.CDLL(request.getfixturevalue("fake_gpu")), module)
    )
    monkeypatch.setattr(device_tree, "gpu_of", made)
    return module


@pytest.fixture
def put(cupy, on_backend, monkeypatch):
    """Puts an array on the device. Without a GPU, groups of trees have a warp each."""
    if on_backend != "gpu":
        monkeypatch.setattr(octree, "BLOCKS", 0)
    return cupy.asarray


WARPS_AND_BLOCKS = pytest.mark.parametrize("tree_gpu", [0, 8192], ids=["warps", "blocks"],
                                           indirect=True)  # fmt: skip


@pytest.fixture(params=[0], ids=["warps"])
def tree_gpu(fake_gpu, monkeypatch, request):
    """Groups have a warp each, as if there were many; or CUDA blocks, up to the given number."""
    monkeypatch.setattr(octree, "BLOCKS", request.param)
    return FakeGpu(ctypes.CDLL(str(fake_gpu)))


def shortened(monkeypatch, fake_gpu, *capacities):
    """Has lists begin with so many entries: of level-2 and level-1 groups, groups, the longest."""
    fake_gpu.capacities.clear()
    monkeypatch.setattr(settings.Capacities, "of",
                        lambda *_: settings.Capacities(*([*r] for r in capacities)))  # fmt: skip


def assert_equal_bits(found, expected):
    """Arrays of a device, with those of the host's."""
    for ours, theirs in zip(found, expected, strict=True):
        assert is_on_device(ours)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()
