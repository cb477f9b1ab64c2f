"""Tables of small runs with builds of the library side by side, by small_runs.py; for tables.py."""

from tables_markdown import head, row


def side_by_side(figures, first, names, values):
    """A row for each case; a column for each of `values` (name: heading) and build."""
    builds = list(dict.fromkeys(f["library"] for f in figures))
    found = {}
    for f in figures:
        found.setdefault(tuple(f[name] for name in names), {})[f["library"]] = f
    lines = head(*first, *(f"{text} {b}" for text in values.values() for b in builds))
    for case, made in found.items():
        cells = (made[b].get(name) if b in made else None for name in values for b in builds)
        lines += row([*case, *cells])
    return lines


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
        side_by_side(of["walk"], ["shared step on", "N", "pipes"], ["backend", "n", "pipes"], rate),
        side_by_side(of["crowd"], ["programs of force calls", "N"], ["programs", "n"], rate | cpu),
        side_by_side(of["open"], ["g6_open on"], ["backend"],
                     {"first_s": "s", "again_us": "us again"}),
        side_by_side(of["program"], ["program, s: N", "pipes", "t"], ["n", "pipes", "t_end"],
                     {"cpu": "cpu", "cuda": "cuda", "auto": "auto", "share": "auto / the better"}),
        side_by_side(of["block"], ["Hermite (Python) on", "N"], ["backend", "n"],
                     {"us": "us a block"}),
        side_by_side(of["lists"], ["forces (Python) on", "N"], ["backend", "n"],
                     {"ms": "ms", "lists": "times with lists", "nearest": "with nearest"}),
    ]  # fmt: skip
    return f"{host['cpu']}, {host['cores']} cores, {result['date']}\n\n" + "\n".join(tables)


MAKERS = {"runs-small": small}
