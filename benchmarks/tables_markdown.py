"""Rows of tables in Markdown."""


def row(cells):
    return "| " + " | ".join("" if c is None else str(c) for c in cells) + " |\n"


def head(*cells):
    return row(cells) + row(["---"] * len(cells))


def number(value, digits=3):
    return None if value is None else f"{value:.{digits}g}"


def bold(text, missed):
    """Of what misses its goal."""
    return f"**{text}**" if missed else text
