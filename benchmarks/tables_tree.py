"""The octree's tables as Markdown, with goals and other programs' figures beside; for tables.py.

Below them stand the pictures that figures_tree.py draws of the same results.
"""

import math
from collections import defaultdict

from tables_markdown import head, number, row

STAGES = ("keys", "sort", "cells", "moments", "walk", "far", "near", "other")
GASPHIA = {0.5: "5.9 ms, 5.3e-4 / 7e-2"}  # N = 10^6: time, mean and largest error
# FDPS with Phantom-GRAPE G5: (N, threads): millions a second at median errors near 1e-3 and 1e-4,
# on cores that issue 2 multiply-adds of 512 bits a cycle of 3.84 GHz.
PEER = {(100_000, 1): (0.95, 0.33), (1_000_000, 2): (1.39, 0.51)}
PEER_FMA_RATE = 7.68


def picture(title, name):
    return f"\n![{title}](figures/tree-{name}.png)\n"


def setting_of(f):
    kind = f"fmm, order {f['order']}" if f["order"] else "bh"
    bound = f", bound {f['bound']:g}" if f.get("bound") else ""
    return f"{kind}, theta {f['theta']:g}{bound}"


def three(error):
    return " / ".join(f"{error[name]:.1e}" for name in ("median", "p99", "largest"))


def terms(f):
    return [f"{f[name]:.0f}" for name in ("pairs", "points", "locals")]


def failed(f, columns):
    return [f["failed"], *[""] * (columns - 1)]


def missed(f, goal):
    """What of a row is not reached; goals are those of Plummer spheres."""
    names = {"median": "median", "p99": "99 %", "largest": "largest"}
    found = [text for name, text in names.items() if f["error"][name] > goal[name]]
    if f["ms"] > goal["goal"]:
        found.insert(0, "time")
    return ", ".join(found)


def table(result):
    lines = head("N", "model, seed", "setting", "ms", "goal", "ryoanji", "Bonsai",
                 "median / 99 % / largest error", "at most", "missed")  # fmt: skip
    for f in (f for f in result["figures"] if f["what"] == "row"):
        goal, about = f["goal"], [f["n"], f"{f['model']}, {f['seed']}", setting_of(f)]
        if "failed" in f:
            lines += row([*about, *failed(f, 7)])
            continue
        lines += row([*about, number(f["ms"]), goal["goal"], goal["ryoanji"], goal["bonsai"],
                      three(f["error"]), three(goal), missed(f, goal)])  # fmt: skip
    return lines + "\n" + scaling([f for f in result["figures"] if f["what"] == "scaling"])


def scaling(figures):
    """Cost by N; exponents of the time since the line before and the first, and its share of what
    N log N makes of the first."""
    figures = [f for f in figures if "failed" not in f]
    lines = head("N", "setting", "ms", "ns a particle", "exponent", "since the first",
                 "of N log N", "bytes a particle", "pairs", "cells",
                 "cells on a group")  # fmt: skip
    for before, f in zip([None, *figures], figures, strict=False):
        cells = [f["n"], setting_of(f), number(f["ms"], 4), number(1e6 * f["ms"] / f["n"])]
        cells += [exponent(before, f), exponent(figures[0], f)] if before else ["", ""]
        cells += [f"{n_log_n(figures[0], f):.2f}", number(f["bytes"]), *terms(f)]
        lines += row(cells)
    return lines


def exponent(a, b):
    return f"{math.log(b['ms'] / a['ms']) / math.log(b['n'] / a['n']):.3f}"


def n_log_n(a, b):
    """Time of b as a share of what N log N makes of that of a."""
    return b["ms"] / a["ms"] * (a["n"] * math.log(a["n"])) / (b["n"] * math.log(b["n"]))


def distributions(result):
    """Median and 99 % by theta; the figures show the rest."""
    found = defaultdict(dict)
    for f in result["figures"]:
        found[f["n"], f["order"]][f["theta"]] = f
    angles = sorted({theta for by_theta in found.values() for theta in by_theta})
    lines = head("N", "method", *(f"theta {theta:g}" for theta in angles))
    for (n, order), by_theta in found.items():
        method = f"fmm, order {order}" if order else "bh"
        lines += row([n, method, *(short(by_theta.get(theta)) for theta in angles)])
    return lines + picture("Errors, fmm", "cdf-fmm") + picture("Errors, bh", "cdf-bh")


def short(f):
    if f is None or "failed" in f:
        return None
    return f"{f['error']['median']:.1e} / {f['error']['p99']:.1e}"


def stages(result):
    lines = head("N", "setting", "ms", *STAGES[:-1], "rest", "bytes a particle", "pairs", "cells",
                 "cells on a group")  # fmt: skip
    for f in result["figures"]:
        about = [f["n"], setting_of(f)]
        if "failed" in f:
            lines += row([*about, *failed(f, len(STAGES) + 5)])
            continue
        taken = [f["stages"].get(stage, 0.0) for stage in STAGES[:-1]]
        rest = f["ms"] - sum(taken)
        lines += row([*about, number(f["ms"]), *map(number, taken), number(rest),
                      number(f["bytes"]), *terms(f)])  # fmt: skip
    return lines + picture("Stage times", "stages") + picture("Terms a particle", "terms")


