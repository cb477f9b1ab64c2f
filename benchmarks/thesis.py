"""What the scripts of the tables of Bedorf's thesis (2007) share: one of them a table.

The thesis ran kirin, this library's forerunner, on a GeForce 8800GTX, beside GRAPE-6Af boards.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from cpu import HERE, commit
from gpu import about, build

FLOPS_PER_PAIR = 60  # as the thesis counts
GRAPE6 = [sys.executable, "-m", "grape6py"]


def options_of(text, **more):
    """Command line of a table's script: --name, --commit, --out, --largest, and more."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--name", default="card", help="of the machine, in the file's name")
    parser.add_argument("--commit", default=commit())
    parser.add_argument("--out", default=str(HERE / "results"))
    parser.add_argument("--largest", type=int, default=1 << 20, help="N")
    for name, settings in more.items():
        parser.add_argument(f"--{name}", **settings)
    return parser.parse_args()


def keep(table, options, figures):
    """Write results/thesis-TABLE-NAME.json."""
    result = {"machine": about(), "commit": options.commit, "figures": figures}
    path = Path(options.out, f"thesis-{table}-{options.name}.json")
    path.write_text(json.dumps(result, indent=1) + "\n")


@contextlib.contextmanager
def card_program():
    """Runs benchmarks/card.c: a function from its arguments to the figure that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        card = build(folder)

        def run(*arguments, **environment):
            env = os.environ | {"GRAPE6_BACKEND": "cuda"} | environment
            done = subprocess.run([card, *map(str, arguments)], capture_output=True, text=True,
                                  env=env, check=True)  # fmt: skip
            figure = json.loads(done.stdout)
            print(done.stdout.strip(), flush=True)
            return figure

        yield run


@contextlib.contextmanager
def watts():
    """A list that fills with the power that the driver reports while the context is open."""
    command = [
        "nvidia-smi",
        "--query-gpu=power.draw",
        "--format=csv,noheader,nounits",
        "-lms",
        "50",
    ]
    seen = []
    try:
        meter = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        yield seen
        return

    def read():
        for line in meter.stdout:
            with contextlib.suppress(ValueError):
                seen.append(float(line))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield seen
    finally:
        meter.terminate()
        reader.join()


def busy_watts(seen):
    """Power at work: the median of the upper half, None if the driver tells none."""
    upper = sorted(seen)[len(seen) // 2 :]
    return statistics.median(upper) if upper else None


def grape6_run(n, *arguments):
    """The JSON log of `grape6 run` on a Plummer sphere."""
    command = [*GRAPE6, "run", "plummer", "--n", str(n), "--json", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
