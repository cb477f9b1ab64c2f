"""The picture of a run: energy error, virial ratio, Lagrangian radii, and the bodies at times.

curves.py draws the curves, bodies.py the bodies and what these are distinguished by, scale.py knows
the units. ``movie.py`` draws bodies with the same modules.
"""

import importlib
import io
import math
import os
import sys
from collections.abc import Sequence

import numpy as np

from grape6py.errors import MissingPackageError

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingPackageError(
        f"pictures need matplotlib, which cannot be imported ({error}): pip install matplotlib"
    ) from error

from grape6py import diagnostics
from grape6py._arrays.kinds import Attributes, Floats, PathLike, Untyped
from grape6py.files.runs import moments, reader
from grape6py.files.runs.moments import Moment
from grape6py.files.runs.outputs import Outputs, outputs_of
from grape6py.files.storage import atomic_files
from grape6py.picture import curves
from grape6py.picture.bodies import Bodies
from grape6py.picture.scale import Scale, distinct, labelled
from grape6py.units import Units

__all__ = ["Moment", "draw", "draw_bodies", "draw_file"]

STYLE: Untyped = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
STYLE |= {"axes.grid": True, "grid.alpha": 0.25, "grid.linewidth": 0.6}
STYLE |= {"axes.titlelocation": "left", "axes.titlesize": 10}

if "IPython" in sys.modules:
    importlib.import_module("matplotlib.pyplot")  # with which notebooks show figures

_DPI = 110
# In inches.
_WIDTH, _HEIGHT = 9.0, 2.35  # of the figure; of the curves
_LEFT = 0.8
# Errors, radii, virial ratio: from the left, and widths; labels of radii stand to their right.
_CURVES = (_LEFT, 2.05), (6.05, 1.85), (3.5, 1.95)
_GAP = 0.12  # between the bodies at two moments


def draw_file(path: PathLike | None, source: PathLike | Outputs) -> Figure:
    """Draw a run, or the one that an HDF5 file holds (``archive.py``); the figure.

    Parameters
    ----------
    path : path-like
        Of the picture; its suffix decides the kind: .png, .pdf, .svg. None: nothing is written.
    source : path-like or Run

    Raises
    ------
    SnapshotError, OSError
        As :func:`archive.read_particles`.
    """
    run = source if isinstance(source, Outputs) else outputs_of(source)
    records = run.records()
    which = moments.spread([record["time"] for record in records])
    shown = [moments.read(run, k) for k in which]
    title = title_of(run.about, len(shown[0].mass))
    return draw(path, title, records, diagnostics.FRACTIONS, shown, units=run.units)


def title_of(about: Attributes, n: int) -> str:
    """That of a run of n bodies, from the attributes of its file's root."""
    scale = Scale.of(reader.units_of(about))
    name, eps = about.get("name", f"N = {n}"), float(about["eps"]) * scale.length
    return f"{name}, eps = {eps:.6g} {scale.of_length}".rstrip()


def write_title(figure: Figure, text: str) -> None:
    """Write a title at the top of a figure, as large as there is space."""
    width, height = figure.get_size_inches()
    space = 72 * (width - 0.24) / 0.66  # in sizes of a letter
    size = float(np.clip(space / max(len(text), 1), 7, 11))
    if len(text) * size > space:
        text = text[: int(space / size) - 1] + "\N{HORIZONTAL ELLIPSIS}"
    at = 0.12 / width, 1 - 0.12 / height
    figure.text(*at, text, va="top", weight="bold", size=size, parse_math=False)


