"""What it takes to ask for more accuracy: Plummer spheres to t = 0.25, by program, eta and mode.

    python benchmarks/eta.py [--name NAME] [--limit 30] [--amuse FOLDER] [--kira FOLDER FOLDER]

`Hermite`; with --amuse ph4 and phiGRAPE, from the folder that tests/clients/test_amuse.py leaves
(build/amuse-*); with --kira that of Starlab, from the folders of programs of a build with the
library and of one without. These have sums of their own, too. eta goes from a default to
a thirtieth of it. A figure has the force calls (of `Hermite` blocks), seconds of one thread, and
the relative error of the energy; without them, the run did not end in --limit seconds.
"""

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import ROOT, environment, run

from grape6py import plummer, read_snapshot, reference, write_snapshot
from grape6py._lib.declarations import PRECISIONS

T_END = 0.25
SHARES = (1, 10, 30)
EPS = {2: 0.0, 64: 4 / 64, 512: 4 / 512}
MODES = [mode for mode in ("grape", "auto", "double") if mode in PRECISIONS]
HERMITE = """
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


def measured(command, limit, cwd, **env):
    """What a program printed, and its seconds; None if it does not end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = environment(GRAPE6_THREADS=1, GRAPE6_BACKEND="cpu", GRAPE6_LOG="info", **env)
    with subprocess.Popen(
        list(map(str, command)), env=env, cwd=cwd, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            text, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # AMUSE's workers, too
            return None
    if process.returncode:
        raise SystemExit(text)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return text, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def calls_of(text):
    return sum(map(int, re.findall(r"(\d+) force calls", text))) or None


def hermite(sphere, n, eta, mode, limit, cwd):
    command = sys.executable, "-c", HERMITE, sphere, EPS[n], eta, T_END
    found = measured(command, limit, cwd, GRAPE6_PRECISION=mode)
    return found and {"calls": int(last("blocks", found[0])), "seconds": last("seconds", found[0]),
                      "error": last("relative energy error", found[0])}  # fmt: skip


def energy(file, n):
    return float(reference.energy(*read_snapshot(file)[:3], eps2=EPS[n] ** 2).total)


def amuse(folder, code):
    (place,) = folder.glob(f"amuse_{code}-*/")

    def go(sphere, n, eta, mode, limit, cwd):
        script, sums = ROOT / "tests/clients/run_amuse.py", "own" if mode == "own" else "linked"
        words = place, code, sums, 1, sphere, T_END, "end", eta, EPS[n]
        command = [folder / "python/bin/python", script, *words]
        env = {"PATH": f"{folder}/python/bin:/usr/bin:/bin", "VIRTUAL_ENV": folder / "python",
               "OMPI_ALLOW_RUN_AS_ROOT": 1, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": 1}  # fmt: skip
        env |= {} if mode == "own" else {"GRAPE6_PRECISION": mode}
        found = measured(command, limit, cwd, **env)
        return found and {"calls": calls_of(found[0]), "seconds": last("seconds", found[0]),
                          "error": energy(cwd / "end", n) / energy(sphere, n) - 1}  # fmt: skip

    return go


def kira(linked, own):
    def go(sphere, n, eta, mode, limit, cwd):
        (cwd / "sphere.dyn").unlink(missing_ok=True)
        write_snapshot(cwd / "sphere.dyn", *read_snapshot(sphere)[:3], format="starlab")
        program = Path(own if mode == "own" else linked, "kira")
        words = f"{program} -t {T_END} -d {T_END} -D {T_END} -a {eta} -e {EPS[n]} < sphere.dyn"
        env = {} if mode == "own" else {"GRAPE6_PRECISION": mode}
        found = measured(["sh", "-c", words], limit, cwd, GRAPE6_CLIENT="kira", **env)
        if not found:
            return None
        energies = re.findall(r"Energies: \S+ \S+ (\S+)", found[0])
        error = float(energies[-1]) / float(energies[0]) - 1
        return {"calls": calls_of(found[0]), "seconds": found[1], "error": error}

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
        for n in EPS:
            write_snapshot(here / f"{n}.dat", *plummer(n, seed=1))
        for name, default, go, own in programs(options):
            for n in EPS:
                for share in SHARES:
                    row = {"program": name, "n": n, "eta": float(f"{default / share:.2g}")}
                    for mode in MODES + own:
                        found = go(here / f"{n}.dat", n, row["eta"], mode, options.limit, here)
                        yield row | {"mode": mode} | (found or {})


def main():
    run(__doc__, {"eta": eta},
        limit={"type": float, "default": 30.0, "help": "seconds of a run"},
        amuse={"type": lambda text: Path(text).resolve()},
        kira={"nargs": 2, "type": lambda text: Path(text).resolve()})  # fmt: skip


if __name__ == "__main__":
    main()
