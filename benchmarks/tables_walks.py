"""Tables of Hamada and others, Chiu and GASPHiA beside this library, as Markdown; for tables.py."""

from published import DATA, column, selected
from tables_markdown import head, number, row

CHIU, STAGES = ("Chiu 2020", "table 1"), ("tree", "force", "update", "energy", "total")
PAIR = 38  # operations, as Hamada and others count
DOLLARS = DATA["assumed"]["dollars"]


def square(result):
    """Milliseconds of a step's stages by N, for each method and machine, and Chiu's."""
    lines = head("N", "machine", *(f"{stage}, ms" for stage in STAGES))
    rows = []
    for made in result["results"]:
        machine = made["machine"].get("gpu", made["machine"]["cpu"])
        for f in made["figures"]:
            rows.append([f["n"], f"{machine}, {f['method']}", *(number(f[s], 4) for s in STAGES)])
    for who in "CPU", "GPU":
        columns = [column(*CHIU, f"{who} {s}") if (who, s) != ("GPU", "energy") else {}
                   for s in STAGES]  # fmt: skip
        rows += [[n, f"Chiu 2020, {who}", *(of.get(n) for of in columns)] for n in columns[0]]
    return lines + "".join(map(row, sorted(rows, key=lambda cells: cells[0])))


def operations(result):
    """Rates at 38 operations a pair, as they are and for walks of one particle."""
    lines = head("N", "sum", "ms", "terms", "terms, one particle a walk", "Tflop/s", "corrected",
                 "corrected, Mflop/s a dollar")  # fmt: skip
    for f in result["figures"]:
        if "theta" in f:
            rate, corrected = (PAIR * f[t] * f["n"] / f["ms"] * 1e-9
                               for t in ("terms", "single_terms"))  # fmt: skip
            about = [f["n"], f"bh {f['theta']:g}, with the build", number(f["ms"])]
            terms = [f"{f['terms']:.0f}", f"{f['single_terms']:.0f} +- {f['single_error']:.0f}"]
            price = f"{1e6 * corrected / DOLLARS:.0f}"
            lines += row([*about, *terms, *map(number, (rate, corrected)), price])
        else:
            rate = PAIR * f["n"] ** 2 / f["ms"] * 1e-9
            about = [f["n"], f"direct, mode {f['precision']}, without jerk", number(f["ms"])]
            lines += row([*about, f["n"], None, number(rate), None, None])
    (walks,) = selected("walks-h200", {})
    for what, f in (("lists of many walks a call", walks["numbers"]),
                    ("a call for each walk", walks["plain"])):  # fmt: skip
        rate = PAIR * f["interactions_per_second"] * 1e-12
        about = [f["targets"], what, number(1e3 * f["median"])]
        lines += row([*about, f"{f['interactions'] / f['targets']:.0f}", None, number(rate),
                      None, None])  # fmt: skip
    return lines


def order(result):
    """Stages of a sum on the lattice, and the time of the sum with unsorted targets."""
    stages = ("keys", "sort", "cells", "moments", "walk", "far", "near")
    lines = head("particles", "method", "ms", *(f"{s}, ms" for s in stages))
    for f in (f for f in result["figures"] if f["what"] == "stages"):
        name = "in order" if f["seed"] is None else "shuffled"
        times = (number(f["stages"].get(s)) for s in stages)
        lines += row([name, method(f), number(f["ms"]), *times])
    theirs = column("GASPHiA", "kernel profile", "time")
    lines += "\n" + head("targets", "method", "sorted first, ms", "as given, ms", "times as long",
                         "GASPHiA, as given, ms")  # fmt: skip
    for f in (f for f in result["figures"] if f["what"] == "targets"):
        ratio = number(f["as_given"] / f["sorted"])
        lines += row([f["targets"], method(f), number(f["sorted"]), number(f["as_given"]), ratio,
                      theirs[f["targets"]]])  # fmt: skip
    return lines


def method(f):
    return f"fmm{f['order']}" if f["order"] else "bh"


MAKERS = {
    "tree-published-square": square,
    "tree-published-operations": operations,
    "tree-published-order": order,
}
