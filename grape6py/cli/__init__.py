"""The command ``grape6``: one module a subcommand, each with ``add_parser`` and ``run``.

A subcommand's ``run`` returns the exit status: 0 for success, 1 for a miss or a fault
(named on stderr); 2 is argparse's, for a wrong command line.
"""

import argparse
import sys

from grape6py import __version__
from grape6py.cli import bench, config, info, link, run, selftest
from grape6py.errors import Grape6Error


def main(argv=None):
    """Run a command line, by default that of the process, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="grape6", description="The GRAPE-6 host library in software."
    )
    parser.add_argument("--version", action="version", version=f"grape6py {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)
    for module in (run, info, config, link, selftest, bench):
        module.add_parser(commands)
    options = parser.parse_args(argv)
    try:
        return options.run(options)
    except Grape6Error as error:
        if not error.printed:
            print(f"grape6: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader went away, as in: grape6 info | head -1
        sys.stderr.close()
        return 1
