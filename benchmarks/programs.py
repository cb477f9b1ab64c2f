"""Times unchanged programs, and close pairs, with builds of the library taking turns.

    python benchmarks/programs.py [programs] [close] --builds NAME=TREE... [--name NAME]
                                  [--backends cpu cuda cuda-tree] [--only treecode] [--n 262144]
                                  [--budget 330] [--limit 120] [--quick]

TREE is a folder with the package of a build, grape6py/lib/libgrape6.so in it. The last one runs
everything, those before it what is not too slow. The programs of legacy_examples/ and close_pairs.c
are compiled once, against the first one, and find each library by LD_LIBRARY_PATH; binaries.py
finds its package by PYTHONPATH. Seconds are those of the steps, the median of three runs if these
are short; `wall` is that of the whole process. `off` compares the last energy with that of the same
program in the first row that has it.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from harness import HERE, ROOT, compile_c, figures, run

from grape6py import plummer, write_snapshot

SEED = 1
TAKES, SHORT = 3, 2.0  # runs, and the seconds below which there are so many
CORES = len(os.sched_getaffinity(0))
PARTS = ("seconds", "tree", "walks", "forces", "exchange")
PROGRAMS = {
    "hermite": ("hermite.c",),
    "treecode": ("treecode.c",),
    "treecode_walks": ("treecode.c", "-DMANY_WALKS"),
    "treecode_g5": ("treecode.c", "-DGRAPE5", "-fopenmp"),
}
# Commands of close_pairs.c by mode.
CLOSE = {
    "grape": """
