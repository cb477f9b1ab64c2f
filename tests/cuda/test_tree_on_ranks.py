"""``Tree(comm=...)`` whose ranks are on GPUs, or some of them: on the stand-in, with ranks of MPI.
And how rows come from GPU to GPU.
"""

import json
from types import SimpleNamespace

import pytest

import capi
import on_ranks
from grape6py.errors import BackendError
from grape6py.ranks import carriers
from thread_ranks import Crew, ThreadRanks

PROGRAM = """
import functools, json
import numpy as np
from mpi4py import MPI
import fake_arrays
from fake_device import FakeGpu
cupy = sys.modules["cupy"] = fake_arrays.Module()
from grape6py import Tree, plummer, reference
from grape6py.cuda.tree import device_tree, octree
library = ctypes.CDLL(sys.argv[1])
device_tree.gpu_of = functools.cache(lambda _: FakeGpu(library, cupy))
octree.BLOCKS = 0
comm = MPI.COMM_WORLD
kinds = sys.argv[2:]
mass, pos, vel = plummer(1500, seed=6)
mine = np.flatnonzero(np.random.default_rng(2).integers(0, comm.size, 1500) == comm.rank)
put = cupy.asarray if kinds[comm.rank] == "gpu" else np.asarray
host = lambda array: array.get() if isinstance(array, fake_arrays.Array) else array
numbers = np.concatenate(comm.allgather(mine))
def whole(rows):
    rows = np.concatenate(comm.allgather(host(rows)))
    found = np.empty_like(rows)
    found[numbers] = rows
    return found
more = {}
exact = reference.direct_sum(mass, pos, vel, eps2=1e-4)
for _ in range(2):
    tree = Tree(*map(put, (pos[mine], mass[mine], vel[mine])), comm=comm, **more)
    found = tree.forces(eps=0.01, theta=0.6, momentum=True)
    more = {"work": tree.work}
acc, jerk = whole(found.acc), whole(found.jerk)
errors = [np.median(np.linalg.norm(a - b, axis=1) / np.linalg.norm(b, axis=1))
          for a, b in ((acc, exact.acc), (jerk, exact.jerk))]
near = whole(tree.nearest(2).distance)
one = Tree(pos, mass, backend="cpu").nearest(2).distance
if comm.rank == 0:
    print(json.dumps({"errors": errors, "net": float(np.abs(mass @ acc).max()),
                      "near": bool(np.array_equal(near, one))}))
"""


@pytest.mark.parametrize("kinds", [("gpu", "gpu", "gpu"), ("cpu", "gpu", "gpu")], ids="/".join)
def test_ranks_on_gpus_and_cpus(fake_gpu, kinds):
    done = on_ranks.run(3, "-c", capi.PRELUDE + PROGRAM, fake_gpu, *kinds,
                        environment={"GRAPE6_TRANSFERS": "host"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["errors"][0] < 4e-4
    assert found["errors"][1] < 4e-3
    assert found["net"] < 1e-15
    assert found["near"]


# ---- how rows come ------------------------------------------------------------------------------


@pytest.fixture
def links(monkeypatch):
    """What each of some ranks uses, on devices by their numbers, or None."""
    monkeypatch.setattr(carriers, "_place_of", lambda device: f"machine {device}".encode())
    monkeypatch.setattr(carriers, "_why_no_nccl", lambda: None)
    monkeypatch.setattr(carriers, "ByNCCL", lambda _, device: f"nccl {device}")
    kept = [SimpleNamespace(carriers={}) for _ in range(3)]  # with each communicator

    def links(*devices, transfers=""):
        monkeypatch.setenv("GRAPE6_TRANSFERS", transfers)
        crew = Crew(len(devices))
        for ranks, link in zip(crew.ranks, kept, strict=False):
            assert isinstance(ranks, ThreadRanks)
            ranks.link = link
        return crew.call(lambda rank: carriers.find(crew.ranks[rank], devices[rank]))

    return links


def test_each_rank_with_a_gpu_of_its_own_uses_nccl(links):
    assert links(0, 1, 2) == ["nccl 0", "nccl 1", "nccl 2"]
    first = links(0, 1, 2, transfers="nccl")
    assert links(0, 1, 2, transfers="nccl") == first  # kept with the communicator


@pytest.mark.parametrize("devices", [(0, 0, 1), (0, None, 1), (None, None, None)])
def test_else_rows_go_over_the_host(links, devices):
    assert all(not link.between_devices for link in links(*devices))


def test_the_environment_says_how(links, monkeypatch):
    assert all(link.between_devices for link in links(0, 1, transfers="mpi"))
    assert all(not link.between_devices for link in links(0, 1, transfers="host"))
    with pytest.raises(BackendError, match="GRAPE6_TRANSFERS=nccl: ranks share a GPU, or"):
        links(0, 0, transfers="nccl")
    monkeypatch.setattr(carriers, "_why_no_nccl", lambda: "CuPy finds no NCCL")
    with pytest.raises(BackendError, match="CuPy finds no NCCL; use host"):
        links(0, 1, transfers="nccl")
