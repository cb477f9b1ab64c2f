"""``grape6 info``: what is installed, and what a program linked with it will use."""

import json

from grape6py import paths


def add_parser(commands):
    """Add the subcommand to the argparse object `commands`."""
    parser = commands.add_parser("info", help="what is installed and what will be used")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.set_defaults(run=run)


def run(options):
    """Print it. Fails if the library is missing or cannot open a session."""
    about = _collect()
    if options.json:
        print(json.dumps(about, indent=2))
        return 0
    del about["devices"]  # they are in the line on the GPU
    for name, value in about.items():
        print(f"{name + ':':13s} {_line(value)}")
    return 0


def _collect():
    # Here and not on top: these open the library, and the other commands must be
    # able to say that it is missing.
    from grape6py._lib.library import lib
    from grape6py.cli import gpu, machine
    from grape6py.grape6 import Grape6

    about = machine.describe() | {"path": str(paths.LIBRARY)}
    with Grape6() as session:
        about["backend"] = session.backend
        about["precision"] = session.precision
        about["threads"] = session.threads
    about["npipes"] = lib.g6_npipes()
    about["isas"] = [isa for isa, here in machine.isas().items() if here]
    about |= gpu.describe()
    about["environment"] = machine.settings()
    return about


def _line(value):
    if isinstance(value, dict):
        return " ".join(f"{key}={word}" for key, word in value.items()) or "no GRAPE6_* is set"
    return " ".join(value) if isinstance(value, list) else value