step 16384 64 1e-5 10, step 16384 64 1e-6 10, step 16384 64 1e-9 100, step 16384 64 0 1
step 65536 1024 1e-5 10, step 65536 1024 1e-7 10, step 65536 1024 1e-7 100
step 1024 48 1e-4 10, step 1024 48 1e-7 10, step 1024 48 1e-7 100, step 1024 48 1e-7 1
step 1024 4 1e-4 10, step 1024 4 1e-7 100, bare 1024, bare 16384, bare 131072
far 4096 0, far 4096 1e4, far 4096 1e6, far 4096 1e8, far 4096 1e6 hole
far 65536 0, far 65536 1e4, far 65536 1e8, far 65536 1e6 hole, far 131072 0
list 7000 585 match, list 7000 585 other, list 7000 585 some, list 7000 585 near
""",
    "double": "far 65536 0, list 7000 585 other",
    "single": "list 7000 585 match, list 7000 585 other",
}


@dataclass(frozen=True)
class Case:
    program: str
    what: str  # the row's name
    n: int
    arguments: tuple = ()
    steps: int = 0
    group: int = 0
    environment: tuple = ()
    beside: bool = True  # with all builds, else with the last one

    def row(self):
        names = ("program", "what", "n", "steps", "group")
        return {name: getattr(self, name) for name in names}


def treecode(n, steps, group, what="treecode", beside=True, program="treecode", **environment):
    arguments = ("-e", 1 / 256, "-d", 1 / 512, "-t", steps / 512, "-g", group, "-w")
    environment = environment or {"GRAPE6_NPIPES": 2048}
    return Case(program, what, n, arguments, steps, group, tuple(environment.items()), beside)


def grape5(n, steps, group):
    """A thread that sums on all cores, and as many threads as cores."""
    one, all_of_them = (
        treecode(n, steps, group, f"GRAPE-5 treecode, {name}", program="treecode_g5",
                 OMP_NUM_THREADS=threads, GRAPE6_THREADS=of_library)
        for name, threads, of_library in (("1 thread", 1, 0), (f"{CORES} threads", CORES, 1))
    )  # fmt: skip
    return [one, all_of_them]


def cases(quick):
    """In the order of their importance, should the time run out."""
    small = 32 if quick else 1
    t_end = 1 / small
    pipes = (("GRAPE6_NPIPES", 1024),)
    yield Case("hermite", "Hermite", 1024, ("-w", "-t", t_end), environment=pipes)
    yield Case("hermite", "Hermite, i != index of j", 1024, ("-w", "-i", "-t", t_end),
               environment=pipes)  # fmt: skip
    sizes = ("--seconds", 1 / small)
    if quick:
        sizes += ("--n", 1024, "--far", 1024)
    yield Case("binaries", "binaries", 0, sizes)
    for group in (256, 2048):
        yield from grape5(65536 // small, 4, group)
    for n, steps in ((32768 // small, 8), (262144 // small, 4)):
        for group in (1024, 64, 256, 2048):
            yield treecode(n, steps, group, beside=n <= 32768 or group == 1024)
        yield treecode(n, steps, 1024, "treecode, bhtree", n <= 32768, GRAPE6_CLIENT="bhtree")
        yield treecode(n, steps, 1024, "treecode, 48 pipes", n <= 32768, GRAPE6_NPIPES=48)
        yield treecode(n, steps, 1024, "treecode, g6x_walks", n <= 32768, "treecode_walks")
    yield treecode((1 << 20) // small, 2, 1024, beside=False)


def snapshot(folder, n):
    file = folder / f"plummer{n}.dat"
    if not file.exists():
        write_snapshot(file, *plummer(n, seed=SEED))
    return file


def times_of(text):
    """The line of times that treecode.c prints, and what it says."""
    found = re.search("".join(rf"\s+{part}\s+(\S+)" for part in PARTS), text)
    return found[0], dict(zip(PARTS, map(float, found.groups()), strict=True))


def from_treecode(text):
    _, figure = times_of(text)
    del figure["exchange"]
    length = re.search(r"mean length (\S+)", text)[1]
    return [figure | {"mean_length": float(length)} | energies(text)]


def from_hermite(text):
    taken = float(re.findall(r"seconds\s+(\S+)", text)[-1])
    blocks = int(re.search(r"blocks (\d+)", text)[1])
    figure = {"seconds": taken, "blocks": blocks, "us_per_block": 1e6 * taken / blocks}
    return [figure | energies(text)]


def energies(text):
    found = re.findall(r"energy \(pot\)\s+(\S+)", text)
    error = float(re.search(r"relative energy error\s+(\d\S*)", text)[1])
    return {"energies": [float(found[0]), float(found[-1])], "error": error}


def from_binaries(text):
    """A figure a line; blocks are counted, not the seconds that they were given."""
    found = [json.loads(line) for line in text.splitlines()]
    for f in found:
        name = f"binaries, d = {f['d']:g}" if f["d"] else f"cluster at D = {f['D']:g}"
        f |= {"what": f"Hermite (Python), {name}", "on": f.pop("backend")}
    return found


READERS = {"hermite": from_hermite, "binaries": from_binaries}


def ran(case, tree, backend, folder, limit):
    """Figures of one run of a program."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPE6_", "OMP_"))}
    env |= {"LD_LIBRARY_PATH": str(library_of(tree)), "PYTHONPATH": str(tree)}
    env |= {"GRAPE6_BACKEND": backend}
    env |= {"GRAPE6_PYTHON": os.environ.get("GRAPE6_PYTHON", sys.executable)}
    env |= {name: str(value) for name, value in case.environment}
    if case.program == "binaries":
        command = [sys.executable, HERE / "binaries.py", "--backend", backend]
    else:
        command = [folder / case.program, snapshot(folder, case.n)]
    began = time.perf_counter()
    command = [str(word) for word in (*command, *case.arguments)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=limit)
        end = done.stderr.strip()[-300:]
        failed = f"status {done.returncode}: {end}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        failed = f"more than {limit} s"
    wall = round(time.perf_counter() - began, 3)
    if failed:
        return [case.row() | {"failed": failed, "wall": wall}]
    found = READERS.get(case.program, from_treecode)(done.stdout)
    for f in found:
        f["wall"] = wall
        if end:
            f["said"] = end
    return [case.row() | f for f in found]


