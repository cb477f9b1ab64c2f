"""Machine code of the kernels for GPUs, made ahead for a wheel.

    python packaging/machine_code.py FOLDER

CMake runs it with the option GRAPE6_MACHINE_CODE, which pip sets if the environment variable of
that name is 1. NVRTC comes from pip; without it the folder stays empty, and kernels are compiled at
their first launch. What is in the folder already is not made again.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nvrtc

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from grape6py.cuda import compiler, machine_code  # noqa: E402
from grape6py.cuda.tree import kernels  # noqa: E402


def direct():
    """Names of all kernels of direct sums."""
    text = (ROOT / "csrc/cuda/cuda.h").read_text(encoding="ascii")
    return re.findall(r"\bKERNEL\(\w+,\s*(?:\\\s*)?(\w+)\)", text)


def others():
    """Names of others, with the order of expansions that is usual."""
    text = (ROOT / "csrc/shared/tree_numbers.h").read_text(encoding="ascii")
    return kernels.usual(int(re.search(r"TREE_USUAL_ORDER = (\d)", text)[1]))


def wanted(cuda):
    """{name of a file: kernel, precision and architecture} of all files of a release."""
    names = [(name, precision) for precision in compiler.PRECISIONS for name in direct()]
    names += [(name, compiler.precision_of(name)) for name in others()]
    return {machine_code.file_name(*name, architecture, cuda): (*name, architecture)
            for architecture in machine_code.MADE_FOR for name in names}  # fmt: skip


def write(folder, name, kernel, precision, architecture):
    """One file, whole or not at all."""
    options = (*compiler.options_of(kernel, precision), f"-arch=sm_{architecture}")
    code, _ = nvrtc.compile_cubin(compiler.text_of(kernel), options)
    part = folder / f".{name}"
    part.write_bytes(machine_code.pack(name, code))
    part.rename(folder / name)


def make(folder):
    """Writes what is missing, on all processors, and removes what is of another version."""
    names = wanted(nvrtc.version()[0])
    there = {path.name for path in folder.iterdir()}
    for name in there - set(names):
        (folder / name).unlink()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        made = [pool.submit(write, folder, name, *what)
                for name, what in names.items() if name not in there]  # fmt: skip
        for job in made:
            job.result()
    return len(made)


def main(folder):
    """The same; one line says what there is."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place:  # as the build lays them out
        compiler.KERNELS = Path(place) / "kernels"
        shutil.copytree(ROOT / "grape6py/cuda/kernels", compiler.KERNELS)
        shutil.copytree(ROOT / "csrc/shared", compiler.KERNELS / "shared", dirs_exist_ok=True)
        try:
            made = make(folder)
        except nvrtc.Missing as missing:
            print(f"no machine code for GPUs in the package: {missing}")
            return
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"machine code for GPUs: {size / 1e6:.1f} MB, NVRTC {nvrtc.version()}; "
          f"{made} files made in {time.monotonic() - begin:.0f} s")  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
