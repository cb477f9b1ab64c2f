"""Measures tables 4.3 to 4.6 of Bedorf's thesis by its programs: Starlab's kira, Makino's treecode.

    python benchmarks/thesis_programs.py [kira] [treecode] --programs FOLDER [--name NAME]
                                         [--backends auto cpu cuda own] [--seeds 1 2 ... 9]
                                         [--smallest N] [--largest N] [--limit 300]

kira       tables 4.3, 4.5 and 4.6: 0.25 time units of a Plummer sphere by Starlab's makeplummer, by
           eps and accuracy
treecode   table 4.4: a time unit with the defaults of the program, 1024 bodies that share a list;
           most bodies of a leaf: the fastest

FOLDER has `kira`, `bhtree`, linked with the library's name, `kira-own`, `bhtree-own`, built without
it, which are the backend `own`, and `makeplummer` (docs/linking/starlab.md and bhtree.md say how).
GRAPE6_PRECISION counts as `mode`. `wall` is the whole process; `error` is what the program prints.

A result grows: what its file has already is not measured again, and a program that takes more than
--limit seconds takes none larger.
"""

import itertools
import json
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import Failed, environment, run, taken
from thesis import EPS, TREE_EPS, TREE_STEPS, sizes

from grape6py import plummer

ACCURACIES, ACCURATE = (0.3, 0.2, 0.1), 0.025
PLOTTED, LARGEST = (1024, 16384), 65536  # N of figures 4.7 and 4.8; of tables 4.5 and 4.6
SEEDS, SCALED = range(1, 10), 32768  # from here on spheres are in virial equilibrium on average
LEAVES = 64, 256, 1024  # most bodies of one; with less the program can run out of nodes
NUMBER = r"(-?\d\S*)"


def settings(backend, client):
    """Environment of a program: what its page says, and the backend where it is not the default."""
    if backend == "own":
        return environment()
    chosen = {} if backend == "auto" else {"GRAPE6_BACKEND": backend}
    return environment(GRAPE6_CLIENT=client, **chosen)


def program(options, name, backend):
    return options.programs.resolve() / (f"{name}-own" if backend == "own" else name)


def kira_cases(options):
    for seed, n in itertools.product(options.seeds, sizes(options, 256, 1 << 20)):
        if seed > 1 and n >= SCALED:
            continue
        accuracies = ACCURACIES if n <= LARGEST else ACCURACIES[:1]
        if n in PLOTTED and seed <= 3:
            accuracies = (*accuracies, ACCURATE)
        ways = itertools.product(accuracies, ("1/256", "0"), options.backends)
        for accuracy, eps, backend in ways:
            yield {"n": n, "eps": eps, "accuracy": accuracy, "backend": backend, "seed": seed}


def kira(options, case, folder):
    sphere = sphere_of(options, case["n"], case["seed"], folder)
    words = [program(options, "kira", case["backend"]), "-R", sphere, "-a", case["accuracy"],
             "-e", EPS if case["eps"] == "1/256" else 0, "-t", 0.25, "-d", 0.25, "-D", 0.25,
             "-s", 1]  # fmt: skip
    _, log, wall = taken(words, options.limit, env=settings(case["backend"], "kira"))
    energies = [float(e) for e in re.findall(rf"Energies: \S+ \S+ {NUMBER}", log)]
    blocks, steps = re.findall(rf"block steps = {NUMBER}\s+total steps = {NUMBER}", log)[-1]
    cpu = re.findall(rf"Total CPU time for this segment = {NUMBER}", log)[-1]
    return {"wall": wall, "cpu": float(cpu), "blocks": float(blocks), "steps": float(steps),
            "error": (energies[0] - energies[-1]) / energies[0]}  # fmt: skip


def sphere_of(options, n, seed, folder):
    """File of a sphere. makeplummer sums all pairs to scale it, which takes long if N is large."""
    file = Path(folder, f"sphere-{n}-{seed}")
    if not file.exists():
        words = [program(options, "makeplummer", ""), "-n", n, "-s", seed, "-i"]
        file.write_text(taken(words + ["-u"] * (n >= SCALED), env=environment())[0])
    return file


def treecode_cases(options):
    return [{"n": n, "backend": b} for n in sizes(options, 256, 1 << 20) for b in options.backends]


def treecode(options, case, folder):
    n, backend = case["n"], case["backend"]
    file, began = Path(folder, f"bodies-{n}"), time.perf_counter()
    if not file.exists():
        mass, pos, vel = plummer(n, 1)
        with file.open("w") as out:
            print(n, 3, 0.0, *mass.tolist(), sep="\n", file=out)
            for vectors in (pos, vel):
                np.savetxt(out, vectors, fmt="%.17g")

    def steps(leaf, end):
        words = program(options, "bhtree", backend), "-i", file, "-n", leaf, "-T", end
        left = options.limit - (time.perf_counter() - began)
        return taken(words, max(left, 1), env=settings(backend, "bhtree"))

    leaf = min(LEAVES, key=lambda most: steps(most, 4 / TREE_STEPS)[2])
    text, _, wall = steps(leaf, 1)
    start = float(re.search(rf"E0 = {NUMBER}", text)[1])
    error = float(re.findall(rf"Eerr= {NUMBER}", text)[-1])
    # With the GRAPE it adds m / eps to each potential, which then has no self term to take away.
    self_terms = 0.5 / (n * TREE_EPS) if backend != "own" else 0
    return {"leaf": leaf, "wall": wall, "error": error * abs(start / (start - self_terms))}


def measured(part, cases, one):
    """Generator of the figures of a part, those before it first."""

    def generate(options):
        file = options.out / f"thesis-{part}-{options.name}.json"
        found = json.loads(file.read_text())["figures"] if file.exists() else []
        yield from found
        mode = os.environ.get("GRAPE6_PRECISION", "default")
        slow = [f for f in found if "failed" in f]
        with tempfile.TemporaryDirectory() as folder:
            for case in cases(options):
                case["mode"] = "own" if case["backend"] == "own" else mode
                if any(case.items() <= f.items() for f in found) or larger(case, slow):
                    continue
                try:
                    made = one(options, case, folder)
                except Failed as why:
                    made = {"failed": str(why)}
                    slow.append(case)
                yield case | {"jobs": 1} | made

    return generate


def larger(case, slow):
    """Whether a case is one that took too long, with more bodies or another sphere."""
    keys = {"eps", "accuracy", "backend", "mode"} & case.keys()
    return any(case["n"] >= f["n"] and all(case[k] == f[k] for k in keys) for f in slow)


if __name__ == "__main__":
    run(__doc__, {"kira": measured("kira", kira_cases, kira),
                  "treecode": measured("treecode", treecode_cases, treecode)}, prefix="thesis-",
        gpu=lambda part, options: shutil.which("nvidia-smi") is not None,
        programs={"type": Path, "required": True, "help": "folder of the programs"},
        backends={"nargs": "+", "choices": ["auto", "cpu", "cuda", "own"], "default": ["auto"]},
        seeds={"type": int, "nargs": "+", "default": [*SEEDS]},
        smallest={"type": int, "help": "N"},
        largest={"type": int, "default": 16384, "help": "N"},
        limit={"type": float, "default": 300, "help": "seconds of a program"})  # fmt: skip
