"""Which lines of csrc the tests run: builds variants["coverage"], runs tests on it, prints a table.

    python tests/support/covered.py folder

The folder is made anew. Fails if a test fails or if fewer than LEAST percent of the lines were run.
Lines count once though kernels are compiled for several instruction sets; those for other machines
do not count. A process that is ended by a signal leaves no counts.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import capi
from variants import Variants, clean

LEAST = 98
# The files that reach lines which the others do not; the programs of run_others reach the rest.
TESTS = """block_calls block_faults configuration contract_clusters contract_extras contract_g6x
    contract_memory contract_partial contract_pointers contract_self faults_codes faults_corners
    faults_host faults_output g5_clusters g5_faults g5_forces g5_names log
    tree_backend tree_faults tree_search walks walks_faults""".split()
ON_CARDS = """arrays_bits arrays_calls arrays_hermite arrays_leapfrog arrays_writing cuda_close
    cuda_devices cuda_faults cuda_lists cuda_sums cuda_walks g5_backends""".split()
# Instruction sets share their lines, and walk.c takes them all; the verified tree sums every pair.
CHOSEN = "not avx2 and not avx512 and not row29_every and not verify_does_not"


def run(*command, **env):
    """Runs a command from the root of the tree and prints what it says; its failure ends this."""
    done = subprocess.run(list(map(str, command)), cwd=capi.ROOT, env={**os.environ, **env},
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)  # fmt: skip
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"{command[0]}: exit {done.returncode}")


def run_pytest(*arguments, **env):
    run(sys.executable, "-m", "pytest", "-q", "--assert=plain", "-p", "no:cacheprovider",
        *arguments, **env)  # fmt: skip


def files_of(names):
    return [path for name in names for path in capi.TESTS.glob(f"*/test_{name}.py")]


def run_contract(built):
    run_pytest(*files_of(TESTS), "-k", CHOSEN, GRAPE6_TEST_LIBRARY=str(built.library))


def run_others(built, folder):
    clean([built.program("walk")])
    for backend in ("cpu", "cpu-tree"):
        clean([built.program("nth_allocation")], printed=True,
              GRAPE6_BACKEND=backend, GRAPE6_TEST_TREE="always")  # fmt: skip
    for particles in ("ordinary", "parts"):
        clean([built.program("tree_memory"), particles], printed=True)
    clean([built.program("spoilt_row")], printed=True, GRAPE6_VERIFY="1")
    run_pytest("tests/cuda/test_bridge.py", GRAPE6_TEST_COVERAGE=str(folder / "bridge"))
    run_pytest(*files_of(ON_CARDS), GRAPE6_TEST_LIBRARY=str(built.library))


def main(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    built = Variants(folder)["coverage"]
    with ThreadPoolExecutor() as pool:  # counts are added up in files that a process locks
        parts = [pool.submit(run_contract, built), pool.submit(run_others, built, folder)]
    for part in parts:
        part.result()
    run(sys.executable, "-m", "gcovr", "--root", capi.ROOT, "--filter", "csrc/",
        "--object-directory", built.folder, "--txt-metric", "line", "--fail-under-line", LEAST,
        *built.folder.glob("CMakeFiles/*.dir"), folder / "bridge")  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
