"""The curves of a run against time: energy error, virial ratio, Lagrangian radii."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from grape6py._arrays.kinds import Floats, Untyped

COLOURS = ("#1f4e79", "#2a9d8f", "#e07a1f", "#b23a48", "#6a4c93")
_FEW = 40  # outputs: each of them has a marker
_APART = 13.0  # between the middles of labels, in points


def energy_error(axes: Axes, time: Floats, error: Floats) -> None:
    """Draw relative errors; shape (n,), of which the first is that of the start."""
    shown = np.abs(error)
    shown[0] = np.nan  # of the start itself
    some = np.isfinite(shown) & (shown > 0)
    last = f": {shown[-1]:.0e} at the end" if len(error) > 1 and np.isfinite(shown[-1]) else ""
    axes.set_title(f"|dE / E|{last}")
    if some.any():
        axes.plot(time[some], shown[some], color=COLOURS[0], **_style(time))
    else:
        words = "no error at any output" if (shown == 0).any() else "no energy to compare"
        words = words if len(time) > 1 else "one output: no error yet"
        axes.annotate(words, (0.5, 0.5), xycoords="axes fraction", ha="center", color="#777777")
    _scale(axes, time, shown[some], decades=1)
    if not some.any():
        axes.set_yticks([])


def virial_ratio(axes: Axes, time: Floats, ratio: Floats) -> None:
    """Draw kinetic over minus potential energy; shape (n,)."""
    axes.set_title("Virial ratio T / |W|")
    _scale(axes, time, ratio[np.isfinite(ratio)])
    axes.plot(time, ratio, color=COLOURS[0], **_style(time))


def radii(
    axes: Axes, time: Floats, found: Floats, fractions: Sequence[float], size: tuple[float, float]
) -> None:
    """Draw radii, shape (n, fractions), each with its label to the right of the axes.

    `size` is that of the axes, in points.
    """
    _scale(axes, time, found[np.isfinite(found)])
    ends = []
    for k in range(len(fractions)):
        axes.plot(time, found[:, k], color=COLOURS[k % len(COLOURS)], **_style(time))
        finite = found[np.isfinite(found[:, k]), k]
        end = (time[-1], finite[-1] if len(finite) else axes.get_ylim()[0])
        x, y = axes.transAxes.inverted().transform(axes.transData.transform(end))
        ends.append((float(x), float(y)))
    heights = apart([size[1] * end[1] for end in ends], _APART, size[1])
    for k, (fraction, end, height) in enumerate(zip(fractions, ends, heights, strict=True)):
        colour = COLOURS[k % len(COLOURS)]
        axes.annotate(
            f"{100 * fraction:g} % of mass", end, (1 + 12 / size[0], height / size[1]),
            xycoords="axes fraction", textcoords="axes fraction", color=colour, va="center",
            annotation_clip=False, arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.6,
            "alpha": 0.6, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)},
        )  # fmt: skip


def _scale(axes: Axes, time: Floats, values: Floats, decades: float = 0.0) -> None:
    """Limits and ticks: logarithmic upwards if all values are above zero and differ, or if at least
    so many decades are to be seen."""
    low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
    beyond = 0.02 * (time[-1] - time[0]) or 0.2 * abs(time[0]) or 1.0
    axes.set_xlim(time[0] - beyond, time[-1] + beyond)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    if low > 0 and high > low * 10 ** (0.3 - decades):
        there = np.log10(high / low)
        more = max(0.08 * (there + 0.1), (decades - there) / 2)
        axes.set(yscale="log", ylim=(low / 10**more, min(high * 10**more, 1e308)))
    else:
        beyond = max(0.08 * (high - low), 0.1 * max(abs(low), abs(high))) or 0.5
        axes.set_ylim(low - beyond, high + beyond)


def apart(requested: Sequence[float], least: float, height: float) -> list[float]:
    """Places that are at least so far apart, in the order of those requested and near to them.

    They are from 0 to `height`, if there is space.
    """
    order = np.argsort(requested, kind="stable")
    places = np.asarray(requested, float)[order]
    steps = least * np.arange(len(places))
    # Labels that touch are centred on the mean of what they want: pool adjacent violators.
    blocks: list[list[float]] = []
    for want in places - steps:
        blocks.append([want])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    moved = np.array([np.mean(block) for block in blocks for _ in block]) + steps
    moved += max(0.0, -moved[0]) if len(moved) else 0.0
    moved -= max(0.0, moved[-1] - max(height, steps[-1])) if len(moved) else 0.0
    return [float(place) for place in moved[np.argsort(order)]]


def _style(time: Floats) -> Untyped:
    few = len(time) <= _FEW
    return {"marker": "o" if few else "", "ms": 3.5, "lw": 1.5 if few else 1.2}
