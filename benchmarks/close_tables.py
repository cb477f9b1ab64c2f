"""The table of benchmarks/close.c: two builds of the library side by side."""

from thesis_tables import row


def close_pairs(result):
    """Lines of a table: a row per case, wall microseconds and those of all processors."""
    libraries = list(dict.fromkeys(f["library"] for f in result["figures"]))
    cases = {}
    for f in result["figures"]:
        cases.setdefault((f["what"], f["mode"], f["nj"], f["ni"]), {})[f["library"]] = f
    lines = row(["case", "mode", "nj", "ni", *(f"{name}, us (cores)" for name in libraries)])
    lines += row(["---"] * (4 + len(libraries)))
    for case, made in cases.items():
        cells = [
            f"{made[name]['all_us']:.4g} ({made[name]['processor_us']:.3g})" if name in made else ""
            for name in libraries
        ]
        lines += row([*case, *cells])
    return lines


MAKERS = {"close": close_pairs}
