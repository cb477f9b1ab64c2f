"""Numbers and names of the command line: types for argparse, which name what is required."""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def kind(
    convert: Callable[[str], T], good: Callable[[T], bool], requirement: str
) -> Callable[[str], T]:
    """An argparse type: `convert`, then `good` of the value, else the requirement is named."""

    def checked(text: str) -> T:
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not good(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not {requirement}")
        return value

    return checked


whole = kind(int, lambda value: 0 < value < 2**31, "a whole number from 1 to 2147483647")
seed = kind(int, lambda value: value >= 0, "a whole number, at least zero")
positive = kind(float, lambda v: 0 < v < math.inf, "a number above zero")
not_negative = kind(float, lambda v: 0 <= v < math.inf, "a number, at least zero")
picture_name = kind(
    Path,
    lambda path: path.suffix.lower() in (".png", ".pdf", ".svg"),
    "a name that ends in .png, .pdf or .svg",
)
