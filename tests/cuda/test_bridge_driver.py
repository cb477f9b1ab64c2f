"""The driver and the bridge to Python: what the driver says comes first, and no interpreter starts
for nothing. The device is fake_device.py's.
"""

import re
import shutil

import pytest

import capi
from embedding import FAKE_GPU, assert_quiet

RUNTIME, NO_DEVICE = (capi.CONSTANTS[f"G6X_E_{name}"] for name in ("RUNTIME", "NO_DEVICE"))
PROBES = "".join(f"void probe_{mode}(void) {{}}\n" for mode in ("grape", "double", "single"))

DRIVER = """
int cuInit(unsigned flags) { return flags ? 1 : INIT; }
int cuDeviceGetCount(int *count) { return *count = COUNT, 0; }
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuGetErrorString(int error, const char **text) { return *text = "no such luck", error < 0; }
"""


@pytest.mark.parametrize(("init", "count", "code", "words"), [
    (0, 1, RUNTIME, "cupy is missing"), (0, 0, NO_DEVICE, "no device"),
    (100, 0, NO_DEVICE, "no such luck")])  # fmt: skip
def test_row03_row04_without_a_device_or_cupy_no_interpreter_starts(installed, init, count, code,
                                                                    words):  # fmt: skip
    source = DRIVER.replace("INIT", str(init)).replace("COUNT", str(count))
    folder = installed.parts.fake("libcuda.so.1", source)
    env = {"LD_LIBRARY_PATH": folder}
    for how, line in (("auto", ""), ("refused", "grape6: {}")):
        done = installed.start(how, env=env)
        found, _, _, text = done.stdout.split(" ", 3)
        assert (done.returncode, int(found)) == (0, code), done.stderr
        assert words in text
        assert "grape6py[cuda12]" in text or code == NO_DEVICE
        assert done.stderr == line.format(text)


# The system shows a device, and its driver takes its time.
SHOWN = """
#include <string.h>
#include <unistd.h>
int access(const char *path, int how)
{ return !strcmp(path, "/dev/nvidiactl") ? 0 : faccessat(-100, path, how, 0); }
"""
SLOW_DRIVER = """
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static pthread_t starter;
int cuInit(unsigned flags)
{
    sigset_t blocked;
    starter = pthread_self();
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int k = 0; k < 5000 && !dlsym(RTLD_DEFAULT, "Py_IsInitialized"); k++) usleep(1000);
    if (!dlsym(RTLD_DEFAULT, "Py_IsInitialized")) return 1; /* Python has waited for us */
    usleep(300000);
    return flags ? 1 : sigismember(&blocked, SIGALRM) ? INIT : 2;
}
int cuDeviceGetCount(int *count) { return *count = COUNT, !pthread_equal(starter, pthread_self()); }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuGetErrorString(int error, const char **text) { return *text = "no such luck", error < 0; }
"""


def shown(installed, init, count):
    """The environment with a device file and this driver in it."""
    source = SLOW_DRIVER.replace("INIT", str(init)).replace("COUNT", str(count))
    parts = installed.parts
    preload = parts.fake("libshown.so", SHOWN) / "libshown.so"
    copy = installed.package / "libshown.so"  # LD_PRELOAD takes no blank
    shutil.copy(preload, copy)
    folder = parts.fake("libcuda.so.1", FAKE_GPU.split("int cuInit")[0] + PROBES + source)
    return {"LD_PRELOAD": copy.name, "LD_LIBRARY_PATH": f"{folder}:{installed.package}"}


def with_cupy(environment):
    """As far as the library looks before it starts Python."""
    (environment.site / "cupy").mkdir(exist_ok=True)
    (environment.site / "cupy/__init__.py").touch()


def test_python_starts_while_the_driver_does(environment):
    with_cupy(environment)
    assert_quiet(environment.start(env=shown(environment, 0, 1)))


@pytest.mark.parametrize(
    ("init", "count", "words"), [(0, 0, "no device"), (100, 1, "no such luck")]
)
def test_row03_what_the_driver_says_comes_first_though_python_runs(environment, init, count, words):
    with_cupy(environment)
    done = environment.start("codes", env=shown(environment, init, count))
    assert re.match(rf"start {NO_DEVICE} .*{words}", done.stdout), done.stderr
    assert done.stderr.count("\n") == 1


def test_row03_row04_a_missing_cupy_is_named_though_the_driver_is_still_starting(installed):
    """And no interpreter starts."""
    source = SLOW_DRIVER.replace("5000", "50").replace("return 1; /*", "return 0; /*")
    source = source.replace("INIT", "0").replace("COUNT", "1")
    env = shown(installed, 0, 1)
    folder = installed.parts.fake("libcuda.so.1", source)
    done = installed.start(
        "refused", env={**env, "LD_LIBRARY_PATH": f"{folder}:{installed.package}"}
    )
    found, _, _, text = done.stdout.split(" ", 3)
    assert (done.returncode, int(found)) == (0, RUNTIME), done.stderr
    assert "cupy is missing" in text
    assert "grape6py[cuda13]" in text


def test_row03_without_a_driver_auto_costs_less_than_a_millisecond(installed):
    env = {"LD_LIBRARY_PATH": None}
    runs = [installed.start("auto", env=env) for _ in range(8)]
    if runs[0].returncode == 96:
        pytest.skip("this machine has a driver")
    found = [done.stdout.split(" ", 3) for done in runs]
    assert {(done.returncode, done.stderr) for done in runs} == {(0, "")}
    assert {int(code) for code, *_ in found} == {NO_DEVICE}
    assert min(float(first) for _, first, *_ in found) < 1000
    assert max(float(again) for *_, again, _ in found) < 100
