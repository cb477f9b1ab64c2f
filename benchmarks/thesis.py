"""Measures the tables and figures of Bedorf's thesis (2007), which ran kirin, this library's
forerunner, on a GeForce 8800GTX and GRAPE-6Af boards.

    python benchmarks/thesis.py [4.1] [kernel] [4.1-4.3] [4.2] [4.4] [5.1]
                                [--name NAME] [--smallest N] [--largest N] [--backend cuda|cpu]

4.1      all pairs, ni = N, in mode grape with jerk and nearest neighbour, copies included; and
         pairs a joule where the driver tells the power
kernel   the kernels of such calls alone, by the profiler: without nearest neighbour, eps = 1/256,
         as the thesis has them; with it; and with eps = 0
4.1-4.3  block steps by N and block size; and copies by themselves as `Grape6` does them for CuPy
4.2      block-step Hermite from t = 0.25 to 0.5, eps = 1/256, by `grape6 run` and by
         legacy_examples/hermite.c: seconds without outputs, relative energy error
4.4      a Plummer sphere over a time unit by the tree, with the defaults of Makino's treecode
5.1      calls with ni = N and block steps with GRAPE6_DEVICES = 0; 0,1; ... and their ratio to one
         device in the same rounds
"""

import contextlib
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict

import numpy as np
from harness import HERE, ROOT, compile_c, environment, figures, machine, run, sphere, taken

from grape6py import Grape6, Leapfrog, plummer

FLOPS_PER_PAIR = 60  # as the thesis counts
EPS = 1 / 256
ENOUGH_FOR_WATTS = 32768  # smaller calls do not keep a GPU at work
BLOCKS = (1, 16, 64, 256, 1024, 4096, 16384), (1024, 16384, 262144, 1048576)
FIGURE_BLOCKS, FIGURE_N = (128, 256, 512, 1024, 2048, 4096, 8192), 131072  # of figure 4.2
TRANSFERS = 10  # in a row, of figure 4.1
# Makino's treecode (nbody.C of 1999, NEMO's bhtree): the defaults of its command line.
TREE_STEPS, TREE_EPS, TREE_THETA = 64, 0.025, 0.75


def sizes(options, least, most):
    """N from least to most, or what the command line says."""
    start, most = options.smallest or least, min(options.largest, most)
    return [start << k for k in range(most.bit_length()) if start << k <= most]


@contextlib.contextmanager
def calls(options):
    """gpu_calls.c, as a function from its arguments to the figure that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        program = compile_c(HERE / "gpu_calls.c", folder)

        def figure(*arguments, **more):
            return figures(program, *arguments, GRAPE6_BACKEND=options.backend, **more)[0]

        yield figure


@contextlib.contextmanager
def watts():
    """A list of the power that the driver reports while the context is open; filled at its end."""
    query = "nvidia-smi --query-gpu=power.draw --format=csv,noheader,nounits -lms 50"
    seen = []
    if not shutil.which("nvidia-smi"):
        yield seen
        return
    meter = subprocess.Popen(query.split(), stdout=subprocess.PIPE, text=True)
    try:
        yield seen
    finally:
        meter.terminate()
        seen += [float(line) for line in meter.communicate()[0].splitlines() if line[:1].isdigit()]


def all_pairs(options):
    with calls(options) as call:
        for n in sizes(options, 256, 1 << 20):
            with watts() as seen:
                figure = call("force", "grape", 1, 1, n)
            figure["gflops"] = figure["gpairs_per_s"] * FLOPS_PER_PAIR
            if seen and n >= ENOUGH_FOR_WATTS:  # at work: the median of the upper half
                power = statistics.median(sorted(seen)[len(seen) // 2 :])
                figure |= {"watts": power, "gpairs_per_joule": figure["gpairs_per_s"] / power}
            yield figure


def seconds_of_kernels(call, takes=10):
    """Seconds that all kernels of a call take, by their names, as the profiler of PyTorch (CUPTI)
    tells them of the whole process: means, without copies and what lies between kernels."""
    import cupy
    from torch.profiler import ProfilerActivity, profile

    call()  # compiles what is not compiled yet
    found = defaultdict(float)
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as seen:
        for _ in range(takes):
            call()
        cupy.cuda.runtime.deviceSynchronize()
    for event in seen.events():
        if event.device_time > 0 and not event.name.startswith(("Memcpy", "Memset")):
            found[event.name] += 1e-6 * event.device_time / takes
    return dict(found)


def kernels(options):
    cases = ("softened", EPS, False), ("softened, nearest", EPS, True), ("eps 0", 0.0, False)
    for n in sizes(options, 256, 1 << 17):
        mass, pos, vel = plummer(n, 1)
        with Grape6(backend=options.backend) as board:
            board.set_particles(mass, pos, vel)
            for what, eps, nn in cases:
                times = seconds_of_kernels(lambda eps=eps, nn=nn: board.forces(eps=eps, nn=nn))
                seconds = sum(times.values())
                yield {"what": what, "n": n, "seconds": seconds, "kernels": times,
                       "gflops": 1e-9 * FLOPS_PER_PAIR * n * n / seconds}  # fmt: skip


def block_steps(options):
    """Of all sizes that the thesis's figures have, and others."""
    steps = {(n, size) for size in BLOCKS[0] for n in BLOCKS[1] if size <= n}
    steps |= {(FIGURE_N, size) for size in FIGURE_BLOCKS}
    steps |= {(1 << k, FIGURE_BLOCKS[0]) for k in range(10, 21)}
    if options.backend != "cpu":
        yield from (copies(n) for n in (1, 10, 100, 850, *(1 << k for k in range(10, 21, 2))))
    with calls(options) as call:
        for n, size in sorted(steps):
            if n <= options.largest:
                yield call("scatter", "grape", n, size)


