"""``Tree(comm=...)`` whose ranks are on GPUs: how rows come from GPU to GPU, and parts of other
ranks' trees on the stand-in for a GPU. Forces of ranks are in tests/tree."""

from types import SimpleNamespace

import numpy as np
import pytest

from grape6py import plummer
from grape6py._lib.tree_setting import Setting
from grape6py.cuda.tree.device_tree import DeviceTree
from grape6py.cuda.tree.octree import Octree
from grape6py.errors import ArgumentError, BackendError, RangeError
from grape6py.ranks import carriers
from octrees import whole_of
from thread_ranks import Crew, ThreadRanks

FMM = Setting(0.6, 5, 1e-6)
MASS, POS, VEL = plummer(2500, seed=5)


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


def test_each_rank_with_a_gpu_of_its_own_uses_nccl_else_rows_go_over_the_host(links):
    assert links(0, 1, 2) == ["nccl 0", "nccl 1", "nccl 2"]
    first = links(0, 1, 2, transfers="nccl")
    assert links(0, 1, 2, transfers="nccl") == first  # kept with the communicator
    for devices in (0, 0, 1), (0, None, 1), (None, None, None):
        assert all(not link.between_devices for link in links(*devices))


def test_the_environment_says_how(links, monkeypatch):
    assert all(link.between_devices for link in links(0, 1, transfers="mpi"))
    assert all(not link.between_devices for link in links(0, 1, transfers="host"))
    with pytest.raises(BackendError, match="GRAPE6_TRANSFERS=nccl: ranks share a GPU, or"):
        links(0, 0, transfers="nccl")
    monkeypatch.setattr(carriers, "_why_no_nccl", lambda: "CuPy finds no NCCL")
    with pytest.raises(BackendError, match="CuPy finds no NCCL; use host"):
        links(0, 1, transfers="nccl")


def halves(gpu, vel):
    """Trees of two ranks, and what the second needs of the first for targets anywhere."""
    whole = whole_of(MASS, POS, vel)
    trees = [Octree(gpu, POS[r].copy(), MASS[r].copy(), None if vel is None else vel[r].copy(),
                    whole) for r in (slice(500), slice(500, None))]  # fmt: skip
    anywhere = np.array([[*POS.min(axis=0), *POS.max(axis=0), 0.0]])
    return trees, trees[1].parts(FMM, [anywhere])[0]


def test_what_has_no_targets_needs_nothing_and_what_is_no_part_is_refused(tree_gpu):
    (tree, _), part = halves(tree_gpu, VEL)
    still, none = halves(tree_gpu, None)[1], np.empty((0, 7))
    assert [len(nothing) for nothing in tree.parts(FMM, [none, none])] == [0, 0]
    with_nothing = tree.forces(FMM, imports=[np.empty(0, np.uint8)])
    assert with_nothing[0].tobytes() == tree.forces(FMM)[0].tobytes()
    for wrong in (part[:-16], part[:20], still, np.zeros(64, np.uint8)):
        with pytest.raises(ArgumentError, match="part 1 is none of a tree like this one"):
            tree.forces(FMM, imports=[part, wrong])


def test_a_box_of_all_ranks_that_does_not_resolve_a_rank(put, cupy):
    """Is found when the tree is made: 40 bodies close together, beside the size of the others."""
    pos = np.vstack([1e-12 * POS[:40], POS[:60]])
    whole = whole_of(np.ones(100), pos)
    tree = DeviceTree(cupy, 0, of_host=False)
    with (
        pytest.raises(RangeError, match="does not resolve"),
        tree.using({"pos": put(pos)}) as place,
    ):
        tree.build(place, put(pos), put(np.ones(100)), None, whole)
