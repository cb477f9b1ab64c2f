"""Draws all pictures of benchmark results, docs/figures/*.png: python benchmarks/figures.py

A function makes pictures of a result, (name, figure) by (name, figure); DRAWN says of which.
"""

import figures_merger
import figures_tree
import matplotlib as mpl
import numpy as np
from harness import ROOT, read
from matplotlib.figure import Figure
from published import column
from tables_thesis import THESIS
from thesis import BLOCKS

PICTURES = ROOT / "docs/figures"
COLOURS = {"single": "#e07a1f", "grape": "#1f4e79", "double": "#2a9d8f"}  # of modes
INK = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.alpha": 0.25, "axes.titlelocation": "left",
}  # fmt: skip


def panels(count):
    figure = Figure(figsize=(1 + 3.3 * count + (count == 1), 3.4), dpi=110, layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, count))


def force_errors(result):
    (data,) = result["figures"]
    figure, found = panels(3)
    percent = np.maximum(100 - np.array(data["percentiles"]), 100 / data["n"])
    titles = {"acc": "acceleration", "jerk": "jerk", "pot": "potential"}
    for axes, (name, title) in zip(found, titles.items(), strict=True):
        for mode, colour in COLOURS.items():
            axes.plot(data[mode][name], percent, color=colour, label=mode)
        axes.set(xscale="log", yscale="log", title=title, xlabel="relative error")
    found[0].set_ylabel("% of the bodies with a larger error")
    found[0].legend(frameon=False)
    yield "force-errors", figure


def energy_errors(result):
    (data,) = result["figures"]
    figure, (axes,) = panels(1)
    for mode, colour in COLOURS.items():
        axes.plot(data["eta"], data[mode], "o-", ms=4, color=colour, label=mode)
    eta = np.array(data["eta"])
    axes.plot(eta, data["double"][0] * (eta / eta[0]) ** 2, ":", color="0.5", label="eta squared")
    axes.set(xscale="log", yscale="log", xlabel="eta", ylabel="|dE / E| after one time unit")
    axes.legend(frameon=False)
    yield "energy-errors", figure


def bits(result):
    shared, apart = result["figures"]
    figure, (left, right) = panels(2)
    for name, colour in (("doubles", COLOURS["single"]), ("partial sums", COLOURS["grape"])):
        share = 100 * np.array(shared[name])
        left.plot(shared["parts"], share, "o-", ms=4, color=colour, label=f"added as {name}")
    left.set(xlabel="boards among which the j particles are shared", ylim=(-4, 104),
             title="forces with other bits, %")  # fmt: skip
    left.legend(frameon=False, loc="center right")
    left.set_xticks([1, 4, 8, 12, 16])
    right.plot(apart["time"], apart["last bit"], color=COLOURS["single"])
    right.set(yscale="log", xlabel="time", ylim=(1e-19, 10),
              title="distance of two runs that differ in one bit")  # fmt: skip
    yield "bits", figure


def thesis_axes(x, y, title):
    figure = Figure(figsize=(6, 4), dpi=120, layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y, title=title)
    axes.grid(alpha=0.3)
    return figure, axes


def block_steps(result):
    figure, axes = thesis_axes("block size", "microseconds", "A block step through the C API")
    sizes, counts = BLOCKS
    found = [f for f in result["figures"]
             if f["what"] == "scatter" and f["ni"] in sizes and f["n"] in counts]  # fmt: skip
    for n in sorted({f["n"] for f in found}):
        us = [(f["ni"], f["us"]) for f in found if f["n"] == n]
        axes.plot(*zip(*us, strict=True), "o-", label=f"N = {n}")
    axes.legend(frameon=False, fontsize="small")
    yield "thesis-steps", figure


def hermite(result):
    figure, axes = thesis_axes("N", "seconds", "Block-step Hermite, t = 0.25 to 0.5, eps = 1/256")
    for what in ("grape6 run", "hermite.c"):
        seconds = [(f["n"], f["seconds"]) for f in result["figures"] if f["what"] == what]
        axes.plot(*zip(*seconds, strict=True), "o-", label=what)
    for title, what in (("kirin improved", "kirin, GeForce 8800GTX (2007)"), 2 * ("GRAPE-6Af",)):
        axes.plot(*zip(*column(THESIS, "4.2", title).items(), strict=True), "s--", label=what)
    axes.legend(frameon=False, fontsize="small")
    yield "thesis-hermite", figure


DRAWN = [
    (force_errors, ["force-errors-zen4"], INK),
    (energy_errors, ["energy-errors-sapphire-rapids"], INK),
    (bits, ["shared-sums-zen4", "last-bit-zen4"], INK),
    (block_steps, ["thesis-4.1-4.3-h200"], {}),
    (hermite, ["thesis-4.2-h200", "thesis-4.2-1m-h200"], {}),
    (figures_tree.cdf, ["tree-cdf-h200"], {}),
    (figures_tree.stages, ["tree-stages-h200"], {}),
    (figures_tree.plot, ["tree-plot-h200"], {}),
    (figures_tree.lattice, ["tree-lattice-h200"], {}),
    (figures_tree.dominant, ["tree-dominant-zen5"], {}),
    (figures_merger.merger, [f"merger-{how}-h200" for how in figures_merger.DRAWN], {}),
]


def main():
    for draw, names, style in DRAWN:
        results = [result for name in names for result in read(name)]
        figures = [figure for result in results for figure in result["figures"]]
        with mpl.rc_context(style):
            for name, figure in draw(results[0] | {"figures": figures}):
                figure.savefig(PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
