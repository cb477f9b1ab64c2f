"""The octree's tables as Markdown, with goals and other programs' figures; for tables.py.

A figure in bold misses its goal. Below the tables stand the pictures that figures_tree.py draws of
the same results.
"""

import itertools
import math
from collections import defaultdict

from published import column
from tables_markdown import bold, head, number, row

STAGES = {  # columns of stages.py's names; what is left lies between kernels
    "sort": ("keys", "sort"), "cells, moments": ("cells", "moments"), "traversal": ("walk",),
    "far": ("far",), "near": ("near",),
}  # fmt: skip
ERRORS = "median", "p99", "largest"
# FDPS with Phantom-GRAPE G5: (N, threads): millions a second at median errors near 1e-3 and 1e-4,
# on cores that issue 2 multiply-adds of 512 bits a cycle of 3.84 GHz.
PEER = {(100_000, 1): (0.95, 0.33), (1_000_000, 2): (1.39, 0.51)}
PEER_FMA_RATE = 7.68
ASKED = {"median": 1.5, "p99": 4, "p999": 10, "largest": 100}  # at most, times the accuracy
GAIN = 1.9  # of two threads: the goal
# ms that commit a41ad6b takes for 4M particles at 99th percentiles (H100, by theta, which is all it
# has), and how many times as long ryoanji takes, its leaf size tuned, measured on an H200.
BEFORE_P99 = 5e-3, 2e-3, 1e-3, 5e-4
BEFORE = {
    ("plummer", "fmm5"): (5.84, 6.64, 7.95, 9.83), ("plummer", "bh"): (13.7, 21.4, 26.7, 35.9),
    ("clustered", "fmm5"): (10.7, None, None, None), ("clustered", "bh"): (18.4, 26.7, None, None),
    ("fractal", "fmm5"): (8.99, 10.7, None, None), ("fractal", "bh"): (15.4, 22.4, None, None),
    ("thin_disk", "fmm5"): (7.41, 9.11, 11.7, None), ("thin_disk", "bh"): (11.7, 14.5, 20.1, None),
}  # fmt: skip
RYOANJI = {"plummer": (2.5, 4.4), "clustered": (2.4, 3.1), "fractal": (2.3, 2.5),
           "thin_disk": (1.7, 2.2)}  # fmt: skip
RYOANJI_BH, GOALS = (1.0, 1.6), {"plummer": 4.0, "bh": 1.5}  # times ryoanji's speed; others: 3


def picture(title, name):
    return f"\n![{title}](figures/tree-{name}.png)\n"


def setting_of(f):
    """Method with its order, and theta: "fmm5 0.8", "bh 0.75"."""
    bound = f", bound {f['bound']:g}" if f.get("bound") else ""
    return f"{method_of(f['order'])} {f['theta']:g}{bound}"


def method_of(order):
    return f"fmm{order}" if order else "bh"


def three(error):
    return " / ".join(f"{error[name]:.1e}" for name in ERRORS)


def table(result):
    """A row for each setting with its goals, two columns for each model and seed."""
    rows, found = {}, defaultdict(dict)
    for f in (f for f in result["figures"] if f["what"] == "row"):
        case = f["n"], setting_of(f)
        rows[case] = f["goal"]
        found[case][f"{f['model']}, {f['seed']}"] = f
    models = list(dict.fromkeys(m for made in found.values() for m in made))
    lines = head("N", "setting", "ryoanji, ms", "Bonsai, ms", "goal, ms", "errors at most",
                 *(text for m in models for text in (f"{m}: ms", "errors")))  # fmt: skip
    for case, goal in rows.items():
        cells = [*case, goal["ryoanji"], goal["bonsai"], goal["goal"], three(goal)]
        for m in models:
            cells += measured(found[case].get(m), goal)
        lines += row(cells)
    return lines + "\n" + scaling([f for f in result["figures"] if f["what"] == "scaling"])


