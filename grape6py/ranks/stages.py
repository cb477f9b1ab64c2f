"""How long the stages of a sum over ranks take."""

import contextlib
from collections.abc import Iterator

import numpy as np

from grape6py import _clock
from grape6py._arrays.kinds import DeviceArray
from grape6py._arrays.modules import module_of
from grape6py.ranks.ranks import Ranks

NAMES = (
    *("keys", "particles", "build"),  # of a tree: who has what, the way there, the domain's tree
    *("regions", "parts", "exchange", "sum", "back"),  # of its forces
    "wait",  # for other ranks, before they exchange something
)


class Stages:
    """Seconds of each stage, by name.

    Devices work on while the host goes on, and some wait for others: if they are `exact`, each
    stage waits for this rank's device in its end, and for the other ranks before what it exchanges.
    """

    exact = False  # of all

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self.seconds: dict[str, float] = dict.fromkeys(NAMES, 0.0)

    @contextlib.contextmanager
    def timed(self, stage: str, like: DeviceArray, meets: bool = False) -> Iterator[None]:
        """Context of a stage on the device of an array, in which all ranks meet or do not."""
        began = _clock.seconds()
        if meets and self.exact:
            self._ranks.counts(0)
            now = _clock.seconds()
            self.seconds["wait"] += now - began
            began = now
        yield
        xp = module_of(like)
        if self.exact and xp is not np:
            xp.cuda.get_current_stream().synchronize()
        self.seconds[stage] += _clock.seconds() - began
