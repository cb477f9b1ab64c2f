"""Times old programs on ranks of MPI.

    python benchmarks/mpi_programs.py [mpi-hermite] [treecode-mpi] [shared-gpu] [--name NAME]
                                      [--n 8192 16384 ...] [--ranks 1 2] [--times 3] [--most 2048]
                                      [--backend cuda]

mpi-hermite   legacy_examples/mpi_hermite.f90, a GPU a rank: table 5.1 of the thesis, Plummer
              spheres to t = 0.25 with eps = 1/256, eta = 0.02, and calls of 16384 pipes as of kirin
treecode-mpi  legacy_examples/treecode.c, a GPU a rank: table 5.2, one time unit, the defaults of
              Makino's program; --most bodies share a list
shared-gpu    shared_gpu.c: ranks that share a GPU: all on it, one after the other; the first alone
              there; on the CPU, with the library's threads and two; and on the GPU with NVIDIA's
              MPS, which the script starts and ends: where that fails, "failed" says why

`seconds` are those of the steps on rank 0, `wall` those of the whole run: mpirun, reading the file,
opening the GPU, the energies.
"""

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import published
from harness import HERE, ROOT, Failed, compile_c, environment, run, sphere, taken
from programs import times_of
from thesis import EPS, TREE_EPS, TREE_STEPS, TREE_THETA

import grape6py

SHORT, PIPES = 5.0, 16384  # seconds of a run, below which it is repeated
SHARED_N, SHARED_NI = 16384, 64
CONTROL, LIMIT = "nvidia-cuda-mps-control", 60
CPU = {"GRAPE6_BACKEND": "cpu"}
MPI = {f"OMPI_{name}": word for name, word in {
    "ALLOW_RUN_AS_ROOT": 1, "ALLOW_RUN_AS_ROOT_CONFIRM": 1, "MCA_rmaps_base_oversubscribe": 1,
    "MCA_hwloc_base_binding_policy": "none"}.items()}  # fmt: skip


def columns(table, **titles):
    """{N: {key: kirin's seconds on one machine and two}} of a table, by the titles of columns."""
    found = {}
    for key, title in titles.items():
        one, two = (published.column("kirin 2007", table, title.format(k)) for k in (1, 2))
        for n, seconds in one.items():
            found.setdefault(n, {})[key] = seconds, two[n]
    return found


def mpirun(*words, limit=600, **more):
    """Output of a program on ranks, and the seconds of the whole with its start."""
    text, _, wall = taken(["mpirun", "-q", *words], limit, env=environment(**MPI, **more))
    return text, wall