def measured(f, goal):
    if f is None or "failed" in f:
        return [None, f and f["failed"]]
    errors = [bold(f"{f['error'][name]:.1e}", f["error"][name] > goal[name]) for name in ERRORS]
    return [bold(number(f["ms"]), f["ms"] > goal["goal"]), " / ".join(errors)]


def scaling(figures):
    """Cost by N; exponents of the time since the line before and the first, and its share of what
    N log N makes of the first."""
    figures = [f for f in figures if "failed" not in f]
    lines = head("N", "setting", "ms", "ns a particle", "exponent", "since the first",
                 "of N log N", "bytes a particle")  # fmt: skip
    for before, f in zip([None, *figures], figures, strict=False):
        cells = [f["n"], setting_of(f), number(f["ms"], 4), number(1e6 * f["ms"] / f["n"])]
        cells += [exponent(before, f), exponent(figures[0], f)] if before else ["", ""]
        cells += [f"{n_log_n(figures[0], f):.2f}", number(f["bytes"])]
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
        lines += row([n, method_of(order), *(short(by_theta.get(theta)) for theta in angles)])
    return lines + picture("Errors, fmm", "cdf-fmm") + picture("Errors, bh", "cdf-bh")


def short(f):
    if f is None or "failed" in f:
        return None
    return f"{f['error']['median']:.1e} / {f['error']['p99']:.1e}"


def stages(result):
    lines = head("N", "setting", "ms", *STAGES, "rest", "bytes a particle")
    for f in result["figures"]:
        about = [f["n"], setting_of(f)]
        if "failed" in f:
            lines += row([*about, f["failed"], *[""] * (len(STAGES) + 2)])
            continue
        taken = stage_times(f)
        lines += row([*about, number(f["ms"]), *map(number, taken), number(f["ms"] - sum(taken)),
                      number(f["bytes"])])  # fmt: skip
    return lines + picture("Stage times", "stages") + picture("Terms a particle", "terms")


def stage_times(f):
    return [sum(f["stages"].get(stage, 0.0) for stage in names) for names in STAGES.values()]


def lattice(result):
    direct = next(f for f in result["figures"] if f["what"] == "direct")
    lines = f"Direct sum: {number(direct['ms'])} ms.\n\n"
    found, names = defaultdict(dict), ("ms", "times faster", "mean / largest error", "shuffled",
                                       "ratio")  # fmt: skip
    for f in result["figures"]:
        if f["what"] == "tree" and "failed" not in f:
            case = found[f["theta"]].setdefault(f["order"], {})
            case["ordered" if f["seed"] is None else "shuffled"] = f
    orders = list(dict.fromkeys(order for by_order in found.values() for order in by_order))
    theirs = [column("GASPHiA", "theta", title)
              for title in ("time", "speed-up", "mean error", "largest error")]  # fmt: skip
    lines += head("theta", *(f"{method_of(o)}: {name}" if name == "ms" else name
                             for o in orders for name in names),
                  "GASPHiA: ms", "times faster", "mean / largest error")  # fmt: skip
    for theta, by_order in found.items():
        cells = [f"{theta:g}"]
        for order in orders:
            cells += in_two_orders(by_order.get(order, {}), direct) or [None] * len(names)
        ms, gain, mean, largest = (of[theta] for of in theirs)
        lines += row([*cells, number(ms), number(gain), f"{mean:.1e} / {largest:.1e}"])
    return lines + picture("Errors and speed-up on a lattice", "lattice")


def in_two_orders(both, direct):
    """Cells of a run on particles row by row, and on the same shuffled."""
    if len(both) < 2:
        return None
    f, other = both["ordered"], both["shuffled"]
    errors = [f"{g['error']['mean']:.1e} / {g['error']['largest']:.1e}" for g in (f, other)]
    return [number(f["ms"]), number(direct["ms"] / f["ms"]), *errors,
            f"{other['ms'] / f['ms']:.3f}"]  # fmt: skip


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
        how = ", estimated from the smaller N" if direct["estimated"] else ""
        lines += f"Direct sum of {n}: {number(direct['ms'])} ms{how}.\n"
    return lines + "".join(picture(f"Time against error, N = {n}", f"time-error-{n >> 20}M")
                           for n in sizes)  # fmt: skip


