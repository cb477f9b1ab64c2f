"""Sessions of the backend cuda-tree with several GPUs: forces as those of ``Tree`` on several, the
neighbours of one, and an error on one of them ends the call on all.

On the stand-in of tests/c/fake_gpu.h, of which there are as many as GRAPE6_DEVICES names.
"""

import contextlib
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import capi
import fake_arrays
import fake_cupy
from grape6py import plummer
from grape6py.cuda import usable
from grape6py.cuda.tree import device_tree, request

N = 3000
MASS, POS, _ = plummer(N, seed=9)

SCRIPT = """
import hashlib, warnings, pytest, fake_arrays, fake_device
from grape6py import Grape6, Tree, errors, plummer, reference
from grape6py.cuda import usable
from grape6py.cuda.tree import device_tree
warnings.simplefilter("ignore")
FAKE_GPU = ctypes.CDLL(os.environ["GRAPE6_TEST_FAKE_GPU"])
cupy = fake_arrays.install(pytest.MonkeyPatch())
cupy.cuda.runtime.getDeviceCount = lambda: 3
GPUS = [fake_device.FakeGpu(FAKE_GPU, cupy) for _ in range(3)]  # of trees that several share
device_tree.gpu_of = GPUS.__getitem__
N, EPS = 3000, 1e-3
usable.SHARE = N // 3
MASS, POS, VEL = plummer(N, seed=9)
INDEX = np.arange(N, dtype=np.int32)

def filled(backend="cuda-tree", precision="double"):
    grape = Grape6(backend=backend, precision=precision)
    grape.set_particles(MASS, POS, VEL)
    return grape

def sharing():
    used = sum(bool(gpu.launched) for gpu in GPUS)
    for gpu in GPUS:
        gpu.launched.clear()
    return used

def relative(found, right):
    found, right = np.c_[found], np.c_[right]
    return np.linalg.norm(found - right, axis=1) / np.linalg.norm(right, axis=1)

def lost(*_):
    raise RuntimeError("gone")

def explain(error):  # as device.explain does with a CUDA error
    code = errors.codes()["DEVICE_LOST"]
    return (code, f"the device failed: {error}") if str(error) == "gone" else None
fake_device.explain = explain
"""


@pytest.fixture(scope="module")
def run(fake_gpu, library_of):
    """What a script prints, by lines, with the library that makes a tree of any particles."""
    made = {
        "GRAPE6_TEST_FAKE_GPU": str(fake_gpu),
        "GRAPE6_TEST_LIBRARY": str(library_of("cuda-tree")),
        "GRAPE6_TEST_TREE": "always",
        "GRAPE6_THETA": "0.6",
    }

    def run(script, devices="0,1,2", **env):
        env = made | {"GRAPE6_DEVICES": devices} | env
        return capi.run_python(SCRIPT + script, timeout=300, **env).stdout.splitlines()

    return run


@pytest.mark.parametrize("method", ["fmm", "bh"])
def test_forces_and_net_momentum_are_those_of_a_tree(run, method):
    """To the last bits, which a session has in mode double."""
    script = """
with filled() as grape, Tree(POS, MASS, VEL, backend="cuda") as tree:
    for step in range(2):
        found = grape.forces(eps=EPS)
        print(sharing())
        setting = dict(eps=EPS, theta=0.6, method=os.environ["GRAPE6_TREE_METHOD"])
        there = tree.forces(POS, VEL, self_index=INDEX, **setting)
        for ours, theirs in zip(found[:3], (there.acc, there.jerk, there.pot)):
            print(relative(ours, theirs).max() < 1e-14)
        print(np.abs(MASS @ found.acc - MASS @ there.acc).max() < 1e-15)
        right = reference.direct_sum(MASS, POS, VEL, eps2=EPS * EPS)
        print(np.median(relative(found.acc, right.acc)) < 1e-3)
        POS[:50] *= 1.1  # of particles that move a new tree is made
        grape.set_particles(MASS[:50], POS[:50], VEL[:50], address=np.arange(50))
        sharing(), tree.close()
        tree = Tree(POS, MASS, VEL, backend="cuda")
"""
    step = ["3", *["True"] * 5]
    assert run(script, GRAPE6_TREE_METHOD=method) == 2 * step


# The calls of old programs: 100 targets at a time, neighbours, pairs at one place, softenings.
OLD = """
session = Session(5, precision="double")
bodies = cloud(N)
bodies.x[:], bodies.v[:], bodies.mass[:] = POS, VEL, MASS
bodies.x[1], bodies.x[2001] = bodies.x[0], bodies.x[2000]
session.put_cloud(bodies)
sharing()
some = bodies.x[:300], bodies.v[:300], bodies.index[:300]
found = session.force(N, *some, block=100, h2=0.01)
print(sharing())
print(text("g6x_last_warning", 5)[1])
near = repr((found.nearest.tolist(), session.neighbour_lists(100)))
print(found.code, hashlib.sha256(near.encode()).hexdigest())
right = reference.direct_sum(MASS, bodies.x, VEL, eps2=0.0)
print(np.median(relative(found.acc, right.acc[:300])) < 1e-3)
eps2 = np.where(np.arange(300) % 3, 0.01, 0.09)
assert session.first(N, *some, eps2, name="g6calc_firsthalf0", more=(0,)) == 0
found = session.last(N, *some, eps2, name="g6calc_lasthalf0", nearest=False, more=(0,))
print(sharing())
for softening in 0.01, 0.09:
    right = reference.direct_sum(MASS, bodies.x, VEL, eps2=softening)
    print(np.median(relative(found.acc, right.acc[:300])[eps2 == softening]) < 1e-3)
for scale in 1e-148, 1e-158:  # forces fit no double
    bodies.x[:] = scale * POS
    session.put_cloud(bodies)
    print(session.force(N, *some, nearest=False).code, session.error())
"""


