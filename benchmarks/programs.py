"""Times unchanged programs, close pairs and small runs, with builds of the library taking turns.

    python benchmarks/programs.py [programs] [close] [runs-small] --builds NAME=TREE...
                                  [--name NAME] [--backends cpu cuda cuda-tree] [--n 262144]
                                  [--quick]

TREE is a folder with the package of a build, grape6py/lib/libgrape6.so in it. The last one runs
everything, those before it what is not too slow. Programs in C are compiled once, against the first
one, and find each library by LD_LIBRARY_PATH; python_runs.py finds its package by PYTHONPATH.

programs    those of legacy_examples/. Seconds are those of the steps; `wall` is the whole process;
            `off` compares the last energy with that of the same program in the first row
close       close_pairs.c
runs-small  medians of three takes: walk: a shared step, all particles written and asked for in
            calls of so many pipes; force: ni = N; crowd: programs of such calls on four cores;
            open: g6_open; program: the whole of hermite.c; block, lists: python_runs.py
"""

import functools
import itertools
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

from harness import HERE, ROOT, Failed, compile_c, environment, figures, listed, run, sphere, taken

TAKES, SHORT = 3, 2.0  # runs, and the seconds below which there are so many
BUDGET, LIMIT = 330, 120  # seconds: then no more is begun; of a run
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
far 65536 0, far 65536 1e4, far 65536 1e8, far 65536 1e6 hole, far 65536 1e8 hole, far 131072 0
list 7000 585 match, list 7000 585 other, list 7000 585 some, list 7000 585 near
""",
    "double": "far 65536 0, list 7000 585 other",
    "single": "list 7000 585 match, list 7000 585 other",
}
PIPES = 48, 256, 1024, 16384
WALKS = ("cpu", 4096), ("cpu", 16384), ("cuda", 4096), ("cuda", 16384), ("cuda", 65536)
SMALL = (256, 1), (1024, 1), (4096, 1 / 2), (16384, 1 / 4), (65536, 1 / 32)  # N, t of hermite.c
BLOCKS = {"cpu": ("2 40000", "3 2000", "10 400", "100 4", "1024 1"),
          "cuda": ("256 2", "1024 1", "4096 0.25", "16384 0.125")}  # fmt: skip
LISTS = {"cpu": ("1000 0", "16384 0"), "cuda": ("1000 0", "16384 0", "131072 0")}


def made_by(program, what, n, arguments=(), steps=0, group=0, beside=True, **environment):
    """A row of the results, its settings, and whether it is with all builds or the last one."""
    row = {"program": program, "what": what, "n": n, "steps": steps, "group": group}
    return SimpleNamespace(row=row, arguments=arguments, environment=environment, beside=beside)


def treecode(n, steps, group, what="treecode", beside=True, program="treecode", **environment):
    arguments = ("-e", 1 / 256, "-d", 1 / 512, "-t", steps / 512, "-g", group, "-w")
    environment = environment or {"GRAPE6_NPIPES": 2048}
    return made_by(program, what, n, arguments, steps, group, beside, **environment)


def cases(quick):
    """In the order of their importance, should the time run out."""
    small = 32 if quick else 1
    for what, more in (("Hermite", ()), ("Hermite, i != index of j", ("-i",))):
        yield made_by("hermite", what, 1024, ("-w", *more, "-t", 1 / small), GRAPE6_NPIPES=1024)
    sizes, distant = ((1024,), 1024) if quick else ((1024, 8192), 4096)
    runs = [f"binaries {n} {d}" for n in sizes for d in ("1e-4", "1e-6")]
    runs += [f"far {distant} {d}" for d in ("0", "1e4", "1e6")]
    yield made_by("binaries", "binaries", 0, (1 / small, runs))
    for group in (256, 2048):  # a thread that sums on all cores, and as many threads as cores
        for name, threads, of_library in (("1 thread", 1, 0), (f"{CORES} threads", CORES, 1)):
            yield treecode(65536 // small, 4, group, f"GRAPE-5 treecode, {name}",
                           program="treecode_g5", OMP_NUM_THREADS=threads,
                           GRAPE6_THREADS=of_library)  # fmt: skip
    for n, steps in ((32768 // small, 8), (262144 // small, 4)):
        for group in (1024, 64, 256, 2048):
            yield treecode(n, steps, group, beside=n <= 32768 or group == 1024)
        yield treecode(n, steps, 1024, "treecode, bhtree", n <= 32768, GRAPE6_CLIENT="bhtree")
        yield treecode(n, steps, 1024, "treecode, 48 pipes", n <= 32768, GRAPE6_NPIPES=48)
        yield treecode(n, steps, 1024, "treecode, g6x_walks", n <= 32768, "treecode_walks")
    yield treecode((1 << 20) // small, 2, 1024, beside=False)


def times_of(text):
    """The line of times that treecode.c prints, and what it says."""
    found = re.search("".join(rf"\s+{part}\s+(\S+)" for part in PARTS), text)
    return found[0], dict(zip(PARTS, map(float, found.groups()), strict=True))


def printed(text):
    """Figures of hermite.c or treecode.c."""
    found = re.findall(r"energy \(pot\)\s+(\S+)", text)
    error = float(re.search(r"relative energy error\s+(\d\S*)", text)[1])
    energies = {"energies": [float(found[0]), float(found[-1])], "error": error}
    if length := re.search(r"mean length (\S+)", text):
        figure = times_of(text)[1] | {"mean_length": float(length[1])}
        del figure["exchange"]
        return figure | energies
    seconds = float(re.findall(r"seconds\s+(\S+)", text)[-1])
    blocks = int(re.search(r"blocks (\d+)", text)[1])
    return {"seconds": seconds, "blocks": blocks, "us_per_block": 1e6 * seconds / blocks} | energies


def ran(case, tree, backend, folder):
    """Figures of one run of a program."""
    program = case.row["program"]
    if program == "binaries":
        began = time.perf_counter()
        found = in_python(tree, backend, *case.arguments)
        return [case.row | f | {"wall": time.perf_counter() - began} for f in found]
    env = environment(library_of(tree), GRAPE6_PYTHON=sys.executable, GRAPE6_BACKEND=backend,
                      **case.environment)  # fmt: skip
    command = folder / program, sphere(folder, case.row["n"]), *case.arguments
    try:
        text, log, wall = taken(command, LIMIT, env=env)
    except Failed as why:
        return [case.row | {"failed": str(why)}]
    said = {"said": log.strip()[-300:]} if log.strip() else {}
    return [case.row | {"wall": round(wall, 3)} | printed(text) | said]


def median_of(takes):
    """The middle one of several runs' figures."""
    if any("failed" in f for f in takes):
        return next(f for f in takes if "failed" in f)
    key = "seconds" if "seconds" in takes[0] else "us_per_block"
    middle = statistics.median_low(f[key] for f in takes)
    return next(f for f in takes if f[key] == middle) | {"takes": len(takes)}


