"""Which lines of csrc the last run of the tests reached, as a table.

    python tests/support/covered.py

Fails if fewer than LEAST percent of the lines were run. The tests count on variants["counted"]
(backends.py) and on the bridge of embedding.py; what reaches the lines that only the CPU's backends
run is run here once more: the C programs, and a minute of tests. Lines count once though kernels
are compiled for several instruction sets; those for other machines do not count. A process that is
ended by a signal leaves no counts."""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import capi
import fuzzing
from variants import BUILD, Variant, clean

LEAST = 97
PROGRAMS = [
    ("walk", [], {}),
    ("fuzz", ["1", "0", "3000"], {}),
    *(("nth_allocation", [], {"GRAPE6_BACKEND": backend, "GRAPE6_TEST_TREE": "always"})
      for backend in ("cpu", "cpu-tree")),
    ("mutated_row", [], {"GRAPE6_VERIFY": "1"}),
]  # fmt: skip
TESTS = """api/test_accuracy api/test_configuration api/test_few_body api/test_contract_g6x
    api/test_contract_neighbours api/test_contract_pointers api/test_faults_codes
    api/test_faults_host api/test_g5_clusters api/test_g5_faults api/test_g5_forces
    api/test_g5_names api/test_g5_sums api/test_log cli/test_cli
    python/test_softened_sums python/test_subsystems tree/test_own_softening tree/test_tree_faults
    tree/test_tree_share""".split()
# Of the CPU, in the instruction set that all machines have: the programs take the others.
CHOSEN = "not avx2 and not avx512 and not neon and not cuda and not tree] and not allocation"


def run(*command, **env):
    """Runs a command from the root of the tree; its failure ends this."""
    done = subprocess.run(list(map(str, command)), cwd=capi.ROOT, check=False,
                          env={**os.environ, **env})  # fmt: skip
    if done.returncode:
        sys.exit(f"{command[0]}: exit {done.returncode}")


def more(name):
    """What a program is compiled with."""
    return fuzzing.PARTS if name == "fuzz" else []


def main():
    counted = BUILD / "counted"
    if not list(counted.rglob("*.gcda")):
        sys.exit("no counts: run make test before")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        built = Variant(counted, Path(folder))
        started = [
            pool.submit(clean, [built.program(name, *more(name)), *arguments], printed=True, **env)
            for name, arguments, env in PROGRAMS
        ]
        for program in started:
            program.result()
    run(sys.executable, "-m", "pytest", "-q", "-n", 2, "--assert=plain", "-p", "no:cacheprovider",
        *(capi.TESTS / f"{name}.py" for name in TESTS), "-k", CHOSEN,
        GRAPE6_TEST_LIBRARY=str(counted / "libgrape6.so"))  # fmt: skip
    run(sys.executable, "-m", "gcovr", "--root", capi.ROOT, "--filter", "csrc/",
        "--object-directory", counted, "--txt-metric", "line",
        "--gcov-suspicious-hits-threshold", 0, "--fail-under-line", LEAST,
        "--merge-mode-functions", "separate",  # the widths of real have functions of their own
        *([] if "avx512f" in Path("/proc/cpuinfo").read_text() else ["--exclude", ".*avx512.h"]),
        *counted.glob("CMakeFiles/*.dir"), counted / "bridge")  # fmt: skip


if __name__ == "__main__":
    main()
