"""What an integration watches for within its steps: bodies that come close, and such that leave."""

from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import Floats, UInt64s


class Sighting(NamedTuple):
    """The first time in its step at which a body is close to another, or (other None) has left.

    Bodies are rows of Hermite's, and ids of Leapfrog's, which may be on any rank.
    """

    time: float
    body: int
    other: int | None


class Watch:
    """Radii that are watched, 0 for none, and what is known already.

    A body is close if its nearest neighbour is nearer than `closer`, and has left if it is farther
    than `farther` from the centre. While two bodies stay close they are seen in each of their
    steps: `until` has the time up to which that is known, by their ids. What is seen at a later
    time is news.
    """

    def __init__(self) -> None:
        self.closer = self.farther = 0.0
        self.centre = 0.0, 0.0, 0.0
        self.until: dict[tuple[int, ...], float] = {}

    def note(self, ids: tuple[int, ...], time: float) -> None:
        """Make what was seen known up to a time."""
        self.until[ids] = max(time, self.until.get(ids, -np.inf))

    def renew(self, number: dict[int, int], pos: Floats, time: float) -> None:
        """Let what lasts at a time, from which all steps begin anew, be known up to there.

        `number` are those of the bodies by their ids; what concerns others is dropped.
        """
        for ids in list(self.until):
            if not all(i in number for i in ids):
                del self.until[ids]
                continue
            places = pos[[number[i] for i in ids]]
            if len(ids) == 2:
                lasts = _length(places[0] - places[1]) <= self.closer
            else:
                lasts = _length(places[0] - np.array(self.centre)) > self.farther
            if lasts:
                self.note(ids, time)

    def as_arrays(self) -> tuple[Floats, UInt64s]:
        """What is known, for a file: times (k,), and ids (k, 2), of who has left the same twice."""
        known = sorted(self.until.items())
        rows = [[who[0], who[-1]] for who, _ in known]
        return np.array([time for _, time in known]), np.array(rows, np.uint64).reshape(-1, 2)

    def take(self, times: Floats, ids: UInt64s) -> None:
        """What :meth:`as_arrays` gave."""
        who = (tuple(dict.fromkeys(row)) for row in ids.tolist())
        self.until = dict(zip(who, times.tolist(), strict=True))


def _length(vector: Floats) -> float:
    return float(np.sqrt((vector * vector).sum()))