def flat(result):
    lines = head("model", "setting", "ms", "errors", "bytes a particle")
    for f in result["figures"]:
        about = [f["model"], setting_of(f)]
        if "failed" in f:
            lines += row([*about, f["failed"], "", ""])
            continue
        lines += row([*about, number(f["ms"], 4), three(f["error"]), number(f.get("bytes"))])
    for of in "GPU", "CPU":
        ms = column("Chiu 2020", "table 1", f"{of} total")[10**8]
        lines += row(["square in two dimensions", f"Chiu 2020, {of}", f"{ms:.0f}", None, None])
    return lines


def cpu(result):
    """A row for each N and setting, with one thread and two; the peer has as many as the last."""
    found = defaultdict(dict)
    for f in result["figures"]:
        found[f["n"], setting_of(f)][f["threads"]] = f
    threads = sorted({f["threads"] for f in result["figures"]})
    lines = head("N", "setting", "errors", "build, s", *(f"threads = {k}: s" for k in threads),
                 "ratio", "x peer", "x peer, by FMA rate")  # fmt: skip
    for (n, setting), made in found.items():
        most = max(made)
        alone, f = made[1], made[most]
        peers = PEER.get((n, most))
        ratio = peers and f["million_per_s"] / peers[f["error"]["median"] < 3e-4]
        fair = ratio and ratio * PEER_FMA_RATE / f["fma_rate"]
        gain = alone["seconds"] / f["seconds"]
        gained = bold(number(gain), gain < GAIN) if most > 1 else None
        seconds = (made[k]["seconds"] if k in made else None for k in threads)
        lines += row([n, setting, three(f["error"]), *map(number, (alone["build"], *seconds)),
                      gained, number(ratio), number(fair)])  # fmt: skip
    rates = sorted(f["fma_rate"] for f in result["figures"])
    return lines + f"\nFMA rate of a core: {rates[len(rates) // 2]:.2f} G/s of 512 bits.\n"


def active(result):
    """Sums on a hundredth of the groups: the goal is 5 % of all."""
    lines = head("N", "build, ms", "all groups, ms", "1 % at random, ms", "of all",
                 "1 % densest, ms", "of all")  # fmt: skip
    for f in result["figures"]:
        cells = [f["n"], number(f["build"]), number(f["walk"])]
        for which in "random", "densest":
            share = 100 * f[which]["ms"] / f["walk"]
            cells += [number(f[which]["ms"]), bold(f"{share:.1f} %", share > 5)]
        lines += row(cells)
    return lines


def shapes(result):
    """Errors as multiples of the accuracy that was asked for, and times."""
    found, sizes = defaultdict(dict), sorted({f["n"] for f in result["figures"]})
    for f in result["figures"]:
        found[f["model"], f["accuracy"]][f["n"]] = f
    lines = head("bodies", "accuracy", *(f"N = {n}" for n in sizes), "ms", "known: ms")
    for (model, accuracy), by_size in found.items():
        cells = [of_accuracy(by_size[n]["error"], accuracy) for n in sizes]
        most = by_size[sizes[-1]]
        lines += row([model, f"{accuracy:g}", *cells, number(most["ms"]),
                      number(most.get("known_ms"))])  # fmt: skip
    return lines


def of_accuracy(error, accuracy):
    shares = ((error[name] / accuracy, most) for name, most in ASKED.items())
    return " / ".join(bold(f"{share:.2g}", share > most) for share, most in shares)


def dominant(result):
    """Errors with a body of any mass in the centre, a column for each setting."""
    found = defaultdict(dict)
    for f in result["figures"]:
        found[f["share"]][dominant_setting(f)] = f
    lines = head("mass", *(f"{name}{what}" for name in found[0.0] for what in (": errors", ", ms")))
    for share, made in found.items():
        cells = [f"{share:g}"]
        for f in made.values():
            cells += [three(f["error"]), number(f["ms"])]
        lines += row(cells)
    return lines + picture("Errors with a dominant mass", "dominant")


