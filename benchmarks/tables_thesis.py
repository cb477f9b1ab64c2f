"""The thesis's tables as Markdown, with its columns next to today's; for tables.py."""

import statistics
from collections import defaultdict

from published import column, table
from tables_markdown import head, number, row

THESIS = "kirin 2007"


def then(name, ours):
    """What the thesis printed: headings, and {N: cells} for its N and ours."""
    found = table(THESIS, name)
    printed = {n: cells for n, *cells in found["rows"]}
    nothing = [None] * len(found["columns"])
    titles = [f"{title}, {unit}" for title, unit in found["columns"].items()]
    return titles, {n: printed.get(n, nothing) for n in sorted({*ours, *printed})}


def by_n(result, field):
    """{N: {value of a field: figure}}."""
    found = defaultdict(dict)
    for f in result["figures"]:
        found[f["n"]][f[field]] = f
    return found


def all_pairs(result):
    kirin = {who: column(THESIS, "4.1", who) for who in ("base", "improved")}
    lines = head("N", "ms a call", "G pairs/s", "W", "G pairs/J",
                 *(f"kirin {who}, kernel alone, ms" for who in kirin))  # fmt: skip
    for f in result["figures"]:
        printed = (of.get(f["n"]) for of in kirin.values())
        lines += row([f["n"], number(1e3 * f["seconds"], 4), number(f["gpairs_per_s"], 4),
                      number(f.get("watts")), number(f.get("gpairs_per_joule")),
                      *(number(s and 1e3 * s, 5) for s in printed)])  # fmt: skip
    return lines


def kernels(result):
    """Of the kernels alone: times of three kinds of sums, the rate of the first."""
    found = by_n(result, "what")
    rates = column(THESIS, "4.1", "improved, rate")
    kinds = list(next(iter(found.values())))
    lines = head("N", *(f"{kind}, us" for kind in kinds), "Gflop/s", "kirin improved, Gflop/s")
    for n, of in found.items():
        us = (number(1e6 * of[kind]["seconds"], 4) for kind in kinds)
        lines += row([n, *us, f"{of[kinds[0]]['gflops']:.0f}", rates.get(n)])
    return lines


def steps(result):
    """Microseconds by N and block size; rates of the sizes of figures 4.2 and 4.3; copies."""
    found = [f for f in result["figures"] if f["what"] == "scatter"]
    sizes = sorted({f["ni"] for f in found})
    lines = head("N", *(f"ni = {size}" for size in sizes))
    for n in sorted({f["n"] for f in found}):
        us = {f["ni"]: f["us"] for f in found if f["n"] == n}
        lines += row([n, *(number(us.get(size), 4) for size in sizes)])
    rates = {(f["n"], f["ni"]): 0.06 * f["n"] * f["ni"] / f["us"] for f in found}
    lines += "\n" + head("figure", "N", "ni", "Gflop/s", "kirin improved, Gflop/s")
    for name, chosen in (("4.2", lambda n, ni: n == 131072), ("4.3", lambda n, ni: ni == 128)):
        kirin = column(THESIS, f"figure {name}", "improved")
        for n, ni in filter(lambda case, chosen=chosen: chosen(*case), rates):
            theirs = kirin.get(ni if name == "4.2" else n)
            lines += row([name, n, ni, f"{rates[n, ni]:.0f}", number(theirs)])
    lines += "\n" + head(
        "particles", "j particles to the GPU, us", "i particles, us", "forces back, us"
    )
    for f in result["figures"]:
        if f["what"] == "copies":
            lines += row([f["n"], *(number(f[k], 4) for k in ("j_us", "i_us", "forces_us"))])
    return lines


def hermite(result):
    names = "grape6 run", "hermite.c"
    made = by_n(result, "what")
    titles, printed = then("4.2", made)
    lines = head(
        "N", "`grape6 run`, s", "`hermite.c`, s", "steps", "blocks", "energy error", *titles
    )
    for n, cells in printed.items():
        found = made[n]
        seconds = [number(found[name]["seconds"]) if name in found else None for name in names]
        run = found.get(names[0])
        about = [run["steps"], run["blocks"], f"{run['error']:.1e}"] if run else [None] * 3
        lines += row([n, *seconds, *about, *cells])
    return lines


def tree_leapfrog(result):
    """A row for each N, two columns for each machine."""
    made = [{f["n"]: (number(f["seconds"]), f"{f['error']:.1e}") for f in r["figures"]}
            for r in result["results"]]  # fmt: skip
    machines = [r["machine"] for r in result["results"]]
    names = [m.get("gpu", m["cpu"]) for m in machines]
    columns = (text for name in names for text in (f"{name}, s", "energy error"))
    titles, printed = then("4.4", {n for by_n in made for n in by_n})
    lines = head("N", *columns, *titles)
    for n, cells in printed.items():
        lines += row([n, *(cell for by_n in made for cell in by_n.get(n, (None, None))), *cells])
    return lines


