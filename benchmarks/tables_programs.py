"""Tables of builds of the library side by side, measured by programs.py; for tables.py."""

from tables_markdown import head, row


def close_pairs(result):
    """A row per case: wall microseconds of each result's newer build, and of the older one where
    it was faster."""
    lines = head("case", "nj", "ni", "us", "older build, if faster")
    for one in result["results"]:
        *_, newer = dict.fromkeys(f["library"] for f in one["figures"])
        cases = {}
        for f in one["figures"]:
            what = f["what"] if f["mode"] == "grape" else f"{f['what']}, {f['mode']}"
            which = "newer" if f["library"] == newer else "older"
            cases.setdefault((what, f["nj"], f["ni"]), {})[which] = f
        for case, made in cases.items():
            new, old = made["newer"], made.get("older")
            faster = old and old["all_us"] < new["all_us"]
            lines += row(
                [*case, *(f"{f['all_us']:.4g}" if f else "" for f in (new, faster and old))]
            )
    return lines


def seconds(figure):
    """Of the steps and, of a treecode's, in force calls."""
    forces = f" ({figure['forces']:.3g})" if "forces" in figure else ""
    return f"{figure['seconds']:.3g}{forces}"


def per_block(figure):
    return f"{figure['us_per_block']:.4g}"


def by_build(figures, first, names, cell):
    """A row for each program, a column for each backend and build."""
    columns = list(dict.fromkeys((f["backend"], f["library"]) for f in figures))
    columns.sort(key=lambda c: c[0])  # stable: builds keep their order
    found = {}
    for f in figures:
        made = found.setdefault(tuple(f[name] or "" for name in names), {})
        made[f["backend"], f["library"]] = "failed" if "failed" in f else cell(f)
    lines = head(*first, *(" ".join(c) for c in columns))
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
        first, names = ["seconds", "N", "steps", "group"], ["what", "n", "steps", "group"]
        tables.append(by_build(treecodes, first, names, seconds))
    if others:
        tables.append(by_build(others, ["us a block", "N"], ["what", "n"], per_block))
    off = max((f["off"] for f in result["figures"] if "off" in f), default=0)
    lines += f"Last energies in one row agree to {off:.0e}.\n\n"
    return lines + "\n".join(tables)


MAKERS = {"close": close_pairs, "programs": programs}
