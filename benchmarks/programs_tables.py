"""The tables of benchmarks/programs.py: backends and builds of the library side by side."""

from thesis_tables import row


def seconds(figure):
    """Of the steps and, of a treecode's, in force calls."""
    forces = f" ({figure['forces']:.3g})" if "forces" in figure else ""
    return f"{figure['seconds']:.3g}{forces}"


def per_block(figure):
    return f"{figure['us_per_block']:.4g}"


def table(figures, head, names, cell):
    """A row for each program, a column for each backend and build."""
    columns = list(dict.fromkeys((f["backend"], f["library"]) for f in figures))
    columns.sort(key=lambda c: c[0])  # stable: builds keep their order
    found = {}
    for f in figures:
        made = found.setdefault(tuple(f[name] or "" for name in names), {})
        made[f["backend"], f["library"]] = "failed" if "failed" in f else cell(f)
    lines = row([*head, *(" ".join(c) for c in columns)])
    lines += row(["---"] * (len(head) + len(columns)))
    for case, made in found.items():
        lines += row([*case, *(made.get(c, "") for c in columns)])
    return lines


def programs(result):
    """Seconds of the treecodes (in brackets of force calls), microseconds a block of the others."""
    host = result["machine"]
    lines = f"{host['cpu']}, {host['cores']} cores, {result['date']}\n\n"
    treecodes = [f for f in result["figures"] if f["group"]]
    others = [f for f in result["figures"] if not f["group"]]
    tables = []
    if treecodes:
        head, names = ["seconds", "N", "steps", "group"], ["what", "n", "steps", "group"]
        tables.append(table(treecodes, head, names, seconds))
    if others:
        tables.append(table(others, ["us a block", "N"], ["what", "n"], per_block))
    off = max((f["off"] for f in result["figures"] if "off" in f), default=0)
    lines += f"Last energies of one row differ by {off:.0e} of them at most.\n\n"
    return lines + "\n".join(tables)


MAKERS = {"programs": programs}
