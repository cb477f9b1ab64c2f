"""The site of `make docs` shows what its sources say: the headings and blocks of code of its pages
are those of the Markdown, in the same order."""

import re
import subprocess
import sys

import pytest

import capi

pytestmark = pytest.mark.full
ROOT = capi.ROOT
PIECE = re.compile(
    r"^```(?P<language>\w*)[^\n]*\n(?P<fenced>.*?)^```$"
    r"|(?<=\n\n)(?P<indented> {4}[^\n]*\n(?:\n* {4}[^\n]*\n)*)"
    r"|^(?P<level>#+) (?P<heading>[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """What each page shows, by its folder in the site: (tag, text) of its headings and its blocks
    of code, and its prose without code."""
    pytest.importorskip("mkdocs", reason="SKIP: mkdocs")
    html = pytest.importorskip("lxml.html", reason="SKIP: lxml")
    site = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--no-strict", "-d", site]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    found = {}
    for page in site.rglob("index.html"):
        article = html.parse(page, html.HTMLParser(encoding="utf-8")).find(".//article")
        for part in article.find_class("headerlink") + article.find_class("md-code__nav"):
            part.drop_tree()
        shown = article.xpath(".//h1 | .//h2 | .//h3 | .//h4 | .//pre//code")
        pieces = [("CODE" if piece.tag == "code" else piece.tag.upper(),
                   piece.text_content().rstrip()) for piece in shown]  # fmt: skip
        for part in article.findall(".//code"):
            part.drop_tree()
        name = str(page.parent.relative_to(site))
        found["" if name == "." else name] = pieces, article.text_content()
    return found


def written(markdown):
    """Headings and blocks of code of a text, as a browser shows them."""
    for m in PIECE.finditer(markdown):
        if m["heading"] is not None:
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", m["heading"])
            yield f"H{len(m['level'])}", words.replace("`", "").replace("*", "").strip()
        elif m["fenced"] is not None:
            yield "CODE", m["fenced"].rstrip()
        else:
            yield "CODE", re.sub(r"^ {4}", "", m["indented"], flags=re.MULTILINE).rstrip()


def sources():
    """The Markdown of each page, by the page's folder in the site."""
    import site_pages  # which needs mkdocs

    docs = ROOT / "docs"
    texts = {str(path.relative_to(docs)): path.read_text() for path in docs.rglob("*.md")}
    texts |= {page: (ROOT / name).read_text() for page, name in site_pages.ABOVE.items()}
    texts |= {"reference/c.md": site_pages.headers(), "gallery/index.md": site_pages.gallery()}
    return {re.sub(r"(index)?\.md$", "", name).rstrip("/"): text for name, text in texts.items()}


def test_pages_show_the_headings_and_the_code_of_their_sources_and_no_markup_as_prose(pages):
    assert set(pages) == {*sources(), "reference/python"}
    for name, text in sources().items():
        assert pages[name][0] == list(written(text)), name
    markup = r":(class|meth|func|attr|mod|data|exc|obj):|```|\]\("
    for name, (_, prose) in pages.items():
        assert not re.search(markup, prose), name
