"""A graphics card on the CPU (tests/c/card.h), built once a run: the kernels of grape6py/cuda are
compiled for the CPU, and their library takes the driver's place (fake_device.py)."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import capi
import tools
from once import made_once
from variants import run as compile_with

DRIVER = "libcuda.so.1"

# gcc 12's SLP vectoriser spoils the low parts of split doubles.
FLAGS = """-std=c++17 -O2 -march=native -ffp-contract=off -fno-tree-slp-vectorize -fPIC -Wall
    -Wno-unknown-pragmas -Wno-unused-function""".split()


def build(folder):
    """Compiles the kernels in all modes, as a library of the driver's name."""
    compiler = tools.need("g++")
    tools.need_bridge()
    folder.mkdir(parents=True, exist_ok=True)
    kernels, card = capi.ROOT / "grape6py/cuda/kernels", capi.TESTS / "c/card.cc"
    paths = [f"-I{capi.ROOT / 'csrc'}", f"-I{kernels}", f"-I{capi.TESTS / 'c'}"]
    command = [compiler, "-x", "c++", *FLAGS, '-DGRAPE6_ON_CPU="card.h"', *paths]
    jobs = [[*command, "-c", card, "-o", folder / "card.o"]]
    for mode, number in capi.MODES.items():
        defines = [f"-DMODE={number}", f"-DCARD_MODE={mode}"]
        jobs.append(
            [*command, *defines, "-c", kernels / "direct/direct.cu", "-o", folder / f"{mode}.o"]
        )
    for order in (0, 2, 3, 4, 5, 6):
        defines = ["-DMODE=2", "-DCARD_MODE=tree", *([f"-DTREE_ORDER={order}"] if order else [])]
        out = folder / f"tree_{order}.o"
        jobs.append([*command, *defines, "-c", kernels / "tree/tree.cu", "-o", out])
    defines = ["-DMODE=1", "-DCARD_MODE=tree"]
    jobs.append([*command, *defines, "-c", kernels / "leapfrog.cu", "-o", folder / "leapfrog.o"])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_with, jobs))
    link = ["-shared", f"-Wl,-soname,{DRIVER}", *(job[-1] for job in jobs)]
    compile_with([compiler, *link, "-o", folder / DRIVER])


@pytest.fixture(scope="session")
def card(shared_folder):
    """Path of the library that stands in for a graphics card."""
    return made_once(shared_folder / "card", build) / DRIVER
