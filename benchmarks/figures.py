"""Draws the pictures of benchmark results, docs/figures/*.png.

    python benchmarks/figures.py [FUNCTION...]

A function makes pictures of figures, (name, picture) by (name, picture); DRAWN says of which
results.
"""

import sys

import matplotlib as mpl
import numpy as np
import tables
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from merger import EDGES, EPS, PASSAGES, WIDTH
from published import ROOT, column, printed, results
from thesis import BLOCKS

PICTURES = ROOT / "docs/figures"
COLOURS = {"single": "#e07a1f", "grape": "#1f4e79", "double": "#2a9d8f"}  # of modes
METHODS = {4: "fmm, order 4", 5: "fmm, order 5", 6: "fmm, order 6", 0: "bh"}
ERROR = "relative error of the acceleration"
INK = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.alpha": 0.25, "axes.titlelocation": "left", "legend.frameon": False,
    "lines.markersize": 4, "figure.dpi": 110, "figure.constrained_layout.use": True,
}  # fmt: skip


def panels(count, same=False, **labels):
    """A picture and its axes, logarithmic; `same`: with the same limits."""
    figure = Figure(figsize=(2.2 + 3.4 * count, 3.8))
    found = np.atleast_1d(figure.subplots(1, count, sharex=same, sharey=same))
    for axes in found:
        axes.set(**{"xscale": "log", "yscale": "log"} | labels)
        if same:
            axes.label_outer()
    return figure, found


