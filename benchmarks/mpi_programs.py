"""Old programs on ranks of MPI: how the scripts that time them build, start and compare them."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import published
from harness import ROOT, environment

import grape6py

SHORT = 5.0  # seconds of a run, below which it is repeated
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
ARGUMENTS = {  # of the command line; the script adds --n
    "ranks": {"type": int, "nargs": "+", "default": [1, 2], "help": "first: to compare with"},
    "times": {"type": int, "default": 3, "help": f"of runs below {SHORT:g} s"},
    "program": {"help": "one that is linked already"},
    "backend": {"choices": ["cpu", "cuda"], "default": "cuda"},
}


def build(name, folder):
    """A program of legacy_examples/, by their Makefile, with the library that Python finds."""
    program, place = Path(folder, name), Path(grape6py.__file__).parent.parent
    subprocess.run(
        ["make", "-s", "-C", ROOT / "legacy_examples", program, f"BUILD={folder}",
         f"GRAPE6=env PYTHONPATH='{place}' '{sys.executable}' -m grape6py"],
        check=True,
    )  # fmt: skip
    return program


def columns(table, **titles):
    """{N: {key: kirin's seconds on one machine and two}} of a table, by the titles of columns."""
    found = {}
    for key, title in titles.items():
        one, two = (published.column("kirin 2007", table, title.format(k)) for k in (1, 2))
        for n, seconds in one.items():
            found.setdefault(n, {})[key] = seconds, two[n]
    return found


def mpirun(*words, limit=600, **more):
    """Output of a program on ranks, and the seconds of the whole with its start; RuntimeError."""
    command = ["timeout", "-k", "10", limit, "mpirun", "-q", *words]
    began = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          env=environment(**MPI, **more))  # fmt: skip
    if done.returncode:
        late = f"more than {limit} s" if done.returncode in (124, 137) else ""
        raise RuntimeError(late or done.stderr.strip()[:500] or f"status {done.returncode}")
    return done.stdout, time.perf_counter() - began


def by_ranks(name, arguments, read, options, thesis, **more):
    """A program over Plummer spheres: figures for each N and number of ranks, medians.

    `read` makes of the output a figure, with the seconds of the steps, and what is to be the same
    on all numbers of ranks. A rank has as many threads on one rank as on the most of them.
    `thesis`: {N: keys of a figure with kirin's seconds on one machine and two}.
    """
    threads = max(1, len(os.sched_getaffinity(0)) // max(options.ranks))
    more |= {"GRAPE6_BACKEND": options.backend, "GRAPE6_THREADS": threads}
    with tempfile.TemporaryDirectory() as folder:
        program, file = options.program or build(name, folder), Path(folder, "plummer.dat")
        for n in options.n:
            grape6py.write_snapshot(file, *grape6py.plummer(n, seed=1))
            first = same = None
            for ranks in options.ranks:
                runs = []
                while not runs or (len(runs) < options.times and runs[0][0]["wall"] < SHORT):
                    text, wall = mpirun("-n", ranks, program, file, *arguments, **more)
                    figure, printed = read(text)
                    runs.append((figure | {"wall": wall}, printed))
                figure = sorted((f for f, _ in runs), key=lambda f: f["seconds"])[len(runs) // 2]
                figure["wall"] = statistics.median(f["wall"] for f, _ in runs)
                first, same = first or figure, same or runs[0][1]
                yield {
                    "n": n, "ranks": ranks, "threads": threads, "runs": len(runs), **figure,
                    "speedup": first["seconds"] / figure["seconds"],
                    "wall_speedup": first["wall"] / figure["wall"],
                    "equal": all(printed == same for _, printed in runs),
                    **{key: of[ranks - 1] for key, of in thesis.get(n, {}).items() if ranks <= 2},
                }  # fmt: skip
