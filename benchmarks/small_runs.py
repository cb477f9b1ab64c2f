"""Small runs, calls of few i particles, lists and the start, with builds of the library in turn.

    python benchmarks/small_runs.py --builds NAME=TREE... [--name NAME] [--takes 3]

TREE is a folder with the package of a build, grape6py/lib/libgrape6.so in it. hermite.c and
gpu_calls.c are compiled once, against the first one, and find each library by LD_LIBRARY_PATH;
Python finds its package by PYTHONPATH. Figures are medians of takes in which the builds take turns:

walk      a shared step, all particles written and asked for in calls of so many pipes (gpu_calls.c)
force     force calls with ni = N
crowd     one and four programs of such calls on four cores: rates and processor seconds of all
open      the first g6_open of a process with a warm cache, and others
program   hermite.c from its start to its end, on the CPU, on the GPU and by `auto`
block     a block step of Hermite
lists     Grape6.forces() with neighbour lists and with nearest neighbours, over forces alone
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import HERE, ROOT, compile_c, environment, run

from grape6py import plummer, write_snapshot

EPS = 1 / 256
PIPES = (48, 256, 1024, 16384)
SHORT_TAKES = 3  # of a short program, in each take
PROGRAMS = ((256, 1), (1024, 1), (4096, 1 / 2), (16384, 1 / 4), (65536, 1 / 32))
HERMITE = """
import json, time
from grape6py import Hermite, plummer
for backend, n, t in CASES:
    c = Hermite(*plummer(n, seed=1), eps=4 / n, backend=backend)
    c.evolve(t / 8)
    blocks, start = c.blocks, time.perf_counter()
    c.evolve(t)
    us = 1e6 * (time.perf_counter() - start) / (c.blocks - blocks)
    print(json.dumps({"backend": backend, "n": n, "us": round(us, 2)}))
"""
BLOCKS = [
    *[("cpu", n, t) for n, t in ((2, 400), (3, 200), (10, 40), (100, 4), (1024, 1))],
    *[("cuda", n, t) for n, t in ((256, 2), (1024, 1), (4096, 1 / 4), (16384, 1 / 8))],
]
LISTS = """
import json, time
from grape6py import Grape6, plummer
def seconds(call):
    takes = []
    for _ in range(7):
        start = time.perf_counter()
        call()
        takes.append(time.perf_counter() - start)
    return sorted(takes)[3]
for backend, n in CASES:
    with Grape6(backend=backend) as g:
        g.set_particles(*plummer(n, seed=1))
        h = 0.35 * n ** (-1 / 3)
        plain = seconds(lambda: g.forces(eps=1e-3))
        lists, near = (seconds(lambda: g.forces(eps=1e-3, **k)) for k in ({"h": h}, {"nn": True}))
    print(json.dumps({"backend": backend, "n": n, "ms": round(1e3 * plain, 3),
                      "lists": round(lists / plain, 2), "nearest": round(near / plain, 2)}))
