"""The merger's pictures, for figures.py: the stars; energy error, distance of the black holes and
density of the remnant."""

import numpy as np
from harness import RESULTS
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from merger import EDGES, EPS, PASSAGES, WIDTH
from tables_merger import ERROR, setting_of

ROWS, COLUMNS = 2, 4
BAR = 10  # length of the bar in the first picture
DARK = 0.2  # bodies in a black pixel, so that one is seen
DRAWN = "direct", "theta0.5", "theta0.75"
STYLES = {
    "direct sum": {"color": "0.75", "lw": 4},
    "theta 0.5": {"color": "#1f4e79", "lw": 1.4},
    "theta 0.75": {"color": "#e07a1f", "lw": 1.4, "ls": "--"},
}
# The model's units: mass and scale length of the first galaxy's disk, and G = 1.
TIME, LENGTH = "time [$(R_d^3 / G M_d)^{1/2}$]", "$R_d$"


def strip(pictures):
    """The stars seen from above."""
    times = sorted(pictures, key=float)
    most = max(pictures[time].max() for time in times)
    figure = Figure(figsize=(2.4 * COLUMNS, 2.4 * ROWS), dpi=100, facecolor="0.3")
    figure.subplots_adjust(0, 0, 1, 1, 0.01, 0.01)
    panels = figure.subplots(ROWS, COLUMNS).ravel()
    for axes in panels:
        axes.set_axis_off()
    for axes, time in zip(panels, times, strict=False):
        axes.imshow(np.maximum(pictures[time].T, DARK), cmap="inferno", norm=LogNorm(DARK, most),
                    origin="lower", extent=(-WIDTH, WIDTH, -WIDTH, WIDTH))  # fmt: skip
        axes.text(0.04, 0.96, f"t = {time}", color="white", va="top", transform=axes.transAxes)
    bar(panels[0])
    return figure


def bar(axes):
    """The scale of a picture."""
    left, low = -0.92 * WIDTH, -0.9 * WIDTH
    axes.plot([left, left + BAR], [low, low], color="white", lw=1.5)
    axes.text(left + BAR / 2, low + 0.03 * WIDTH, f"{BAR} {LENGTH}", color="white", ha="center")


def energy(axes, figures):
    for f in figures:
        time, error = np.transpose(f["errors"][1:])
        axes.plot(time, np.abs(error), label=setting_of(f), **STYLES[setting_of(f)])
    axes.axhline(ERROR, color="0.3", ls=":", label=f"Bonsai's, theta 0.75: {ERROR:.1e}")
    axes.set(title="Energy error", xlabel=TIME, ylabel="|dE / E|")


def separation(axes, figures):
    """Up to the last pericentre that is wanted."""
    for f in figures:
        style = STYLES[setting_of(f)]
        axes.plot(f["times"], f["distance"], **style)
        for time, distance in f["pericentres"]:
            axes.plot(time, distance, "o", ms=7, mfc="none", mec=style["color"])
    last = [f["pericentres"][-1][0] for f in figures if len(f["pericentres"]) == PASSAGES]
    axes.set_xlim(0, 1.03 * max(last, default=max(f["time"] for f in figures)))
    axes.set(title="Black holes, to the third pericentre", xlabel=TIME,
             ylabel=f"distance [{LENGTH}]")  # fmt: skip


def density(axes, figures, time):
    for f in figures:
        values = f.get(f"density {time:g}")
        if values is not None:
            shown = np.where(values > 0, values, np.nan)
            axes.plot(f["radii"], shown, **STYLES[setting_of(f)])
    axes.axvline(EPS, color="0.3", ls="-.", lw=1)
    axes.text(EPS, 0.05, " softening", color="0.3", transform=axes.get_xaxis_transform())
    axes.set(title=f"Density of all bodies at t = {time:g}", xscale="log", xlim=EDGES[[0, -1]],
             xlabel=f"distance from the densest point [{LENGTH}]",
             ylabel="density [$M_d / R_d^3$]")  # fmt: skip


def curves(figures):
    """Densities are those at the end, and where a run ended before, of all at that time."""
    figure = Figure(figsize=(9, 7), dpi=100, layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for axes in panels:
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
    energy(panels[0], figures)
    separation(panels[1], figures)
    ends = sorted({f["time"] for f in figures})
    density(panels[2], figures, ends[0])
    if len(ends) > 1:
        density(panels[3], figures, ends[-1])
    else:
        panels[3].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(STYLES) + 1, frameon=False)
    return figure


def merger(result):
    found = []
    for f in result["figures"]:
        with np.load(RESULTS / f["curves"]) as arrays:
            found.append(f | dict(arrays))
    found.sort(key=lambda f: list(STYLES).index(setting_of(f)))
    yield "merger-curves", curves(found)
    yield "merger-stars", strip(by_time(found[-1], "stars"))


def by_time(figure, what):
    return {key.removeprefix(f"{what} "): values for key, values in figure.items()
            if key.startswith(f"{what} ")}  # fmt: skip
