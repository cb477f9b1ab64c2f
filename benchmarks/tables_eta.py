"""The tables of what it takes to ask for more accuracy, for tables.py."""

from tables_markdown import head, row

MODES = ("grape", "auto", "double", "own")


def cell(figure):
    """Calls, seconds and error of a run."""
    if figure is None:
        return "-"
    if "seconds" not in figure:
        return "no end"
    calls = f"{figure['calls']}/" if figure["calls"] else ""
    error = f"{abs(figure['error']):.0e}" if figure["error"] else "0"
    return f"{calls}{figure['seconds']:.2g}/{error}"


def more_accurate(result):
    """A row for each program, N and eta, a column for each mode."""
    rows = {}
    for f in result["figures"]:
        rows.setdefault((f["program"], f["n"], f["eta"]), {})[f["mode"]] = f
    lines = head("program", "N", "eta", *MODES)
    for about, made in rows.items():
        lines += row([*about, *(cell(made.get(mode)) for mode in MODES)])
    return lines


def price(result):
    """Seconds of modes auto and double over those of grape, by N."""
    lines = head("N", "rows in double", "`auto`", "`double`")
    for f in result["figures"]:
        share = f"{100 * f['share']:.1f} %"
        lines += row([f["n"], share, *(f"{f[mode] / f['grape']:.2f}" for mode in MODES[1:3])])
    return lines


MAKERS = {"eta": more_accurate, "auto-price": price}
