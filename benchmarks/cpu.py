"""Times the CPU backend through the C API and keeps the figures as JSON.

    python benchmarks/cpu.py [--name NAME] [--board PROGRAM] [--rounds 3]

Builds benchmarks/board.c against the installed library (unless --board names a program that is
built already), runs every configuration of docs/benchmarks.md in rounds that alternate them, since
machines are noisy, and writes benchmarks/results/cpu-NAME.json with the best round of each (a round
is itself a median of 15). `python benchmarks/tables.py` puts them into docs/benchmarks.md.
"""

import argparse
import json
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

CONFIGURATIONS = """
force 16384 4096 0 1 grape best
force 16384 32 0 1 grape best
force 16384 4096 1 1 grape best
force 16384 32 1 1 grape best
force 16384 4096 0 1 double best
force 16384 32 0 1 double best
force 16384 4096 0 1 single best
force 16384 32 0 1 single best
force 65536 32 0 1 grape best
force 65536 1 0 1 grape best
force 16384 4096 0 1 grape avx2
force 16384 4096 0 1 double avx2
force 16384 4096 0 1 single avx2
force 16384 512 0 1 grape base
force 16384 4096 0 2 grape best
force 16384 32 0 2 grape best
force 4096 32 0 1 grape best
force 4096 32 0 2 grape best
force 1024 32 0 2 grape best
step 65536 32 0 1 grape best
write 1000000
open
tiny
""".strip().splitlines()


def machine():
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())[1]
    return {"cpu": cpu, "system": platform.system(), "kernel": platform.release()}


def commit():
    shown = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"],
                           capture_output=True, text=True, check=False)  # fmt: skip
    return shown.stdout.strip()


def build(folder):
    grape6 = [sys.executable, "-m", "grape6py", "config", "--cflags", "--libs"]
    flags = subprocess.run(grape6, capture_output=True, text=True, check=True).stdout.split()
    program = Path(folder, "board")
    subprocess.run(["gcc", "-O2", HERE / "board.c", "-o", program, *flags, "-lm"], check=True)
    return program


def speed(figure):
    """What makes one round of a configuration better than another."""
    keys = ("us", "again_us", "in_order_ns")
    return figure.get("pairs_per_s") or -next(figure[k] for k in keys if k in figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default=platform.node())
    parser.add_argument("--board")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commit", default=commit())
    parser.add_argument("--out", default=str(HERE / "results"))
    options = parser.parse_args()
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        board = options.board or build(folder)
        for _ in range(options.rounds):
            for line in CONFIGURATIONS:
                run = subprocess.run([board, *line.split()], capture_output=True, text=True)
                if run.returncode:
                    print(f"board {line}: {run.stderr.strip()}", file=sys.stderr)
                    continue
                figure = json.loads(run.stdout) | {"command": f"board {line}"}
                if line not in best or speed(figure) > speed(best[line]):
                    best[line] = figure
                print(run.stdout.strip(), flush=True)
    result = {"machine": machine(), "commit": options.commit, "figures": list(best.values())}
    Path(options.out, f"cpu-{options.name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
