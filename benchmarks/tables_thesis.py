"""The thesis's tables as Markdown, with its columns next to today's; for tables.py."""

import statistics
from collections import defaultdict

from tables_markdown import head, number, row

# Seconds of block-step Hermite from t = 0.25 to 0.5: kirin on a GeForce 8800GTX, GRAPE-6Af.
HERMITE_THEN = {
    1024: (0.297, 0.333), 16384: (14.28, 16.32), 65536: (129.8, 178.2), 1048576: (19975, None),
}  # fmt: skip
# Seconds of a time unit by treecode: kirin on a GeForce 8800GTX, GRAPE-6Af.
TREE_THEN = {65536: (25.4, 109), 1048576: (733, 2004)}
# Relative energy error over 0.25 time units at accuracy 0.1, mean over N = 256 to 65536.
ERRORS_THEN = {"1/256": (1.6e-8, 1.45e-9), "0": (1.0e-8, 1.1e-9)}


def all_pairs(result):
    lines = head("N", "ms a call", "G pairs/s", "W", "G pairs/J")
    for f in result["figures"]:
        lines += row([f["n"], number(1e3 * f["seconds"], 4), number(f["gpairs_per_s"], 4),
                      number(f.get("watts")), number(f.get("gpairs_per_joule"))])  # fmt: skip
    return lines


def steps(result):
    found = [f for f in result["figures"] if f["what"] in ("step", "scatter")]
    sizes = sorted({f["ni"] for f in found})
    lines = head("N", *(f"ni = {size}" for size in sizes))
    for n in sorted({f["n"] for f in found}):
        us = {f["ni"]: f["us"] for f in found if f["n"] == n}
        lines += row([n, *(number(us.get(size), 4) for size in sizes)])
    lines += "\n" + head(
        "particles", "j particles to the GPU, us", "i particles, us", "forces back, us"
    )
    for f in result["figures"]:
        if f["what"] == "copies":
            lines += row([f["n"], *(number(f[k], 4) for k in ("j_us", "i_us", "forces_us"))])
    return lines


def hermite(result):
    names = "grape6 run", "hermite.c"
    lines = head("N", "`grape6 run`, s", "`hermite.c`, s", "steps", "blocks", "energy error",
                 "kirin, s", "GRAPE-6Af, s")  # fmt: skip
    table = defaultdict(dict)
    for f in result["figures"]:
        table[f["n"]][f["what"]] = f
    for n, found in sorted(table.items()):
        run, then = found[names[0]], HERMITE_THEN.get(n, (None, None))
        seconds = [number(found[name]["seconds"]) if name in found else None for name in names]
        lines += row([n, *seconds, run["steps"], run["blocks"], f"{run['error']:.1e}", *then])
    return lines


def tree_leapfrog(result):
    """A row for each N, two columns for each machine."""
    made = [{f["n"]: (number(f["seconds"]), f"{f['error']:.1e}") for f in r["figures"]}
            for r in result["results"]]  # fmt: skip
    machines = [r["machine"] for r in result["results"]]
    names = [m.get("gpu", m["cpu"]) for m in machines]
    columns = (text for name in names for text in (f"{name}, s", "energy error"))
    lines = head("N", *columns, "kirin, s", "GRAPE-6Af, s")
    for n in sorted({n for by_n in made for n in by_n}):
        cells = [cell for by_n in made for cell in by_n.get(n, (None, None))]
        lines += row([n, *cells, *TREE_THEN.get(n, (None, None))])
    return lines


def mean_errors(result):
    """{softening: {accuracy: {n: (error, seconds)}}}, means over seeds."""
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for f in result["figures"]:
        found[f["eps"]][f["accuracy"]][f["n"]].append((f["error"], f["seconds"]))
    return {
        eps: {
            accuracy: {n: tuple(map(statistics.mean, zip(*runs, strict=True)))
                       for n, runs in by_n.items()}
            for accuracy, by_n in by_accuracy.items()
        }
        for eps, by_accuracy in found.items()
    }  # fmt: skip


def errors(result):
    found = mean_errors(result)
    sizes = sorted(next(iter(found["0"].values())))
    lines = head("eps", "accuracy", *(f"N = {n}" for n in sizes), "mean", "kirin", "GRAPE-6Af")
    for eps, by_accuracy in found.items():
        for accuracy, by_n in by_accuracy.items():
            then = ERRORS_THEN[eps] if accuracy == 0.1 else (None, None)
            mean = statistics.mean(by_n[n][0] for n in sizes)
            each = [f"{by_n[n][0]:.1e}" for n in sizes]
            lines += row([eps, accuracy, *each, f"{mean:.1e}", *then])
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
    "thesis-4.1-4.3": steps,
    "thesis-4.1": all_pairs,
    "thesis-4.2": hermite,
    "thesis-4.4": tree_leapfrog,
    "thesis-4.5-4.6": errors,
    "thesis-5.1": devices,
}
