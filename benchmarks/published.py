"""What the literature measured beside what this library does.

    python benchmarks/tables.py published published-lost published-others

published.json has the published figures as printed ("?": doubtful there), a row a line, and for
each table, under "ours", entries that say how the library compares. An entry is for some `columns`
and `rows` (by their first cells), all if it names none, and says one of these:

* where our figure is: `file` in results/, or several; `where`: the fields that select the figure,
  and `match`: the field that equals the row's first cell; `ours`: an expression of the fields and
  of what is `assumed`, in the unit of the column, of which the mean counts if several figures are
  selected, or what `take` says, of those with one value of the field `each` first; `with`: others,
  by name; `more`: that more is better, if the unit does not say so;
* "not measured": what is to be measured; beside a `file`: where it has no figure yet;
* "not comparable": why.

`by` tells the ways of the library apart, each of which is compared by itself. A row counts as lost
if one of its figures loses; `why` it does and what it `needs` stand in the entry.
"""

import functools
import json
import math
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT, RESULTS = HERE.parent, HERE / "results"
CODES = json.loads((HERE / "codes.json").read_text())  # other codes, measured beside this one
DATA = json.loads((HERE / "published.json").read_text())
STATES = "lost", "won", "not measured", "not comparable"  # of a row: the first that one cell has
FUNCTIONS = vars(math) | {"__builtins__": {}, "abs": abs, "float": float, "sum": sum}
FUNCTIONS |= DATA["assumed"]


def number(printed):
    return float(str(printed).rstrip("?"))


def table(source, name):
    return next(t for t in DATA["tables"] if (t["source"], t["table"]) == (source, name))


def column(source, name, title):
    """{first cell: number} of the rows that have one."""
    found = table(source, name)
    place = 1 + list(found["columns"]).index(title)
    return {r[0]: number(r[place]) for r in found["rows"] if r[place] is not None}


def printed(source, name, title, row):
    """A number; None if it is not there."""
    return column(source, name, title).get(row)


@functools.cache
def result(file):
    return json.loads((RESULTS / f"{file}.json").read_text())


def results(patterns):
    """(name, result) of all that match."""
    found = (sorted(RESULTS.glob(f"{pattern}.json")) for pattern in names_of(patterns))
    return [(path.stem, result(path.stem)) for paths in found for path in paths]


def names_of(files):
    """Of one file, or of a list of them."""
    return [files] if isinstance(files, str) else files


def selected(files, where):
    """Figures whose fields are those, with the arrays that are kept beside them."""
    files = names_of(files)
    found = [f for file in files for f in result(file)["figures"]
             if "failed" not in f and all(f.get(k) == v for k, v in where.items())]  # fmt: skip
    if not found:
        raise LookupError(f"{', '.join(files)}: no figure with {where}")
    return [f | beside(f) for f in found]


def beside(figure):
    """The arrays that a figure names, if they are there."""
    path = RESULTS / figure.get("curves", "none")
    return dict(np.load(path)) if path.exists() else {}


def our_figure(entry, key):
    where = entry.get("where", {}) | ({entry["match"]: key} if "match" in entry else {})
    others = {k: selected(entry["file"], w)[0] for k, w in entry.get("with", {}).items()}
    alike = defaultdict(list)
    for f in selected(entry["file"], where):
        alike[f.get(entry.get("each"))].append(float(eval(entry["ours"], FUNCTIONS, f | others)))
    take = getattr(statistics, entry.get("take", "mean"))
    return statistics.mean(map(take, alike.values()))


@dataclass
class Cell:
    """A published figure, and how one way of the library compares."""

    table: dict
    row: str | int | float  # its first cell
    column: str
    printed: str | int | float
    entry: dict

    @functools.cached_property
    def ours(self):
        if "file" not in self.entry:
            return None
        try:
            return our_figure(self.entry, self.row)
        except (LookupError, FileNotFoundError):
            if "not measured" in self.entry:
                return None
            raise

    @property
    def gain(self):
        """How many times better ours is; an energy error counts without its sign."""
        theirs, ours = abs(number(self.printed)), abs(self.ours)
        if self.entry.get("more", self.table["columns"][self.column] in DATA["more is better"]):
            return ours / theirs
        return theirs / ours if ours else math.inf

    @property
    def state(self):
        if self.ours is not None:
            return "won" if self.gain >= 1 else "lost"
        return next(state for state in STATES[2:] if state in self.entry)


def cells_of(found):
    return [Cell(found, row, title, printed, entry)
            for row, *printed_row in found["rows"]
            for title, printed in zip(found["columns"], printed_row, strict=True)
            if printed is not None
            for entry in found["ours"]
            if row in entry.get("rows", [row]) and title in entry.get("columns", [title])
            ]  # fmt: skip


def name_of(found):
    return f"{found['source']}, {found['table']}"


def compared():
    """All cells, as the tables of the pages take them."""
    return [{"table": name_of(found), "row": c.row, "column": c.column, "printed": c.printed,
             "state": c.state, "by": c.entry.get("by", ""), "why": c.entry.get("why", ""),
             "needs": c.entry.get("needs", ""), "reason": c.entry.get(c.state)}
            | ({"ours": c.ours, "gain": c.gain} if c.ours is not None else {})
            for found in DATA["tables"] for c in cells_of(found)]  # fmt: skip


def counts():
    """Rows of each table by state, and the least and the largest gain; and of all tables."""
    made, total = {}, Counter()
    for f in compared():
        made.setdefault(f["table"], defaultdict(list))[f["row"]].append(f)
    for table, rows in made.items():
        states = ({f["state"] for f in cells} for cells in rows.values())
        counted = Counter(next(s for s in STATES if s in found) for found in states)
        gains = [f["gain"] for cells in rows.values() for f in cells if "gain" in f]
        made[table] = {"table": table, "states": counted}
        made[table] |= {"least": min(gains), "most": max(gains)} if gains else {}
        total += counted
    return [*made.values(), {"table": "all", "states": total}]


def worst(group):
    """In each row: the published figure by which it loses most."""
    rows = dict.fromkeys(f["row"] for f in group)
    found = (min((f for f in group if f["row"] == row), key=lambda f: f["gain"]) for row in rows)
    return "; ".join(f"{f['row']}, {f['column']}: {f['printed']}, {f['ours']:.3g}" for f in found)
