"""benchmarks/published.json: a published figure has an entry, and an entry has its figure.

And the pages of figures, docs/benchmarks.md and docs/figures/*.md: their tables are made of the
data, each result is shown somewhere, and the summary stays short.
"""

import fnmatch
import re
import sys

import pytest

import capi
from variants import run

HERE = capi.ROOT / "benchmarks"
sys.path.insert(0, str(HERE))
import published  # noqa: E402
import tables  # noqa: E402


@pytest.mark.parametrize("found", published.DATA["tables"], ids=published.name_of)
def test_a_figure_has_an_entry_for_each_way_an_entry_its_figure_and_a_loss_its_reason(found):
    names = [row[0] for row in found["rows"]]
    assert len(set(names)) == len(names)
    ways = {}
    for cell in (cell for row in published.cells_of(found).values() for cell in row):
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


def test_a_sum_of_rows_is_printed():
    printed = run([sys.executable, HERE / "published.py"]).stdout
    (line,) = re.findall(r"^all (.*)$", printed, re.MULTILINE)
    total, *states = map(int, line.split())
    rows = sum(len(found["rows"]) for found in published.DATA["tables"])
    assert total == rows == sum(states)


# ---- pages -------------------------------------------------------------------------

MOST_LINES, MOST_WORDS = 200, 1600  # of the summary: four printed pages; words without its tables


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.stem)
def test_tables_of_the_pages_are_made_of_the_data(page):
    assert tables.made_anew(page) == page.read_text(), "python benchmarks/tables.py"


def test_a_table_stands_on_one_page_and_the_summary_stays_short():
    names = [name for page in tables.PAGES for name in tables.names_of(page.read_text())]
    assert len(names) == len(set(names))
    text = tables.SUMMARY.read_text()
    prose = re.sub(r"^\|.*\n", "", text, flags=re.MULTILINE)
    assert len(text.splitlines()) <= MOST_LINES
    assert len(prose.split()) <= MOST_WORDS


def test_every_result_is_shown():
    """In a table or a picture, beside a published figure, or by a link of the text."""
    figures = pytest.importorskip("figures", reason="SKIP: matplotlib")
    text = "\n".join(page.read_text() for page in tables.PAGES)
    shown = {*tables.names_of(text), *re.findall(r"results/([\w.-]+)\.json\)", text)}
    shown |= {name for _, names, _ in figures.DRAWN for name in names}
    entries = [entry for found in published.DATA["tables"] for entry in found["ours"]]
    shown |= {name for e in entries if "file" in e for name in published.names_of(e["file"])}
    results = [path.stem for path in published.RESULTS.glob("*.json")]
    assert [r for r in results if not any(fnmatch.fnmatch(r, name) for name in shown)] == []