def measured(case, trees, backend, folder):
    """Rows of a case: builds take turns."""
    runs = {name: [] for name in (trees if case.beside else list(trees)[-1:])}
    for take in range(TAKES if case.row["program"] != "binaries" else 1):
        for name, found in runs.items():
            if take == 0 or found[0][0].get("wall", SHORT) < SHORT:
                found.append(ran(case, trees[name], backend, folder))
    for name, found in runs.items():
        for takes in zip(*found, strict=False):
            yield {"library": name, "backend": backend} | median_of(takes)


def library_of(tree):
    return tree / "grape6py/lib"


def in_python(tree, backend, seconds, cases):
    return figures(sys.executable, "-P", HERE / "python_runs.py", backend, seconds, *cases,
                   library=library_of(tree), PYTHONPATH=tree)  # fmt: skip


def builds_of(options):
    """{name: tree}, and the library of the first, with which all is linked."""
    trees = {name: Path(tree).resolve() for name, tree in options.builds}
    return trees, library_of(next(iter(trees.values())))


def programs(options):
    (trees, library), firsts, began = builds_of(options), {}, time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for program, (source, *flags) in PROGRAMS.items():
            compile_c(ROOT / "legacy_examples" / source, folder, "-std=c11", *flags, name=program,
                      library=library)  # fmt: skip
        chosen = [c for c in cases(options.quick) if not options.n or c.row["n"] in options.n]
        for case, backend in itertools.product(chosen, options.backends):
            if time.perf_counter() - began > BUDGET:
                print(f"left out, the time is up: {case.row} {backend}")
                continue
            for row in measured(case, trees, backend, folder):
                if "energies" in row:
                    same = tuple(row[key] for key in ("program", "n", "steps", "group"))
                    first = firsts.setdefault(same, row["energies"][1])
                    row["off"] = abs(row["energies"][1] / first - 1)
                yield row


