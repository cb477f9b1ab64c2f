"""CPU or GPU: what `auto` decides, when, and from which costs."""

import stat

import pytest

import capi
import costs

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


def run(script, folder, numbers=None, **env):
    if numbers:
        costs.keep(folder, numbers)
    return capi.run_python(START + script, XDG_CACHE_HOME=str(folder), **env)


@pytest.mark.parametrize(
    ("numbers", "wanted"), [(costs.GPU_WINS, "cuda"), (costs.CPU_WINS, "cpu")], ids=["gpu", "cpu"]
)
def test_the_first_force_call_decides_and_says_why(tmp_path, numbers, wanted):
    script = "s = opened(); print(name()); force(s); print(name()); force(s); print(name())"
    done = run(script, tmp_path, numbers, GRAPE6_LOG="info")
    undecided, *names = done.stdout.splitlines()
    assert undecided == "auto, decided at the first force call"
    assert [name.split()[0] for name in names] == [wanted] * 2
    assert f"cluster 0: auto takes {wanted}: a run of 300 j particles in calls of 48" in done.stderr
    assert f"backend {wanted}, device" in done.stderr


def test_where_the_cpu_wins_neither_driver_nor_python_is_started(tmp_path):
    script = """
force(opened())
from grape6py.cuda import bridge
assert next(bridge._cookies) == 1  # the number of the first device that is opened
"""
    run(script, tmp_path, costs.CPU_WINS)


def test_bits_are_those_of_the_backend_that_was_taken(tmp_path):
    script = """
import os, hashlib
s = opened()
f = s.force(300, source.x, source.v, source.index)
print(name().split()[0], hashlib.sha256(f.bits()).hexdigest())
"""
    auto = [run(script, tmp_path / n, numbers).stdout.split() for n, numbers in
            (("g", costs.GPU_WINS), ("c", costs.CPU_WINS))]  # fmt: skip
    fixed = [run(script, tmp_path, GRAPE6_BACKEND=n).stdout.split() for n in ("cuda", "cpu")]
    assert auto == fixed


def test_it_can_be_decided_beforehand(tmp_path):
    script = """
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
"""
    run(script, tmp_path, costs.CPU_WINS)


def test_a_choice_can_be_asked_for_without_a_cluster(tmp_path):
    script = """
code, why = text("g6x_choice", 48, 300)
assert code == CONSTANTS["G6X_BACKEND_CPU"], why
assert "300 j particles in calls of 48 i particles" in why
assert text("g6x_choice", 0, 300)[0] == CONSTANTS["G6X_E_ARGUMENT"]
"""
    run(script, tmp_path, costs.CPU_WINS)


def test_a_session_that_has_outgrown_the_cpu_moves_at_a_reset_and_not_before(tmp_path):
    """A GPU that starts in a second pays after so many calls."""
    numbers = costs.GPU_WINS | {"cpu_call": 2e-4, "cpu_pair": 1e-15, "gpu_start": 1.0}
    script = """
s = opened()
force(s)
assert name().startswith("cpu")
for _ in range(6000):
    s.force(300, source.x[:48], source.v[:48], source.index[:48], nearest=False)
assert name().startswith("cpu")
assert call("g6_reset", 0) == 0
force(s)
assert name().startswith("cuda")
"""
    run(script, tmp_path, numbers)


@pytest.mark.parametrize("pending", [True, False])
def test_results_of_before_a_reset_are_not_asked_of_the_gpu(tmp_path, pending):
    script = f"""
import numpy as np
s = opened()
force(s)
half = 300, source.x, source.v, source.index
assert s.first(*half) == 0
if not {pending}:
    assert s.last(*half).code == 0
assert call("g6_reset", 0) == 0
assert call("g6x_prepare", 0, 0, 0) == 0
assert name().startswith("cuda"), name()
late = s.last(*half)
assert late.code == CONSTANTS["G6X_E_NO_FIRSTHALF"]
assert np.isnan(late.acc).all()
assert s.neighbour_lists(300, 5)[0] == CONSTANTS["G6X_E_NO_FIRSTHALF"]
force(s)
"""
    run(script, tmp_path, costs.CPU_WINS)


def test_the_host_keeps_its_floating_point_flags(tmp_path):
    script = """
import ctypes, ctypes.util
libm = ctypes.CDLL(ctypes.util.find_library("m"))
buffer = ctypes.create_string_buffer(300)
function = library().g6x_choice
libm.feclearexcept(61)
function(48, 300, buffer, 300)
assert libm.fetestexcept(61) == 0
"""
    run(script, tmp_path)


