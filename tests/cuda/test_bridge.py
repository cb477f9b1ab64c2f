"""The bridge to Python, from hosts that are no Python: started from any environment, refused with
the piece that is missing, and nothing of the host's own changed. The device is fake_device.py's."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import capi
import tools
from embedding import LIBPYTHON, MINOR, SITE, TRAPS, assert_quiet

PYTHON, RUNTIME = (capi.CONSTANTS[f"G6X_E_{name}"] for name in ("PYTHON", "RUNTIME"))
HOSTILE = "import os\nos._exit(66)\n"


# ---- any environment ---------------------------------------------------------------
def hostile(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HOSTILE)
        path.chmod(0o755)
    return folder


def misleading(e, folder):
    """Each of these has led some embedded Python astray."""
    ending = "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { _exit(66); }"
    libpython = e.parts.fake(f"libpython{MINOR}.so.1.0", ending)
    modules = hostile(folder / "p", "numpy.py", "sitecustomize.py", "grape6py.py", "encodings.py")
    env = {
        "PYTHONPATH": modules, "PYTHONHOME": folder, "PYTHONPLATLIBDIR": "nowhere",
        "PYTHONVERBOSE": "1", "PYTHONINSPECT": "1", "PYTHONDUMPREFS": "1",
        "PYTHONWARNINGS": "error", "VIRTUAL_ENV": folder, "CONDA_PREFIX": folder,
        "PATH": hostile(folder / "bin", "python", "python3", f"python{MINOR}"), "HOME": folder,
        "PYTHONUSERBASE": hostile(folder / ".local", f"{SITE}/numpy.py"), "LANG": "xx",
        "LC_ALL": "tlh_KX.UTF-8", "LD_LIBRARY_PATH": e.parts.with_driver(libpython),
    }  # fmt: skip
    return {"env": env, "cwd": modules}


def lacking(e, folder):
    """No working directory any more, no streams, no children and no home."""

    def begin():
        (folder / "gone").mkdir()
        os.chdir(folder / "gone")
        os.rmdir(folder / "gone")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for stream in range(3):
            os.close(stream)

    return {"preexec_fn": begin, "env": {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}}


# What a host may be started with, made from the environment e and a folder of the test.
SITUATIONS = {
    "nothing": lambda e, folder: {"cwd": folder},
    "misleading": misleading,
    "lacking": lacking,
    "full-output": lambda e, folder: {"stdout": open("/dev/full", "w"), "capture_output": False,  # noqa: SIM115
                                      "stderr": subprocess.PIPE},
    "grape6-python": lambda e, folder: {"env": {"GRAPE6_PYTHON": e.folder}},
    "row32-traps": lambda e, folder: {"how": "traps"},
    "fortran-traps": lambda e, folder: {"program": e.parts.fortran("fortran-traps", TRAPS)},
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_host_opens_a_device_from_any_environment(installed, situation, tmp_path):
    assert_quiet(installed.start(**SITUATIONS[situation](installed, tmp_path)))


# ---- where Python and its packages are found -----------------------------------------
@pytest.fixture
def moved(environment):
    """One whose package lies beside it, as a source tree has it, and writes the file there that
    says which Python to take."""
    package = environment.folder / "tree" / "grape6py"
    package.parent.mkdir()
    environment.package = environment.package.rename(package)
    environment.told = package / "lib/interpreter"
    return environment


def test_a_library_in_no_environment_goes_by_the_file_beside_it(moved):
    moved.told.write_text(f"executable = {moved.python}\n")
    assert_quiet(moved.start())
    based_on(moved, ENCODINGS)
    libpython = moved.package / "lib/libgrape6.so"
    moved.told.write_text(f"executable = {moved.python}\nlibpython = {libpython}\n")
    done = moved.start("refused")
    assert "the bridge cannot be loaded" in done.stderr  # since no libpython came before it


@pytest.mark.parametrize("text", [None, "executable = /nonexistent/python\n", "executable\n"])
def test_row05_a_library_that_knows_no_python_says_what_to_do(moved, text):
    if text:
        moved.told.write_text(text)
    done = moved.start("refused")
    assert int(done.stdout.split()[0]) == PYTHON
    assert "grape6 config --python" in done.stderr


def test_packages_may_lie_where_a_pth_file_points(environment):
    (environment.folder / "more").mkdir()
    (environment.site / "numpy").rename(environment.folder / "more/numpy")
    lines = f"# more\nimport sys\n\n/nonexistent\n{environment.folder}/more\n"
    (environment.site / "more.pth").write_text(lines)
    assert_quiet(environment.start())


@pytest.mark.parametrize("place", [SITE, SITE.replace("lib", "lib64", 1),
                                   "lib/python3/dist-packages",
                                   f"local/{Path(SITE).parent}/dist-packages"])  # fmt: skip
def test_packages_of_the_system_are_seen_if_the_environment_sees_them(environment, place):
    based_on(environment, ENCODINGS, f"lib64/libpython{MINOR}.so.1.0", f"{place}/numpy/__init__.py")
    no_numpy(environment)
    no_cffi(environment)
    for seen, missing in (("true", "cffi"), ("false", "numpy")):
        environment.configure(r"(packages = )\w+", rf"\1{seen}")
        assert f"{missing} is missing" in environment.start("refused").stderr


@pytest.mark.parametrize("wish", ["/nonexistent", "/etc", "/bin/sh"])
def test_row05_a_wish_that_is_no_python_is_named(installed, wish):
    done = installed.start("refused", env={"GRAPE6_PYTHON": wish})
    assert int(done.stdout.split()[0]) == PYTHON
    assert done.stderr.startswith(f"grape6: GRAPE6_PYTHON={wish}: it must be")


# ---- what is the host's own --------------------------------------------------------
@pytest.mark.parametrize("how", [
    pytest.param("threads", id="row35-eight-threads-with-small-stacks-open-at-once"),
    pytest.param("signals", id="row31-signal-handlers-run-on-the-hosts-own-threads"),
    pytest.param("fork", id="row30-a-child-is-refused-by-every-call-and-the-parent-goes-on"),
])  # fmt: skip
def test_what_is_the_hosts_own_stays_so(installed, how):
    assert_quiet(installed.start(how, env={"GRAPE6_LOG": "none"}))


def test_what_python_prints_does_not_come_out_at_the_hosts_stdout(environment):
    environment.extend("device", "print('said')\nsys.__stdout__.write('more')\n")
    done = environment.start()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "said\nmore")


# ---- what is missing ---------------------------------------------------------------
def no_numpy(environment):
    (environment.site / "numpy").unlink()


def no_cffi(environment):
    next(environment.site.glob("_cffi_backend*")).unlink()


def bridge(environment):
    return next(environment.package.glob("_bridge*.so"))


def other_bridge(environment):
    bridge(environment).rename(environment.package / "_bridge.cpython-399-x86_64-linux-gnu.so")


ENCODINGS = f"{Path(SITE).parent}/encodings/__init__.py"


def based_on(environment, *files):
    """Says that the environment stems from a Python that has these files alone."""
    base = environment.folder / "base"
    for name in ("bin/python3", *files):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).touch()
    environment.configure(r"^home = .*$", f"home = {base}/bin")


MISSING = {
    "GRAPE6_PYTHON": lambda e: (e.folder / "bin").rename(e.folder / "no-bin"),
    "numpy is missing": no_numpy, "cffi is missing": no_cffi,
    "without the bridge": lambda e: bridge(e).unlink(), "installed for Python 3.99": other_bridge,
    "standard library": based_on, "without a shared library": lambda e: based_on(e, ENCODINGS),
    "not inside its Python package": lambda e: shutil.rmtree(e.package / "cuda"),
}  # fmt: skip


@pytest.mark.parametrize("named", MISSING)
def test_row05_a_missing_piece_is_named_and_no_interpreter_starts(environment, named):
    MISSING[named](environment)
    done = environment.start("refused")
    code, _, _, text = done.stdout.split(" ", 3)
    assert (done.returncode, int(code)) == (0, PYTHON), done.stderr
    assert named in text
    assert done.stderr == f"grape6: {text}"


# ---- Python that fails -------------------------------------------------------------
CALLS = ["open", "kernels", "allocate", "release", "close"]


def answers(environment):
    """{call: (code, text)} of each of the five, and what was printed on stderr."""
    done = environment.start("codes")
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^(\w+)\(.*\) (-?\d+) (.*)$", done.stdout, re.MULTILINE)
    return {call: (int(code), text) for call, code, text in lines}, done.stderr


@pytest.mark.parametrize(("call", "error"), [
    ("open", "KeyboardInterrupt()"), ("open", "MemoryError()"), ("open", "a.b"),
    ("kernels", "ValueError('no luck')"), ("allocate", "SystemExit(0)"),
    ("release", "KeyboardInterrupt()"), ("close", "MemoryError()"),
])  # fmt: skip
def test_a_call_that_raises_gives_a_code_and_a_text(environment, call, error):
    define = "open_device" if call == "open" else f"Device.{call}"
    environment.extend("device", f"def fail(*_):\n    raise {error}\n{define} = fail\n")
    found, printed = answers(environment)
    later = set(CALLS) - {"close"} if call == "open" else {call}
    memory = error.startswith("MemoryError")
    assert found[call][0] == (capi.CONSTANTS["G6X_E_MEMORY"] if memory else PYTHON)
    assert memory or error.partition("(")[0].replace("a.b", "NameError") in found[call][1]
    assert all(found[name][0] > 0 for name in set(CALLS) - later - {"release"})
    assert call != "open" or found["kernels"][1] == "the device is not open"
    assert all(code != 0 for code, _ in found.values())
    assert printed == ""


def test_a_failure_of_the_failure_handling_is_no_success(environment):
    environment.extend("bridge", "Bridge._code_and_text = Bridge.open = None\n")
    found, printed = answers(environment)
    assert found["open"] == (PYTHON, "Python failed; stderr may say why")
    assert "Traceback" in printed


@pytest.mark.parametrize(("module", "code"), [("bridge", PYTHON), ("device", RUNTIME)])
def test_a_side_that_cannot_be_imported_is_named(environment, module, code):
    (environment.package / f"cuda/{module}.py").write_text("import no_such_package\n")
    done = environment.start("codes")
    assert re.match(rf"start {code} .*no_such_package", done.stdout)
    assert done.stderr.count("\n") == 1


# ---- a host that is Python ---------------------------------------------------------
def run_script(environment, script):
    env = {"LD_LIBRARY_PATH": str(environment.parts.driver)}
    return tools.started([environment.python, "-c", script], env=env, timeout=20)


@pytest.mark.parametrize("kind", ["CDLL", "PyDLL"])
def test_a_python_process_uses_its_own_interpreter(installed, kind):
    """With PyDLL as from an extension that does not release the interpreter's lock. To look for an
    attribute of a capsule gives their type a version, as cffi's lock is before Python 3.12."""
    script = f"""
import ctypes, datetime, os, sys, threading
assert not hasattr(datetime.datetime_CAPI, "nothing")
library = ctypes.{kind}({str(installed.library)!r})
def use(codes): codes.append(library.bridge_calls_())
floats = ctypes.CDLL("libm.so.6")
upward = 0x800 if os.uname().machine == "x86_64" else 0x400000
codes = []
threads = [threading.Thread(target=use, args=[codes]) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
floats.fesetround(upward)
use(codes)
assert floats.fegetround() == upward
floats.fesetround(0)
assert codes == [0] * 5, codes
assert sys.modules["grape6py.cuda.bridge"] and sys.stdout is sys.__stdout__
print(sum("libpython" in line and "r-xp" in line for line in open("/proc/self/maps")))
"""
    done = run_script(installed, script)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 1
    assert done.stderr == ""


