"""Table 4.2 of the thesis: block-step Hermite from t = 0.25 to 0.5, eps = 1/256.

    python benchmarks/table_4_2.py [--name NAME] [--largest N] [--hermite PROGRAM]

By `grape6 run`, and by legacy_examples/hermite.c (PROGRAM is it, built; up to --legacy bodies),
with accuracy parameter 0.03. Seconds of wall time without outputs, and the relative energy error.
"""

import os
import subprocess
import tempfile

from thesis import grape6_run, keep, options_of

from grape6py import plummer
from grape6py.snapshot import write_snapshot

EPS, ETA = 1 / 256, 0.03
PIPES = 16384  # of hermite.c, which asks the board how many it has


def by_run(n):
    log = grape6_run(n, "--t-end", 0.5, "--dt-out", 0.25, "--eps", EPS, "--eta", ETA,
                     "--eta-start", ETA / 3)  # fmt: skip
    middle, end = log["history"][1:]
    return {
        "what": "grape6 run",
        "n": n,
        "backend": log["backend"],
        "seconds": log["seconds"][2] - log["seconds"][1],
        "first_half_seconds": log["seconds"][1],
        "error": end["error"],
        "steps": end["steps"] - middle["steps"],
        "blocks": end["blocks"] - middle["blocks"],
    }


def by_hermite(program, n):
    with tempfile.NamedTemporaryFile(suffix=".dat") as file:
        write_snapshot(file.name, *plummer(n, 1))
        command = [program, file.name, "-e", str(EPS), "-a", str(ETA), "-t", "0.5", "-w"]
        env = os.environ | {"GRAPE6_NPIPES": str(PIPES)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    seconds = [float(line.split()[1]) for line in done.stdout.splitlines() if " seconds " in line]
    return {
        "what": "hermite.c",
        "n": n,
        "pipes": PIPES,
        "seconds": seconds[2] - seconds[1],
        "error": float(done.stdout.split()[-1]),
    }


def main():
    options = options_of(
        __doc__,
        hermite={"help": "program hermite"},
        legacy={"type": int, "default": 65536, "help": "largest N for it"},
        smallest={"type": int, "default": 1024, "help": "N"},
    )
    figures, n = [], options.smallest
    while n <= options.largest:
        figures.append(by_run(n))
        print(figures[-1], flush=True)
        if options.hermite and n <= options.legacy:
            figures.append(by_hermite(options.hermite, n))
            print(figures[-1], flush=True)
        n *= 4
    keep("4.2", options, figures)


if __name__ == "__main__":
    main()
