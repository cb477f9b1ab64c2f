"""Puts the kept figures into docs/benchmarks.md: python benchmarks/tables.py

Each table stands between two comments, <!-- NAME --> and <!-- end -->, and is made from
benchmarks/results/NAME.json; the text around it is written by hand. With a * in NAME it
is made from the figures of all files that match.
"""

import re

import tables_merger
import tables_programs
import tables_runs
import tables_thesis
import tables_tree
from harness import ROOT, read
from tables_markdown import head, row

PAGE = ROOT / "docs/benchmarks.md"


def heading(results):
    """Where and with what figures were made, each once."""
    made = (
        f"{r['machine'].get('gpu', r['machine']['cpu'])}, commit {r['commit']}" for r in results
    )
    return "; ".join(dict.fromkeys(made)) + "\n\n"


def speeds(result):
    lines = head("command", "G pairs/s", "per call", "slot share")
    for f in result["figures"]:
        if f["what"] in ("force", "step"):
            call = f"{1e6 * f['seconds_per_call']:.4g} us"
            cells = [f"`{f['command']}`", f"{f['pairs_per_s'] / 1e9:.2f}", call]
            lines += row([*cells, f"{f['slot_share']:.2f}"])
    lines += "\n" + head("command", "figures")
    for f in result["figures"]:
        if f["what"] not in ("force", "step"):
            values = ", ".join(
                f"{k} {v}" for k, v in f.items() if k not in ("what", "command", "n")
            )
            lines += row([f"`{f['command']}`", values])
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
        lines += row([f["what"], f"{f['value']:.3g}", f["goal"]])
    return lines


def devices(result):
    about = result["machine"]
    lines = (
        f"{about['cpu']}, driver {about['driver']}, CuPy {about['cupy']}, CUDA {about['cuda']}\n\n"
    )
    lines += head("command", "figure", "goal")
    rest = []
    for f in result["figures"]:
        goal = f.get("goal") or ""
        if f["what"] == "force":
            lines += row([f"`{f['command']}`", f"{f['gpairs_per_s']:.0f} G pairs/s", goal])
        elif f["what"] in ("step", "scatter", "cut"):
            returned = f"{f['us']:.1f} us (first half back after {f['firsthalf_us']:.0f})"
            lines += row([f"`{f['command']}`", returned, goal])
        elif f["what"] == "open":
            both = f"{f['first_s']:.2f} s the first time, {f['again_us']:.0f} us again"
            lines += row([f"`{f['command']}`", both, goal])
        else:
            rest.append(f)
    lines += "\n" + head("mode", "N", "acc", "jerk", "pot", "mean along acc")
    for f in rest:
        errors = [f"{f[k][0]:.1e} / {f[k][1]:.1e}" for k in ("acc", "jerk", "pot")]
        lines += row([f["mode"], f["n"], *errors, f"{f['mean_along_acc']:.0e}"])
    return lines


MAKERS = {"accuracy": accuracies, "cpu": speeds, "gpu": devices, "integration": integrations}
MAKERS |= tables_merger.MAKERS | tables_programs.MAKERS | tables_runs.MAKERS
MAKERS |= tables_thesis.MAKERS | tables_tree.MAKERS


def maker_of(name):
    """By the longest beginning of the name."""
    found = [key for key in MAKERS if name.startswith(f"{key}-")]
    return MAKERS[max(found, key=len)]


def main():
    page = PAGE.read_text()
    for name in re.findall(r"<!-- ([\w.*-]+) -->", page):
        if name == "end":
            continue
        results = read(name)
        if not results:
            print(f"{name}.json is not there yet: its table stays as it is")
            continue
        result = results[0] | {"figures": [f for r in results for f in r["figures"]]}
        table = maker_of(name)(result)
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, rest = page.split(begin)
        page = before + begin + heading(results) + table + end + rest.split(end, 1)[1]
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
