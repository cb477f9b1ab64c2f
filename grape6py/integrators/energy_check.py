"""Whether an integration keeps its energy: looked at where that is computed anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grape6py._arrays.kinds import Attributes
    from grape6py.diagnostics import Energy

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


def remedies(settings: Attributes, precision: str) -> str:
    """What makes the error of an integration with these settings smaller, in words."""
    step = "dt" if "dt" in settings else "eta"
    found = [f"a smaller {name} than {settings[name]:g}" for name in (step, "theta", "accuracy")
             if name in settings]  # fmt: skip
    found.append(f"a larger softening length than eps = {settings['eps']:g}")
    if precision == "single" and "method" not in settings:  # a tree has no other
        found.append("another precision than single")
    return ", ".join(found[:-1]) + f" or {found[-1]}"
