"""CPU or GPU: what `auto` decides, and when."""

import re

import pytest

import capi

pytestmark = pytest.mark.backends("auto")
START = """
from particles import cloud
source = cloud(300)
def name():
    return text("g6x_backend", 0)[1]
def opened():
    assert call("g6_open", 0) == 0
    s = Session.unopened(0)
    s.put_cloud(source)
    return s
def force(s, ni=48):
    assert s.force(300, source.x[:ni], source.v[:ni], source.index[:ni]).code == 0
"""

GPU_WINS, CPU_WINS = "-1e9", "1e9"  # seconds to open a GPU


def run(script, start=CPU_WINS, **env):
    return capi.run_python(START + script, GRAPE6_TEST_GPU_START=start, **env)


@pytest.mark.parametrize(("start", "wanted"), [(GPU_WINS, "cuda"), (CPU_WINS, "cpu")])
def test_the_first_force_call_decides_and_says_why(start, wanted):
    script = "s = opened(); print(name()); force(s); print(name()); force(s); print(name())"
    done = run(script, start, GRAPE6_LOG="info")
    undecided, *names = done.stdout.splitlines()
    assert undecided == "auto, decided at the first force call"
    assert [name.split()[0] for name in names] == [wanted] * 2
    assert f"cluster 0: auto takes {wanted}: a run of 300 j particles in calls of 48" in done.stderr
    assert f"backend {wanted}, device" in done.stderr


def test_where_the_cpu_wins_neither_driver_nor_python_is_started_and_it_may_be_asked_before():
    run("""
import ctypes.util
libm, buffer = ctypes.CDLL(ctypes.util.find_library("m")), ctypes.create_string_buffer(300)
libm.feclearexcept(61)
assert library().g6x_choice(48, 300, buffer, 300) == CONSTANTS["G6X_BACKEND_CPU"]
assert libm.fetestexcept(61) == 0  # the host's flags
force(opened())
from grape6py.cuda import bridge
assert next(bridge._cookies) == 1  # the number of the first device that is opened
call("g6_close", 0)
code, why = text("g6x_choice", 48, 300)
assert "300 j particles in calls of 48 i particles" in why
assert text("g6x_choice", 0, 300)[0] == CONSTANTS["G6X_E_ARGUMENT"]
for ni, wanted in ((48, "cpu"), (0, "cuda")):
    s = opened()
    assert call("g6x_prepare", 0, ni, 300) == 0
    assert name().startswith(wanted), name()
    assert call("g6x_prepare", 0, 48 - ni, 300) == 0
    force(s)
    assert name().startswith(wanted)
    call("g6_close", 0)
call("g6_open", 0)
for wrong in ((-1, 5), (5, -1)):
    assert call("g6x_prepare", 0, *wrong) == CONSTANTS["G6X_E_ARGUMENT"]
""")


def test_a_session_on_the_cpu_chooses_again_at_a_reset_and_after_short_lists_of_a_treecode():
    """A list is of particles at rest; a particle that moves ends that. Not at other moments; and
    results of before a reset are not asked of the GPU."""
    script = f"""
import os
s = opened()
half = 300, source.x, source.v, source.index
def take_gpu(wins):
    os.environ["GRAPE6_TEST_GPU_START"] = "{GPU_WINS}" if wins else "{CPU_WINS}"
for pending in True, False:
    take_gpu(False)
    s.close()
    s = opened()
    force(s)
    take_gpu(True)
    assert s.first(*half) == 0
    assert pending or s.last(*half).code == 0
    assert name().startswith("cpu")
    assert call("g6_reset", 0) == call("g6x_prepare", 0, 0, 0) == 0
    assert name().startswith("cuda"), name()
    late = s.last(*half)
    assert late.code == CONSTANTS["G6X_E_NO_FIRSTHALF"]
    assert np.isnan(late.acc).all()
    assert s.neighbour_lists(300, 5)[0] == CONSTANTS["G6X_E_NO_FIRSTHALF"]
    force(s)
def lists(n):
    for k in range(n):
        call("g6_set_j_particle_mxonly", 0, k, k, source.mass[k], source.x[k])
    zeros = np.zeros((8, 3))
    return s.force(n, source.x[-8:], zeros, np.arange(1000, 1008, dtype=np.int32))
for moving in True, False:
    take_gpu(False)
    s.close()
    s = opened()
    for n in 100, 40, 290:
        few = lists(n)
        assert name().startswith("cpu"), name()
    if moving:
        s.put_cloud(source)
        force(s)
    take_gpu(True)
    assert call("g6x_prepare", 0, 48, 290) == 0
    assert name().startswith("cpu")
    for _ in range(5):  # the fourth or the eighth call chooses
        again = lists(290)
    assert name().startswith("cpu" if moving else "cuda"), name()
    assert np.allclose(again.acc, few.acc, rtol=1e-6)
"""
    run(script)


def test_a_run_is_taken_to_be_as_long_as_what_was_computed():
    script = """
s = opened()
for _ in range(6 * 165):
    assert s.force(1, source.x[:1], source.v[:1], source.index[:1]).code == 0
assert call("g6_reset", 0) == 0
s.force(1, source.x[:1], source.v[:1], source.index[:1])
"""
    log = run(script, GRAPE6_LOG="info").stderr
    first, later = (float(s) for s in re.findall(r"taken to cost (\S+) s on the CPU", log))
    assert later == pytest.approx(6 * first, rel=0.1)


# What was measured (benchmarks/pages/runs.md), where CPU and GPU differ by a factor of two or more,
# and the seconds that a pair took on one core there.
PAIR = "4e-10"
FASTER = {
    "CPU": [*((ni, 256) for ni in (1, 32, 48, 256)), (1, 1024), (1024, 1024), (1, 4096)],
    "CUDA": [*((ni, nj) for nj in (16384, 65536) for ni in (32, 48, 1024, 16384)),
             (256, 5000), (1024, 8000), (2048, 10000)],  # lists
}  # fmt: skip


def test_a_choice_is_that_of_the_faster_one():
    script = f"""
for wanted, sizes in {FASTER}.items():
    for ni, nj in sizes:
        code, why = text("g6x_choice", ni, nj)
        assert code == CONSTANTS["G6X_BACKEND_" + wanted], why
"""
    run(script, "0.2", GRAPE6_TEST_CPU_PAIR=PAIR)


def test_a_child_may_be_forked_while_the_cpu_is_timed():
    script = """
import os, threading, time
threading.Thread(target=lambda: text("g6x_choice", 48, 300)).start()
for _ in range(20):
    child = os.fork()
    if not child:
        os._exit(text("g6x_choice", 48, 300)[0])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (1, 2)
    time.sleep(0.001)
"""
    run(script)
