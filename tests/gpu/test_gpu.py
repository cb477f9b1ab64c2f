"""The direct sum on a GPU: pytest -m gpu. Skipped where there is none.

Errors and bits are those of tests/api and test_cuda_sums.py, which run on it. What needs no GPU is
tested elsewhere: every line of the kernels on a stand-in, the bridge to Python in test_bridge.py.
"""

import re
import shutil

import numpy as np
import pytest

import capi
from grape6py import reference
from legacy import ENERGY_ERROR, EPS, SNAPSHOT, force_errors, numbers, output_of
from tools import run, started

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("mode", ["grape", "double"])
@pytest.mark.parametrize("name", ["hermite", "hermite_f77", "kira_style", "ph4_style"])
def test_old_programs_keep_their_energy_on_the_gpu(run, name, mode):
    environment = (("GRAPE6_BACKEND", "cuda"), ("GRAPE6_PRECISION", mode))
    text = output_of(run(name, SNAPSHOT, environment=environment))
    (error,) = numbers(r"relative energy error\s*([-+]?\d\S*)", text)
    assert error <= ENERGY_ERROR


def test_a_treecode_finds_the_direct_sum_on_the_gpu(run, stars):
    """theta = 0: fresh lists of j particles for each group of i particles."""
    mass, pos, _ = stars
    exact = reference.direct_sum(mass, pos, eps2=EPS**2, extended=True)
    environment = (("GRAPE6_BACKEND", "cuda"),)
    process = run("treecode", SNAPSHOT, "-o", 0, "-t", "0.001", "-f", environment=environment)
    acc, pot = force_errors(output_of(process), exact)
    assert np.median(acc) <= 8e-8  # published, for 16 times as many pairs, is a quarter
    assert acc.max() <= 1.3e-6
    assert np.median(pot) <= 4e-8


def test_memory_checker_finds_nothing(tmp_path):
    checker = shutil.which("compute-sanitizer")
    if not checker:
        pytest.skip("compute-sanitizer is not here")
    program, source = tmp_path / "gpu_calls", capi.ROOT / "benchmarks/gpu_calls.c"
    library = capi.library_path().parent
    run(["gcc", "-O2", f"-I{capi.ROOT / 'include'}", source, "-o", program, f"-L{library}",
         f"-Wl,-rpath,{library}", "-lgrape6", "-lm"])  # fmt: skip
    steps = [program, *"scatter grape 2000 40".split()]
    for tool in ("memcheck", "racecheck"):
        env = capi.clean_environment({"GRAPE6_BACKEND": "cuda"})
        done = started([checker, "--tool", tool, *steps], env=env, timeout=300)
        if re.search(r"not supported|unable", done.stdout, re.IGNORECASE):
            pytest.skip("this machine allows no memory checker")
        assert re.search(r"(ERROR SUMMARY: 0 errors|SUMMARY: 0 hazards)", done.stdout), done.stdout


SCRIPT = """
import hashlib
from grape6py import Grape6, plummer
MASS, POS, VEL = plummer(100_000, seed=5)
hashed = hashlib.sha256()
with Grape6(backend="cuda", precision={mode!r}) as grape:
    grape.set_particles(MASS, POS, VEL, acc=-POS)
    for rows in (np.arange(100_000), np.arange(5000, 8000), np.arange(100)):
        found = grape.forces(POS[rows], VEL[rows], rows, nn=True, time=0.01)
        for array in found[:5]:
            hashed.update(array.tobytes())
    assert grape.backend.endswith("of them") == {several}
print(hashed.hexdigest())
"""


def test_bits_do_not_depend_on_the_number_of_devices(mode):
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    if count < 2:
        pytest.skip("there is one GPU")
    several = [",".join(map(str, range(n))) for n in range(2, count + 1)] + ["all"]

    def bits(named):
        script = SCRIPT.format(mode=mode, several=named != "0")
        return capi.run_python(script, timeout=300, GRAPE6_DEVICES=named).stdout

    assert {bits(named) for named in several} == {bits("0")}
