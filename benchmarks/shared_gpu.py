"""Times block steps of ranks that share one GPU, as each rank of an old MPI program opens it.

    python benchmarks/shared_gpu.py [--name NAME] [--ranks 1 2 4 8] [--n 16384] [--ni 64]
                                    [--seconds 0.5] [--backend cuda] [--program PATH]

Runs shared_gpu.c: all ranks make their steps at the same time. Cases, for each number of ranks:

GPU                 all ranks on the first GPU, one process after the other
first on the GPU    the others with GRAPE6_BACKEND=cpu
CPU                 threads by the number of ranks on the machine, the library's default
CPU, 2 threads      GRAPE6_THREADS=2
GPU, MPS            all on the first GPU with NVIDIA's multi-process service, which the script
                    starts and ends; where that fails, "failed" says why in place of the figures

With --backend cpu the cases of the GPU are on the CPU, too, to try the script.
"""

import contextlib
import json
import os
import subprocess
import tempfile
from pathlib import Path

from harness import HERE, compile_c, run
from mpi_programs import mpirun

CONTROL = "nvidia-cuda-mps-control"
LIMIT = 60  # seconds of a run
CPU = {"GRAPE6_BACKEND": "cpu"}


class NoService(Exception):
    """MPS does not run, or the ranks do not use it."""


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
                    raise NoService(str(error)) from None
                answer.seek(0)
                text = answer.read().strip()
            if status:
                raise NoService(text or f"{CONTROL}: status {status}")
            return text

        try:
            control("-d")
            control(command="get_server_list")
            yield places, control
        finally:
            with contextlib.suppress(NoService):
                control(command="quit -t 10")


def taken(options, program, case, ranks, first, others=None, **more):
    """A figure of so many ranks, of which the others may have another environment.

    With "failed" in place of times if they fail.
    """
    words = program, options.n, options.ni, options.seconds
    ones = [("-n", 1, first), (":", "-n", ranks - 1, others)] if others else [("-n", ranks, first)]
    command = []
    for *count, environment in ones:
        command += [*count, "env", *(f"{k}={v}" for k, v in environment.items()), *words]
    try:
        text, wall = mpirun(*command, limit=LIMIT, GRAPE6_DEVICES=0, **more)
    except RuntimeError as error:
        return {"case": case, "ranks": ranks, "failed": str(error)}
    return {"case": case} | json.loads(text) | {"wall": wall}


def measured(options):
    gpu = {"GRAPE6_BACKEND": options.backend}
    cases = {"GPU": (gpu,), "first on the GPU": (gpu, CPU), "CPU": (CPU,),
             "CPU, 2 threads": (CPU | {"GRAPE6_THREADS": 2},)}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        program = options.program or compile_c(HERE / "shared_gpu.c", folder, compiler="mpicc")
        for ranks in options.ranks:
            for case, environments in cases.items():
                if ranks > 1 or len(environments) == 1:
                    yield taken(options, program, case, ranks, *environments)
        try:
            with mps() as (places, control):
                for ranks in options.ranks:
                    figure = taken(options, program, "GPU, MPS", ranks, gpu, **places)
                    if "failed" in figure:
                        raise NoService(figure["failed"])
                    if not control(command="get_server_list"):
                        raise NoService("the ranks have started no server")
                    yield figure
        except NoService as error:
            yield {"case": "GPU, MPS", "failed": str(error)}


if __name__ == "__main__":
    run(__doc__, {"shared-gpu": measured}, gpu=lambda part, options: options.backend == "cuda",
        about=lambda options: {"backend": options.backend},
        ranks={"type": int, "nargs": "+", "default": [1, 2, 4, 8]},
        n={"type": int, "default": 16384}, ni={"type": int, "default": 64},
        seconds={"type": float, "default": 0.5, "help": "of steps in a run"},
        program={"help": "shared_gpu, linked already"},
        backend={"choices": ["cpu", "cuda"], "default": "cuda"})  # fmt: skip
