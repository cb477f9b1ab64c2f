"""``grape6 info FILE``: what is in a file of bodies, or in a run."""

import argparse
import json
import math
import sys
import warnings

from grape6py import open_run, snapshot
from grape6py._arrays.kinds import Attributes
from grape6py.errors import Grape6Warning, printable
from grape6py.files import formats


def show(options: argparse.Namespace) -> None:
    """Print it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Grape6Warning)
        about = _about_file(options)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"grape6: {message}", file=sys.stderr)
    if options.json:
        print(json.dumps(about, indent=2))
        return
    about["sets"] = [f"{name} {n}" for name, n in about["sets"]]
    about["ids"] = about["ids"] and "{} to {}".format(*about["ids"])
    width = max(map(len, about)) + 3
    for name, value in about.items():
        print(printable(f"{name + ':':{width}s}{_text(value)}"))


def _text(value: object) -> object:
    if isinstance(value, dict):
        value = [f"{key} {word}" for key, word in value.items()]
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return "-" if value in (None, "") else value


def _about_file(options: argparse.Namespace) -> Attributes:
    found, ids = snapshot.read_snapshot(options.file, options.which, set=options.set), None
    number = (-1 if options.which is None else options.which) % found.moments
    if found.ids is not None and len(found.ids):
        ids = [int(found.ids.min()), int(found.ids.max())]
    return {
        "file": options.file,
        "format": "run" if found.is_of_a_run else found.format,
        "title": "a run of grape6" if found.is_of_a_run else formats.FORMATS[found.format].title,
        "moments": found.moments,
        "number": number,
        "time": found.time,
        "sets": found.sets,
        "bodies": len(found.mass),
        "units": None if found.units is None else str(found.units),
        "ids": ids,
    } | (_about_run(options.file, number) if found.is_of_a_run else {})


def _about_run(path: str, number: int) -> Attributes:
    run = open_run(path)
    records, about = run.records(), {"integrator": "hermite"} | run.about
    here = records[number]
    return {
        "times": [records[0]["time"], records[-1]["time"]],
        **{k: v if math.isfinite(v) else None for k, v in here.items() if isinstance(v, float)},
        "steps": here["steps"],
        **{name: about.get(name) for name in ("name", "integrator", "precision", "backend")},
        "settings": run.settings,
        "changes": run.changes,
        "run": run.id,
        "missing": run.missing(),
        "writing": run.is_being_written(),
    }
