"""Tables of programs on ranks of MPI, next to kirin's on one machine and two; for tables.py."""

from collections import defaultdict

from tables_markdown import head, number, row


def seconds(figures, key):
    """Two cells: seconds on each number of ranks, and how many times faster than the first."""
    if any(key not in f for f in figures):
        return "", ""
    taken = [f[key] for f in figures]
    gains = (f"{taken[0] / t:.2f}" for t in taken[1:])
    return ", ".join(map(number, taken)), ", ".join(gains)


def by_ranks(result, first, keys, columns):
    """A row for each case of `keys`; of each of `columns` (key: heading) two cells."""
    cases = defaultdict(list)
    for f in result["figures"]:
        cases[tuple(f[key] for key in keys)].append(f)
    counts = ", ".join(str(f["ranks"]) for f in max(cases.values(), key=len))
    bits = "equal" if all(f["equal"] for f in result["figures"]) else "not equal"
    gpus = f" on {result['machine']['gpus']} GPUs" if "gpus" in result["machine"] else ""
    lines = f"Seconds on {counts} ranks{gpus}; their bits are {bits}.\n\n"
    pairs = (text for heading in columns.values() for text in (f"{heading}, s", "times faster"))
    lines += head(*first, *pairs)
    for case, made in cases.items():
        known = [f for f in made if "thesis_wall" in f]
        cells = [seconds(known if "thesis" in key else made, key) for key in columns]
        lines += row([*case, *(cell for two in cells for cell in two)])
    return lines


def hermite(result):
    return by_ranks(result, ["N"], ["n"],
                    {"seconds": "steps", "wall": "whole run", "thesis": "kirin's steps",
                     "thesis_wall": "kirin's whole run"})  # fmt: skip


def treecode(result):
    lines = by_ranks(result, ["N", "bodies a list"], ["n", "most"],
                     {"seconds": "steps", "wall": "whole run",
                      "thesis_wall": "kirin's whole run"})  # fmt: skip
    lines += f"\nTheta {result['theta']:g}, eps {result['eps']:g}, steps of {result['step']:g}.\n"
    parts = "tree", "walks", "forces", "exchange"
    lines += "\n" + head("bodies a list", "mean length", "ranks", *(f"{part}, s" for part in parts),
                         "energy error")  # fmt: skip
    largest = max(f["n"] for f in result["figures"])
    for f in (f for f in result["figures"] if f["n"] == largest):
        lines += row([f["most"], f"{f['mean_length']:.0f}", f["ranks"],
                      *(number(f[part]) for part in parts), f"{f['error']:.1e}"])  # fmt: skip
    return lines


def shared(result):
    """Microseconds of a step until all ranks have ended it, and in brackets each one's own."""
    cases = list(dict.fromkeys(f["case"] for f in result["figures"]))
    table, failed = defaultdict(dict), []
    for f in result["figures"]:
        if "failed" in f:
            failed.append(f"{f['case']}: {f['failed'].partition(chr(10))[0]}\n")
            continue
        low, high = min(f["us"]), max(f["us"])
        own = f"{low:.0f}" if high < 1.05 * low else f"{low:.0f} to {high:.0f}"
        table[f["ranks"]][f["case"]] = f"{f['all_us']:.0f} ({own})"
    lines = head("ranks", *cases)
    for ranks, made in table.items():
        lines += row([ranks, *(made.get(case) for case in cases)])
    return lines + "".join(f"\n{line}" for line in failed)


MAKERS = {"mpi-hermite": hermite, "treecode-mpi": treecode, "shared-gpu": shared}
