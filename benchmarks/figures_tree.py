"""The octree's pictures; for figures.py."""

import numpy as np
from matplotlib.figure import Figure
from published import column
from tables_tree import ASKED, STAGES, dominant_setting

METHODS = {4: "fmm, order 4", 5: "fmm, order 5", 6: "fmm, order 6", 0: "bh"}


def panels(count, same=True, **labels):
    figure = Figure(figsize=(2.2 + 3.4 * count, 4), dpi=110, layout="constrained")
    found = np.atleast_1d(figure.subplots(1, count, sharex=same, sharey=same))
    for axes in found:
        axes.set(xscale="log", yscale="log", **labels)
        axes.grid(alpha=0.3)
        if same:
            axes.label_outer()
    return figure, found


def labelled(figure):
    """What the first panel's lines are stands beside the panels."""
    lines = figure.axes[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside right upper", frameon=False, fontsize="small")
    return figure


def cdf(result):
    """A picture for each method, a panel for each N, a line for each theta."""
    percent = 100 - np.array(result["percentiles"])
    for order in sorted({f["order"] for f in result["figures"]}):
        mine = [f for f in result["figures"] if f["order"] == order and "percentiles" in f]
        sizes, angles = (sorted({f[key] for f in mine}) for key in ("n", "theta"))
        figure, found = panels(len(sizes), xlabel="relative error of the acceleration")
        for axes, n in zip(found, sizes, strict=True):
            axes.set_title(f"{METHODS[order]}, N = {n}", loc="left")
            for f in (f for f in mine if f["n"] == n):
                colour = f"C{angles.index(f['theta'])}"
                axes.plot(f["percentiles"], np.maximum(percent, 1e-3), color=colour,
                          label=f"theta = {f['theta']:g}")  # fmt: skip
        found[0].set_ylabel("% of the particles with a larger error")
        yield f"tree-cdf-{'fmm' if order else 'bh'}", labelled(figure)


def stages(result):
    """Stage times and terms a particle against N, as Bonsai's paper shows them."""
    mine = [f for f in result["figures"] if "stages" in f]
    settings = sorted({(f["theta"], f["order"]) for f in mine}, reverse=True)
    figure, found = panels(len(settings), xlabel="N", ylabel="ns a particle")
    counted, terms = panels(len(settings), xlabel="N", ylabel="terms a particle")
    for axes, below, (theta, order) in zip(found, terms, settings, strict=True):
        for panel in (axes, below):
            panel.set_title(f"{METHODS[order]}, theta {theta:g}", loc="left")
        of = [f for f in mine if (f["theta"], f["order"]) == (theta, order)]
        n = [f["n"] for f in of]
        axes.plot(n, [1e6 * f["ms"] / f["n"] for f in of], "k.-", label="all, by the clock")
        for stage in STAGES:  # a line without points where there is no such stage
            axes.plot(n, [1e6 * f["stages"].get(stage, np.nan) / f["n"] for f in of], ".-",
                      label=stage)  # fmt: skip
        for name, label in (("pairs", "particles"), ("points", "cells"),
                            ("locals", "cells on its group")):  # fmt: skip
            below.plot(n, [f[name] or np.nan for f in of], ".-", label=label)
    yield "tree-stages", labelled(figure)
    yield "tree-terms", labelled(counted)


def plot(result):
    """Time against the median error and against that of 99 %."""
    for n in sorted({f["n"] for f in result["figures"]}):
        mine = [f for f in result["figures"] if f["n"] == n and "failed" not in f]
        direct = next(f for f in mine if f["what"] == "direct")
        figure, found = panels(2, ylabel="ms")
        for axes, key, label in zip(found, ("median", "p99"), ("median", "99 %"), strict=True):
            axes.set(xlabel=f"relative error of the acceleration, {label}", title=f"N = {n}")
            for order, method in METHODS.items():
                of = [f for f in mine if f["what"] == "tree" and f["order"] == order]
                axes.plot([f["error"][key] for f in of], [f["ms"] for f in of], "o-", ms=4,
                          label=method)  # fmt: skip
            estimated = ", estimated" if direct["estimated"] else ""
            axes.axhline(direct["ms"], color="0.5", ls=":", label=f"direct sum{estimated}")
        yield f"tree-time-error-{n >> 20}M", labelled(figure)


def lattice(result):
    """Errors and speed-up on the lattice against theta."""
    direct = next(f for f in result["figures"] if f["what"] == "direct")
    figure, (left, right) = panels(2, same=False, xlabel="theta")
    for k, order in enumerate((5, 0)):
        of = [f for f in result["figures"]
              if f["what"] == "tree" and f["order"] == order and "failed" not in f]  # fmt: skip
        ordered = [f for f in of if f["seed"] is None]
        shuffled = [f for f in of if f["seed"] is not None]
        theta = [f["theta"] for f in ordered]
        for key, line in (("mean", "o-"), ("largest", "s--")):
            left.plot(theta, [f["error"][key] for f in ordered], line, ms=4, color=f"C{k}",
                      label=f"{METHODS[order]}, {key}")  # fmt: skip
        for some, line, label in ((ordered, "o-", "in order"), (shuffled, "x:", "shuffled")):
            right.plot([f["theta"] for f in some], [direct["ms"] / f["ms"] for f in some], line,
                       color=f"C{k}", label=f"{METHODS[order]}, {label}")  # fmt: skip
    for axes, title, line in ((left, "mean error", "k*:"), (left, "largest error", "kx:"),
                              (right, "speed-up", "k*:")):  # fmt: skip
        axes.plot(*zip(*column("GASPHiA", "theta", title).items(), strict=True), line, ms=4,
                  label=f"GASPHiA, {title}")  # fmt: skip
    left.set(ylabel="relative error", xscale="linear")
    right.set(ylabel="times faster than the direct sum", xscale="linear")
    right.legend(frameon=False, fontsize="small")
    yield "tree-lattice", labelled(figure)


def dominant(result):
    """Errors against the mass of a body in the centre: a panel for each percentile, with what is
    asked."""
    lines = dict.fromkeys(dominant_setting(f) for f in result["figures"])
    names = {"median": "median", "p99": "99 %", "largest": "largest"}
    figure, found = panels(3, xlabel="central mass over that of the others")
    (asked,) = {f["accuracy"] for f in result["figures"] if "accuracy" in f}
    for axes, (key, title) in zip(found, names.items(), strict=True):
        axes.set_title(title, loc="left")
        axes.set_xscale("symlog", linthresh=1e-3)
        axes.set_xticks([0, *(10.0**k for k in range(-2, 7, 2))])
        for setting in lines:
            of = [f for f in result["figures"] if dominant_setting(f) == setting]
            axes.plot([f["share"] for f in of], [f["error"][key] for f in of], "o-", ms=4,
                      label=setting)  # fmt: skip
        axes.axhline(ASKED[key] * asked, color="k", ls=":", label="at most")
    found[0].set_ylabel("relative error of the acceleration")
    yield "tree-dominant", labelled(figure)