def close(options):
    trees, library = builds_of(options)
    with tempfile.TemporaryDirectory() as folder:
        program = compile_c(HERE / "close_pairs.c", folder, library=library)
        for mode, commands in CLOSE.items():
            for words, backend in itertools.product(listed(commands), options.backends):
                if options.quick and int(words.split()[1]) > 4096:
                    continue
                for name, tree in trees.items():
                    for figure in figures(program, mode, *words.split(), library=library_of(tree),
                                          GRAPE6_BACKEND=backend):  # fmt: skip
                        figure["what"] += f"; {backend}"
                        yield {"library": name} | figure


# ---- small runs --------------------------------------------------------------------


def crowd(program, tree, n, programs):
    """Programs at once on four cores, for three seconds: rate and processor seconds of all."""
    with ThreadPoolExecutor(programs) as pool:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        made = [pool.submit(figures, "taskset", "-c", "0-3", program, "during", "grape", n, 3,
                            library=library_of(tree), GRAPE6_BACKEND="cuda")
                for _ in range(programs)]  # fmt: skip
        rate = sum(each.result()[0]["gpairs_per_s"] for each in made)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [{"n": n, "programs": programs, "gpairs_per_s": round(rate, 1),
             "processor_s": round(processor, 2)}]  # fmt: skip


def whole_programs(program, tree, folder):
    for n, t_end in SMALL:
        for pipes in (1, 48, 16384):
            t = t_end / 16 if pipes == 1 and n > 1024 else t_end
            row = {"n": n, "pipes": pipes, "t_end": t}
            for backend in ("cpu", "cuda", "auto"):
                env = environment(library_of(tree), GRAPE6_BACKEND=backend, GRAPE6_NPIPES=pipes)
                command = program, sphere(folder, n), "-e", 1 / 256, "-t", t
                walls = [taken(command, env=env)[2] for _ in range(TAKES if n <= 4096 else 1)]
                row[backend] = round(statistics.median(walls), 3)
            yield row


def small(options):
    trees, library = builds_of(options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gpu = compile_c(HERE / "gpu_calls.c", folder, library=library)
        hermite = compile_c(ROOT / "legacy_examples/hermite.c", folder, library=library)

        def calls(backend, *words):
            return lambda tree: figures(gpu, *words, library=library_of(tree),
                                        GRAPE6_BACKEND=backend)  # fmt: skip

        rate, sizes = ("ms", "gpairs_per_s"), (16384, 65536)
        tasks = [("walk", rate, calls(b, "walk", "grape", n, p)) for b, n in WALKS for p in PIPES]
        for n in sizes:
            force = calls("cuda", "force", "grape", 1, 1, n)
            tasks.append(("force", ("seconds", "gpairs_per_s"), force))
            tasks += [("crowd", ("gpairs_per_s", "processor_s"),
                       lambda tree, n=n, k=k: crowd(gpu, tree, n, k)) for k in (1, 4)]  # fmt: skip
        tasks.append(("open", ("first_s", "again_us"), calls("cuda", "open")))
        tasks.append(("program", ("cpu", "cuda", "auto"),
                      lambda tree: whole_programs(hermite, tree, folder)))  # fmt: skip
        for what, numbers, runs in (("block", ("us",), BLOCKS),
                                    ("lists", ("ms", "lists", "nearest"), LISTS)):  # fmt: skip
            for backend, some in runs.items():
                tasks.append((what, numbers, functools.partial(
                    in_python, backend=backend, seconds=0,
                    cases=[f"{what} {case}" for case in some])))  # fmt: skip
        for task in tasks:
            yield from in_turn(trees, *task)


def in_turn(trees, what, numbers, make):
    """Rows of what `make` gives for a tree, by build, with medians of some of its numbers."""
    seen = {}
    for _ in range(TAKES):
        for name, tree in trees.items():
            for k, row in enumerate(make(tree)):
                seen.setdefault((k, name), []).append(row)
    for (_, name), rows in sorted(seen.items(), key=lambda item: item[0][0]):
        middle = {key: statistics.median(row[key] for row in rows) for key in numbers}
        yield {"what": what, "library": name} | rows[0] | middle


if __name__ == "__main__":
    run(__doc__, {"programs": programs, "close": close, "runs-small": small},
        gpu=lambda part, options: any(b.startswith("cuda") for b in options.backends),
        about=lambda options: {"libraries": [name for name, _ in options.builds]},
        builds={"nargs": "+", "required": True, "metavar": "NAME=TREE",
                "type": lambda text: text.split("=", 1)},
        backends={"nargs": "+", "default": ["cpu", "cuda", "cuda-tree"]},
        n={"type": int, "nargs": "+", "help": "these alone; 0: python_runs.py"},
        quick={"action": "store_true", "help": "small, to see whether all works"})  # fmt: skip
