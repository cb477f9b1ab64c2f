"""The picture of a run: energy error, Lagrangian radii, the cluster before and after."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from grape6py import archive, diagnostics
from grape6py._arrays.kinds import Floats, PathLike, Untyped
from grape6py._io import atomic_files

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK: Untyped = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
_INK |= {"axes.grid": True, "grid.alpha": 0.25, "grid.linewidth": 0.6, "axes.titlelocation": "left"}
_COLOURS = ("#1f4e79", "#2a9d8f", "#e07a1f", "#b23a48", "#6a4c93")


def draw_file(path: PathLike, source: PathLike) -> None:
    """Draw the run that an HDF5 file holds (``archive.py``).

    Parameters
    ----------
    path : path-like
        Of the picture; its suffix decides the kind: .png, .pdf, .svg.
    source : path-like
        Of the file.

    Raises
    ------
    SnapshotError, OSError
        As :func:`archive.read_particles`.
    """
    about, records = archive.history(source)
    ends = [(records[k]["time"], *archive.read_particles(source, k)[:2]) for k in (0, -1)]
    name = str(about.get("name", f"N = {len(ends[0][1])}"))
    title = f"{name}, eps = {about['eps']:g}"
    draw(path, title, records, diagnostics.FRACTIONS, *ends)


def draw(
    path: PathLike,
    title: str,
    history: Sequence[archive.Record],
    fractions: Sequence[float],
    before: tuple[float, Floats, Floats],
    after: tuple[float, Floats, Floats],
) -> None:
    """Draw a run and write the picture.

    Parameters
    ----------
    path : path-like
        Its suffix decides the kind: .png, .pdf, .svg.
    title : str
    history : list of dict
        Of the output times, with `time`, `error` (relative, of the energy) and `radii`.
    fractions : sequence of float
        Of the mass, inside those radii.
    before, after : tuple of float, ndarray (n,), ndarray (n, 3)
        Time, masses and positions at the start and at the end.
    """
    time = np.array([record["time"] for record in history])
    with mpl.rc_context(_INK):
        figure = Figure(figsize=(9, 8), dpi=110, layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", weight="bold")
        (left, right), (first, last) = figure.subplots(2, 2)
        _energy(left, time, np.array([record["error"] for record in history]))
        _radii(right, time, np.array([record["radii"] for record in history]), fractions)
        centre = np.median(before[2], axis=0)
        size = 1.1 * np.quantile(np.abs(before[2] - centre)[:, :2].max(axis=1), 0.97)
        for axes, (when, mass, pos) in ((first, before), (last, after)):
            _cluster(axes, when, mass, pos, centre, size or 1.0)
        drawn = io.BytesIO()
        figure.savefig(drawn, format=os.path.splitext(path)[1][1:].lower() or None)
    atomic_files.write_whole(path, drawn.getvalue())


def _energy(axes: Axes, time: Floats, error: Floats) -> None:
    axes.set_title("Energy error")
    shown = np.abs(error[1:])
    axes.plot(time[1:], np.where(shown > 0, shown, np.nan), "o-", ms=3.5, color=_COLOURS[0])
    if (shown > 0).any():
        axes.set_yscale("log")
    axes.set(xlabel="time", ylabel="|dE / E|")


def _radii(axes: Axes, time: Floats, radii: Floats, fractions: Sequence[float]) -> None:
    axes.set_title("Lagrangian radii")
    for k, fraction in enumerate(fractions):
        colour = _COLOURS[k % len(_COLOURS)]
        axes.plot(time, radii[:, k], "o-", ms=3.5, color=colour)
        text = f"{100 * fraction:g} % of the mass"
        axes.annotate(text, (time[-1], radii[-1, k]), (-4, 7), color=colour, ha="right",
                      textcoords="offset points")  # fmt: skip
    if (radii > 0).all():
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.margins(y=0.12)
    axes.set(xlabel="time", ylabel="radius")


def _cluster(
    axes: Axes, when: float, mass: Floats, pos: Floats, centre: Floats, size: float
) -> None:
    axes.set_title(f"Bodies at t = {when:g}")
    largest = mass.max(initial=0.0) or 1.0
    n = max(len(mass), 1)
    dot = np.clip(4000 / n, 0.15, 40) * np.clip(mass / largest, 0.05, 1)
    alpha = float(np.clip(30 / np.sqrt(n), 0.15, 0.8))
    axes.scatter(pos[:, 0], pos[:, 1], s=dot, color=_COLOURS[0], alpha=alpha, linewidths=0)
    axes.set(xlabel="x", ylabel="y", aspect="equal")
    axes.set(xlim=centre[0] + np.array([-size, size]), ylim=centre[1] + np.array([-size, size]))
