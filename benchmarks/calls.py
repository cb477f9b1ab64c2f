"""Times calls of the C API, as an old program makes them.

    python benchmarks/calls.py [cpu] [steps] [grape5] [gpu] [--name NAME] [--rounds 3]
                               [--largest 1048576] [--peer "NAME=PROGRAM" ...]

Parts cpu and steps (small block steps on one thread) run cpu_calls.c, part grape5 grape5_calls.c,
and keep the best round of each command, since other work slows a machine and nothing makes it
faster; part gpu runs gpu_calls.c, keeps the median round and the goals, and adds the errors of each
mode. Rounds alternate the commands; a round is itself a median.

A peer is another library, or an older build of this one: a program with the command line and the
output of ours, run in turn with it. NAME says which version, and with what settings.
"""

import argparse
import re
import statistics
import tempfile

import numpy as np
from harness import HERE, compile_c, figures, relative, run

from grape6py import Grape6, plummer, reference


def listed(text):
    """Commands, separated by commas and ends of lines."""
    return [command.strip() for command in re.split("[,\n]", text.strip())]


CPU_COMMANDS = listed("""
force 16384 4096 0 1 grape best, force 16384 32 0 1 grape best
force 16384 4096 1 1 grape best, force 16384 32 1 1 grape best
force 16384 4096 0 1 double best, force 16384 32 0 1 double best
force 16384 4096 0 1 single best, force 16384 32 0 1 single best
force 65536 32 0 1 grape best, force 65536 1 0 1 grape best
force 16384 4096 0 1 grape avx2, force 16384 4096 0 1 double avx2
force 16384 4096 0 1 single avx2, force 16384 512 0 1 grape base
force 16384 4096 0 2 grape best, force 16384 32 0 2 grape best
force 4096 32 0 1 grape best, force 4096 32 0 2 grape best, force 1024 32 0 2 grape best
step 65536 32 0 1 grape best, write 1000000, open, tiny
""")
# Small steps, without the nearest neighbour but for the first: on one thread, in mode grape.
STEPS = "force 1024 32 1, step 2 1 0, step 10 1 0, step 100 1 0, step 1000 1 0, step 256 32 0"
STEP_COMMANDS = [f"{command} 1 grape best" for command in listed(
    f"{STEPS}, step 1024 8 0, step 1024 32 0")]  # fmt: skip
SHAPES = "8 500, 64 500, 64 1500, 128 2000, 256 3000, 512 5000, 512 20000, 4096 30000"
GRAPE5_COMMANDS = [f"{shape} {where}" for where in ("among", "elsewhere")
                   for shape in listed(SHAPES)]  # fmt: skip

# Command: goal in G pairs a second, or in microseconds a step.
GPU_GOALS = {
    "force grape 1 1 16384": 560, "force grape 1 1 65536": None, "force grape 1 1 262144": None,
    "force grape 1 1 1048576": 780, "force double 1 1 16384": None, "force double 1 1 65536": None,
    "force double 1 1 1048576": 430, "force single 1 1 16384": None, "force single 1 1 65536": None,
    "force single 1 1 1048576": 930, "force single 0 0 65536": None,
    "force single 0 0 1048576": 1850,
    "scatter grape 1024 1": 20, "scatter grape 1024 64": 30, "scatter grape 16384 1": 20,
    "scatter grape 16384 64": 30, "scatter grape 65536 1": 20, "scatter grape 65536 64": 30,
    "scatter grape 65536 1024": 230, "scatter grape 262144 1": None,
    "scatter grape 262144 256": 190, "scatter grape 1048576 1": None,
    "scatter grape 1048576 64": 190,
    "scatter grape 1048576 1024": 1700, "scatter double 1024 1": None,
    "scatter double 1024 64": None, "scatter double 65536 1": None, "scatter double 65536 64": None,
    "scatter double 65536 1024": None, "scatter double 262144 1": None,
    "scatter double 262144 256": None, "scatter double 1048576 1": None,
    "scatter double 1048576 64": None, "scatter double 1048576 1024": None,
    "cut grape 65536 1024 48": 350, "walk grape 65536 65536": None, "open": None,
}  # fmt: skip


def rounds(source, commands, options, **environment):
    """Figures of the rounds by command, of those up to the largest N; and those of the peers, by
    name and command."""
    found, peers = {}, {name: {} for name in options.peer}
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
                for name, peer in options.peer.items():
                    made = figures(peer, *words, **environment)
                    peers[name].setdefault(command, []).extend(made)
    return {command: taken for command, taken in found.items() if taken}, peers


def speed(figure):
    keys = ("us", "again_us", "in_order_ns")
    return figure.get("pairs_per_s") or -next(figure[k] for k in keys if k in figure)


def best(commands, options, source="cpu_calls.c", **environment):
    found, peers = rounds(source, commands, options, GRAPE6_BACKEND="cpu", **environment)
    for command, taken in found.items():
        figure = max(taken, key=speed) | {"command": command}
        others = {
            n: max(made[command], key=speed) for n, made in peers.items() if made.get(command)
        }
        if others:
            figure["peers"] = {n: other["seconds_per_call"] for n, other in others.items()}
        yield figure


def cpu(options):
    return best(CPU_COMMANDS, options)


def steps(options):
    return best(STEP_COMMANDS, options)


def grape5(options):
    for isa, name in (("avx2", "AVX2"), ("avx512", "AVX-512")):
        for figure in best(GRAPE5_COMMANDS, options, "grape5_calls.c", GRAPE6_ISA=isa,
                           GRAPE6_THREADS=1):  # fmt: skip
            yield figure | {"isa": name}


def median_figure(taken):
    """The figure of the median round, and the name of what it measures."""
    key = next(k for k in ("gpairs_per_s", "us", "first_s") if k in taken[0])
    middle = statistics.median_low(figure[key] for figure in taken)
    return next(figure for figure in taken if figure[key] == middle), key


def gpu(options):
    found, peers = rounds("gpu_calls.c", GPU_GOALS, options, GRAPE6_BACKEND="cuda")
    for command, taken in found.items():
        figure, key = median_figure(taken)
        others = {
            n: median_figure(made[command])[0][key]
            for n, made in peers.items()
            if made.get(command)
        }
        figure |= {"command": command, "goal": GPU_GOALS[command]}
        yield figure | ({"peers": others} if others else {})
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


class Peers(argparse.Action):
    """Collects NAME=PROGRAM."""

    def __call__(self, parser, namespace, values, option_string=None):
        name, _, program = values.rpartition("=")
        namespace.peer = {**namespace.peer, name: program}


if __name__ == "__main__":
    run(__doc__, {"cpu": cpu, "steps": steps, "grape5": grape5, "gpu": gpu},
        gpu=lambda part, options: part == "gpu",
        rounds={"type": int, "default": 3},
        largest={"type": int, "default": 1 << 20, "help": "N"},
        peer={"action": Peers, "default": {}, "metavar": "NAME=PROGRAM"})  # fmt: skip