def test_old_programs_have_the_neighbours_and_errors_of_one_gpu(run):
    found = {devices: run(OLD, devices, GRAPE6_BACKEND="cuda-tree") for devices in ("0", "0,1,2")}
    shared = [found[devices].pop(at) for devices in found for at in (0, 3)]
    assert shared == ["0", "0", "3", "3"]
    assert found["0"] == found["0,1,2"]
    assert "pairs of different particles at one place" in found["0"][0]
    assert found["0"].count("True") == 3


def test_few_particles_and_ranks_of_mpi_have_one_gpu(run):
    script = """
with filled() as grape:
    assert grape.forces(eps=EPS).pot.max() < 0
    print(grape.backend, sharing())
"""
    few = "usable.SHARE = N // 2 + 1\n"
    assert run(few + script) == ["cuda-tree stand-in for a GPU, 3 of them 0"]
    assert run(script, SLURM_LOCALID="1") == ["cuda-tree stand-in for a GPU 0"]


def test_row02_a_gpu_that_is_lost_is_as_the_only_one(run):
    """With cuda-tree the session fails; with tree it goes on on the CPU, and so does the call."""
    script = """
import sys
def lose():
    fake_device.SessionTree._sum = GPUS[2].launch = lost
for backend in "cuda-tree", "tree":
    with filled(backend) as grape:
        grape.forces(POS[:9], VEL[:9], INDEX[:9], eps=EPS) if backend == "tree" else None
        kept = fake_device.SessionTree._sum, GPUS[2].launch
        lose()
        for _ in range(2):
            try:
                print(np.isfinite(grape.forces(eps=EPS).acc).all(), grape.backend[:8])
            except errors.BackendError as error:
                print(error.code, error)
        fake_device.SessionTree._sum, GPUS[2].launch = kept
"""
    several, one = run(script), run(script, "0")
    assert several == one
    assert several[-2:] == ["True cpu-tree"] * 2
    assert "the device failed: gone" in several[0]
    assert "not used any more" in several[1]


def test_the_library_sums_what_no_box_resolves(cupy, monkeypatch):
    """Of which no thread makes a tree on the host."""
    monkeypatch.setattr(usable, "SHARE", 1000)
    monkeypatch.setattr("grape6py.ranks.tree.HostTree", None)
    pos = np.vstack([1e-13 * POS[:1500], POS[1500:]])
    eps2, zero = np.zeros(N), np.zeros(N)
    job = SimpleNamespace(x=pos, v=None, m=MASS, at=pos, velocity=None, self=None, eps2=eps2,
                          acc=[None], jerk=None, pot=zero, sources=N, targets=N,
                          devices=2, device=[0, 1], changed=1, order=5, theta=0.5,
                          unresolved=0)  # fmt: skip
    request.SessionTree(device_tree.gpu_of(0)).answer(job, lambda field, *_: field)
    assert job.unresolved == 1
    assert not zero.any()


def test_row01_without_memory_all_devices_are_asked_to_free_it(monkeypatch, tmp_path):
    """What the failed attempt had is gone before the second one."""
    _, module = fake_cupy.install(monkeypatch, tmp_path)
    arrays = fake_arrays.Module()
    arrays.cuda.ExternalStream = lambda _: contextlib.nullcontext()
    monkeypatch.setattr(module, "tree_gpu", lambda number: SimpleNamespace(xp=arrays))
    freed, attempts = [], []
    monkeypatch.setattr(module, "free_cupys_blocks", lambda: freed.append(arrays.current))

    def answer(self, job, array):
        self.devices = [0, 2]
        piece = np.zeros(3)
        attempts.append(weakref.ref(piece))
        if job == "too large" or len(attempts) == 1:
            raise MemoryError
        assert attempts[0]() is None

    monkeypatch.setattr(request.SessionTree, "answer", answer)
    device = module.Device(0)
    device.tree("small", None)
    assert (len(attempts), freed) == (2, [0, 2])
    with pytest.raises(MemoryError):
        device.tree("too large", None)
    assert len(attempts) == 4
    device.close(lost=False)
    assert freed == 3 * [0, 2]


def test_a_leapfrog_of_the_hosts_arrays_has_the_help_of_all(run):
    """Its bodies are on the first GPU. Steps of all bodies, and of some."""
    script = """
from grape6py import Leapfrog
options = dict(eps=0.05, theta=0.7, backend="cuda-tree")
galaxy = Leapfrog(MASS, POS, VEL, dt=1 / 16, **options)
start, several = galaxy.energy().total, sharing()
for _ in range(2):
    galaxy.evolve(galaxy.time + 1 / 16)
    several = min(several, sharing())
print(type(galaxy._forces).__name__, galaxy.backend, several)
print(abs(galaxy.energy().total / start - 1) < 1e-3)
print(np.abs(galaxy.momentum() - MASS @ VEL).max() < 1e-14)
blocks = Leapfrog(MASS, POS, VEL, dt_max=1 / 16, eta=0.3, **options)
blocks.evolve(1 / 16)
print(type(blocks._forces).__name__, sharing(), np.isfinite(blocks.pos).all())
"""
    kind, *rest = run(script)
    assert kind == "SharedTrees cuda-tree stand-in 3"
    assert rest == ["True", "True", "SharedTrees 3 True"]
