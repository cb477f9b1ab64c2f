"""The command ``grape6``: one module a subcommand, each with ``add_options`` and ``run``.

A subcommand's ``run`` returns the exit status: 0 for success, 1 for a miss or an error
(named on stderr); 2 is argparse's, for a wrong command line.
"""

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Sequence

from grape6py import __version__
from grape6py.cli import bench, config, convert, info, link, movie, plot, run, selftest
from grape6py.errors import Grape6Error, meant, printable

_PURPOSES = {
    run: "integrate a cluster or galaxies",
    convert: "change the format of a file of bodies",
    plot: "draw a run or a snapshot",
    movie: "draw a run as GIF or MP4",
    info: "what is installed, or what is in a file of bodies",
    config: "flags for compiling and linking",
    link: "put the library where clients look for it",
    selftest: "compare the CPU's forces with the oracle",
    bench: "measure the speed",
}
# After the --help of each command, by its words.
_EXAMPLES = {
    "": """
        grape6 info
        grape6 run --n 4096 --t-end 2 --out cluster.h5 --plot cluster.png""",
    "run": """
        grape6 run king --n 4096 --w0 7 --t-end 10 --out king.h5 --plot king.png
        grape6 run king.h5 --restart --t-end 20
        grape6 run stars.dat --eps 0.01 --t-end 1 --out end.nemo
        grape6 run --n 1000 --units '1e4 Msun 3 pc' --field mwpotential2014 \\
            --orbit 2667,0,0,0,58,0 --t-end 50 --out orbit.h5""",
    "convert": """
        grape6 convert snapshot_010.hdf5 stars.dat
        grape6 convert conf.3_12 stars.nemo --which 0
        grape6 convert cluster.h5 cluster.amuse --units '5e4 Msun 1.2 pc'""",
    "plot": """
        grape6 plot run.h5
        grape6 plot snapshot_010.hdf5 -o bodies.pdf""",
    "movie": """
        grape6 movie run.h5
        grape6 movie run.h5 --out run.mp4 --fps 25 --size 2 --plane xz""",
    "info": """
        grape6 info
        grape6 info --json
        grape6 info snapshot_010.hdf5""",
    "config": """
        gfortran old.f $(grape6 config --libs)
        cc $(grape6 config --cflags) old.c $(grape6 config --libs)""",
    "link": """
        grape6 link
        grape6 link --prefix ~/sapporo""",
    "selftest": """
        grape6 selftest
        grape6 selftest --verbose --seed 7""",
    "bench": """
        grape6 bench
        grape6 bench direct --help""",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="grape6", description="The GRAPE-6 host library in software."
    )
    parser.add_argument("--version", action="version", version=f"grape6py {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for module, purpose in _PURPOSES.items():
        command = commands.add_parser(module.__name__.rpartition(".")[2], help=purpose)
        command.set_defaults(run=module.run, parser=command)
        module.add_options(command)
    _add_examples("", parser)
    if argv is None:
        _prepare_streams()
    options, unknown = parser.parse_known_args(_joined(sys.argv[1:] if argv is None else argv))
    if unknown:
        command = commands.choices[options.command]
        names = [name for action in command._actions for name in action.option_strings]
        hint = meant(unknown[0].partition("=")[0], names)
        command.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except Grape6Error as error:
        if not error.printed:
            print(f"grape6: {error}", file=sys.stderr)
    except OSError as error:
        place = error.filename or _stuck_output()
        text = error.strerror or str(error)
        if not isinstance(error, BrokenPipeError):  # the reader went away: grape6 info | head -1
            where = f"{place}: " if place else ""
            print(printable(f"grape6: {where}{text}"), file=sys.stderr)
    except MemoryError as error:
        print(f"grape6: out of memory: {error}", file=sys.stderr)
    return 1


def _add_examples(words: str, parser: argparse.ArgumentParser) -> None:
    """What one may type, after the help of a command and of those in it."""
    if words in _EXAMPLES:
        lines = textwrap.indent(textwrap.dedent(_EXAMPLES[words]).strip(), "  ")
        parser.epilog = f"{parser.epilog or ''}\nexamples:\n{lines}"
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                _add_examples(f"{words} {name}".strip(), inner)


def _joined(words: Sequence[str]) -> list[str]:
    """Words in which each option has its negative number: argparse takes -1e30 for an option."""
    found: list[str] = []
    for word in words:
        if found and found[-1][:2] == "--" and re.match(r"-(\.?\d|inf|nan)", word, re.IGNORECASE):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _prepare_streams() -> None:
    """Paths are printed as the bytes that they are, and what is closed is /dev/null."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # or a file would take its number,
        pass  # and messages go into it
    os.close(number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name) or os.fdopen(number, "w")
        stream.reconfigure(encoding=sys.getfilesystemencoding(), errors="surrogateescape")
        setattr(sys, name, stream)


def _stuck_output() -> str | None:
    """Name standard output if it cannot be written, and drop what would fail again at the exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return "standard output"
    return None