def dominant_setting(f):
    """Method and accuracy or theta."""
    return next(f"{f['method']}, {name} {f[name]:g}" for name in ("accuracy", "theta") if name in f)


def equal(result):
    """Times at equal 99th percentiles, by theta and by bound, beside those of others."""
    found = defaultdict(list)
    for f in (f for f in result["figures"] if "failed" not in f):
        kind = "bound" if f["bound"] else "theta"
        found[f["model"], method_of(f["order"]), kind].append((f["error"]["p99"], f["ms"]))
    lines = head("bodies", "method", "99 %", "by theta: ms", "by bound: ms", "a41ad6b: ms",
                 "times faster", "times ryoanji")  # fmt: skip
    for (model, method), before in BEFORE.items():
        for p99, old in zip(BEFORE_P99, before, strict=True):
            theta, bound = (interpolated(found[model, method, k], p99) for k in ("theta", "bound"))
            best = min(filter(None, (theta, bound)), default=None)
            gain = old / best if old and best else None
            peer = RYOANJI[model] if method != "bh" else RYOANJI_BH
            goal = GOALS.get(method, GOALS.get(model, 3.0))
            cells = [model, method, f"{p99:g}", *map(number, (theta, bound, old, gain))]
            text = gain and bold(f"{gain * peer[0]:.1f} to {gain * peer[1]:.1f}",
                                 gain * sum(peer) / 2 < goal)  # fmt: skip
            lines += row([*cells, text])
    return lines


def interpolated(points, error):
    """The time at an error, between those of the nearest ones; None beyond all."""
    points = sorted(points)
    for (a, before), (b, after) in itertools.pairwise(points):
        if a <= error <= b:
            share = math.log(error / a) / math.log(b / a)
            return math.exp((1 - share) * math.log(before) + share * math.log(after))
    return None


def search(result):
    """On a GPU; beside scipy on the CPU."""
    if "scipy" in result["figures"][0]:
        version = result["figures"][0]["scipy"]
        lines = head("bodies", "N", "k", "ms", f"scipy {version}: ms", "times faster")
        for f in result["figures"]:
            gain = f["scipy_seconds"] / f["seconds"]
            seconds = (number(1e3 * f[name]) for name in ("seconds", "scipy_seconds"))
            lines += row([f["model"], f["n"], f["k"], *seconds, bold(number(gain), gain < 3)])
        return lines
    ks = [key.split("_")[1] for key in result["figures"][0] if key.startswith("nearest_")]
    lines = head("bodies", "N", "build, ms", *(f"k = {k}: ms" for k in ks), "neighbours",
                 "within a radius: ms")  # fmt: skip
    for f in result["figures"]:
        nearest = (number(f[f"nearest_{k}_ms"]) for k in ks)
        lines += row([f["model"], f["n"], number(f["build_ms"]), *nearest,
                      number(f["neighbours"]), number(f["neighbours_ms"])])  # fmt: skip
    return lines


def close(result):
    found = defaultdict(dict)
    for f in result["figures"]:
        found[f["model"]][f["eps"]] = f["ms"]
    softenings = sorted({f["eps"] for f in result["figures"]}, reverse=True)
    lines = head("bodies", *(f"eps {eps:g}: ms" for eps in softenings))
    for model, by_eps in found.items():
        lines += row([model, *(number(by_eps[eps]) for eps in softenings)])
    return lines


MAKERS = {
    "tree-shapes": shapes,
    "tree-dominant": dominant,
    "tree-equal": equal,
    "tree-search": search,
    "tree-close": close,
    "tree-table": table,
    "tree-cdf": distributions,
    "tree-stages": stages,
    "tree-lattice": lattice,
    "tree-flat": flat,
    "tree-plot": time_against_error,
    "tree-active": active,
    "tree-cpu": cpu,
}
