"""Times calls of the C API, as an old program makes them.

    python benchmarks/calls.py [cpu] [steps] [grape5] [gpu] [--name NAME] [--rounds 3]
                               [--largest 1048576] [--peer NAME=PROGRAM]...

Parts cpu and steps (small block steps on one thread) run cpu_calls.c, part grape5 grape5_calls.c,
and keep the best round of each command, since other work slows a machine; part gpu runs
gpu_calls.c, keeps the median round, and adds the errors of each mode. Rounds alternate the
commands; a round is itself a median.

A peer is another library, or an older build of this one: a program with the command line and the
output of ours. NAME says which version, and with what settings.
"""

import statistics
import tempfile

import numpy as np
from harness import HERE, compile_c, errors_of, figures, listed, run

from grape6py import Grape6, plummer, reference

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
STEPS = """force 1024 32 1, step 2 1 0, step 10 1 0, step 100 1 0, step 1000 1 0, step 256 32 0
step 1024 8 0, step 1024 32 0"""
STEP_COMMANDS = [f"{command} 1 grape best" for command in listed(STEPS)]
SHAPES = "8 500, 64 500, 64 1500, 128 2000, 256 3000, 512 5000, 512 20000, 4096 30000"
GRAPE5_COMMANDS = [f"{shape} {where}" for where in ("among", "elsewhere")
                   for shape in listed(SHAPES)]  # fmt: skip

# Calls: goal in G pairs a second, or in microseconds a step, for each N, or N and ni.
GOALS = {
    "force grape 1 1": {"16384": 560, "65536": None, "262144": None, "1048576": 780},
    "force double 1 1": {"16384": None, "65536": None, "1048576": 430},
    "force single 1 1": {"16384": None, "65536": None, "1048576": 930},
    "force single 0 0": {"65536": None, "1048576": 1850},
    "scatter grape": {
        "1024 1": 20, "1024 64": 30, "16384 1": 20, "16384 64": 30, "65536 1": 20, "65536 64": 30,
        "65536 1024": 230, "262144 1": None, "262144 256": 190, "1048576 1": None,
        "1048576 64": 190, "1048576 1024": 1700,
    },
    "scatter double": dict.fromkeys(listed(
        "1024 1, 1024 64, 65536 1, 65536 64, 65536 1024, 262144 1, 262144 256, 1048576 1,"
        "1048576 64, 1048576 1024")),
    "cut grape": {"65536 1024 48": 350}, "walk grape": {"65536 65536": None}, "open": {"": None},
}  # fmt: skip
GPU_GOALS = {f"{call} {n}".strip(): goal for call, of in GOALS.items() for n, goal in of.items()}


def compared(source, commands, options, choose, **environment):
    """Figures by command up to the largest N, of the rounds' that which `choose` takes, with its
    number of each peer's."""
    programs, found = dict([(None, None), *options.peer]), {}
    with tempfile.TemporaryDirectory() as folder:
        programs[None] = compile_c(HERE / source, folder)
        for _ in range(options.rounds):
            for command in commands:
                words = command.split()
                if any(int(word) > options.largest for word in words if word.isdigit()):
                    continue
                if words[0] == "force" and words[-1] == "1048576" and command in found:
                    continue  # seconds a call: once
                for name, program in programs.items():
                    made = found.setdefault(command, {}).setdefault(name, [])
                    made += figures(program, *words, **environment)
    for command, made in found.items():
        taken = {name: choose(rounds) for name, rounds in made.items() if rounds}
        if None in taken:
            figure = taken.pop(None)[0] | {"command": command}
            peers = {name: number for name, (_, number) in taken.items() if number}
            yield figure | ({"peers": peers} if peers else {})


def best(rounds):
    """The fastest round, and its seconds a call if it has them."""
    keys = "us", "again_us", "in_order_ns"
    figure = max(rounds, key=lambda f: f.get("pairs_per_s") or -next(f[k] for k in keys if k in f))
    return figure, figure.get("seconds_per_call")


def middle(rounds):
    """The figure of the median round, and the number that it is by."""
    key = next(k for k in ("gpairs_per_s", "us", "first_s") if k in rounds[0])
    number = statistics.median_low(figure[key] for figure in rounds)
    return next(figure for figure in rounds if figure[key] == number), number


def cpu(options, commands=CPU_COMMANDS, source="cpu_calls.c", **more):
    return compared(source, commands, options, best, GRAPE6_BACKEND="cpu", **more)


def grape5(options):
    for isa, name in (("avx2", "AVX2"), ("avx512", "AVX-512")):
        for figure in cpu(options, GRAPE5_COMMANDS, "grape5_calls.c", GRAPE6_ISA=isa,
                          GRAPE6_THREADS=1):  # fmt: skip
            yield figure | {"isa": name}


def gpu(options):
    for figure in compared("gpu_calls.c", GPU_GOALS, options, middle, GRAPE6_BACKEND="cuda"):
        yield figure | {"goal": GPU_GOALS[figure["command"]]}
    n = min(16384, options.largest)
    mass, pos, vel = plummer(n, seed=3)
    rows = np.arange(0, n, 8)  # errors are those of forces on some of the bodies
    for mode in ("grape", "double", "single"):
        exact = reference.direct_sum(mass, pos, vel, rows=rows, extended=mode == "double")
        with Grape6(backend="cuda", precision=mode) as grape:
            grape.set_particles(mass, pos, vel)
            found = grape.forces(pos[rows], vel[rows], rows)
        sums, along = errors_of(found, exact)
        about = {"what": "accuracy", "mode": mode, "n": n, "rows": len(rows)}
        yield about | sums | {"mean_along_acc": along}


if __name__ == "__main__":
    run(__doc__, {"cpu": cpu, "steps": lambda options: cpu(options, STEP_COMMANDS),
                  "grape5": grape5, "gpu": gpu},
        gpu=lambda part, options: part == "gpu",
        rounds={"type": int, "default": 3},
        largest={"type": int, "default": 1 << 20, "help": "N"},
        peer={"action": "append", "default": [], "metavar": "NAME=PROGRAM",
              "type": lambda text: text.rpartition("=")[::2]})  # fmt: skip
