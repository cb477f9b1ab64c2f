"""May this version be uploaded? What is not yet written down, if not.

python packaging/ready.py [TAG]
"""

import re
import sys
from pathlib import Path

import metadata

ROOT = Path(__file__).resolve().parent.parent


def _read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def missing(tag=None):
    """What is to be written before an upload, a line each; `tag` is that of the commit."""
    version = re.search(r'^__version__ = "(.*)"$', _read("grape6py/__init__.py"), re.M)[1]
    date = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", _read("CHANGELOG.md"), re.M)
    citation = _read("CITATION.cff").splitlines()
    lines = {
        f"grape6py/__init__.py: the version that the tag {tag} names": tag in (None, f"v{version}"),
        f"CHANGELOG.md: a heading ## [{version}] - YEAR-MONTH-DAY": date,
        f"CITATION.cff: version: {version}": f"version: {version}" in citation,
        "CITATION.cff: date-released: the day that CHANGELOG.md has":
            date and f"date-released: {date[1]}" in citation,
        "CITATION.cff: repository-code: the project's address": metadata.address(ROOT),
    }  # fmt: skip
    return [line for line, done in lines.items() if not done]


if __name__ == "__main__":
    found = missing(*sys.argv[1:])
    sys.exit("\n".join(["not ready for an upload:", *found]) if found else 0)
