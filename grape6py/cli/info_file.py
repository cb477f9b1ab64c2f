"""``grape6 info FILE``: what is in a file of bodies."""

import argparse
import json
import sys
import warnings

from grape6py import snapshot
from grape6py._arrays.kinds import Attributes
from grape6py.errors import Grape6Warning, printable
from grape6py.files import formats
from grape6py.files.runs import index as run_index


def run(options: argparse.Namespace) -> int:
    """Print it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Grape6Warning)
        about = _about(options)
    for warning in caught:
        print(f"grape6: {warning.message}", file=sys.stderr)
    if options.json:
        print(json.dumps(about, indent=2))
        return 0
    about["sets"] = ", ".join(f"{name} {n}" for name, n in about["sets"])
    about["ids"] = about["ids"] and "{} to {}".format(*about["ids"])
    for name, value in about.items():
        print(printable(f"{name + ':':9s} {'-' if value in (None, '') else value}"))
    return 0


def _about(options: argparse.Namespace) -> Attributes:
    found = snapshot.read_snapshot(options.file, options.which, set=options.set)
    moments = found.moments
    if found.is_of_a_run:
        moments = len(run_index.find(options.file).outputs)
    ids = found.ids
    return {
        "file": options.file,
        "format": "run" if found.is_of_a_run else found.format,
        "title": "a run of grape6" if found.is_of_a_run else formats.FORMATS[found.format].title,
        "moments": moments,
        "number": (-1 if options.which is None else options.which) % moments,
        "time": found.time,
        "sets": found.sets,
        "bodies": len(found.mass),
        "units": None if found.units is None else str(found.units),
        "ids": None if ids is None or not len(ids) else [int(ids.min()), int(ids.max())],
    }
