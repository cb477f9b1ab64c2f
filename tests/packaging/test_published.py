"""benchmarks/published.json: a published figure has an entry, and an entry has its figure.

And the pages of figures, docs/benchmarks.md and benchmarks/pages/*.md: their tables are made of the
data, each result is shown somewhere, and the summary stays short.
"""

import fnmatch
import re
import sys

import pytest

import capi

HERE = capi.ROOT / "benchmarks"
sys.path.insert(0, str(HERE))
import published  # noqa: E402
import tables  # noqa: E402


@pytest.mark.parametrize("found", published.DATA["tables"], ids=published.name_of)
def test_a_figure_has_an_entry_for_each_way_an_entry_its_figure_and_a_loss_its_reason(found):
    names = [row[0] for row in found["rows"]]
    assert len(set(names)) == len(names)
    ways = {}
    for cell in published.cells_of(found):
        ways.setdefault((cell.row, cell.column), []).append(cell.entry.get("by"))
        assert cell.ours is None or abs(cell.ours) < float("inf"), cell
        why = cell.entry.get("why") and cell.entry.get("needs")
        assert why or cell.state != "lost", (cell.row, cell.column, cell.ours)
    for row in found["rows"]:
        for title, printed in zip(found["columns"], row[1:], strict=True):
            by = ways.get((row[0], title), [])
            assert printed is None or by, (row[0], title)
            assert len(set(by)) == len(by), (row[0], title, by)
    for entry in found["ours"]:
        assert set(entry.get("rows", names)) <= set(names), entry
        assert set(entry.get("columns", found["columns"])) <= set(found["columns"]), entry
        kinds = {k for k in ("file", "not measured", "not comparable") if entry.get(k)}
        assert len(kinds) == 1 or kinds == {"file", "not measured"}, entry


def test_an_entry_of_a_figure_that_is_not_there_is_an_error():
    entry = {"file": "thesis-4.1-h200", "ours": "seconds", "match": "n"}
    assert published.our_figure(entry, 256) > 0
    with pytest.raises(LookupError):
        published.our_figure(entry, 255)
    with pytest.raises(NameError):
        published.our_figure(entry | {"ours": "hours"}, 256)


@pytest.mark.parametrize(("file", "row"), [("thesis-4.1-h200", 255), ("no-such-file", 256)])
def test_an_entry_may_say_what_is_not_measured_yet(file, row):
    found = {"columns": {"base": "s"}}
    entry = {"file": file, "ours": "seconds", "match": "n"}
    with pytest.raises((LookupError, FileNotFoundError)):
        _ = published.Cell(found, row, "base", 1.0, entry).state
    cell = published.Cell(found, row, "base", 1.0, entry | {"not measured": "all"})
    assert cell.state == "not measured"
    assert cell.ours is None


def test_means_are_of_several_files_and_of_each_value_of_a_field_first(monkeypatch):
    figures = {"few": [{"n": 1, "error": 2.0}], "none": [{"error": 0.0}],
               "many": [{"n": 2, "error": e} for e in (4.0, 5.0, 6.0)]}  # fmt: skip
    monkeypatch.setattr(published, "result", lambda file: {"figures": figures[file]})
    entry = {"file": ["few", "many"], "ours": "10 * error"}
    for more, mean in (({}, 42.5), ({"each": "n"}, 35), ({"take": "median"}, 45)):
        assert published.our_figure(entry | more, None) == mean
    assert published.our_figure(entry | {"match": "n"}, 2) == 50
    assert published.our_figure(entry | {"ours": "error / dollars"}, None) < 1
    found = {"columns": {"error": "1e-7", "rate": "GFLOP/s"}}
    entry = {"file": "none", "ours": "error"}
    for title, gain in (("error", float("inf")), ("rate", 0)):  # nothing is better than no error
        assert published.Cell(found, 1, title, 2.0, entry).gain == gain


def test_all_rows_are_counted():
    *of_tables, total = published.counts()
    rows = sum(len(found["rows"]) for found in published.DATA["tables"])
    assert total["states"].total() == rows == sum(f["states"].total() for f in of_tables)


# ---- pages -------------------------------------------------------------------------

MOST_LINES, MOST_WORDS = 200, 1600  # of the summary: four printed pages; words without its tables


NAMES = [name for page in tables.PAGES for name in tables.names_of(page.read_text())]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_has_rows_and_figures_in_all_columns(name):
    for text in tables.made_of(name).split("\n\n"):
        if text.startswith("|"):
            head, _, *rows = (line[2:-2].split(" | ") for line in text.splitlines())
            columns = zip(head, *rows, strict=True)
            assert [first for first, *cells in columns if not any(cells)] == []


def test_a_cell_without_a_figure_is_empty_and_a_table_without_columns_an_error(monkeypatch):
    figures = [{"n": n, "k": k, "eps": n / 8} for n, k in ((1, 1), (1, 2), (2, 2))]
    result = {"machine": {"cpu": "a CPU"}, "commit": "abc", "figures": figures}
    monkeypatch.setattr(published, "results", lambda name: [(name, result)])
    each = {"each": "values('k')", "of": "k == key", "columns": [["k = {key}", "{eps:.2f}"]]}
    part = {"rows": ["n"], "columns": [["N", "n"], each, ["none", ["missing", "{1 / n:g} {n}"]]]}
    monkeypatch.setitem(tables.DEFINED, "small", [part])
    about, head, _, one, two = tables.made_of("small-here").replace("\n\n", "\n").splitlines()
    assert (about, head) == ("a CPU, commit abc", "| N | k = 1 | k = 2 | none |")
    assert (one, two) == ("| 1 | 0.12 | 0.12 | 1 1 |", "| 2 |  | 0.25 | 0.5 2 |")
    with pytest.raises(ValueError, match="no-such"):
        tables.made_of("no-such")


def test_a_table_stands_on_one_page_and_the_summary_stays_short():
    assert len(NAMES) == len(set(NAMES))
    assert {tables.key_of(name) for name in NAMES} == set(tables.DEFINED)
    text = tables.PAGES[0].read_text()
    prose = re.sub(r"^\|.*\n", "", text, flags=re.MULTILINE)
    assert len(text.splitlines()) <= MOST_LINES
    assert len(prose.split()) <= MOST_WORDS


def test_every_result_is_shown():
    """In a table or a picture, beside a published figure, or by a link of the text."""
    figures = pytest.importorskip("figures", reason="SKIP: matplotlib")
    text = "\n".join(page.read_text() for page in tables.PAGES)
    shown = {*NAMES, *re.findall(r"results/([\w.-]+)\.json\)", text)}
    shown |= {name for spec in figures.DRAWN.values() for name in spec["from"]}
    entries = [entry for found in published.DATA["tables"] for entry in found["ours"]]
    shown |= {name for e in entries if "file" in e for name in published.names_of(e["file"])}
    results = [path.stem for path in published.RESULTS.glob("*.json")]
    assert [r for r in results if not any(fnmatch.fnmatch(r, name) for name in shown)] == []
