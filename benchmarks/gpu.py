"""Times a graphics card through the C API, measures its accuracy, and keeps both as JSON.

    python benchmarks/gpu.py [--name NAME] [--rounds 3] [--commit COMMIT] [--quick]
                             [--beside COMMAND]

Builds benchmarks/card.c against the library of this tree, runs every configuration in rounds that
alternate them, and writes benchmarks/results/gpu-NAME.json with the median round of each (a round
is itself a median), the errors against a direct sum in double, and the goals. What other programs
print that are to be run beside, once a round, is kept too.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from cpu import HERE, commit, machine

from grape6py import Grape6, paths, plummer, reference

# Command of card.c -> goal: G pairs a second, or microseconds a step.
FORCES = {
    "grape 1 1": {16384: 620, 65536: 715, 262144: 715, 1048576: 715},
    "double 1 1": {16384: None, 65536: 415, 262144: 415, 1048576: 415},
    "single 1 1": {16384: None, 65536: 880, 262144: 880, 1048576: 880},
    "single 0 0": {16384: None, 65536: 1800, 262144: 1800, 1048576: 1800},
}
STEPS = {
    "step grape 1024 1": 18, "step grape 1024 64": 28, "step grape 16384 1": 18,
    "step grape 16384 64": 28, "step grape 65536 64": 36, "step grape 262144 64": 60,
    "step grape 1048576 64": 165, "step grape 65536 1024": 165, "step grape 1048576 1024": 1800,
    "cut grape 65536 1024 48": 350, "scatter grape 16384 64": None, "scatter grape 65536 64": None,
    "scatter grape 262144 64": None, "scatter grape 1048576 64": None,
    "scatter grape 65536 1024": None, "scatter grape 1048576 1024": None,
}  # fmt: skip


def configurations(largest):
    for kind, goals in FORCES.items():
        for n, goal in goals.items():
            if n <= largest:
                yield f"force {kind} {n}", goal
    yield from STEPS.items()
    yield "open", None


def build(folder):
    program = Path(folder, "card")
    where = paths.LIBRARY.parent
    subprocess.run(
        ["gcc", "-O2", HERE / "card.c", "-o", program, f"-I{HERE.parent / 'include'}",
         f"-L{where}", f"-Wl,-rpath,{where}", "-lgrape6", "-lm"],
        check=True,
    )  # fmt: skip
    return program


def errors(mode, n, step=8):
    """Median and largest relative errors of a Plummer sphere, and the mean along acc."""
    mass, pos, vel = plummer(n, seed=3)
    rows = np.arange(0, n, step)
    exact = reference.direct_sum(mass, pos, vel, rows=rows, extended=mode == "double")
    with Grape6(backend="cuda", precision=mode) as grape:
        grape.set_particles(mass, pos, vel)
        found = grape.forces(pos[rows], vel[rows], rows)
    result = {"what": "accuracy", "mode": mode, "n": n, "rows": len(rows)}
    for name in ("acc", "jerk", "pot"):
        right = getattr(exact, name).reshape(len(rows), -1)
        wrong = np.linalg.norm(getattr(found, name).reshape(right.shape) - right, axis=1)
        error = wrong / np.linalg.norm(right, axis=1)
        result[name] = [float(np.median(error)), float(error.max())]
    along = (found.acc * exact.acc).sum(1) / (exact.acc**2).sum(1) - 1
    return result | {"mean_along_acc": float(along.mean())}


def printed(command):
    """What a program prints, by its command."""
    run = subprocess.run(command.split(), capture_output=True, text=True, check=True)
    return {"command": command, "printed": run.stdout.splitlines()}


def about():
    import cupy

    card = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True, check=False)  # fmt: skip
    return machine() | {
        "gpu": card,
        "driver": driver.stdout.split("\n")[0].strip(),
        "cupy": cupy.__version__,
        "cuda": cupy.cuda.runtime.runtimeGetVersion(),
        "python": sys.version.split()[0],
    }


def measure(options, found, beside):
    """Run everything in rounds; figures by command into `found`, other programs' into `beside`."""
    environment = os.environ | {"GRAPE6_BACKEND": "cuda"}
    with tempfile.TemporaryDirectory() as folder:
        card = build(folder)
        for _ in range(options.rounds):
            beside += [printed(command) for command in options.beside]
            for line, goal in configurations(300_000 if options.quick else 2_000_000):
                if " 1048576" in line and line.startswith("force") and line in found:
                    continue  # seconds a call: once
                run = subprocess.run([card, *line.split()], capture_output=True, text=True,
                                     env=environment, check=False)  # fmt: skip
                if run.returncode:
                    print(f"card {line}: {run.stderr.strip()}", file=sys.stderr)
                    continue
                print(run.stdout.strip(), "goal", goal, flush=True)
                figure = json.loads(run.stdout) | {"command": f"card {line}", "goal": goal}
                found.setdefault(line, []).append(figure)


def median_round(rounds):
    key = next(k for k in ("gpairs_per_s", "us", "first_s") if k in rounds[0])
    middle = statistics.median_low([figure[key] for figure in rounds])
    return next(figure for figure in rounds if figure[key] == middle)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="card")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--commit", default=commit())
    parser.add_argument("--out", default=str(HERE / "results"))
    parser.add_argument("--quick", action="store_true", help="without N = 1048576, ni = N")
    parser.add_argument("--beside", action="append", default=[], help="another program to run")
    options = parser.parse_args()
    accuracy = [errors(mode, 16384) for mode in ("grape", "double", "single")]
    found, beside = {}, []
    with contextlib.suppress(KeyboardInterrupt):  # what there is by then is kept
        measure(options, found, beside)
    figures = [median_round(rounds) for rounds in found.values()] + accuracy
    result = {"machine": about(), "commit": options.commit, "figures": figures}
    if beside:
        result["beside"] = beside
    Path(options.out, f"gpu-{options.name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
