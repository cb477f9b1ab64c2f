"""benchmarks/published.json: a published figure has an entry, and an entry has its figure.

And the pages of figures, docs/benchmarks.md and benchmarks/pages/*.md: their tables are made of the
data, each result is shown somewhere, and the summary stays short."""

import fnmatch
import re
import sys

import pytest

import capi

sys.path.insert(0, str(capi.ROOT / "benchmarks"))
import published
import tables


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