"""
LISTED = [("cpu", 1000), ("cpu", 16384), ("cuda", 1000), ("cuda", 16384), ("cuda", 131072)]


def lines(command, tree, **env):
    """The lines of JSON that a program prints with the library of a tree; none if it fails."""
    env = environment(tree / "grape6py/lib", PYTHONPATH=tree, **env)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{command[0]} with {tree}: {done.stderr.strip()[-200:]}", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def in_turn(builds, takes, what, numbers, make):
    """Rows of what `make` gives for a tree, by build, with medians of some of its numbers."""
    seen = {}
    for _ in range(takes):
        for name, tree in builds.items():
            for k, row in enumerate(make(tree)):
                seen.setdefault((name, k), []).append(row)
    for (name, _), rows in sorted(seen.items(), key=lambda item: item[0][1]):
        middle = {key: statistics.median(row[key] for row in rows) for key in numbers}
        yield {"what": what, "library": name} | rows[0] | middle


def calls(program, tree, backend, *words):
    return lines([program, *map(str, words)], tree, GRAPE6_BACKEND=backend)


def crowd(program, tree, n, programs):
    """Programs at once on four cores, for three seconds: rate and processor seconds of all."""
    env = environment(tree / "grape6py/lib", GRAPE6_BACKEND="cuda")
    command = ["taskset", "-c", "0-3", program, "during", "grape", str(n), "3"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    made = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for _ in range(programs)]
    rates = [json.loads(each.communicate()[0])["gpairs_per_s"] for each in made]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [{"n": n, "programs": programs, "gpairs_per_s": round(sum(rates), 1),
             "processor_s": round(processor, 2)}]  # fmt: skip


def programs(program, tree, folder):
    for n, t_end in PROGRAMS:
        file = Path(folder, f"{n}.dat")
        if not file.exists():
            write_snapshot(file, *plummer(n, seed=1))
        for pipes in (1, 48, 16384):
            t = t_end / 16 if pipes == 1 and n > 1024 else t_end
            row = {"n": n, "pipes": pipes, "t_end": t}
            for backend in ("cpu", "cuda", "auto"):
                env = environment(
                    tree / "grape6py/lib", GRAPE6_BACKEND=backend, GRAPE6_NPIPES=pipes
                )
                takes = []
                for _ in range(SHORT_TAKES if n <= 4096 else 1):
                    start = time.perf_counter()
                    command = [program, file, "-e", str(EPS), "-t", str(t)]
                    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
                    takes.append(time.perf_counter() - start)
                row[backend] = round(statistics.median(takes), 3)
            yield row


def small(options):
    builds = {name: Path(tree) for name, tree in (word.split("=", 1) for word in options.builds)}
    library = next(iter(builds.values())) / "grape6py/lib"
    with tempfile.TemporaryDirectory() as folder:
        gpu = compile_c(HERE / "gpu_calls.c", folder, library=library)
        hermite = compile_c(ROOT / "legacy_examples/hermite.c", folder, library=library)

        def turns(what, numbers, make):
            return in_turn(builds, options.takes, what, numbers, make)

        for backend, n in (("cpu", 4096), ("cpu", 16384), ("cuda", 4096), ("cuda", 16384),
                           ("cuda", 65536)):  # fmt: skip
            words = "walk", "grape", n, *PIPES
            yield from turns(
                "walk",
                ["ms", "gpairs_per_s"],
                lambda tree, w=words, b=backend: calls(gpu, tree, b, *w),
            )
        for n in (16384, 65536):
            words = "force", "grape", 1, 1, n
            yield from turns(
                "force",
                ["seconds", "gpairs_per_s"],
                lambda tree, w=words: calls(gpu, tree, "cuda", *w),
            )
            for k in (1, 4):
                yield from turns("crowd", ["gpairs_per_s", "processor_s"],
                                 lambda tree, n=n, k=k: crowd(gpu, tree, n, k))  # fmt: skip
        yield from turns(
            "open", ["first_s", "again_us"], lambda tree: calls(gpu, tree, "cuda", "open")
        )
        yield from turns(
            "program", ["cpu", "cuda", "auto"], lambda tree: programs(hermite, tree, folder)
        )
        python = (("block", HERMITE, BLOCKS, ["us"]),
                  ("lists", LISTS, LISTED, ["ms", "lists", "nearest"]))  # fmt: skip
        for what, script, cases, numbers in python:
            command = [sys.executable, "-P", "-c", f"CASES = {cases}\n{script}"]
            yield from turns(what, numbers, lambda tree, c=command: lines(c, tree))


def main():
    run(__doc__, {"small": small}, prefix="runs-", gpu=lambda *_: True,
        builds={"nargs": "+", "required": True, "help": "NAME=TREE of each build"},
        takes={"type": int, "default": 3})  # fmt: skip


if __name__ == "__main__":
    os.environ.pop("GRAPE6_BACKEND", None)
    main()