def test_row36_a_call_after_the_hosts_python_has_ended_is_refused(installed):
    script = f"""
import ctypes
library = ctypes.CDLL({str(installed.library)!r})
assert library.bridge_calls_() == 0
ctypes.CDLL(None).__cxa_atexit(library.bridge_calls_, None, None)
"""
    done = run_script(installed, script)
    assert (done.returncode, done.stderr) == (0, f"{PYTHON}: Python has ended\n")


def test_a_host_may_be_linked_to_python_and_not_have_started_it(installed):
    assert_quiet(installed.start(env={"LD_PRELOAD": LIBPYTHON}))
    code = """
    int Py_IsInitialized(void) { return 0; }
    const char *Py_GetVersion(void) { return "3.99.1 (main)"; }
    """
    done = installed.start("codes", env=installed.preload("libfake.so", code))
    assert re.match(f"start {PYTHON} this program has loaded Python 3.99", done.stdout)


def test_a_python_process_of_another_version_is_told_so(environment):
    other_bridge(environment)
    script = f"import ctypes; print(ctypes.CDLL({str(environment.library)!r}).bridge_calls_())"
    done = run_script(environment, script)
    assert int(done.stdout) == PYTHON
    assert f"the Python here is {MINOR}" in done.stderr.splitlines()[0]
