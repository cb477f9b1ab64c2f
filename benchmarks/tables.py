"""Makes the tables of the pages, of results/*.json and published.json, as tables.toml says.

    python benchmarks/tables.py NAME...      # prints tables; without names, all that pages show

A line [Table NAME](...) of pages/*.md or docs/benchmarks.md is the place of a table. NAME is that
of the results, with * of all that match; tables.toml has the table by it, or by its longest
beginning. A table has parts, one below the other:

from, of    the results, if they are others; which of their figures: an expression
figures     an expression of other figures, or of more; `beside`: adds those of a published table
            [source, table, field], each with its first cell as the field, and its columns
let         fields that are added to each figure
sort        an expression by which figures are sorted; reverse: from the largest
rows        fields that all figures of a row share; without it each figure has a row
columns     [heading, cell, which figure of the row: the first of that] or, for each `key` of the
            list `each`, several of these: {each = "...", of = "...", columns = [...]}
text        in place of columns: a line; with `of`, a line for each of these figures

Expressions are Python's, over the fields of a figure, of its result and what FUNCTIONS has; `f` is
the figure, `figures` are all of the part, `group` those of the row, `picked` those of the column.
A cell is a field, or a text with expressions in braces; it is empty if one of these has not what it
needs, and of a list of cells the first counts that has. In braces stands no colon but a format's.
"""

import functools
import itertools
import math
import re
import statistics
import string
import sys
import tomllib

import published
from published import HERE, ROOT, beside

PAGES = [ROOT / "docs/benchmarks.md", *sorted((HERE / "pages").glob("*.md"))]
PLACE = re.compile(r"^\[Table ([\w.*-]+)\]\([^)]*\)$", re.MULTILINE)
DEFINED = tomllib.loads((HERE / "tables.toml").read_text())
MISSING = (NameError, KeyError, IndexError, TypeError, StopIteration, statistics.StatisticsError)


def row(cells):
    return "| " + " | ".join("" if c is None else str(c) for c in cells) + " |\n"


def number(value, digits=3):
    return None if value is None else f"{value:.{digits}g}"


def bold(text, missed):
    """Of what misses its goal."""
    return f"**{text}**" if missed else text


def listed(group, key):
    """Numbers of the figures that have one."""
    return ", ".join(number(f[key]) for f in group if key in f) or None


def gains(group, key):
    """How many times faster than the first the others are."""
    taken = [f[key] for f in group if key in f]
    return ", ".join(f"{taken[0] / t:.2f}" for t in taken[1:]) or None


def newest(figures, group, key, best=min):
    """A number of the newest build, and in brackets the best of older ones if that is better."""
    last = figures[-1]["library"]
    now = next(f[key] for f in group if f["library"] == last)
    most = best((f[key] for f in [*group, {key: now}]), key=float)
    return f"{now}" if float(most) == float(now) else f"{now} ({most})"


def method_of(f):
    return f"fmm{f['order']}" if f["order"] else "bh"


def setting_of(f):
    """Method with its order, and theta: "fmm5 0.8", "bh 0.75"."""
    bound = f", bound {f['bound']:g}" if f.get("bound") else ""
    return f"{method_of(f)} {f['theta']:g}{bound}"


def fastest(figures, error):
    """The one that takes least time, of those whose median error is at most so much."""
    good = (f for f in figures if f["error"]["median"] <= error)
    return min(good, key=lambda f: f["ms"], default=None)


def interpolated(points, error):
    """The time at an error, between those of the nearest ones; None beyond all."""
    points = sorted(points)
    for (a, before), (b, after) in itertools.pairwise(points):
        if a <= error <= b:
            return before * (after / before) ** (math.log(error / a) / math.log(b / a))
    return None


BUILT_IN = (abs, any, all, bool, dict, float, int, len, list, map, max, min, next, range, set,
            sorted, str, sum, tuple, zip)  # fmt: skip
OWN = bold, fastest, gains, interpolated, listed, method_of, newest, number, setting_of
FUNCTIONS = {f.__name__: f for f in (*BUILT_IN, *OWN, statistics.mean, statistics.median, math.log)}
FUNCTIONS |= {name: getattr(published, name) for name in (
    "column compared counts printed selected table worst".split())}  # fmt: skip
FUNCTIONS |= {"__builtins__": {}, "codes": published.CODES, "data": published.DATA, "nan": math.nan}


@functools.cache
def compiled(expression):
    return compile(expression.strip(), expression, "eval")


def value(expression, names):
    """None if something is missing."""
    try:
        return eval(compiled(expression), FUNCTIONS | names)
    except MISSING:
        return None


def filled_in(template, names):
    """The text with the values of what stands in braces; None if one is missing."""
    text = ""
    for words, expression, form, _ in string.Formatter().parse(template):
        found = "" if expression is None else value(expression, names)
        if found is None:
            return None
        text += words + format(found, form or "")
    return text


