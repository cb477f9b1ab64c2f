"""Facts as notebooks show them."""

import html
from collections.abc import Mapping


def table(title: str, facts: Mapping[str, object]) -> str:
    """A table of names and values, without those that are None."""
    left = 'style="text-align: left"'
    rows = "".join(
        f"<tr><th {left}>{html.escape(name)}</th><td {left}>{html.escape(str(value))}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"