@mpl.rc_context(STYLE)
def draw(
    path: PathLike | None,
    title: str,
    history: Sequence[reader.Record],
    fractions: Sequence[float],
    shown: Sequence[Moment],
    *,
    units: Units | None = None,
) -> Figure:
    """Draw a run and write the picture; its figure.

    From 50 000 bodies on, their density is drawn instead of points: the mass along the line of
    sight, on a logarithmic scale that all moments share. Stars of galaxies, dark matter and black
    holes are distinguished if the moments say what belongs to them.

    Parameters
    ----------
    path : path-like
        Its suffix decides the kind: .png, .pdf, .svg. None: nothing is written.
    title : str
        If it begins with "disk galaxy" or "merger of two galaxies", so are the bodies called.
    history : sequence of dict
        Of the output times, with `time`, `error` (relative, of the energy), `virial_ratio` and
        `radii`. If it is empty, bodies alone are drawn.
    fractions : sequence of float
        Of the mass, inside those radii.
    shown : sequence of Moment
        Bodies at one time or more, of the run in its order: tuples of time, masses (n,),
        positions (n, 3), and of the component of each body (n,), as in `Labelled`, or None. A
        time that is NaN is not shown.
    units : Units, optional
        Of all these numbers: they are shown in units with names (`units.names`).
    """
    scale = Scale.of(units)
    history = scale.history(history)
    shown = [scale.moment(Moment(*moment)) for moment in shown]
    views = ("xy",) if len(shown) > 1 else ("xy", "xz")  # one moment is seen from two sides
    count, gap = max(len(shown), 2), _GAP if len(shown) > 1 else 0.65
    side = (_WIDTH - _LEFT - 0.1 - (count - 1) * gap) / count
    bodies, *aside = (
        Bodies(shown, title, plane=p, pixels=int(side * _DPI), unit=scale.of_length) for p in views
    )
    above = 0.75 if bodies.groups.are_told else 0.45  # the bodies: their titles and the legend
    height = 0.75 + (_HEIGHT + 0.5) * bool(history) + above + side + 0.5
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI)
    write_title(figure, title)

    def place(left: float, bottom: float, width: float, tall: float) -> Axes:
        return figure.add_axes((left / _WIDTH, bottom / height, width / _WIDTH, tall / height))

    time = np.array([record["time"] for record in history])
    error = np.array([record["error"] for record in history])
    ratio = np.array([record["virial_ratio"] for record in history])
    radii = np.array([record["radii"] for record in history])
    times = [moment.time for moment in shown] if len(time) > 1 else []
    top = [
        place(left, height - 0.75 - _HEIGHT, width, _HEIGHT)
        for left, width in _CURVES * bool(history)
    ]
    if history:
        curves.energy_error(top[0], time, error)
        curves.radii(top[1], time, radii, fractions, (72 * _CURVES[1][1], 72 * _HEIGHT))
        top[1].set_title(labelled("Lagrangian radii", scale.of_length))
        curves.virial_ratio(top[2], time, ratio)
    for axes in top:
        axes.set_xlabel(labelled("time", scale.of_time))
        for at in times:  # at which the bodies are drawn
            axes.axvline(at, color="#999999", lw=0.7, ls=(0, (2, 3)), zorder=0)
    labels = distinct([moment.time for moment in shown])
    seen = [(bodies, *moment) for moment in zip(shown, labels, strict=True)]
    seen += [(other, shown[0], labels[0]) for other in aside]
    for k, (view, moment, label) in enumerate(seen):
        axes = place(_LEFT + k * (side + gap), 0.5, side, side)
        view.prepare(axes, 72 * side, outermost=k == 0 or view is not bodies)
        view.draw(axes, moment, 72 * side)
        when = "" if np.isnan(moment.time) else scale.at(label)
        axes.set_title(" at ".join(filter(None, [view.groups.noun, when])) if k == 0 else when)
    if bodies.groups.are_told:
        bodies.legend(place(_LEFT, 0.5 + side + 0.3, _WIDTH - _LEFT - 0.1, 0.25))
    if path is not None:
        drawn = io.BytesIO()
        figure.savefig(drawn, format=os.path.splitext(path)[1][1:].lower() or None)
        atomic_files.write_whole(path, drawn.getvalue())
    return figure


@mpl.rc_context(STYLE)
def draw_bodies(
    mass: Floats,
    pos: Floats,
    *,
    time: float = math.nan,
    units: Units | None = None,
    axes: Axes | None = None,
    plane: str = "xy",
    size: float | None = None,
) -> Figure:
    """Draw bodies from one side; the figure.

    Parameters
    ----------
    mass, pos : ndarray, shapes (n,) and (n, 3)
    time : float
        Not shown if it is NaN.
    units : Units, optional
        Of the numbers: they are shown in units with names.
    axes : matplotlib's Axes, optional
        Drawn into; by default those of a new figure.
    plane : str
        "xy", "xz" or "yz": what is seen.
    size : float, optional
        Half of the width of what is seen; by default nearly all bodies are.

    Raises
    ------
    ArgumentError
        (a ValueError) for another plane, or a size that is not above zero.
    """
    scale = Scale.of(units)
    moment = scale.moment(Moment(time, mass, pos))
    size = None if size is None else size * scale.length
    view = Bodies([moment], plane=plane, size=size, pixels=5 * _DPI, unit=scale.of_length)
    if axes is None:
        axes = Figure(figsize=(5, 5), dpi=_DPI, layout="tight").add_subplot()
    figure: Untyped = axes.figure
    side = 72 * min(axes.get_window_extent().size) / figure.dpi
    view.prepare(axes, side)
    view.draw(axes, moment, side)
    axes.set_box_aspect(1)
    when = "" if math.isnan(time) else ", " + scale.at(distinct([moment.time])[0])
    axes.set_title(f"N = {len(mass)}{when}")
    return figure  # type: ignore[no-any-return]
