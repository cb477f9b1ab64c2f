"""A graphics card on the CPU (tests/c/card.h), built once a run, and tests that run on it.

The kernels of grape6py/cuda are compiled for the CPU and take the place of a card: GRAPE6_TEST_CARD
names the library, which the bridge to Python then opens instead of CuPy.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import capi
import tools
from once import made_once
from variants import rules
from variants import run as compile_with

# gcc 12's SLP vectoriser spoils the low parts of split doubles.
FLAGS = """-std=c++17 -O2 -march=native -ffp-contract=off -fno-tree-slp-vectorize -fPIC -Wall
    -Wno-unknown-pragmas -Wno-unused-function""".split()


def build(folder):
    """Compiles the kernels in all modes, for libcard.so."""
    compiler = tools.need("g++")
    if rules().missing_for_bridge():
        pytest.skip(f"SKIP: no bridge to Python: {rules().missing_for_bridge()} is missing")
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
    compile_with([compiler, "-shared", *(job[-1] for job in jobs), "-o", folder / "libcard.so"])


@pytest.fixture(scope="session")
def card(shared_folder):
    """Path of the library that stands in for a graphics card."""
    return made_once(shared_folder / "card", build) / "libcard.so"


def pytest_on(card, *arguments, timeout=500, **env):
    """Runs other tests in a process of their own with the backend on this card; None: a true one.

    Returns what pytest printed and {test with its parameters: outcome}.
    """
    switches = {"GRAPE6_TEST_BACKEND": "cuda", **env}
    if card:
        switches["GRAPE6_TEST_CARD"] = str(card)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--assert=plain"]
    command += ["-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=capi.ROOT, env=capi.clean_environment({}) | switches,
                          check=False, capture_output=True, text=True, timeout=timeout)  # fmt: skip
    found = re.findall(r"^([A-Z]+) (tests/\S+::.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return done.stdout + done.stderr, {name: outcome for outcome, name in found}


def outcomes_on(card, files):
    """Outcomes of files of tests that need a process with the CUDA backend.

    Tests named test_auto* have the library's own choice of it. Returns {test: {case: outcome},
    "text": what pytest printed}.
    """
    found = {"text": ""}
    for backend, chosen in (("cuda", "not test_auto"), ("auto", "test_auto")):
        text, cases = pytest_on(card, *files, "-k", chosen, GRAPE6_TEST_BACKEND=backend)
        found["text"] += text
        for name, outcome in cases.items():
            test = re.search(r"::(\w+)", name)[1]
            found.setdefault(test, {})[name] = outcome
    return found


def names_of(files):
    """Names of the tests in files."""
    text = "\n".join(path.read_text() for path in files)
    return re.findall(r"^def (test_\w+)", text, re.MULTILINE)


def assert_passed(outcomes, name):
    """All cases of a test have passed, and there are some."""
    assert name in outcomes, outcomes["text"][-5000:]
    wrong = {case: how for case, how in outcomes[name].items() if how != "PASSED"}
    assert not wrong, outcomes["text"][-10000:]
