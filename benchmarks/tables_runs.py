"""Tables of small runs by small_runs.py: the newest build, and older ones where they are faster."""

from tables_markdown import head, row


def newest(figures, first, names, values):
    """A row for each case; a column for each of `values` (name: heading) of the newest build."""
    *_, last = dict.fromkeys(f["library"] for f in figures)
    found = {}
    for f in figures:
        found.setdefault(tuple(f[name] for name in names), {})[f["library"]] = f
    lines = head(*first, *values.values())
    for case, made in found.items():
        now = made.pop(last)
        lines += row([*case, *(cell(name, now[name], made.values()) for name in values)])
    return lines


def cell(name, value, older):
    """A figure, and the best of the older builds in brackets if that is better."""
    best = (max if name == "gpairs_per_s" else min)([value, *(f[name] for f in older)], key=float)
    return f"{value}" if best == value else f"{value} ({best})"


def small(result):
    host = result["machine"]
    of = {}
    for f in result["figures"]:
        of.setdefault(f["what"], []).append(f)
    for f in of["program"]:
        better = min(f["cpu"], f["cuda"])
        f["share"] = f"{f['auto'] / better:.2f}"
    rate, cpu = {"gpairs_per_s": "G pairs/s"}, {"processor_s": "processor s"}
    tables = [
        newest(of["walk"], ["shared step on", "N", "pipes"], ["backend", "n", "pipes"], rate),
        newest(of["crowd"], ["programs of force calls", "N"], ["programs", "n"], rate | cpu),
        newest(of["open"], ["g6_open on"], ["backend"], {"first_s": "s", "again_us": "us again"}),
        newest(of["program"], ["program: N", "pipes", "t"], ["n", "pipes", "t_end"],
               {"cpu": "cpu, s", "cuda": "cuda, s", "auto": "auto, s", "share": "auto / better"}),
        newest(of["block"], ["Hermite (Python) on", "N"], ["backend", "n"], {"us": "us a block"}),
        newest(of["lists"], ["forces (Python) on", "N"], ["backend", "n"],
               {"ms": "ms", "lists": "times with lists", "nearest": "with nearest"}),
    ]  # fmt: skip
    return f"{host['cpu']}, {host['cores']} cores, {result['date']}\n\n" + "\n".join(tables)


def outside(result):
    """Times over those of a plain run: a row for each case, a column for each machine and N."""
    columns, cells = {}, {}
    for r in result["results"]:
        steps = f"one step of {r['dt']:g}" if r["dt"] else "block steps"
        where = r["machine"].get("gpu") if r["backend"] == "cuda" else "CPU"
        for f in r["figures"]:
            key = where, steps, f["n"]
            columns[key] = f"{where}, {steps}, N = {f['n']}"
            ratio = f["seconds"] * 1e3 if f["case"] == "plain" else f["ratio per step"]
            text = f"{ratio:.1f} ms" if f["case"] == "plain" else f"{ratio:.2f}"
            cells.setdefault(f["case"], {})[key] = text
    lines = head("", *columns.values())
    for case, made in cells.items():
        lines += row([case, *(made.get(key) for key in columns)])
    return lines


MAKERS = {"outside": outside, "runs-small": small}
