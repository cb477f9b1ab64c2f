"""What more accuracy, fields, events and bodies without mass cost a Hermite integration.

    python benchmarks/hermite_runs.py [eta] [auto-price] [outside] [--name NAME] [--backend cpu]
                                      [--limit 30] [--amuse FOLDER] [--kira FOLDER FOLDER]
                                      [--rounds 5] [--bodies 1024 16384] [--dt 0.015625]

eta         Plummer spheres to t = 0.25, by program, eta (from a default to a thirtieth of it) and
            mode: `Hermite`; with --amuse ph4 and phiGRAPE, from the folder that
            tests/clients/test_amuse.py leaves (build/amuse-*); with --kira that of Starlab, from
            the folders of programs with the library and without. These have sums of their own, too.
            A figure has force calls (of `Hermite` blocks), seconds of one thread, and the energy's
            relative error; without them, it took over --limit seconds
auto-price  mode auto beside grape and double, after the short steps of the start, on one thread
outside     fields, frames, events and bodies without mass, over a plain run of the same round: by
            block steps or (--dt) one step for all

Plummer spheres have eps = 4/N; what is compared takes turns; figures are medians.
"""

import contextlib
import re
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import ROOT, Late, environment, run, sphere, taken

from grape6py import Hermite, fields, plummer, read_snapshot, reference, write_snapshot
from grape6py._lib.declarations import PRECISIONS
from grape6py._lib.library import ffi, lib
from grape6py.events import Encounter, Escape

T_END = 0.25
EPS = {2: 0.0, 64: 4 / 64, 512: 4 / 512}
MODES = [mode for mode in ("grape", "auto", "double") if mode in PRECISIONS]
SCRIPT = """
import sys, time
from grape6py import Hermite, read_snapshot
eps, eta, t_end = map(float, sys.argv[2:])
cluster = Hermite(*read_snapshot(sys.argv[1])[:3], eps=eps, eta=eta)
start = cluster.energy().total
began = time.process_time()
cluster.evolve(t_end)
print("seconds", time.process_time() - began, "blocks", cluster.blocks)
print("relative energy error", cluster.energy().total / start - 1)
"""


def last(pattern, text):
    """The number behind the last of these words."""
    return float(re.findall(rf"{pattern}\s*([-+]?\d[-+.\de]*)", text)[-1])


