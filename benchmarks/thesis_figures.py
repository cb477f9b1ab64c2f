"""Draws the thesis's figures from benchmarks/results/thesis-*-NAME.json into docs/figures.

python benchmarks/thesis_figures.py [--name NAME]
"""

import argparse
import json

from figures import HERE, PICTURES
from matplotlib.figure import Figure
from thesis_tables import HERMITE_THEN, mean_errors


def load(table, name):
    return json.loads((HERE / "results" / f"thesis-{table}-{name}.json").read_text())


def axes(x, y, title):
    figure = Figure(figsize=(6, 4), layout="constrained")
    found = figure.subplots()
    found.set(xscale="log", yscale="log", xlabel=x, ylabel=y, title=title)
    found.grid(alpha=0.3)
    return figure, found


def save(figure, name):
    figure.axes[0].legend(frameon=False, fontsize="small")
    figure.savefig(PICTURES / f"thesis-{name}.png", dpi=120)


def block_steps(result):
    figure, a = axes("block size", "microseconds", "A block step through the C API")
    found = [f for f in result["figures"] if f["what"] == "step"]
    for n in sorted({f["n"] for f in found}):
        us = [(f["ni"], f["us"]) for f in found if f["n"] == n]
        a.plot(*zip(*us, strict=True), "o-", label=f"N = {n}")
    save(figure, "steps")


def hermite(result):
    figure, a = axes("N", "seconds", "Block-step Hermite, t = 0.25 to 0.5, eps = 1/256")
    for what in ("grape6 run", "hermite.c"):
        seconds = [(f["n"], f["seconds"]) for f in result["figures"] if f["what"] == what]
        a.plot(*zip(*seconds, strict=True), "o-", label=what)
    for column, what in enumerate(("kirin, GeForce 8800GTX (2007)", "GRAPE-6Af")):
        then = [(n, both[column]) for n, both in HERMITE_THEN.items() if both[column]]
        a.plot(*zip(*then, strict=True), "s--", label=what)
    save(figure, "hermite")


def energy(result):
    figure, a = axes("accuracy parameter", "relative energy error over 0.25 time units",
                     "Energy error: eps = 1/256 (lines), 0 (dashed)")  # fmt: skip
    found = mean_errors(result)
    for k, n in enumerate(sorted(next(iter(found["0"].values())))):
        for eps, line in (("1/256", "o-"), ("0", "o--")):
            points = [(accuracy, by_n[n][0]) for accuracy, by_n in found[eps].items()]
            label = f"N = {n}" if eps != "0" else None
            a.plot(*zip(*points, strict=True), line, color=f"C{k}", label=label)
    save(figure, "energy")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="h200")
    name = parser.parse_args().name
    block_steps(load("4.1-4.3", name))
    hermite(load("4.2", name))
    energy(load("4.5-4.6", name))


if __name__ == "__main__":
    main()