def copies(n, takes=15):
    """Microseconds to write n j particles to the GPU, to send n i particles, to fetch forces; each
    of TRANSFERS in a row."""
    import cupy

    host = np.frombuffer(cupy.cuda.alloc_pinned_memory(128 * n), np.uint8, 128 * n)
    device = cupy.empty(128 * n, np.uint8)
    stream = cupy.cuda.get_current_stream()
    found = {"what": "copies", "n": n}
    for name, size in (("j_us", 128 * n), ("i_us", 64 * n), ("forces_us", 72 * n)):
        times = []
        for _ in range(takes):
            stream.synchronize()
            began = time.perf_counter()
            for _ in range(TRANSFERS):
                if name == "forces_us":  # seven sums and the nearest neighbour
                    device[:size].get(out=host[:size])
                else:
                    device[:size].set(host[:size])
            stream.synchronize()
            times.append(1e6 * (time.perf_counter() - began) / TRANSFERS)
        found[name] = float(np.median(times))
    return found


def hermite(options, eta=0.03, most_by_program=131072):
    with tempfile.TemporaryDirectory() as folder:
        program = compile_c(ROOT / "legacy_examples/hermite.c", folder)
        for n in sizes(options, 256, 1 << 20):
            yield by_run(n, eta, options.backend)
            if n <= most_by_program:
                yield by_program(program, sphere(folder, n), n, eta, options.backend)


def by_run(n, eta, backend):
    words = (f"run plummer --n {n} --json --t-end 0.5 --dt-out 0.25 --eps {EPS} --eta {eta} "
             f"--eta-start {eta / 3} --backend {backend}")  # fmt: skip
    log = json.loads(taken([sys.executable, "-m", "grape6py", *words.split()])[0])
    middle, end = log["history"][1:]
    return {
        "what": "grape6 run", "n": n, "backend": log["backend"],
        "seconds": log["seconds"][2] - log["seconds"][1], "first_half_seconds": log["seconds"][1],
        "error": end["error"], "steps": end["steps"] - middle["steps"],
        "blocks": end["blocks"] - middle["blocks"],
    }  # fmt: skip


def by_program(program, file, n, eta, backend, pipes=16384):
    """hermite.c asks the board how many pipes it has."""
    env = environment(GRAPE6_NPIPES=pipes, GRAPE6_BACKEND=backend)
    text, *_ = taken([program, file, "-e", EPS, "-a", eta, "-t", 0.5, "-w"], env=env)
    seconds = [float(found) for found in re.findall(r" seconds +(\S+)", text)]
    return {"what": "hermite.c", "n": n, "pipes": pipes, "seconds": seconds[2] - seconds[1],
            "error": float(text.split()[-1])}  # fmt: skip


def tree_leapfrog(options, order=5):
    for n in sizes(options, 256, 1 << 20):
        with Leapfrog(*plummer(n, 1), dt=1 / TREE_STEPS, eps=TREE_EPS, theta=TREE_THETA,
                      order=order, backend=f"{options.backend}-tree") as sphere:  # fmt: skip
            start = direct_energy(sphere, options.backend)
            sphere.evolve(1 / TREE_STEPS)  # compiles what is not compiled yet
            began = time.perf_counter()
            sphere.evolve(1 + 1 / TREE_STEPS)
            seconds = time.perf_counter() - began
            error = abs(direct_energy(sphere, options.backend) / start - 1)
            yield {"what": sphere.backend, "n": n, "seconds": seconds, "error": error,
                   "eps": TREE_EPS, "step": 1 / TREE_STEPS, "steps": TREE_STEPS,
                   "theta": TREE_THETA, "order": order}  # fmt: skip


def direct_energy(sphere, backend):
    mass, pos, vel = sphere.particles()
    with Grape6(backend=backend, precision="double", jerk=False) as board:
        board.set_particles(mass, pos)
        pot = board.forces(eps=TREE_EPS).pot
    return float(0.5 * (mass * ((vel**2).sum(axis=1) + pot)).sum())


def devices(options):
    count = machine(gpu=options.backend == "cuda").get("gpus", 1)
    counts = [k for k in (1, 2, 4, 8) if k <= count]
    force, step = ("force", "grape", 1, 1), ("scatter", "grape")
    commands = [(*force, n) for n in (65536, 262144, 524288, 1048576)]
    commands += [(*step, 65536, 64), (*step, 65536, 1024), (*step, 262144, 1024)]
    commands += [(*step, 1048576, ni) for ni in (64, 256, 1024, 16384)]
    with calls(options) as call:
        for command in commands:
            if max(command[2:]) > options.largest:
                continue
            times = {k: [] for k in counts}
            for _ in range(1 if command == (*force, 1048576) else 3):
                for k in counts:
                    figure = call(*command, GRAPE6_DEVICES=",".join(map(str, range(k))))
                    times[k].append(figure.get("seconds") or 1e-6 * figure["us"])
            middle = {k: statistics.median(taken) for k, taken in times.items()}
            yield {"command": " ".join(map(str, command)), "seconds": middle,
                   "times_one": {k: middle[1] / middle[k] for k in counts}}  # fmt: skip


if __name__ == "__main__":
    run(__doc__, {"4.1": all_pairs, "kernel": kernels, "4.1-4.3": block_steps, "4.2": hermite,
                  "4.4": tree_leapfrog, "5.1": devices},
        prefix="thesis-", gpu=lambda part, options: options.backend == "cuda",
        smallest={"type": int, "help": "N"},
        largest={"type": int, "default": 1 << 20, "help": "N"},
        backend={"choices": ["cuda", "cpu"], "default": "cuda"})  # fmt: skip
