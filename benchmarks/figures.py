"""Draws the pictures of benchmark results, docs/figures/*.png, as pictures.toml says.

    python benchmarks/figures.py [NAME...]

from       the results
pictures   {name: value}: one of each `picture`, NAME-name
panels     an expression: beside each other, one of each `panel`
title, xlabel, ylabel, scales; own_limits: of each panel
lines      of each `key` of `each`: the figures `of`, points or whole curves (x, y), style and label

Expressions and texts are those of tables.toml. The merger of galaxies is drawn below.
"""

import sys
import tomllib

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from merger import EDGES, EPS, PASSAGES, WIDTH
from published import HERE, ROOT, printed, results
from tables import Part, figures_of, filled_in, value

DRAWN = tomllib.loads((HERE / "pictures.toml").read_text())
COLOURS = ["#e07a1f", "#1f4e79", "#2a9d8f", "#b5446e", "#6c6f7d", "#8c6d31", "#5b8c5a"]
INK = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.alpha": 0.25, "axes.titlelocation": "left", "legend.frameon": False,
    "lines.markersize": 4, "figure.dpi": 110, "figure.constrained_layout.use": True,
    "axes.prop_cycle": mpl.cycler(color=COLOURS),
}  # fmt: skip


def pictures(name, spec):
    """(name, picture) of all that an entry of pictures.toml describes."""
    part = Part(spec | {"figures": "figures"}, spec["from"])
    if "pictures" not in spec:
        yield name, picture(spec, part.figures, part.names)
    for word, key in spec.get("pictures", {}).items():
        yield f"{name}-{word}", picture(spec, part.figures, part.names | {"picture": key})


def picture(spec, figures, names):
    panels = value(spec.get("panels", "[0]"), names)
    drawn = Figure(figsize=(2.2 + 3.4 * len(panels), 3.8))
    same = not spec.get("own_limits")
    found = np.atleast_1d(drawn.subplots(1, len(panels), sharex=same, sharey=same))
    x_scale, y_scale = spec.get("scales", ("log", "log"))
    for axes, panel in zip(found, panels, strict=True):
        here = names | {"panel": panel}
        axes.set_xscale(x_scale, **({"linthresh": 1e-3} if x_scale == "symlog" else {}))
        axes.set_yscale(y_scale)
        axes.set(**{of: filled_in(spec.get(of, ""), here) for of in ("title", "xlabel", "ylabel")})
        for line in spec["lines"]:
            for key in value(line.get("each", "[0]"), here):
                draw(axes, line, figures, here | {"key": key})
        if same:
            axes.label_outer()
    lines = found[0].get_legend_handles_labels()
    if len(panels) > 1:
        drawn.legend(*lines, loc="outside right upper", fontsize="small")
    else:
        found[0].legend(fontsize="small")
    return drawn


def draw(axes, line, figures, names):
    of = line.get("of", "True")
    mine = [names | f | {"f": f} for f in figures if value(of, names | f | {"f": f})]
    x, y = ([value(line[of], f) for f in mine] for of in "xy")
    if mine:
        points = (np.array(np.hstack(values), float) for values in (x, y))
        axes.plot(*points, line.get("style", "o-"), label=filled_in(line["label"], mine[0]))


# ---- the merger --------------------------------------------------------------------

DARK, BAR = 0.2, 10  # bodies in a black pixel, so that one is seen; length of the bar
STYLES = {
    "direct": {"color": "0.75", "lw": 4, "label": "direct sum"},
    "theta0.5": {"color": "#1f4e79", "label": "theta 0.5"},
    "theta0.75": {"color": "#e07a1f", "ls": "--", "label": "theta 0.75"},
}
# The model's units: mass and scale length of the first galaxy's disk, and G = 1.
TIME, LENGTH = "time [$(R_d^3 / G M_d)^{1/2}$]", "$R_d$"


def merger():
    figures = [*figures_of(results([f"merger-{how}-h200" for how in STYLES]))]
    yield "merger-curves", curves(list(zip(STYLES.values(), figures, strict=True)))
    yield "merger-stars", strip({k[6:]: v for k, v in figures[-1].items() if k[:6] == "stars "})


def strip(pictures):
    """The stars seen from above."""
    times = sorted(pictures, key=float)
    most = max(pictures[time].max() for time in times)
    figure = Figure(figsize=(9.6, 4.8), dpi=100, facecolor="0.3", layout="none")
    figure.subplots_adjust(0, 0, 1, 1, 0.01, 0.01)
    for axes, time in zip(figure.subplots(2, 4).ravel(), times, strict=True):
        axes.set_axis_off()
        axes.imshow(np.maximum(pictures[time].T, DARK), cmap="inferno", norm=LogNorm(DARK, most),
                    origin="lower", extent=(-WIDTH, WIDTH, -WIDTH, WIDTH))  # fmt: skip
        axes.text(0.04, 0.96, f"t = {time}", color="white", va="top", transform=axes.transAxes)
    left, low = -0.92 * WIDTH, -0.9 * WIDTH
    first = figure.axes[0]
    first.plot([left, left + BAR], [low, low], color="white", lw=1.5)
    first.text(left + BAR / 2, low + 0.03 * WIDTH, f"{BAR} {LENGTH}", color="white", ha="center")
    return figure


def curves(runs):
    """Energy errors, the black holes up to the last pericentre that is wanted, and densities: at
    the end, and where a run ended before, of all at that time."""
    figure = Figure(figsize=(9, 7))
    energy, holes, *densities = figure.subplots(2, 2).ravel()
    last = max(f["pericentres"][-1][0] for _, f in runs if len(f["pericentres"]) == PASSAGES)
    for style, f in runs:
        time, error = np.transpose(f["errors"][1:])
        energy.plot(time, np.abs(error), **style)
        holes.plot(f["times"], f["distance"], **style)
        for time, distance in f["pericentres"]:
            holes.plot(time, distance, "o", ms=7, mfc="none", mec=style["color"])
    theirs = 1e-4 * printed("Bonsai 2012", "4.2", "dE, largest", "Bonsai 1, theta 0.75, GTX480")
    energy.axhline(theirs, color="0.3", ls=":", label=f"Bonsai's, theta 0.75: {theirs:.1e}")
    energy.set(title="Energy error", xlabel=TIME, ylabel="|dE / E|", yscale="log")
    holes.set(title="Black holes, to the third pericentre", xlabel=TIME, xlim=(0, 1.03 * last),
              ylabel=f"distance [{LENGTH}]", yscale="log")  # fmt: skip
    for axes, time in zip(densities, sorted({f["time"] for _, f in runs}), strict=True):
        for style, f in runs:
            if f"density {time:g}" in f:
                values = f[f"density {time:g}"]
                axes.plot(f["radii"], np.where(values > 0, values, np.nan), **style)
        axes.axvline(EPS, color="0.3", ls="-.", lw=1)
        axes.text(EPS, 0.05, " softening", color="0.3", transform=axes.get_xaxis_transform())
        axes.set(title=f"Density of all bodies at t = {time:g}", xscale="log", yscale="log",
                 xlim=EDGES[[0, -1]], ylabel="density [$M_d / R_d^3$]",
                 xlabel=f"distance from the densest point [{LENGTH}]")  # fmt: skip
    lines = energy.get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper center", ncols=len(STYLES) + 1)
    return figure


if __name__ == "__main__":
    made = {name: pictures(name, spec) for name, spec in DRAWN.items()} | {"merger": merger()}
    with mpl.rc_context(INK):
        for name in sys.argv[1:] or made:
            for file, drawn in made[name]:
                drawn.savefig(ROOT / f"docs/figures/{file}.png")