def test_a_child_that_is_forked_while_costs_are_measured_measures_them_anew(tmp_path):
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
    run(script, tmp_path)


# ---- the file ----------------------------------------------------------------------------


def own_file(folder, settings="-*"):
    """The file for the settings of the process; costs.path() is that for all."""
    (found,) = costs.path(folder).parent.glob(f"{costs.path(folder).name}{settings}")
    return found


def known(path):
    lines = path.read_text().splitlines()
    return {name: int(value) * costs.UNIT for name, value in map(str.split, lines)}


def test_costs_are_measured_once_and_kept_for_the_user_alone(tmp_path):
    run("force(opened())", tmp_path)
    file = own_file(tmp_path)
    first = known(file)
    for name in ("cpu_call", "cpu_pair", "cpu_j", "cpu_fork", "cpu_thread"):
        assert 0 < first[name] < 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    run("force(opened())", tmp_path)
    assert known(file) == first
    run("force(opened())", tmp_path, GRAPE6_BACKEND="cuda")
    more = known(own_file(tmp_path))
    assert more["gpu_start"] > 0
    assert more["gpu_call"] > 0
    assert {name: more[name] for name in first if name.startswith("cpu")} == {
        name: first[name] for name in first if name.startswith("cpu")
    }


def damage(path, kind):
    if kind == "directory":
        path.unlink()
        path.mkdir()
    elif kind == "link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
    else:
        path.write_bytes(
            {
                "empty": b"",
                "zeros": bytes(9000),
                "text": b"cpu_j\n\xff\xfe 1e999 x\n",
                "nonsense": b"cpu_pair -1\ncpu_call nan\ncpu_call 1e15\ncpu_j 1,5\ngpu_start 1"
                + b"0" * 18,
            }[kind]
        )


@pytest.mark.parametrize("kind", ["empty", "zeros", "text", "nonsense", "directory", "link"])
def test_a_file_that_is_none_is_as_if_it_were_not_there(tmp_path, kind):
    run("force(opened())", tmp_path)
    file = own_file(tmp_path)
    damage(file, kind)
    done = run("force(opened()); print(name())", tmp_path)
    assert done.stdout.startswith(("cpu", "cuda"))  # as was measured
    assert not done.stderr
    if kind not in ("directory", "link"):
        assert 0 < known(file)["cpu_call"] < 1


def test_unlike_settings_have_costs_of_their_own(tmp_path):
    run("force(opened())", tmp_path, GRAPE6_THREADS="1")
    run("force(opened())", tmp_path, GRAPE6_THREADS="1", GRAPE6_PRECISION="double")
    run("force(opened())", tmp_path, GRAPE6_THREADS="2", GRAPE6_ISA="base")
    auto, double, base = (known(own_file(tmp_path, s)) for s in ("-3-*-1", "-1-*-1", "-3-base-2"))
    assert min(costs["cpu_pair"] for costs in (auto, double, base)) > 0
    assert auto["cpu_thread"] == double["cpu_thread"] == 0.5  # as nothing was measured


def test_a_file_for_all_settings_goes_before_measuring(tmp_path):
    run("force(opened())", tmp_path, costs.CPU_WINS, GRAPE6_PRECISION="double")
    assert [path.name for path in costs.path(tmp_path).parent.iterdir()] == [
        costs.path(tmp_path).name
    ]


def test_a_limit_of_the_file_size_kills_nobody(tmp_path):
    script = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
force(opened())
"""
    run(script, tmp_path)
    assert not costs.path(tmp_path).parent.exists()


def test_a_file_that_lacks_something_is_made_anew(tmp_path):
    run("force(opened())", tmp_path)
    file = own_file(tmp_path)
    file.write_text("cpu_pair 1\n")
    run("force(opened())", tmp_path)
    assert known(file)["cpu_pair"] > 1e-15


def test_without_a_place_for_the_file_all_goes_on(tmp_path):
    (tmp_path / "file").write_text("")
    script = "force(opened()); print(name())"
    for env in ({"XDG_CACHE_HOME": "relative"}, {"XDG_CACHE_HOME": "", "HOME": ""},
                {"XDG_CACHE_HOME": str(tmp_path / "file/below")}):  # fmt: skip
        done = capi.run_python(START + script, **env)
        assert done.stdout.startswith(("cpu", "cuda"))  # as was measured
        assert not done.stderr
    assert not (tmp_path / "relative").exists()