def measured(command, mode, limit, cwd, **env):
    """What a program printed, and its seconds."""
    env |= {} if mode == "own" else {"GRAPE6_PRECISION": mode}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = environment(GRAPE6_THREADS=1, GRAPE6_BACKEND="cpu", GRAPE6_LOG="info", **env)
    text, log, _ = taken(command, limit, env=env, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return log + text, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def calls_of(text):
    return sum(map(int, re.findall(r"(\d+) force calls", text))) or None


def hermite(sphere, n, eta, mode, limit, cwd):
    text, _ = measured((sys.executable, "-c", SCRIPT, sphere, EPS[n], eta, T_END), mode, limit, cwd)
    return {"calls": int(last("blocks", text)), "seconds": last("seconds", text),
            "error": last("relative energy error", text)}  # fmt: skip


def energy(file, n):
    return float(reference.energy(*read_snapshot(file)[:3], eps2=EPS[n] ** 2).total)


def amuse(folder, code):
    (place,) = folder.glob(f"amuse_{code}-*/")

    def go(sphere, n, eta, mode, limit, cwd):
        script, sums = ROOT / "tests/clients/run_amuse.py", "own" if mode == "own" else "linked"
        words = place, code, sums, 1, sphere, T_END, "end", eta, EPS[n]
        env = {"PATH": f"{folder}/python/bin:/usr/bin:/bin", "VIRTUAL_ENV": folder / "python",
               "OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}  # fmt: skip
        text, _ = measured([folder / "python/bin/python", script, *words], mode, limit, cwd, **env)
        return {"calls": calls_of(text), "seconds": last("seconds", text),
                "error": energy(cwd / "end", n) / energy(sphere, n) - 1}  # fmt: skip

    return go


def kira(linked, own):
    def go(sphere, n, eta, mode, limit, cwd):
        (cwd / "sphere.dyn").unlink(missing_ok=True)
        write_snapshot(cwd / "sphere.dyn", *read_snapshot(sphere)[:3], format="starlab")
        program = Path(own if mode == "own" else linked, "kira")
        words = f"{program} -t {T_END} -d {T_END} -D {T_END} -a {eta} -e {EPS[n]} < sphere.dyn"
        text, seconds = measured(["sh", "-c", words], mode, limit, cwd, GRAPE6_CLIENT="kira")
        energies = re.findall(r"Energies: \S+ \S+ (\S+)", text)
        error = float(energies[-1]) / float(energies[0]) - 1
        return {"calls": calls_of(text), "seconds": seconds, "error": error}

    return go


def programs(options):
    """Name, default of eta, how it is run, and sums of its own."""
    yield "Hermite", 0.02, hermite, []
    if options.amuse:
        yield "ph4", 0.14, amuse(options.amuse, "ph4"), ["own"]
        yield "phiGRAPE", 0.02, amuse(options.amuse, "phigrape"), ["own"]
    if options.kira:
        yield "kira", 0.1, kira(*options.kira), ["own"]


def eta(options):
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for name, default, go, own in programs(options):
            for n in EPS:
                for share in (1, 10, 30):
                    row = {"program": name, "n": n, "eta": float(f"{default / share:.2g}")}
                    for mode in MODES + own:
                        found = {}
                        with contextlib.suppress(Late):
                            found = go(sphere(here, n), n, row["eta"], mode, options.limit, here)
                        yield row | {"mode": mode} | found


# ---- mode auto ---------------------------------------------------------------------

SPANS = {64: (0.5, 2), 256: (0.25, 1), 1024: (1 / 8, 1 / 2), 4096: (1 / 16, 3 / 16),
         16384: (1 / 16, 3 / 32)}  # fmt: skip


def spanned(mode, n, options):
    """Seconds of a span, and of its force calls' rows the share in double."""
    start, end = SPANS[n]
    clock = time.process_time if options.backend == "cpu" else time.perf_counter
    cluster = Hermite(*plummer(n, seed=3), eps=4 / n, precision=mode, backend=options.backend,
                      threads=1)  # fmt: skip
    counts = [ffi.new("long long[3]") for _ in range(2)]
    cluster.evolve(start)
    lib.g6x_counts(cluster._forces._board.cluster, counts[0])
    began = clock()
    cluster.evolve(end)
    seconds = clock() - began
    lib.g6x_counts(cluster._forces._board.cluster, counts[1])
    rows, fine = (counts[1][k] - counts[0][k] for k in (1, 2))
    return seconds, fine / rows


def price(options):
    for n in SPANS:
        takes = {mode: [] for mode in MODES}
        for _ in range(options.rounds):
            for mode in MODES:
                takes[mode].append(spanned(mode, n, options))
        figure = {mode: statistics.median(s for s, _ in takes[mode]) for mode in MODES}
        yield {"n": n, "share": takes["auto"][0][1]} | figure


# ---- fields, events and bodies without mass ----------------------------------------

GALAXY, ORBIT = fields.mwpotential2014(8000, 33.5), [8000, 0, 0, 0, 33.5, 0]
CASES = {
    "plain": ({}, None, ()),
    "point mass": ({"field": fields.point_mass(1e-3)}, None, ()),
    "mwpotential2014, frame on an orbit": ({"field": GALAXY, "orbit": ORBIT}, None, ()),
    "function": ({"field": lambda t, x, v: (-1e-9 * x, -1e-9 * v, 0 * x[:, 0])}, None, ()),
    "encounters and escapes": ({}, None, (Encounter(1e-9), Escape(1e6))),  # nobody escapes
    "half of the bodies massless": ({}, lambda mass: 2 * mass * (np.arange(len(mass)) % 2), ()),
}


def seconds(n, until, options, change, events, steps, backend):
    """Wall time, and steps."""
    mass, pos, vel = plummer(n, seed=1)
    mass = mass if change is None else change(mass)
    cluster = Hermite(mass, pos, vel, eps=4 / n, backend=backend, **steps, **options)
    cluster.evolve(1 / 64)
    before, began = cluster.steps, time.perf_counter()
    cluster.evolve(1 / 64 + until, events=events)
    return time.perf_counter() - began, cluster.steps - before


def outside(options):
    for n in options.bodies:
        until, steps = options.until, {"dt": options.dt} if options.dt else {"dt_max": 1 / 64}
        found = {name: [] for name in CASES}
        for turn in range(options.rounds + 1):
            for name, case in CASES.items():
                measured = seconds(n, until, *case, steps, options.backend)
                if turn:
                    found[name].append(measured)
        for name, rows in found.items():
            pairs = zip(rows, found["plain"], strict=True)
            ratios = [(t / base, t / steps * taken / base) for (t, steps), (base, taken) in pairs]
            ratio, per_step = map(statistics.median, zip(*ratios, strict=True))
            yield {"n": n, "case": name, "until": until,
                   "seconds": statistics.median(t for t, _ in rows), "steps": rows[0][1],
                   "ratio": ratio, "ratio per step": per_step}  # fmt: skip


if __name__ == "__main__":
    run(__doc__, {"eta": eta, "auto-price": price, "outside": outside},
        gpu=lambda part, options: options.backend.startswith("cuda"),
        about=lambda options: {"backend": options.backend, "dt": options.dt},
        backend={"default": "cpu"},
        limit={"type": float, "default": 30.0, "help": "seconds of a run of eta"},
        amuse={"type": lambda text: Path(text).resolve()},
        kira={"nargs": 2, "type": lambda text: Path(text).resolve()},
        rounds={"type": int, "default": 5},
        bodies={"type": int, "nargs": "+", "default": [1024, 16384]},
        dt={"type": float},
        until={"type": float, "default": 1 / 16})  # fmt: skip
