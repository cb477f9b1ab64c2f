"""Whether an integration keeps its energy: looked at where that is computed anyway."""

import numpy as np

from grape6py._arrays.kinds import Attributes, Floats, UInt64s
from grape6py.diagnostics import Energy
from grape6py.ranks.ranks import Ranks

LIMIT = 1e-3


class EnergyCheck:
    """The error of the energy since it was first known.

    A change is measured by |E|, or by a third of T + |W| where that is larger, so that an energy
    about 0, as on a parabola, gives no infinite error. In virial equilibrium the two are equal.
    The smallest T + |W| seen is taken: both are large for a moment where two bodies are close, and
    an error that has been made there must not be measured by that.

    What changes of bodies have added is no error, and is known. Energy that leaves with bodies
    through an open boundary is none either: where their number changes by itself, the change from
    one computation to the next is left out.
    """

    def __init__(self) -> None:
        self.start: float | None = None  # without what has left or come since
        self.has_warned = False
        self._n, self._last, self._size = -1, 0.0, 0.0

    def error(self, n: int, energy: Energy, added: float) -> float:
        """Relative error of the energy of n bodies, to which changes have added; 0 the first time.

        n does not count who came or went by such changes.
        """
        size, total = energy.kinetic + abs(energy.potential), energy.total - added
        if self.start is None:
            self.start = total
        elif n != self._n and self._n >= 0:
            self.start, self._size = self.start + total - self._last, size
        self._size = size if self._n < 0 else min(self._size, size)
        self._n, self._last = n, total
        scale = max(abs(self.start), self._size / 3)
        return (total - self.start) / scale if scale else 0.0


class SpecificCheck:
    """The error of specific energies since they were first known, of bodies that do not act.

    The sum of their changes is measured by that of the energies, or by a third of v^2/2 + |phi|
    where that is larger, of the smallest seen: as the energy in EnergyCheck.
    """

    def __init__(self) -> None:
        self._ids = np.zeros(0, np.uint64)
        self._start, self._size = np.zeros(0), np.zeros(0)

    def error(self, ids: UInt64s, half_v2: Floats, pot: Floats, ranks: Ranks) -> float:
        """Mean relative error of bodies of all ranks, of which `ids` are this one's; the first
        time, and of bodies that come later, 0."""
        now, size = half_v2 + pot, half_v2 + np.abs(pot)
        _, own, old = np.intersect1d(ids, self._ids, assume_unique=True, return_indices=True)
        start = now.copy()
        start[own], size[own] = self._start[old], np.minimum(size[own], self._size[old])
        self._ids, self._start, self._size = ids, start, size
        scale = ranks.total(np.maximum(np.abs(start), size / 3))
        change = ranks.total(np.abs(now - start))
        return change / scale if scale else 0.0


def remedies(settings: Attributes, precision: str) -> str:
    """What makes the error of an integration with these settings smaller, in words."""
    step = "dt" if "dt" in settings else "eta"
    found = [f"a smaller {name} than {settings[name]:g}" for name in (step, "theta", "accuracy")
             if name in settings]  # fmt: skip
    found.append(f"a larger softening length than eps = {settings['eps']:g}")
    if precision == "single" and "method" not in settings:  # a tree has no other
        found.append("another precision than single")
    return ", ".join(found[:-1]) + f" or {found[-1]}"
