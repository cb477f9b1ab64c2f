"""A card for the octree on the CPU: its kernels as a library, launched by name."""

import ctypes

import numpy as np
import pytest

import fake_device
from grape6py.cuda.tree import octree, settings

METHODS = {0: "bh", 2: "fmm", 3: "fmm", 4: "fmm", 5: "fmm", 6: "fmm"}  # by order of expansions


class StandIn(fake_device.Card):
    """One that notes which kernels were launched."""

    def __init__(self, path):
        super().__init__(ctypes.CDLL(str(path)))
        self.launched = []

    def launch(self, name, blocks, threads, job):
        self.launched.append(name)
        super().launch(name, blocks, threads, job)


@pytest.fixture(params=[0], ids=["warps"])
def tree_card(card, monkeypatch, request):
    """Groups have a warp each, as if there were many; or CUDA blocks, up to the given number."""
    monkeypatch.setattr(octree, "BLOCKS", request.param)
    return StandIn(card)


WARPS_AND_BLOCKS = pytest.mark.parametrize(
    "tree_card", [0, 8192], ids=["warps", "blocks"], indirect=True
)


def rows(vectors):
    return np.linalg.norm(vectors, axis=-1)


def relative(found, right):
    return rows(found - right) / rows(right)


def shortened(monkeypatch, card, *rooms):
    """Has lists begin with so many entries: of hypers and supers, groups, the longest."""
    card.rooms.clear()
    monkeypatch.setattr(settings.Rooms, "of", lambda *_: settings.Rooms(*([*r] for r in rooms)))
