"""The site of `make docs` shows what its sources say: pages are opened in a browser, and their
headings and blocks of code are those of the Markdown, in the same order. And the examples of its
gallery draw what it shows."""

import os
import re
import subprocess
import sys

import matplotlib.image
import pytest

import capi
from tools import need

pytestmark = pytest.mark.full
ROOT = capi.ROOT
EXAMPLES = sorted((ROOT / "docs/gallery").glob("*.py"))
PIECE = re.compile(
    r"^```(?P<language>\w*)[^\n]*\n(?P<fenced>.*?)^```$"
    r"|(?<=\n\n)(?P<indented> {4}[^\n]*\n(?:\n* {4}[^\n]*\n)*)"
    r"|^(?P<level>#+) (?P<heading>[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)
# What a page shows: [tag, text] of its headings and its blocks of code, and its prose without code.
SHOWN = """
const article = document.querySelector("article").cloneNode(true);
article.querySelectorAll(".headerlink, .md-code__nav").forEach(part => part.remove());
const pieces = [...article.querySelectorAll("h1, h2, h3, h4, pre code")]
    .map(piece => [piece.closest("pre") ? "CODE" : piece.tagName, piece.textContent.trimEnd()]);
article.querySelectorAll("code").forEach(part => part.remove());
return {pieces, prose: article.textContent};
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """What a browser shows of each page, by the page's folder in the site."""
    pytest.importorskip("mkdocs", reason="SKIP: mkdocs")
    webdriver = pytest.importorskip("selenium.webdriver", reason="SKIP: selenium")
    site = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--no-strict", "-d", site]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    options = webdriver.ChromeOptions()
    options.binary_location = need("chromium")
    for option in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(option)
    browser = webdriver.Chrome(options, webdriver.ChromeService(need("chromedriver")))
    found = {}
    try:
        for page in site.rglob("index.html"):
            browser.get(page.as_uri())
            name = str(page.parent.relative_to(site))
            found["" if name == "." else name] = browser.execute_script(SHOWN)
    finally:
        browser.quit()
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


def test_pages_show_the_headings_and_the_code_of_their_sources(pages):
    assert set(pages) == {*sources(), "reference/python"}
    for name, text in sources().items():
        assert [tuple(piece) for piece in pages[name]["pieces"]] == list(written(text)), name


def test_no_page_shows_markup_as_prose(pages):
    markup = r":(class|meth|func|attr|mod|data|exc|obj):|```|\]\("
    for name, page in pages.items():
        assert not re.search(markup, page["prose"]), name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_draws_its_picture(tmp_path, path):
    env = os.environ | {"MPLBACKEND": "agg", "GRAPE6_BACKEND": "cpu"}
    subprocess.run([sys.executable, path], cwd=tmp_path, env=env, check=True)
    (made,) = tmp_path.iterdir()
    assert made.name == f"{path.stem}.png"
    assert matplotlib.image.imread(made).std() > 0.05  # there is something on it
