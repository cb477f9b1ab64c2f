#!/usr/bin/env python3
"""Writes docs/tutorial.ipynb, the cells of docs/tutorial.md, of which a test says if it is old."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs/tutorial.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")
CELL = re.compile(r"```python cell\n(.*?)```\n", re.DOTALL)
SITE = re.compile(r"\[([^]]+)\]\((?!http)[^)]+\)")  # links to other pages, which it has not


def notebook() -> str:
    """Its text: words and code of the page, in turns."""
    cells = []
    for k, text in enumerate(CELL.split(PAGE.read_text(encoding="utf-8"))):
        is_code = k % 2 == 1
        source = text.strip() if is_code else SITE.sub(r"\1", text.strip())
        cell = {"cell_type": "code" if is_code else "markdown", "id": f"cell-{k}", "metadata": {}}
        cell |= {"execution_count": None, "outputs": []} if is_code else {}
        cells.append(cell | {"source": source.splitlines(keepends=True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    found = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(), encoding="utf-8")
