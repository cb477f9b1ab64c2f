"""The driver and the bridge to Python: what the driver says comes first, and no interpreter starts
for nothing. The device is fake_device.py's."""

import re

import pytest

import capi
from embedding import FAKE_GPU, INIT, assert_quiet

RUNTIME, NO_DEVICE = (capi.CONSTANTS[f"G6X_E_{name}"] for name in ("RUNTIME", "NO_DEVICE"))

# The system shows a device, and its driver takes its time.
SHOWN = """
#include <string.h>
#include <unistd.h>
int access(const char *path, int how)
{ return !strcmp(path, "/dev/nvidiactl") ? 0 : faccessat(-100, path, how, 0); }
"""
SLOWLY = """
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#define WRONG_THREAD !pthread_equal(starter, pthread_self())
static pthread_t starter;
int cuInit(unsigned flags)
{
    sigset_t blocked;
    starter = pthread_self();
    (void)pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    for (int k = 0; k < WAIT && !dlsym(RTLD_DEFAULT, "Py_IsInitialized"); k++) usleep(1000);
    /* Python does not start without CuPy; else it waits for us if it has not started. */
    if (WAIT > 100 && !dlsym(RTLD_DEFAULT, "Py_IsInitialized")) return 1;
    usleep(300000);
    return flags ? 1 : sigismember(&blocked, SIGALRM) ? INIT : 2;
}
"""


def slow(environment, init, count, wait=5000):
    """The environment with a device file and this driver in it."""
    code = FAKE_GPU.replace(INIT, SLOWLY.replace("WAIT", str(wait)))
    driver = environment.parts.fake_driver(init, count, 13000, code)
    return environment.preload("libshown.so", SHOWN, driver)


@pytest.fixture
def with_cupy(environment):
    """As far as the library looks before it starts Python."""
    (environment.site / "cupy").mkdir()
    (environment.site / "cupy/__init__.py").touch()
    return environment


def assert_none_started(done, code, words, printed="grape6: {}"):
    """No interpreter."""
    found, _, _, text = done.stdout.split(" ", 3)
    assert (done.returncode, int(found)) == (0, code), done.stderr
    assert all(word in text for word in words)
    assert done.stderr == printed.format(text)


@pytest.mark.parametrize(("init", "count", "code", "words"), [
    (0, 1, RUNTIME, ["cupy is missing", "grape6py[cuda12]"]), (0, 0, NO_DEVICE, ["no device"]),
    (100, 0, NO_DEVICE, ["no such luck"])])  # fmt: skip
def test_row03_row04_without_a_device_or_cupy_no_interpreter_starts(installed, init, count, code,
                                                                    words):  # fmt: skip
    env = {"LD_LIBRARY_PATH": installed.parts.fake_driver(init, count, 12040)}
    assert_none_started(installed.start("auto", env=env), code, words, printed="")
    assert_none_started(installed.start("refused", env=env), code, words)


def test_row03_row04_a_missing_cupy_is_named_though_the_driver_is_still_starting(installed):
    done = installed.start("refused", env=slow(installed, 0, 1, wait=50))
    assert_none_started(done, RUNTIME, ["cupy is missing", "grape6py[cuda13]"])


def test_python_starts_while_the_driver_does(with_cupy):
    assert_quiet(with_cupy.start(env=slow(with_cupy, 0, 1)))


@pytest.mark.parametrize(("init", "count", "said"), [(0, 0, "no device"), (100, 1, "no such luck")])
def test_row03_what_the_driver_says_comes_first_though_python_runs(with_cupy, init, count, said):
    done = with_cupy.start("codes", env=slow(with_cupy, init, count))
    assert re.match(rf"start {NO_DEVICE} .*{said}", done.stdout), done.stderr
    assert done.stderr.count("\n") == 1


def test_row03_without_a_driver_auto_costs_less_than_a_millisecond(installed):
    runs = [installed.start("auto", env={"LD_LIBRARY_PATH": None}) for _ in range(4)]
    if runs[0].returncode == 96:
        pytest.skip("this machine has a driver")
    found = [done.stdout.split(" ", 3) for done in runs]
    assert {(done.returncode, done.stderr) for done in runs} == {(0, "")}
    assert {int(code) for code, *_ in found} == {NO_DEVICE}
    assert min(float(first) for _, first, *_ in found) < 1000
    assert max(float(again) for *_, again, _ in found) < 100