def lattice(result):
    direct = next(f for f in result["figures"] if f["what"] == "direct")
    lines = f"Direct sum: {number(direct['ms'])} ms.\n\n"
    lines += head("setting", "ms", "times faster than the direct sum", "mean / largest error",
                  "shuffled", "shuffled, ms", "ratio", "GASPHiA")  # fmt: skip
    found = defaultdict(dict)
    for f in result["figures"]:
        if f["what"] == "tree" and "failed" not in f:
            found[f["theta"], f["order"]]["ordered" if f["seed"] is None else "shuffled"] = f
    for (theta, _), both in found.items():
        if len(both) < 2:
            continue
        f, other = both["ordered"], both["shuffled"]
        errors = [f"{g['error']['mean']:.1e} / {g['error']['largest']:.1e}" for g in (f, other)]
        lines += row([setting_of(f), number(f["ms"]), number(direct["ms"] / f["ms"]), *errors,
                      number(other["ms"]), f"{other['ms'] / f['ms']:.3f}",
                      GASPHIA.get(theta)])  # fmt: skip
    return lines + picture("Errors and speed-up on a lattice", "lattice")


def time_against_error(result):
    """The fastest setting for some errors; the pictures show all."""
    lines = head("N", "median error at most", "fmm, ms", "setting", "bh, ms", "setting")
    sizes = sorted({f["n"] for f in result["figures"]})
    for n in sizes:
        mine = [f for f in result["figures"] if f["n"] == n and "failed" not in f]
        trees = [f for f in mine if f["what"] == "tree"]
        for error in (1e-3, 3e-4, 1e-4, 3e-5, 1e-5):
            cells = [n, f"{error:g}"]
            for kind in (True, False):
                good = [f for f in trees
                        if bool(f["order"]) == kind and f["error"]["median"] <= error]  # fmt: skip
                best = min(good, key=lambda f: f["ms"], default=None)
                cells += [number(best["ms"]), setting_of(best)] if best else [None, None]
            lines += row(cells)
    lines += "\n"
    for n in sizes:
        direct = next(f for f in result["figures"] if f["n"] == n and f["what"] == "direct")
        how = ", from the pairs a second of the smaller N" if direct["estimated"] else ""
        lines += f"Direct sum of {n}: {number(direct['ms'])} ms{how}.\n"
    return lines + "".join(picture(f"Time against error, N = {n}", f"time-error-{n >> 20}M")
                           for n in sizes)  # fmt: skip


def flat(result):
    lines = head("model", "N", "setting", "ms", "goal", "quadtree (Chiu 2020)",
                 "median / 99 % / largest error", "bytes a particle", *STAGES[:-1])  # fmt: skip
    for f in result["figures"]:
        about = [f["model"], f["n"], setting_of(f)]
        if "failed" in f:
            lines += row([*about, *failed(f, 5 + len(STAGES) - 1)])
            continue
        taken = [number(f["stages"].get(stage, 0.0)) for stage in STAGES[:-1]]
        lines += row([*about, number(f["ms"], 4), "1000 at 1e-3", "29000", three(f["error"]),
                      number(f.get("bytes")), *taken])  # fmt: skip
    return lines


def cpu(result):
    times = {"seconds": "s", "least": "best, s", "cpu_seconds": "CPU time, s", "build": "build, s"}
    lines = head("N", "threads", "setting", "median / 99 % / largest error", *times.values(),
                 "million/s", "x one thread", "peer", "x peer", "x peer, by FMA rate")  # fmt: skip
    alone = {}
    for f in result["figures"]:
        key = f["n"], f["method"], f["theta"]
        if f["threads"] == 1:
            alone[key] = f
        peers = PEER.get((f["n"], f["threads"]))
        then = peers and peers[f["error"]["median"] < 3e-4]
        ratio = then and f["million_per_s"] / then
        fair = ratio and ratio * PEER_FMA_RATE / f["fma_rate"]
        gain = number(alone[key]["seconds"] / f["seconds"]) if f["threads"] > 1 else None
        seconds = [number(f[key]) for key in times]
        lines += row([f["n"], f["threads"], setting_of(f), three(f["error"]), *seconds,
                      number(f["million_per_s"]), gain, then, number(ratio),
                      number(fair)])  # fmt: skip
    rates = sorted(f["fma_rate"] for f in result["figures"])
    return lines + f"\nFMA rate of a core: {rates[len(rates) // 2]:.2f} G/s of 512 bits.\n"


def active(result):
    """Sums on a hundredth of the groups: the goal is 5 % of all, beside the tree's making."""
    lines = head("N", "the tree, ms", "all groups, ms", "1 % at random, ms", "of all",
                 "of the tree and all", "1 % densest, ms", "of all",
                 "of the tree and all")  # fmt: skip
    for f in result["figures"]:
        cells = [f["n"], number(f["build"]), number(f["walk"])]
        for which in "random", "densest":
            ms = f[which]["ms"]
            shares = ms / f["walk"], ms / (f["build"] + f["walk"])
            cells += [number(ms), *(f"{100 * share:.1f} %" for share in shares)]
        lines += row(cells)
    return lines


def treecode_mpi(result):
    parts = "tree", "walks", "forces", "exchange"
    lines = head("bodies a list", "mean length", "ranks", "GPUs", "s", *parts, "times one rank",
                 "same bits", "energy error")  # fmt: skip
    for f in result["figures"]:
        seconds = [number(f[name]) for name in ("seconds", *parts)]
        lines += row([f["most"], f"{f['mean_length']:.0f}", f["ranks"],
                      min(f["ranks"], result["machine"].get("gpus", 0)), *seconds,
                      f"{f['speedup']:.2f}", "yes" if f["equal"] else "no",
                      f"{f['error']:.1e}"])  # fmt: skip
    return lines


MAKERS = {
    "tree-table": table,
    "tree-cdf": distributions,
    "tree-stages": stages,
    "tree-lattice": lattice,
    "tree-flat": flat,
    "tree-plot": time_against_error,
    "tree-active": active,
    "tree-cpu": cpu,
    "treecode-mpi": treecode_mpi,
}