def median_of(takes):
    """The middle one of several runs' figures."""
    key = "seconds" if "seconds" in takes[0] else "us_per_block"
    if any("failed" in f for f in takes):
        return next(f for f in takes if "failed" in f)
    middle = statistics.median_low(f[key] for f in takes)
    return next(f for f in takes if f[key] == middle) | {"takes": len(takes)}


def measured(case, trees, backend, folder, limit):
    """Rows of a case: builds take turns."""
    runs = {name: [] for name in (trees if case.beside else list(trees)[-1:])}
    for take in range(TAKES):
        for name, runs_of in runs.items():
            again = case.program != "binaries" and runs_of and runs_of[0][0]["wall"] < SHORT
            if take == 0 or again:
                runs_of.append(ran(case, trees[name], backend, folder, limit))
    for name, runs_of in runs.items():
        for takes in zip(*runs_of, strict=False):
            yield {"library": name, "backend": backend} | median_of(takes)


def compare(row, rows):
    """How far the last energy is off the first row's of the same program."""
    alike = ("program", "n", "steps", "group")
    first = next((r for r in rows if "energies" in r and all(r[k] == row[k] for k in alike)), row)
    if "energies" in row:
        row["off"] = abs(row["energies"][1] / first["energies"][1] - 1)


def library_of(tree):
    return tree / "grape6py" / "lib"


def builds_of(options):
    """{name: tree}, of which the first is linked with."""
    return {name: Path(tree).resolve() for name, tree in options.builds}


def programs(options):
    trees, rows, began = builds_of(options), [], time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder, library = Path(name), library_of(next(iter(trees.values())))
        for program, (source, *flags) in PROGRAMS.items():
            compile_c(ROOT / "legacy_examples" / source, folder, "-std=c11", *flags, name=program,
                      library=library)  # fmt: skip
        for case in cases(options.quick):
            if not case.what.startswith(tuple(options.only)):
                continue
            if options.n and case.n not in options.n:
                continue
            for backend in options.backends:
                if time.perf_counter() - began > options.budget:
                    print(f"left out, the time is up: {case.what} {case.n} {case.group} {backend}")
                    continue
                for row in measured(case, trees, backend, folder, options.limit):
                    compare(row, rows)
                    rows.append(row)
                    yield row


def close(options):
    trees = builds_of(options)
    with tempfile.TemporaryDirectory() as folder:
        library = library_of(next(iter(trees.values())))
        program = compile_c(HERE / "close_pairs.c", folder, library=library)
        for mode, commands in CLOSE.items():
            for words in map(str.split, re.split("[,\n]", commands.strip())):
                if options.quick and int(words[1]) > 4096:
                    continue
                for backend in options.backends:
                    for name, tree in trees.items():
                        for figure in figures(program, mode, *words, library=library_of(tree),
                                              GRAPE6_BACKEND=backend):  # fmt: skip
                            figure["what"] += f"; {backend}"
                            yield {"library": name} | figure


if __name__ == "__main__":
    run(__doc__, {"programs": programs, "close": close},
        gpu=lambda part, options: any(b.startswith("cuda") for b in options.backends),
        about=lambda options: {"libraries": [name for name, _ in options.builds]},
        builds={"nargs": "+", "required": True, "metavar": "NAME=TREE",
                "type": lambda text: text.split("=", 1)},
        backends={"nargs": "+", "default": ["cpu", "cuda", "cuda-tree"]},
        only={"nargs": "+", "default": [""],
              "help": "beginnings of rows' names: Hermite, binaries, GRAPE-5, treecode"},
        n={"type": int, "nargs": "+", "help": "and these N alone"},
        budget={"type": float, "default": 330, "help": "seconds; then no more is begun"},
        limit={"type": float, "default": 120, "help": "seconds of a run"},
        quick={"action": "store_true", "help": "small, to see whether all works"})  # fmt: skip
