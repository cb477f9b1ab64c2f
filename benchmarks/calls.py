"""Times calls of the C API, as an old program makes them.

    python benchmarks/calls.py [cpu] [gpu] [--name NAME] [--rounds 3] [--largest 1048576]

Part cpu runs cpu_calls.c and keeps the best round of each command, since other work slows a machine
and nothing makes it faster; part gpu runs gpu_calls.c, keeps the median round and the goals, and
adds the errors of each mode. Rounds alternate the commands; a round is itself a median.
"""

import statistics
import tempfile

import numpy as np
from harness import HERE, compile_c, figures, relative, run

from grape6py import Grape6, plummer, reference

CPU_COMMANDS = """
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

# Command: goal in G pairs a second, or in microseconds a step.
GPU_GOALS = {
    "force grape 1 1 16384": 620, "force grape 1 1 65536": 715, "force grape 1 1 262144": 715,
    "force grape 1 1 1048576": 715, "force double 1 1 16384": None, "force double 1 1 65536": 415,
    "force double 1 1 262144": 415, "force double 1 1 1048576": 415, "force single 1 1 16384": None,
    "force single 1 1 65536": 880, "force single 1 1 262144": 880, "force single 1 1 1048576": 880,
    "force single 0 0 16384": None, "force single 0 0 65536": 1800, "force single 0 0 262144": 1800,
    "force single 0 0 1048576": 1800,
    "step grape 1024 1": 18, "step grape 1024 64": 28, "step grape 16384 1": 18,
    "step grape 16384 64": 28, "step grape 65536 64": 36, "step grape 262144 64": 60,
    "step grape 1048576 64": 165, "step grape 65536 1024": 165, "step grape 1048576 1024": 1800,
    "cut grape 65536 1024 48": 350, "scatter grape 16384 64": None, "scatter grape 65536 64": None,
    "scatter grape 262144 64": None, "scatter grape 1048576 64": None,
    "scatter grape 65536 1024": None, "scatter grape 1048576 1024": None, "open": None,
}  # fmt: skip


def rounds(source, commands, options, **environment):
    """Figures of the rounds by command, of those up to the largest N."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        program = compile_c(HERE / source, folder)
        for _ in range(options.rounds):
            for command in commands:
                words = command.split()
                if any(int(word) > options.largest for word in words if word.isdigit()):
                    continue
                if words[0] == "force" and words[-1] == "1048576" and command in found:
                    continue  # seconds a call: once
                found.setdefault(command, []).extend(figures(program, *words, **environment))
    return {command: taken for command, taken in found.items() if taken}


def cpu(options):
    for command, taken in rounds("cpu_calls.c", CPU_COMMANDS, options).items():
        yield max(taken, key=speed) | {"command": f"board {command}"}


def speed(figure):
    keys = ("us", "again_us", "in_order_ns")
    return figure.get("pairs_per_s") or -next(figure[k] for k in keys if k in figure)


def gpu(options):
    found = rounds("gpu_calls.c", GPU_GOALS, options, GRAPE6_BACKEND="cuda")
    for command, taken in found.items():
        key = next(k for k in ("gpairs_per_s", "us", "first_s") if k in taken[0])
        middle = statistics.median_low(figure[key] for figure in taken)
        figure = next(figure for figure in taken if figure[key] == middle)
        yield figure | {"command": f"card {command}", "goal": GPU_GOALS[command]}
    for mode in ("grape", "double", "single"):
        yield errors(mode, min(16384, options.largest))


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
        error = relative(getattr(found, name), getattr(exact, name))
        result[name] = [float(np.median(error)), float(error.max())]
    along = (found.acc * exact.acc).sum(1) / (exact.acc**2).sum(1) - 1
    return result | {"mean_along_acc": float(along.mean())}


if __name__ == "__main__":
    run(__doc__, {"cpu": cpu, "gpu": gpu}, gpu=lambda part, options: part == "gpu",
        rounds={"type": int, "default": 3},
        largest={"type": int, "default": 1 << 20, "help": "N"})  # fmt: skip
