"""Published figures that are won and lost, as Markdown; for tables.py."""

from collections import Counter

from published import DATA, STATES, cells_of, counted, losses, name_of, worst
from tables_markdown import head, number, row


def summary():
    lines = head("published table", "rows", *STATES, "times better, from", "to")
    total = Counter()
    for found in DATA["tables"]:
        states, gains = counted(found)
        total += states
        ends = (number(gains[k]) if gains else None for k in (0, -1))
        lines += row([name_of(found), states.total(), *(states[s] for s in STATES), *ends])
    return lines + row(["all", total.total(), *(total[s] for s in STATES), None, None])


def lost():
    """The rows that one way of the library loses for one reason; of each the worst figure."""
    lines = head("published table", "library", "row: published, here", "why", "what it needs")
    for found in DATA["tables"]:
        cells = [cell for of_row in cells_of(found).values() for cell in of_row]
        for (by, why, needs), some in losses(cells).items():
            rows = [f"{c.row}, {c.column}: {c.printed}, {c.ours:.3g}" for c in worst(some)]
            lines += row([name_of(found), by, "; ".join(rows), why, needs])
    return lines


MAKERS = {"published": summary, "published-lost": lost}
