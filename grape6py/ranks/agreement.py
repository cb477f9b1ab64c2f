"""What ranks agree on before they go on: what must be equal, and what is the largest of all."""

import hashlib
from dataclasses import dataclass

import numpy as np

from grape6py._arrays import validate
from grape6py._arrays.kinds import AnyArray, Floats

NUMBERS = 16  # that may have to be equal
_EXTREMES = 8  # numbers, of which the largest, or the least, is found
_WORDS, _WORD = 4, 6  # numbers of a digest, and bytes in each, which holds 53 bits


@dataclass(slots=True)
class Agreed:
    """A number of this rank; after the agreement `value` is the largest, or the least, of all."""

    value: float


class Agreement:
    """What a rank puts to all others; they have it when the context of the agreement ends."""

    def __init__(self) -> None:
        self._numbers: list[float] = []  # that must be equal on all ranks,
        self._complaints: list[str] = []  # and what to say of each that is not
        self._extremes: list[tuple[int, Agreed]] = []

    def same(self, what: str, *values: float | None) -> None:
        """Numbers, or None, that must be equal on all ranks; an ArgumentError if one is none."""
        numbers = [-np.inf if v is None else validate.number(what, v) for v in values]
        shown = ", ".join(map(str, values if None in values else numbers))
        self._claim(numbers, f"{what} differs between the ranks: {shown} on rank")

    def same_contents(self, what: str, *parts: AnyArray | str) -> None:
        """Arrays and texts that must be equal on all ranks, to the last bit."""
        found = hashlib.sha256()
        for part in parts:
            text = part if isinstance(part, str) else f"{part.dtype}{part.shape}"
            found.update(f"{len(text)} {text}".encode())
            if not isinstance(part, str):
                found.update(part.tobytes())
        words = [found.digest()[k * _WORD : (k + 1) * _WORD] for k in range(_WORDS)]
        numbers = [float(int.from_bytes(word)) for word in words]
        self._claim(numbers, f"{what} differ between the ranks; this is rank")

    def _claim(self, numbers: list[float], complaint: str) -> None:
        self._numbers += numbers
        self._complaints += [complaint] * len(numbers)

    def maximum(self, number: float) -> Agreed:
        """A number, of which all ranks get the largest."""
        return self._extreme(number, 1)

    def minimum(self, number: float) -> Agreed:
        """A number, of which all ranks get the least."""
        return self._extreme(number, -1)

    def _extreme(self, number: float, sign: int) -> Agreed:
        self._extremes.append((sign, Agreed(float(number))))
        return self._extremes[-1][1]

    # ---- for Ranks -------------------------------------------------------------------------------

    def equal_numbers(self) -> Floats:
        """What must be equal; shape (NUMBERS,)."""
        return np.array(self._numbers + [0.0] * (NUMBERS - len(self._numbers)))

    def extremes(self) -> Floats:
        """Numbers, of which the maxima over all ranks come back by :meth:`take`."""
        given = [sign * agreed.value for sign, agreed in self._extremes]
        return np.array(given + [0.0] * (_EXTREMES - len(given)))

    def take(self, maxima: Floats) -> None:
        """Maxima of :meth:`extremes`."""
        for (sign, agreed), found in zip(self._extremes, maxima.tolist(), strict=False):
            agreed.value = sign * found

    def complaint(self, is_equal: AnyArray) -> str | None:
        """About the first of :meth:`equal_numbers` that differs."""
        wrong = int(np.argmin(is_equal))
        return None if is_equal[wrong] else self._complaints[wrong]
