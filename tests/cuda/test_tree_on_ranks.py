"""``Tree(comm=...)`` whose ranks are on GPUs: how rows come from GPU to GPU."""

from types import SimpleNamespace

import pytest

from grape6py.errors import BackendError
from grape6py.ranks import carriers
from thread_ranks import Crew, ThreadRanks


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
