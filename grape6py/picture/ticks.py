"""Ticks and limits of an axis, chosen for its range and length so that labels have space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullFormatter

if TYPE_CHECKING:
    from matplotlib.axis import Axis

    from grape6py._arrays.kinds import Floats

SIZE = 9.0  # of the labels, in points
_WIDTH = 0.64 * SIZE  # of a digit, with some air
_APART = 2.2 * SIZE  # between labels
_MARGIN = 0.08  # above and below, of the range
_PLAIN = 1e-3, 1e5  # numbers in between have no power of ten
_NARROWEST = 0.2  # range over value, upwards: what hardly changes is drawn so
_LONGEST = 8  # label to the left of a vertical axis


class Ticks(NamedTuple):
    """Places with labels, places without, and the limits of an axis."""

    places: list[float]
    labels: list[str]
    minor: list[float]
    limits: tuple[float, float]
    log: bool = False

    def put_on(self, axis: Axis) -> None:
        """Give an axis these limits and ticks."""
        scale = "log" if self.log else "linear"
        if axis is axis.axes.xaxis:
            axis.axes.set(xscale=scale, xlim=self.limits)
        else:
            axis.axes.set(yscale=scale, ylim=self.limits)
        axis.set_major_locator(FixedLocator(self.places))
        axis.set_major_formatter(FixedFormatter(self.labels))
        axis.set_minor_locator(FixedLocator(self.minor))
        axis.set_minor_formatter(NullFormatter())


def across(low: float, high: float, length: float, margin: float = 0.02) -> Ticks:
    """Of a linear horizontal axis of a length in points, for values from `low` to `high`."""
    if low == high:
        return Ticks([low], distinct([low]), [], _widened(low, high, margin, 0.2))
    limits = _widened(low, high, margin, 1e-14)
    for count in (8, 7, 6, 5, 4, 3, 2, 1):
        places, labels = _linear(*limits, count)
        if sum(map(len, labels)) * _WIDTH + len(labels) * _APART <= length:
            break
    return Ticks(places, labels, [], limits)


def upwards(values: Floats, length: float, decades: float = 0.0) -> Ticks:
    """Of a vertical axis of a length in points: logarithmic if all values are above zero.

    Values that are not finite are left out. So many decades at least are shown of those above zero.
    """
    shown = values[np.isfinite(values)]
    low, high = (float(shown.min()), float(shown.max())) if shown.size else (0.0, 1.0)
    most = max(2, int(length / (3 * SIZE)))
    if low > 0 and (decades > 0 or high > low * 1.25):
        there = math.log10(high / low)
        beyond = max(_MARGIN * (there + 0.1), (decades - there) / 2)
        limits = low / 10**beyond, min(high * 10**beyond, 1e308)
        if limits[0] > 0 and (found := _logarithmic(*limits, most)):
            return found
    limits = _widened(low, high, _MARGIN, _NARROWEST)
    for count in range(most, 0, -1):
        places, labels = _linear(*limits, count)
        if max(map(len, labels), default=0) <= _LONGEST:
            break
    return Ticks(places, labels, [], limits)


def _widened(low: float, high: float, margin: float, narrowest: float) -> tuple[float, float]:
    """Limits that leave a margin, a share of the range, and differ by `narrowest` of the value."""
    least = narrowest * max(abs(low), abs(high)) or 1.0
    beyond = max(high - low, least) * (0.5 if high - low < least else margin)
    return low - beyond, high + beyond


def _linear(low: float, high: float, count: int) -> tuple[list[float], list[str]]:
    found = MaxNLocator(count, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    places = [float(place) for place in found if low <= place <= high]
    return places, distinct(places)


def distinct(values: Sequence[float]) -> list[str]:
    """Numbers with five digits, or as many as tell them apart."""
    for digits in range(5, 18):
        labels = [f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}") for value in values]
        if len(set(labels)) == len(set(values)):
            break
    return labels


def _logarithmic(low: float, high: float, most: int) -> Ticks | None:
    """None if a linear axis is better."""
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    minor = [
        m * 10.0**k for k in range(math.floor(math.log10(low)), powers.stop) for m in range(1, 10)
    ]
    # A power of ten has space where 3 10^-8 crowds.
    finest = ((1, 2, 5), (1, 3), (1,))
    for steps in finest if _PLAIN[0] <= low and high < _PLAIN[1] else finest[::-1]:
        first = math.floor(math.log10(low))
        places = [m * 10.0**k for k in range(first, powers.stop) for m in steps]
        places = [place for place in places if low <= place <= high]
        if 2 <= len(places) <= most:
            return _log_ticks(places, minor, (low, high))
    if len(powers) < 2:
        return None
    stride = -(-len(powers) // most)
    places = [10.0**k for k in powers if k % stride == 0]
    return _log_ticks(places, minor if stride == 1 else [10.0**k for k in powers], (low, high))


def _log_ticks(
    places: Sequence[float], minor: Sequence[float], limits: tuple[float, float]
) -> Ticks:
    minor = [m for m in minor if limits[0] <= m <= limits[1] and m not in places]
    return Ticks(list(places), [_short(place) for place in places], minor, limits, log=True)


def _short(value: float) -> str:
    """A number with one digit that counts."""
    if _PLAIN[0] <= value < _PLAIN[1]:
        return f"{value:g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    digit = round(value / 10.0**exponent)
    times = "" if digit == 1 else rf"{digit}\times "
    return rf"${times}10^{{{exponent}}}$"