def by_ranks(name, arguments, read, options, thesis, **more):
    """A program over Plummer spheres: figures for each N and number of ranks, medians.

    `read` makes of the output a figure, with the seconds of the steps, and what is to be the same
    on all numbers of ranks. A rank has as many threads on one rank as on the most of them.
    `thesis`: {N: keys of a figure with kirin's seconds on one machine and two}.
    """
    counts = options.ranks or [1, 2]
    threads = max(1, len(os.sched_getaffinity(0)) // max(counts))
    more |= {"GRAPE6_BACKEND": options.backend, "GRAPE6_THREADS": threads}
    with tempfile.TemporaryDirectory() as folder:
        program, place = Path(folder, name), Path(grape6py.__file__).parent.parent
        subprocess.run(["make", "-s", "-C", ROOT / "legacy_examples", program, f"BUILD={folder}",
                        f"GRAPE6=env PYTHONPATH='{place}' '{sys.executable}' -m grape6py"],
                       check=True)  # fmt: skip
        for n in options.n or thesis:
            file = sphere(folder, n)
            first = same = None
            for ranks in counts:
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


def hermite(options):
    def read(text):
        steps, blocks = re.search(r"steps\s+(\d+)\s+blocks\s+(\d+)", text).groups()
        figure = {"steps": int(steps), "blocks": int(blocks),
                  "seconds": float(re.search(r"seconds of the steps\s+(\S+)", text)[1]),
                  "error": float(re.search(r"error by pot\s+(\S+)", text)[1])}  # fmt: skip
        return figure, re.search(r"state (\w+)", text)[1]

    thesis = columns("5.1", thesis_wall="total, {}", thesis="integration, {}")
    words = "-e", EPS, "-a", 0.02, "-t", 0.25, "-w"
    return by_ranks("mpi_hermite", words, read, options, thesis, GRAPE6_NPIPES=PIPES)


def treecode(options):
    settings = {"eps": TREE_EPS, "theta": TREE_THETA, "step": 1 / TREE_STEPS, "most": options.most}

    def read(text):
        line, times = times_of(text)
        lists, length = re.search(r"lists (\d+)\s+mean length (\S+)", text).groups()
        figure = settings | {"lists": int(lists), "mean_length": float(length), **times,
                             "error": float(text.split()[-1])}  # fmt: skip
        return figure, text.replace(line, "")

    given = zip("-e -o -d -g".split(), settings.values(), strict=True)
    words = [word for pair in given for word in pair]
    thesis = columns("5.2", thesis_wall="{} GPU")
    return by_ranks("treecode_mpi", [*words, "-t", 1, "-w"], read, options, thesis)


# ---- a GPU of several ranks --------------------------------------------------------


@contextlib.contextmanager
def mps():
    """NVIDIA's MPS: the environment that ranks need, and a function that sends it a command."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        places = {f"CUDA_MPS_{word}_DIRECTORY": str(Path(folder, word)) for word in ("PIPE", "LOG")}
        for place in places.values():
            os.mkdir(place)

        def control(*words, command=""):
            with Path(folder, "answer").open("w+") as answer:  # a daemon would keep a pipe open
                try:
                    status = subprocess.run(
                        [CONTROL, *words], input=f"{command}\n", stdout=answer, stderr=answer,
                        text=True, timeout=30, env=os.environ | places,
                    ).returncode  # fmt: skip
                except (OSError, subprocess.TimeoutExpired) as error:
                    raise Failed(str(error)) from None
                answer.seek(0)
                text = answer.read().strip()
            if status:
                raise Failed(text or f"{CONTROL}: status {status}")
            return text

        try:
            control("-d")
            control(command="get_server_list")
            yield places, control
        finally:
            with contextlib.suppress(Failed):
                control(command="quit -t 10")


def of_ranks(words, case, ranks, first, others=None, **more):
    """A figure of so many ranks, of which the others may have another environment.

    With "failed" in place of times if they fail.
    """
    ones = [("-n", 1, first), (":", "-n", ranks - 1, others)] if others else [("-n", ranks, first)]
    command = []
    for *count, settings in ones:
        command += [*count, "env", *(f"{k}={v}" for k, v in settings.items()), *words]
    try:
        text, wall = mpirun(*command, limit=LIMIT, GRAPE6_DEVICES=0, **more)
    except Failed as error:
        return {"case": case, "ranks": ranks, "failed": str(error)}
    return {"case": case} | json.loads(text) | {"wall": wall}


def shared_gpu(options):
    gpu = {"GRAPE6_BACKEND": options.backend}
    cases = {"GPU": (gpu,), "first on the GPU": (gpu, CPU), "CPU": (CPU,),
             "CPU, 2 threads": (CPU | {"GRAPE6_THREADS": 2},)}  # fmt: skip
    counts, (n,) = options.ranks or [1, 2, 4, 8], options.n or [SHARED_N]
    with tempfile.TemporaryDirectory() as folder:
        program = compile_c(HERE / "shared_gpu.c", folder, compiler="mpicc")
        words = program, n, SHARED_NI, options.seconds
        for ranks in counts:
            for case, environments in cases.items():
                if ranks > 1 or len(environments) == 1:
                    yield of_ranks(words, case, ranks, *environments)
        try:
            with mps() as (places, control):
                for ranks in counts:
                    figure = of_ranks(words, "GPU, MPS", ranks, gpu, **places)
                    if "failed" in figure:
                        raise Failed(figure["failed"])
                    if not control(command="get_server_list"):
                        raise Failed("the ranks have started no server")
                    yield figure
        except Failed as error:
            yield {"case": "GPU, MPS", "failed": str(error)}


if __name__ == "__main__":
    run(__doc__, {"mpi-hermite": hermite, "treecode-mpi": treecode, "shared-gpu": shared_gpu},
        gpu=lambda part, options: options.backend == "cuda",
        about=lambda options: {"backend": options.backend},
        n={"type": int, "nargs": "+", "help": "default: the thesis's, or 16384"},
        ranks={"type": int, "nargs": "+", "help": "the first: to compare with"},
        times={"type": int, "default": 3, "help": f"of runs below {SHORT:g} s"},
        most={"type": int, "default": 2048, "help": "bodies that share a list"},
        seconds={"type": float, "default": 0.5, "help": "of steps in a run of shared-gpu"},
        backend={"choices": ["cpu", "cuda"], "default": "cuda"})  # fmt: skip