def kira(result):
    """A row for each N: seconds of the steps, and of the whole process, for each softening."""
    made = by_n(result, "eps")
    titles, printed = then("4.3", made)
    lines = head("N", *(f"eps {eps}: {what}" for eps in ("1/256", "0")
                        for what in ("steps, s", "whole, s", "energy error")), *titles)  # fmt: skip
    for n, cells in printed.items():
        found = [made[n].get(eps) for eps in ("1/256", "0")]
        ours = ((number(f["seconds"]), number(f["wall"]), f"{f['error']:.1e}") if f else (None,) * 3
                for f in found)  # fmt: skip
        lines += row([n, *(cell for three in ours for cell in three), *cells])
    return lines


def treecode(result):
    """A row for each N: seconds of the steps with jerk and without."""
    made = by_n(result, "jerk")
    titles, printed = then("4.4", made)
    lines = head("N", "normal, s", "GRAPE6_JERK=0, s", "energy error", *titles)
    for n, cells in printed.items():
        found = [made[n].get(jerk) for jerk in (1, 0)]
        error = f"{found[0]['error']:.1e}" if found[0] else None
        lines += row([n, *(f and number(f["seconds"]) for f in found), error, *cells])
    return lines


def mean_errors(result):
    """{(softening, largest step, accuracy): {n: (error, seconds)}}, means over seeds."""
    found = defaultdict(lambda: defaultdict(list))
    for f in result["figures"]:
        case = f["eps"], f["steps_a_unit"], f["accuracy"]
        found[case][f["n"]].append((f["error"], f["seconds"]))
    return {
        case: {n: tuple(map(statistics.mean, zip(*runs, strict=True))) for n, runs in of.items()}
        for case, of in found.items()
    }


def errors(result):
    """Rows of this library, kirin and the GRAPE-6Af for each softening and accuracy."""
    rows, sizes = {}, list(column(THESIS, "4.5", "kirin, a = 0.1"))
    for (eps, per, accuracy), by_n in mean_errors(result).items():
        of = {n: error for n, (error, _) in by_n.items()}
        if {*sizes[:-1]} <= {*of}:
            of["Average"] = statistics.mean(of.values())
        rows[eps, accuracy, f"here, steps to 1/{per}"] = of
    for name, eps in (("4.5", "1/256"), ("4.6", "0")):
        for title, unit in table(THESIS, name)["columns"].items():
            who, accuracy = title.split(", a = ")
            of = column(THESIS, name, title)
            rows[eps, float(accuracy), who] = {n: float(unit) * error for n, error in of.items()}
    compared = {accuracy for _, accuracy, who in rows if who == "kirin"}
    lines = head("eps", "accuracy", "errors of", *(f"N = {n}" for n in sizes[:-1]), "mean")
    for case in sorted(rows, key=lambda case: (case[0] == "0", case[1], "here" not in case[2])):
        of = rows[case]
        if case[1] in compared:
            lines += row([*case, *(f"{of[n]:.1e}" if n in of else None for n in sizes)])
    return lines


def kira_rule(result):
    """Means, medians and largest errors with kira's rule of steps and with this library's."""
    found = defaultdict(list)
    for f in result["figures"]:
        found[f["eps"], f["accuracy"], f["n"]].append(f)
    lines = head("eps", "accuracy", "N", *(f"{who}: mean / median / largest, steps"
                                           for who in ("kira's rule", "here")),
                 "kirin", "GRAPE-6Af")  # fmt: skip
    for (eps, accuracy, n), of in sorted(
        found.items(), key=lambda item: (item[0][0] == "0", item[0])
    ):
        name = "4.5" if eps == "1/256" else "4.6"
        cells = [spread(of, "error", "steps"), spread(of, "error_here", "steps_here")]
        for who in ("kirin", "GRAPE-6Af"):
            title = f"{who}, a = {accuracy}"
            unit = float(table(THESIS, name)["columns"][title])
            cells.append(f"{unit * column(THESIS, name, title)[n]:.1e}")
        lines += row([eps, accuracy, n, *cells])
    return lines


def spread(figures, error, steps):
    errors = [f[error] for f in figures]
    three = statistics.mean(errors), statistics.median(errors), max(errors)
    mean = statistics.mean(f[steps] for f in figures)
    return " / ".join(f"{e:.1e}" for e in three) + f", {mean:.0f}"


def call(command):
    """What, N and ni of `force MODE JERK NN N` or `scatter MODE N NI`."""
    what, *_, n, ni = command.split()
    return (what, ni, ni) if what == "force" else (what, n, ni)


def devices(result):
    counts = sorted(map(int, result["figures"][0]["seconds"]))
    lines = head("call", "N", "ni", *(f"{k} GPU, ms" for k in counts),
                 *(f"{k}: ratio" for k in counts[1:]))  # fmt: skip
    for f in result["figures"]:
        ms = [number(1e3 * f["seconds"][str(k)], 4) for k in counts]
        lines += row([*call(f["command"]), *ms,
                      *(f"{f['times_one'][str(k)]:.2f}" for k in counts[1:])])  # fmt: skip
    return lines


MAKERS = {
    "kira-rule": kira_rule,
    "thesis-kernel": kernels,
    "thesis-4.1-4.3": steps,
    "thesis-4.1": all_pairs,
    "thesis-4.2": hermite,
    "thesis-4.3": kira,
    "thesis-4.4": tree_leapfrog,
    "thesis-treecode": treecode,
    "thesis-4.5-4.6": errors,
    "thesis-5.1": devices,
}