def cell(templates, names):
    each = [templates] if isinstance(templates, str) else templates
    texts = (filled_in(one if "{" in one else f"{{{one}}}", names) for one in each)
    return next((text for text in texts if text is not None), None)


def figures_of(results):
    """With the fields of their results, and the arrays that are kept beside them."""
    for name, result in results:
        about = {k: v for k, v in result.items() if k not in ("machine", "figures")}
        about |= {"file": name, "host": result["machine"], "cpu": result["machine"]["cpu"]}
        about["machine"] = result["machine"].get("gpu", about["cpu"])
        yield from (about | f | beside(f) for f in result["figures"])


class Part:
    """A part of a table, with its figures."""

    def __init__(self, definition, name):
        self.definition = definition
        results = published.results(definition.get("from", name))
        self.names = {"values": self.values, "keys": self.keys, "figures": []}
        self._set([*figures_of(results)])
        self._set(value(definition.get("figures", "figures"), self.names))
        if "beside" in definition:
            source, table, key = definition["beside"]
            found = published.table(source, table)
            for first, *cells in found["rows"]:
                theirs = dict(zip(found["columns"], cells, strict=True))
                self.figures.append({key: first, "theirs": theirs})
        for field, expression in definition.get("let", {}).items():
            for f in self.figures:
                if (found := self.value(expression, f)) is not None:
                    f[field] = found
        self._set([f for f in self.figures if self.value(definition.get("of", "True"), f)])
        if "sort" in definition:
            self.figures.sort(key=lambda f: self.value(definition["sort"], f),
                              reverse=definition.get("reverse", False))  # fmt: skip

    def _set(self, figures):
        self.figures = self.names["figures"] = figures

    def value(self, expression, f, **more):
        return value(expression, self.names | f | more | {"f": f})

    def values(self, expression):
        """Each once, in the order of the figures."""
        found = (self.value(expression, f) for f in self.figures)
        return list(dict.fromkeys(v for v in found if v is not None))

    def keys(self, field):
        return list(dict.fromkeys(name for f in self.figures for name in f.get(field, {})))

    def columns(self):
        """Heading, cell, which figures, and the key, if it has one."""
        columns = [*self.definition["columns"]]
        if "beside" in self.definition:
            source, table, _ = self.definition["beside"]
            printed = published.table(source, table)["columns"].items()
            columns += [[f"{title}, {unit}", f"theirs['{title}']", "theirs"]
                        for title, unit in printed]  # fmt: skip
        for column in columns:
            if isinstance(column, dict):
                for key in value(column["each"], self.names):
                    for head, text in column["columns"]:
                        yield head, text, column.get("of", "True"), {"key": key}
            else:
                yield *column[:2], column[2] if len(column) > 2 else "True", {}

    def rows(self):
        groups = {}
        for f in self.figures:
            keys = (self.value(key, f) for key in self.definition.get("rows", ()))
            groups.setdefault(tuple(keys) or len(groups), []).append(f)
        return groups.values()

    def table(self):
        columns, before, lines = [*self.columns()], None, []
        for group in self.rows():
            cells = []
            for _, text, of, key in columns:
                names = self.names | key | {"group": group, "before": before}
                names["picked"] = picked = [f for f in group if value(of, names | f | {"f": f})]
                if picked:
                    names |= picked[0] | {"f": picked[0]}
                cells.append(cell(text, names))
            lines.append(row(cells))
            before = group[0]
        heads = [filled_in(head, self.names | key | self.first) for head, _, _, key in columns]
        return row(heads) + row(["---"] * len(heads)) + "".join(lines)

    @property
    def first(self):
        return self.figures[0] if self.figures else {}

    def text(self):
        each = self.figures if "of" in self.definition else [self.first]
        lines = (filled_in(self.definition["text"], self.names | f | {"f": f}) for f in each)
        return "\n".join(f"{line}\n" for line in lines if line is not None)


def key_of(name):
    """By which tables.toml has a table."""
    found = [key for key in DEFINED if f"{name}-".startswith(f"{key}-")]
    if not found:
        raise ValueError(f"tables.toml has no table {name}")
    return max(found, key=len)


def made_of(name):
    """The table of that name, as Markdown, below where and with what its figures were made."""
    parts = DEFINED[key_of(name)]
    made = dict.fromkeys(f"{r['machine'].get('gpu', r['machine']['cpu'])}, commit {r['commit']}"
                         for _, r in published.results(parts[0].get("from", name)))  # fmt: skip
    shown = [f"{'; '.join(made)}\n"] if made else []
    shown += [Part(part, name).text() if "text" in part else Part(part, name).table()
              for part in parts]  # fmt: skip
    return "\n".join(text for text in shown if text)


def names_of(text):
    return PLACE.findall(text)


def filled(text):
    """A page with its tables."""
    return PLACE.sub(lambda match: made_of(match[1]).rstrip("\n"), text)


if __name__ == "__main__":
    names = sys.argv[1:] or [name for page in PAGES for name in names_of(page.read_text())]
    print("\n".join(f"{name}\n\n{made_of(name)}" for name in names))
