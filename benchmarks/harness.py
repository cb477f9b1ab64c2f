"""What the scripts that measure share: command line, machine, programs in C, results.

A result is benchmarks/results/PART-NAME.json: machine, versions, commit and date, and the figures,
one a line, so that a changed row is a changed line. tables.py and figures.py show them.
"""

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from grape6py import paths, plummer, write_snapshot

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results"


def machine(gpu=False):
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())[1]
    host = {"cpu": cpu, "cores": len(os.sched_getaffinity(0)), "system": platform.system(),
            "kernel": platform.release(), "python": platform.python_version(),
            "numpy": np.__version__}  # fmt: skip
    if not gpu:
        return host
    import cupy

    runtime = cupy.cuda.runtime
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True, check=False)
    return host | {
        "gpu": runtime.getDeviceProperties(0)["name"].decode(), "gpus": runtime.getDeviceCount(),
        "driver": driver.stdout.split("\n")[0].strip(), "cupy": cupy.__version__,
        "cuda": runtime.runtimeGetVersion(),
    }  # fmt: skip


def command_line(text, parts=(), **arguments):
    """Options of a script: parts, --name, --commit, --out, and more by their names."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if parts:
        parser.add_argument("part", nargs="*", default=[*parts], help="default: all")
    parser.add_argument("--name", default=platform.node(), help="of the machine, for files' names")
    shown = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"],
                           capture_output=True, text=True, check=False)  # fmt: skip
    parser.add_argument("--commit", default=shown.stdout.strip(), help="of the library")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    for name, settings in arguments.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    options = parser.parse_args()
    if parts and (unknown := set(options.part) - set(parts)):
        parser.error(f"unknown part {', '.join(unknown)}; there are {', '.join(parts)}")
    return options


def origin(options, gpu):
    """Where and of what a result is."""
    return {"machine": machine(gpu), "commit": options.commit,
            "date": datetime.date.today().isoformat()}  # fmt: skip


def write(path, result):
    """Write a result anew; a run that is ended meanwhile leaves the one before."""
    figures = ",\n".join(json.dumps(figure) for figure in result["figures"])
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in result.items() if k != "figures"]
    new = path.with_name(f"new-{path.name}")
    new.write_text("{" + ",\n".join([*lines, f'"figures": [\n{figures}\n]']) + "}\n")
    new.replace(path)


def run(text, parts, *, prefix="", gpu=lambda part, options: False,
        about=lambda options: {}, **arguments):  # fmt: skip
    """Measure the parts on the command line: {name: generator of figures, from the options}.

    The file has the figures there are so far. `gpu`: whether a part runs on one; `about`: what a
    result says besides its figures.
    """
    options = command_line(text, parts, **arguments)
    for part in options.part:
        result = origin(options, gpu(part, options)) | about(options) | {"figures": []}
        for figure in parts[part](options):
            print(json.dumps(figure), flush=True)
            result["figures"].append(figure)
            write(options.out / f"{prefix}{part}-{options.name}.json", result)


def listed(text):
    """Commands, separated by commas and ends of lines."""
    return [command.strip() for command in re.split("[,\n]", text.strip())]


def sphere(folder, n):
    """File of a Plummer sphere, which is made once."""
    file = Path(folder, f"plummer{n}.dat")
    if not file.exists():
        write_snapshot(file, *plummer(n, seed=1))
    return file


def compile_c(source, folder, *flags, name=None, library=paths.LIBRARY.parent, compiler="gcc"):
    """A program, linked with a build of the library, which environment() lets it find."""
    program = Path(folder, name or Path(source).stem)
    subprocess.run([compiler, "-O2", *flags, source, "-o", program, f"-I{paths.INCLUDE_DIR}",
                    f"-L{library}", "-lgrape6", "-lm"], check=True)  # fmt: skip
    return program


def environment(library=paths.LIBRARY.parent, **more):
    """For a program that is linked with a build of the library."""
    return os.environ | {"LD_LIBRARY_PATH": str(library)} | {k: str(v) for k, v in more.items()}


class Failed(Exception):
    """A program that has an error."""


class Late(Failed):
    """A program that took too long, and was ended."""


def taken(words, limit=None, **how):
    """What a program writes on stdout and stderr, and the seconds of its process."""
    began, pipe = time.perf_counter(), subprocess.PIPE
    with subprocess.Popen([*map(str, words)], stdout=pipe, stderr=pipe, text=True,
                          start_new_session=True, **how) as process:  # fmt: skip
        try:
            out, log = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            for end in signal.SIGTERM, signal.SIGKILL:  # of its own processes, too
                with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
                    os.killpg(process.pid, end)
                    process.communicate(timeout=10)
            raise Late(f"more than {limit:g} s") from None
    if process.returncode:
        raise Failed(f"status {process.returncode}: {log.strip()[-300:]}")
    return out, log, time.perf_counter() - began


def figures(program, *arguments, **more):
    """The lines of JSON that a program in C prints; none if it fails."""
    try:
        printed, *_ = taken([program, *arguments], env=environment(**more))
    except Failed as why:
        print(f"{program} {arguments}: {why}", file=sys.stderr)
        return []
    return [json.loads(line) for line in printed.splitlines()]


def relative(found, true):
    """Relative errors of vectors or numbers."""
    found, true = np.atleast_2d(found.T).T, np.atleast_2d(true.T).T
    return np.sqrt(((found - true) ** 2).sum(1) / (true**2).sum(1)).astype(float)


def errors_of(found, exact):
    """Median and largest relative errors of the sums, and the mean of acc's along acc."""
    errors = {name: relative(getattr(found, name), getattr(exact, name))
              for name in ("acc", "jerk", "pot")}  # fmt: skip
    along = float(((found.acc * exact.acc).sum(1) / (exact.acc**2).sum(1) - 1).mean())
    return {n: [float(np.median(e)), float(e.max())] for n, e in errors.items()}, along
