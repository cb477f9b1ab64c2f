"""The metadata that stands in no file as a package index wants it: the project's addresses, and
README.md for readers who have no tree around it. pyproject.toml calls this.

The project's address is `repository-code` in CITATION.cff, and stands nowhere else. Links into the
tree lead there, to the files of this version. While CITATION.cff has none, links become their words
and pictures are left out: nothing in the text leads nowhere.
"""

import re
from pathlib import Path

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:)([^)\s]+)\)")


def address(root="."):
    """Of the repository, or None."""
    text = (Path(root) / "CITATION.cff").read_text(encoding="utf-8")
    found = re.search(
        r"""^repository-code: *["']?(https://[^\s"']+?)/?["']?$""", text, re.MULTILINE
    )
    return found and found[1]


def readme(text, home, version):
    """The text with links that work anywhere."""

    def link(match):
        picture, words, target = match.groups()
        if home is None:
            return "" if picture else words
        return f"{picture}[{words}]({home}/{'raw' if picture else 'blob'}/v{version}/{target})"

    return LINK.sub(link, text)


def urls(home, version):
    """Names and addresses that an index shows beside the text."""
    places = {"Repository": "", "Issues": "/issues", "Documentation": f"/tree/v{version}/docs",
              "Changelog": f"/blob/v{version}/CHANGELOG.md"}  # fmt: skip
    return {name: home + place for name, place in places.items()} if home else {}


def dynamic_metadata(_settings, project):
    """What scikit-build-core asks for."""
    home, version = address(), project["version"]
    text = readme(Path("README.md").read_text(encoding="utf-8"), home, version)
    return {
        "readme": {"content-type": "text/markdown", "text": text},
        "urls": urls(home, version),
    }
