"""Puts the kept figures into docs/benchmarks.md and docs/figures/*.md: python benchmarks/tables.py

Each table stands between two comments, <!-- NAME --> and <!-- end -->, and is made from
benchmarks/results/NAME.json; the text around it is written by hand. With a * in NAME it
is made from the figures of all files that match. A table that moves to another page takes
its comments with it.
"""

import re
from collections import defaultdict

import tables_eta
import tables_merger
import tables_programs
import tables_published
import tables_ranks
import tables_runs
import tables_thesis
import tables_tree
import tables_walks
from harness import ROOT, read
from tables_markdown import head, row

SUMMARY = ROOT / "docs/benchmarks.md"
PAGES = [SUMMARY, *sorted((ROOT / "docs/figures").glob("*.md"))]


def heading(results):
    """Where and with what figures were made, each once."""
    made = (
        f"{r['machine'].get('gpu', r['machine']['cpu'])}, commit {r['commit']}" for r in results
    )
    return "; ".join(dict.fromkeys(made)) + "\n\n"


def speeds(result):
    """A row for each call, two columns for each machine."""
    machines = [r["machine"]["cpu"] for r in result["results"]]
    calls, others = defaultdict(dict), defaultdict(dict)
    for machine, r in zip(machines, result["results"], strict=True):
        for f in r["figures"]:
            command = f"`{f['command']}`"
            if f["what"] in ("force", "step"):
                calls[command][machine] = f"{f['pairs_per_s'] / 1e9:.2f}", f"{f['slot_share']:.2f}"
                continue
            for name in f.keys() - {"what", "command", "n"}:
                others[command, name][machine] = f[name]
    lines = head(
        "`cpu_calls`", *(text for m in machines for text in (f"{m}, G pairs/s", "slot share"))
    )
    for command, made in calls.items():
        lines += row([command, *(cell for m in machines for cell in made.get(m, ("", "")))])
    lines += "\n" + head("`cpu_calls`", "figure", *machines)
    for (command, name), made in sorted(others.items()):
        lines += row([command, name, *(made.get(m) for m in machines)])
    return lines


def steps(result):
    """Microseconds of a call beside those of the peers, and how many times as fast it is."""
    peers = list(dict.fromkeys(n for f in result["figures"] for n in f.get("peers", {})))
    beside = (text for n in peers for text in (f"{n}, us", "speed over it"))
    lines = head("`cpu_calls`", "machine", "us", *beside)
    for r in result["results"]:
        for f in r["figures"]:
            own, cells = f["seconds_per_call"], []
            for other in (f.get("peers", {}).get(n) for n in peers):
                cells += [f"{1e6 * other:.2f}", f"{other / own:.2f}"] if other else ["", ""]
            lines += row([f"`{f['command']}`", r["machine"]["cpu"], f"{1e6 * own:.2f}", *cells])
    return lines


def accuracies(result):
    lines = head("mode", "instruction set", "acc", "jerk", "pot", "bias")
    table = {}
    for f in result["figures"]:
        table.setdefault((f["mode"], f["isa"]), {})[f["what"]] = f
    for (mode, isa), what in table.items():
        pairs = [
            f"{what[k]['median']:.1e} / {what[k]['largest']:.1e}" for k in ("acc", "jerk", "pot")
        ]
        lines += row([mode, isa, *pairs, f"{what['bias']['median']:.0e}"])
    return lines


def integrations(result):
    lines = head("figure", "value", "goal")
    for f in result["figures"]:
        lines += row([f["what"].replace("|", "\\|"), f"{f['value']:.3g}", f["goal"]])
    return lines


def devices(result):
    about = result["machine"]
    lines = (
        f"{about['cpu']}, driver {about['driver']}, CuPy {about['cupy']}, CUDA {about['cuda']}\n\n"
    )
    of = defaultdict(list)
    for f in result["figures"]:
        of["step" if f["what"] in ("scatter", "cut") else f["what"]].append(f)
    lines += forces_on_all(of["force"])
    peers = list(dict.fromkeys(n for f in result["figures"] for n in f.get("peers", {})))
    named = [f"{n}, us" for n in peers]
    lines += "\n" + head("step", "mode", "N", "ni", "us", "first half, us", "goal, us", *named)
    for f in of["step"]:
        call = f"cut, {f['pipes']} pipes" if f["what"] == "cut" else "scattered"
        others = [f.get("peers", {}).get(n) for n in peers]
        us = f"{f['us']:.1f}", f"{f['firsthalf_us']:.0f}"
        others = (f"{o:.1f}" if o else "" for o in others)
        lines += row([call, f["mode"], f["n"], f["ni"], *us, f.get("goal"), *others])
    for f in of["walk"]:
        lines += f"\nA shared step of N = {f['n']}, all particles written: {f['ms']:.2f} ms.\n"
    lines += "\n" + head("mode", "N", "acc", "jerk", "pot", "mean along acc")
    for f in of["accuracy"]:
        errors = [f"{f[k][0]:.1e} / {f[k][1]:.1e}" for k in ("acc", "jerk", "pot")]
        lines += row([f["mode"], f["n"], *errors, f"{f['mean_along_acc']:.0e}"])
    return lines


def forces_on_all(figures):
    """Calls with ni = N: a row for each kind, a column for each N."""
    sizes = sorted({f["n"] for f in figures})
    kinds = defaultdict(dict)
    for f in figures:
        notes = [f"goal {f['goal']}"] if f.get("goal") else []
        notes += [f"{name} {speed:.0f}" for name, speed in f.get("peers", {}).items()]
        cell = f"{f['gpairs_per_s']:.0f}" + (f" ({', '.join(notes)})" if notes else "")
        kinds[f["mode"], f["jerk"], f["nn"]][f["n"]] = cell
    lines = head("G pairs/s of mode", "jerk", "nearest", *(f"N = {n}" for n in sizes))
    for (mode, *with_), made in kinds.items():
        lines += row([mode, *("yes" if w else "no" for w in with_), *(made.get(n) for n in sizes)])
    return lines


MAKERS = {"accuracy": accuracies, "cpu": speeds, "gpu": devices, "integration": integrations,
          "steps": steps}  # fmt: skip
MAKERS |= tables_eta.MAKERS | tables_merger.MAKERS | tables_programs.MAKERS | tables_runs.MAKERS
MAKERS |= tables_ranks.MAKERS | tables_thesis.MAKERS | tables_tree.MAKERS | tables_walks.MAKERS


def maker_of(name):
    """By the longest beginning of the name."""
    found = [key for key in MAKERS if name.startswith(f"{key}-")]
    return MAKERS[max(found, key=len)]


def made_of(name):
    """The table of that name; None without results."""
    if name in tables_published.MAKERS:
        return tables_published.MAKERS[name]()
    results = read(name)
    if not results:
        return None
    figures = [f for r in results for f in r["figures"]]
    result = results[0] | {"figures": figures, "results": results}
    return heading(results) + maker_of(name)(result)


def names_of(text):
    """The tables of a page."""
    return [name for name in re.findall(r"<!-- ([\w.*-]+) -->", text) if name != "end"]


def made_anew(page):
    """The text of a page with all its tables; links in these are written as from docs/."""
    text = page.read_text()
    for name in names_of(text):
        table = made_of(name)
        if table is None:
            print(f"{name}.json is not there yet: its table stays as it is")
            continue
        if page != SUMMARY:
            table = table.replace("](figures/", "](")
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, rest = text.split(begin)
        text = before + begin + table + end + rest.split(end, 1)[1]
    return text


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(made_anew(page))
