"""The bodies of a run at a few of its output times, for pictures: evenly spread, as far as can be.

No module here imports matplotlib, so that a run finds them while it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from grape6py._arrays.kinds import Floats, Int8s

if TYPE_CHECKING:
    from grape6py.files.runs.outputs import Outputs

COUNT = 4


class Moment(NamedTuple):
    """Bodies at a time.

    Attributes
    ----------
    time : float
    mass : ndarray, shape (n,)
    pos : ndarray, shape (n, 3)
    component : ndarray of int8, shape (n,), or None
        What each body belongs to, as in :class:`models.Labelled`.
    """

    time: float
    mass: Floats
    pos: Floats
    component: Int8s | None = None


def read(run: Outputs, which: int) -> Moment:
    """One output; errors as of :func:`archive.read_particles`."""
    found = run[which]
    assert found.time is not None
    return Moment(found.time, found.mass, found.pos, found.component)


def nearest(times: Sequence[float], targets: Floats) -> list[int]:
    """Which of the times are nearest to the targets; ascending, each once."""
    return sorted({int(np.argmin(np.abs(np.subtract(times, target)))) for target in targets})


def spread(times: Sequence[float]) -> list[int]:
    """Which of ascending times to show: the first, the last, and those nearest to thirds."""
    return nearest(times, np.linspace(times[0], times[-1], COUNT))


class Nearest:
    """Of the outputs of a run, those nearest to evenly spread times from `first` to `last`.

    If the run ends early, the last output is there, too.
    """

    def __init__(self, first: float, last: float) -> None:
        self.targets = np.linspace(first, last, COUNT)
        self._kept: dict[float, Moment] = {}  # by target

    def offer(self, time: float, bodies: Callable[[], Moment]) -> None:
        """Take an output of this time, which `bodies` gives, if it is nearer than one before."""
        old, targets = self._kept, self.targets.tolist()
        nearer = [t for t in targets if t not in old or abs(time - t) < abs(old[t].time - t)]
        if nearer:
            self._kept |= dict.fromkeys(nearer, bodies())

    def found(self) -> list[Moment]:
        """Those that were taken, in the order of time."""
        by_time = {moment.time: moment for moment in self._kept.values()}
        return [by_time[time] for time in sorted(by_time)]
