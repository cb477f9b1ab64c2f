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


def ways(result):
    """{a machine, or the program's own sums on it: its figures}, without those that failed."""
    found = defaultdict(list)
    for r in result["results"]:
        name = r["machine"].get("gpu", f"{r['machine']['cpu']}, {r['machine']['cores']} cores")
        host = f"{r['machine']['cpu']}, a core"
        for f in (f for f in r["figures"] if "failed" not in f):
            about = [] if f["backend"] == "auto" else [f["backend"]]
            about += [] if f["mode"] == "default" else [f["mode"]]
            way = f"own sums, {host}" if f["backend"] == "own" else ", ".join([name, *about])
            found[way].append(f)
    return found


def kira(result):
    """Seconds of the whole process, energy errors, blocks: means, of errors medians."""
    return f"{kira_seconds(ways(result))}\n{kira_errors(ways(result))}\n{kira_blocks(ways(result))}"


def typical(figures, field, take=statistics.mean, **where):
    """{n: mean} of the sizes of a field, over the figures that have those fields; or the median."""
    found = defaultdict(list)
    for f in figures:
        if all(f[k] == v for k, v in where.items()):
            found[f["n"]].append(abs(f[field]))
    return {n: take(values) for n, values in found.items()}


def kira_seconds(found):
    made = {(way, eps): typical(figures, "wall", eps=eps, accuracy=0.3, jobs=1)
            for way, figures in found.items() for eps in ("1/256", "0")}  # fmt: skip
    made = {case: by_n for case, by_n in made.items() if by_n}
    titles, printed = then("4.3", {n for by_n in made.values() for n in by_n})
    lines = head("N", *(f"{way}, eps {eps}, s" for way, eps in made), *titles)
    for n, cells in printed.items():
        lines += row([n, *(number(by_n.get(n)) for by_n in made.values()), *cells])
    return lines


def kira_errors(found):
    """Rows of each way, of kirin and of the GRAPE-6Af, for each softening and accuracy."""
    sizes = list(column(THESIS, "4.5", "kirin, a = 0.1"))
    lines = head("eps", "accuracy", "energy errors of", *(f"N = {n}" for n in sizes[:-1]), "mean")
    for name, eps in (("4.5", "1/256"), ("4.6", "0")):
        for accuracy in (0.3, 0.2, 0.1):
            rows = {way: typical(figures, "error", statistics.median, eps=eps, accuracy=accuracy)
                    for way, figures in found.items()}  # fmt: skip
            for of in rows.values():
                if {*sizes[:-1]} <= {*of}:
                    of["Average"] = statistics.mean(of.values())
            for who in ("GRAPE-6Af", "kirin"):
                title = f"{who}, a = {accuracy}"
                unit = float(table(THESIS, name)["columns"][title])
                rows[who] = {n: unit * e for n, e in column(THESIS, name, title).items()}
            for who, of in rows.items():
                cells = (f"{of[n]:.1e}" if n in of else None for n in sizes)
                lines += row([eps, accuracy, who, *cells])
    return lines


def kira_blocks(found):
    sizes = sorted({f["n"] for figures in found.values() for f in figures})
    lines = head("eps", "accuracy", "blocks of", *(f"N = {n}" for n in sizes))
    for eps in ("1/256", "0"):
        for accuracy in (0.3, 0.2, 0.1, 0.025):
            for way, figures in found.items():
                of = typical(figures, "blocks", eps=eps, accuracy=accuracy)
                if of:
                    cells = (f"{of[n]:.0f}" if n in of else None for n in sizes)
                    lines += row([eps, accuracy, way, *cells])
    return lines


def treecode(result):
    """A row for each N: seconds of the whole process, energy errors."""
    made = {way: {f["n"]: f for f in figures} for way, figures in ways(result).items()}
    titles, printed = then("4.4", {n for by_n in made.values() for n in by_n})
    lines = head("N", *(f"{way}: {what}" for way in made for what in ("s", "energy error")),
                 *titles)  # fmt: skip
    for n, cells in printed.items():
        found = (by_n.get(n) for by_n in made.values())
        ours = ((number(f["wall"]), f"{f['error']:.1e}") if f else (None, None) for f in found)
        lines += row([n, *(cell for two in ours for cell in two), *cells])
    return lines


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
    "thesis-kernel": kernels,
    "thesis-4.1-4.3": steps,
    "thesis-4.1": all_pairs,
    "thesis-4.2": hermite,
    "thesis-kira": kira,
    "thesis-4.4": tree_leapfrog,
    "thesis-treecode": treecode,
    "thesis-5.1": devices,
}