def labelled(figure):
    """What the first panel's lines are stands beside the panels, or in the only one."""
    if len(figure.axes) == 1:
        figure.axes[0].legend(fontsize="small")
        return figure
    lines = figure.axes[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside right upper", fontsize="small")
    return figure


def line(axes, figures, x, y, *style, **more):
    """Two expressions, as in tables.toml, of the figures."""
    points = ([tables.value(of, f | {"f": f}) for f in figures] for of in (x, y))
    axes.plot(*(np.array(values, float) for values in points), *style, **more)


def those(figures, **fields):
    return [f for f in figures if all(f.get(k) == v for k, v in fields.items())]


def force_errors(figures):
    (data,) = figures
    picture, found = panels(3, xlabel="relative error")
    percent = np.maximum(100 - np.array(data["percentiles"]), 100 / data["n"])
    for axes, name in zip(found, ("acc", "jerk", "pot"), strict=True):
        for mode, colour in COLOURS.items():
            axes.plot(data[mode][name], percent, color=colour, label=mode)
        axes.set_title(name)
    found[0].set_ylabel("% of the bodies with a larger error")
    yield "force-errors", labelled(picture)


def energy_errors(figures):
    (data,) = figures
    picture, (axes,) = panels(1, xlabel="eta", ylabel="|dE / E| after one time unit")
    for mode, colour in COLOURS.items():
        axes.plot(data["eta"], data[mode], "o-", color=colour, label=mode)
    eta = np.array(data["eta"])
    axes.plot(eta, data["double"][0] * (eta / eta[0]) ** 2, ":", color="0.5", label="eta squared")
    yield "energy-errors", labelled(picture)


def bits(figures):
    apart, shared = figures
    picture, (left, right) = panels(2, xscale="linear")
    for name, colour in (("doubles", COLOURS["single"]), ("partial sums", COLOURS["grape"])):
        share = 100 * np.array(shared[name])
        left.plot(shared["parts"], share, "o-", color=colour, label=f"added as {name}")
    left.set_yscale("linear")
    left.set(xlabel="boards among which the j particles are shared", ylim=(-4, 104),
             title="forces with other bits, %")  # fmt: skip
    left.legend(loc="center right")
    left.set_xticks([1, 4, 8, 12, 16])
    right.plot(apart["time"], apart["last bit"], color=COLOURS["single"])
    right.set(xlabel="time", ylim=(1e-19, 10), title="distance of two runs that differ in one bit")
    yield "bits", picture


def block_steps(figures):
    picture, (axes,) = panels(1, xlabel="block size", ylabel="microseconds",
                              title="A block step through the C API")  # fmt: skip
    sizes, counts = BLOCKS
    for n in counts:
        steps = [f for f in those(figures, what="scatter", n=n) if f["ni"] in sizes]
        line(axes, steps, "ni", "us", "o-", label=f"N = {n}")
    yield "thesis-steps", labelled(picture)


def hermite(figures):
    picture, (axes,) = panels(1, xlabel="N", ylabel="seconds",
                              title="Block-step Hermite, t = 0.25 to 0.5, eps = 1/256")  # fmt: skip
    for what in ("grape6 run", "hermite.c"):
        mine = sorted(those(figures, what=what), key=lambda f: f["n"])
        line(axes, mine, "n", "seconds", "o-", label=what)
    for title, what in (("kirin improved", "kirin, GeForce 8800GTX (2007)"), 2 * ("GRAPE-6Af",)):
        axes.plot(*zip(*column("kirin 2007", "4.2", title).items(), strict=True), "s--", label=what)
    yield "thesis-hermite", labelled(picture)


def cdf(figures):
    """A picture for each method, a panel for each N, a line for each theta."""
    percent = 100 - np.array(results("tree-cdf-h200")[0][1]["percentiles"])
    for order in (0, 5):
        mine = [f for f in those(figures, order=order) if "percentiles" in f]
        sizes = sorted({f["n"] for f in mine})
        picture, found = panels(len(sizes), same=True, xlabel=ERROR)
        for axes, n in zip(found, sizes, strict=True):
            axes.set_title(f"{METHODS[order]}, N = {n}")
            for f in those(mine, n=n):
                axes.plot(f["percentiles"], np.maximum(percent, 1e-3),
                          label=f"theta = {f['theta']:g}")  # fmt: skip
        found[0].set_ylabel("% of the particles with a larger error")
        yield f"tree-cdf-{'fmm' if order else 'bh'}", labelled(picture)


def stages(figures):
    """Stage times and terms a particle against N, as Bonsai's paper shows them."""
    mine = [f for f in figures if "stages" in f]
    settings = sorted({(f["theta"], f["order"]) for f in mine}, reverse=True)
    names = ("keys", "sort", "cells", "moments", "walk", "far", "near")
    times = {"all": "1e6 * ms / n"} | {name: f"1e6 * stages['{name}'] / n" for name in names}
    counts = {"particles": "pairs", "cells": "points", "cells on its group": "locals"}
    terms = {name: f"{count} or nan" for name, count in counts.items()}
    for name, kind, lines in (("stages", "ns", times), ("terms", "terms", terms)):
        picture, found = panels(len(settings), same=True, xlabel="N", ylabel=f"{kind} a particle")
        for axes, (theta, order) in zip(found, settings, strict=True):
            axes.set_title(f"{METHODS[order]}, theta {theta:g}")
            for label, of in lines.items():
                line(axes, those(mine, theta=theta, order=order), "n", of, ".-", label=label)
        yield f"tree-{name}", labelled(picture)


def time_error(figures):
    """Time against the median error and against that of 99 %."""
    for n in sorted({f["n"] for f in figures}):
        (direct,) = those(figures, n=n, what="direct")
        picture, found = panels(2, same=True, ylabel="ms")
        for axes, key, label in zip(found, ("median", "p99"), ("median", "99 %"), strict=True):
            axes.set(xlabel=f"{ERROR}, {label}", title=f"N = {n}")
            for order, method in METHODS.items():
                mine = [f for f in those(figures, n=n, what="tree", order=order) if "ms" in f]
                line(axes, mine, f"error['{key}']", "ms", "o-", label=method)
            estimated = ", estimated" if direct["estimated"] else ""
            axes.axhline(direct["ms"], color="0.5", ls=":", label=f"direct sum{estimated}")
        yield f"tree-time-error-{n >> 20}M", labelled(picture)


def lattice(figures):
    """Errors and speed-up on the lattice against theta."""
    (direct,) = those(figures, what="direct")
    picture, (left, right) = panels(2, xlabel="theta", xscale="linear")
    for k, order in enumerate((5, 0)):
        of = [f for f in those(figures, what="tree", order=order) if "ms" in f]
        for seed, style, label in ((None, "o-", "in order"), (41, "x:", "shuffled")):
            line(right, those(of, seed=seed), "theta", f"{direct['ms']} / ms", style, color=f"C{k}",
                 label=f"{METHODS[order]}, {label}")  # fmt: skip
        for key, style in (("mean", "o-"), ("largest", "s--")):
            line(left, those(of, seed=None), "theta", f"error['{key}']", style, color=f"C{k}",
                 label=f"{METHODS[order]}, {key}")  # fmt: skip
    for axes, title, style in ((left, "mean error", "k*:"), (left, "largest error", "kx:"),
                               (right, "speed-up", "k*:")):  # fmt: skip
        axes.plot(*zip(*column("GASPHiA", "theta", title).items(), strict=True), style,
                  label=f"GASPHiA, {title}")  # fmt: skip
    left.set_ylabel("relative error")
    right.set_ylabel("times faster than the direct sum")
    right.legend(fontsize="small")
    yield "tree-lattice", labelled(picture)


def dominant(figures):
    """Errors against the mass of a body in the centre: a panel for each percentile, with what is
    asked."""
    picture, found = panels(3, same=True, xlabel="central mass over that of the others")
    (asked,) = {f["accuracy"] for f in figures if "accuracy" in f}
    limits = {"median": 1.5, "p99": 4, "largest": 100}
    for axes, (key, limit) in zip(found, limits.items(), strict=True):
        axes.set_title(key)
        axes.set_xscale("symlog", linthresh=1e-3)
        axes.set_xticks([0, *(10.0**k for k in range(-2, 7, 2))])
        for method in ("fmm", "bh"):
            for name, value in (("accuracy", 1e-3), ("theta", 0.5)):
                line(axes, those(figures, method=method, **{name: value}), "share",
                     f"error['{key}']", "o-", label=f"{method}, {name} {value:g}")  # fmt: skip
        axes.axhline(limit * asked, color="k", ls=":", label="at most")
    found[0].set_ylabel(ERROR)
    yield "tree-dominant", labelled(picture)


# ---- the merger --------------------------------------------------------------------

DARK, BAR = 0.2, 10  # bodies in a black pixel, so that one is seen; length of the bar
STYLES = {
    "direct": {"color": "0.75", "lw": 4, "label": "direct sum"},
    "theta0.5": {"color": "#1f4e79", "label": "theta 0.5"},
    "theta0.75": {"color": "#e07a1f", "ls": "--", "label": "theta 0.75"},
}
# The model's units: mass and scale length of the first galaxy's disk, and G = 1.
TIME, LENGTH = "time [$(R_d^3 / G M_d)^{1/2}$]", "$R_d$"


def merger(figures):
    runs = list(zip(STYLES.values(), figures, strict=True))
    yield "merger-curves", curves(runs)
    yield (
        "merger-stars",
        strip({k[6:]: v for k, v in figures[-1].items() if k.startswith("stars ")}),
    )


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


DRAWN = {
    force_errors: ["force-errors-zen4"],
    energy_errors: ["energy-errors-sapphire-rapids"],
    bits: ["last-bit-zen4", "shared-sums-zen4"],
    block_steps: ["thesis-4.1-4.3-h200"],
    hermite: ["thesis-4.2-h200", "thesis-4.2-1m-h200"],
    cdf: ["tree-cdf-h200"],
    stages: ["tree-stages-h200"],
    time_error: ["tree-plot-h200"],
    lattice: ["tree-lattice-h200"],
    dominant: ["tree-dominant-zen5"],
    merger: [f"merger-{how}-h200" for how in STYLES],
}


def main():
    for draw, names in DRAWN.items():
        if draw.__name__ in sys.argv[1:] or not sys.argv[1:]:
            figures = tables.figures_of(made for name in names for made in results(name))
            with mpl.rc_context(INK):
                for name, picture in draw([*figures]):
                    picture.savefig(PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
