"""Faults on a true GPU (rows of docs/errors.md): pytest -m gpu. Each in a process of its
own, since a GPU that has failed stays lost there. On the fake device: test_cuda_faults.py."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import capi

pytestmark = pytest.mark.gpu
SETUP = """
import os
import cupy
import pytest
from grape6py import Grape6, errors, plummer
MASS, POS, VEL = plummer(4096, seed=8)

def filled(**options):
    grape = Grape6(**options)
    grape.set_particles(MASS, POS, VEL)
    return grape

def same(one, two):
    return all(np.array_equal(a, b) for a, b in zip(one[:3], two[:3], strict=True))

CPU = filled(backend="cpu").forces()
"""
# A kernel that writes where no memory is: all later calls of this process fail.
BREAK = """
def break_gpu():
    kernel = cupy.RawKernel('extern "C" __global__ void broken(int *a) { *a = 1; }', "broken")
    kernel((1,), (1,), (np.uint64(8),))
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        cupy.cuda.runtime.deviceSynchronize()
"""


def run(script, **env):
    return capi.run_python(SETUP + script, timeout=300, **env)


FILL = """
taken = []
free = lambda: cupy.cuda.Device().mem_info[0]
while free() > 64e6:
    taken.append(cupy.cuda.alloc(int(max(free() * 0.9, 32e6))))
"""


def test_row01_no_memory_at_growth():
    """The caller's error if the GPU was asked for; else on with the CPU, and nothing is lost."""
    run(f"""
asked, auto = filled(backend="cuda"), filled()
asked.forces(), auto.forces()
{FILL}
n = 3_000_000
more = np.zeros(n), np.ones((n, 3))
for grape in (asked, auto):
    grape.set_particles(*more, address=np.arange(n))
    grape.set_particles(MASS, POS, VEL, address=np.arange(4096))
with pytest.raises(errors.OutOfMemoryError, match="GB"):
    asked.forces(POS[:10], VEL[:10], np.arange(10))
found = auto.forces(POS[:10], VEL[:10], np.arange(10))
assert auto.backend.startswith("cpu"), auto.backend
taken.clear()
cupy.get_default_memory_pool().free_all_blocks()
asked.forces(POS[:10], VEL[:10], np.arange(10))
assert asked.backend.startswith("cuda")
""")


def test_row02_a_lost_gpu_is_not_used_any_more():
    done = run(f"""{BREAK}
asked, auto = filled(backend="cuda"), filled()
asked.forces(), auto.forces()
break_gpu()
for _ in range(2):
    with pytest.raises(errors.BackendError, match="not used any more"):
        asked.forces()
assert same(auto.forces(), CPU)
assert auto.backend.startswith("cpu")
later = Grape6()
later.set_particles(MASS, POS, VEL)
assert same(later.forces(), CPU)
for grape in (asked, auto, later):
    grape.close()
""")
    assert not done.stdout


WITHOUT = """
import sys
import pytest
sys.path.insert(0, {folder!r})
from grape6py import Grape6, errors
with Grape6() as grape:
    grape.set_particles([1.0, 1.0], [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    grape.forces()
    assert grape.backend.startswith("cpu")
with pytest.raises(errors.BackendError, match={missing!r}):
    Grape6(backend="cuda")
"""


@pytest.mark.parametrize(("env", "folder", "missing"), [
    pytest.param({"CUDA_VISIBLE_DEVICES": ""}, "", "device", id="row03"),
    pytest.param({"GRAPE6_DEVICES": "99"}, "", "GRAPE6_DEVICES", id="row03-number"),
    pytest.param({}, "{}", "CuPy cannot be imported", id="row04"),
])  # fmt: skip
def test_without_a_device_or_cupy_the_cpu_does_it(tmp_path, env, folder, missing):
    """Of a host whose Python has no CuPy a line says what to install."""
    (tmp_path / "cupy_backends.py").write_text("raise ImportError('no CuPy here')\n")
    capi.run_python(WITHOUT.format(folder=folder.format(tmp_path), missing=missing), **env)


def test_row28_ten_million_particles():
    run("""
n = 10_000_000
rng = np.random.default_rng(1)
pos = rng.standard_normal((n, 3))
import warnings
warnings.simplefilter("ignore")
with Grape6(backend="cuda") as gpu, Grape6(backend="cpu") as cpu:
    for grape in (gpu, cpu):
        grape.set_particles(np.full(n, 1 / n), pos)
    one, two = (grape.forces(pos[:3], index=np.arange(3)) for grape in (gpu, cpu))
    assert np.allclose(one.acc, two.acc, rtol=1e-5, atol=1e-7)
    assert np.allclose(one.pot, two.pot, rtol=1e-6)
""")


def test_row30_a_forked_child():
    run("""
asked, auto = filled(backend="cuda"), filled()
before = asked.forces(), auto.forces()
child = os.fork()
if child == 0:
    try:
        asked.forces()
        os._exit(1)
    except errors.Grape6Error as error:
        if "fork" not in str(error):
            os._exit(2)
    os._exit(0 if same(auto.forces(), CPU) and auto.backend.startswith("cpu") else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert same(asked.forces(), before[0]) and same(auto.forces(), before[1])
""")


def test_row34_several_ranks_share_the_gpu():
    script = """
with filled(backend="cuda") as grape:
    print(grape.forces(nn=True).acc.tobytes().hex()[:4000])
"""

    def rank(number):
        return run(script, OMPI_COMM_WORLD_LOCAL_RANK=str(number)).stdout.strip()

    with ThreadPoolExecutor(4) as pool:
        (bits,) = {*pool.map(rank, range(4))}
    assert bits
