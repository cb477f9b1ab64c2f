"""The bridge to Python, from hosts that are no Python: started from any environment, refused with
the piece that is missing, and nothing of the host's own changed. The device is fake_device.py's.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import capi
from embedding import LIBPYTHON, SITE, TRAPS, assert_quiet

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


def gone(folder):
    """Called in the child: its working directory is there no more."""
    os.mkdir(folder)
    os.chdir(folder)
    os.rmdir(folder)


# What a host may be started with, made from the environment e and a folder of the test.
SITUATIONS = {
    "empty": lambda e, folder: {},
    "elsewhere": lambda e, folder: {"cwd": folder},
    "folder-gone": lambda e, folder: {"preexec_fn": lambda: gone(folder / "gone")},
    "numpy.py-here": lambda e, folder: {"cwd": hostile(folder, "numpy.py", "encodings.py")},
    "pythonpath": lambda e, folder: {
        "env": {"PYTHONPATH": hostile(folder, "numpy.py", "sitecustomize.py", "grape6py.py")}
    },
    "pythonhome": lambda e, folder: {"env": {"PYTHONHOME": folder}},
    "python-switches": lambda e, folder: {
        "env": {"PYTHONVERBOSE": "1", "PYTHONINSPECT": "1", "PYTHONDUMPREFS": "1",
                "PYTHONPLATLIBDIR": "nowhere", "PYTHONWARNINGS": "error"}
    },
    "virtual-env": lambda e, folder: {"env": {"VIRTUAL_ENV": folder, "CONDA_PREFIX": folder}},
    "path": lambda e, folder: {
        "env": {"PATH": hostile(folder, "python", "python3", f"python3.{sys.version_info.minor}")}
    },
    "user-site": lambda e, folder: {
        "env": {"HOME": folder, "PYTHONUSERBASE": hostile(folder / ".local", f"{SITE}/numpy.py")}
    },
    "no-home": lambda e, folder: {"env": {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}},
    "no-stdin": lambda e, folder: {"preexec_fn": lambda: os.close(0)},
    "no-output": lambda e, folder: {"preexec_fn": lambda: [os.close(1), os.close(2)]},
    "full-output": lambda e, folder: {"stdout": open("/dev/full", "w"), "capture_output": False,  # noqa: SIM115
                                      "stderr": subprocess.PIPE},
    "c-locale": lambda e, folder: {"env": {"LC_ALL": "C"}},
    "unknown-locale": lambda e, folder: {"env": {"LC_ALL": "tlh_KX.UTF-8", "LANG": "xx"}},
    "library-path": lambda e, folder: {
        "env": {"LD_LIBRARY_PATH": e.parts.with_driver(e.parts.fake(
            f"libpython3.{sys.version_info.minor}.so.1.0",
            "#include <unistd.h>\n__attribute__((constructor)) static void f(void) { _exit(66); }",
        ))}
    },
    "grape6-python": lambda e, folder: {"env": {"GRAPE6_PYTHON": e.python}},
    "grape6-python-folder": lambda e, folder: {"env": {"GRAPE6_PYTHON": e.folder}},
    "no-children": lambda e, folder: {
        "preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    },
    "traps": lambda e, folder: {"how": "traps"},
    "small-stack": lambda e, folder: {"how": "small"},
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("language", ["c", "fortran"])
def test_a_host_opens_a_device_from_any_environment(installed, language, situation, tmp_path):
    options = SITUATIONS[situation](installed, tmp_path)
    if language == "fortran":
        flags = [TRAPS] if situation == "traps" else []
        options["program"] = installed.parts.fortran("-".join(["fortran", *flags]), *flags)
    assert_quiet(installed.start(**options))


# ---- where Python and its packages are found -----------------------------------------


def leave_environment(environment):
    """Lays the package beside the environment, as a source tree has it."""
    package = environment.folder / "tree" / "grape6py"
    package.parent.mkdir()
    environment.package = environment.package.rename(package)
    return package


def test_a_library_in_no_environment_goes_by_the_file_beside_it(environment):
    package = leave_environment(environment)
    (package / "lib/interpreter").write_text(f"executable = {environment.python}\n")
    assert_quiet(environment.start())


def test_the_file_beside_the_library_may_name_a_libpython_elsewhere(environment):
    package = leave_environment(environment)
    based_on(environment, f"{Path(SITE).parent}/encodings/__init__.py")
    text = f"executable = {environment.python}\nlibpython = {package}/lib/libgrape6.so\n"
    (package / "lib/interpreter").write_text(text)
    done = environment.start("refused")
    assert "the bridge cannot be loaded" in done.stderr  # since no libpython came before it


@pytest.mark.parametrize("text", [None, "executable = /nonexistent/python\n", "executable\n"])
def test_row05_a_library_that_knows_no_python_says_what_to_do(environment, text):
    package = leave_environment(environment)
    if text:
        (package / "lib/interpreter").write_text(text)
    done = environment.start("refused")
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
    minor = f"3.{sys.version_info.minor}"
    based_on(environment, f"{Path(SITE).parent}/encodings/__init__.py",
             f"lib64/libpython{minor}.so.1.0", f"{place}/numpy/__init__.py")  # fmt: skip
    no_numpy(environment)
    no_cffi(environment)
    config = environment.folder / "pyvenv.cfg"
    for seen, missing in (("true", "cffi"), ("false", "numpy")):
        config.write_text(re.sub(r"(packages = )\w+", rf"\1{seen}", config.read_text()))
        assert f"{missing} is missing" in environment.start("refused").stderr


@pytest.mark.parametrize("wish", ["/nonexistent", "/etc", "/bin/sh", "/etc/passwd"])
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
    text = environment.device.read_text()
    environment.device.write_text(f"{text}\nprint('said')\nsys.__stdout__.write('more')\n")
    done = environment.start()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "said\nmore")


OVERFLOW = """
import sys
def overflow(call):
    def checked(*arguments):
        assert sys.float_info.max * 2 == float("inf")
        assert 5e-324 * 1.0 != 0.0
        return call(*arguments)
    return checked
open_device = overflow(open_device)
for name in ("kernels", "allocate", "release", "close"):
    setattr(Device, name, overflow(getattr(Device, name)))
overflow(int)()
"""


def test_row32_python_computes_without_the_hosts_traps(environment):
    environment.device.write_text(environment.device.read_text() + OVERFLOW)
    assert_quiet(environment.start("traps"))


# ---- what is missing ---------------------------------------------------------------


def no_python(environment):
    (environment.folder / "bin").rename(environment.folder / "no-bin")


def no_numpy(environment):
    (environment.site / "numpy").unlink()


def no_cffi(environment):
    next(environment.site.glob("_cffi_backend*")).unlink()


def no_bridge(environment):
    next(environment.package.glob("_bridge*.so")).unlink()


def other_bridge(environment):
    bridge = next(environment.package.glob("_bridge*.so"))
    bridge.rename(bridge.with_name("_bridge.cpython-399-x86_64-linux-gnu.so"))


def based_on(environment, *files):
    """Says that the environment stems from a Python that has these files alone."""
    base = environment.folder / "base"
    for name in ("bin/python3", *files):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).touch()
    config = environment.folder / "pyvenv.cfg"
    text = re.sub(r"^home = .*$", f"home = {base}/bin", config.read_text(), flags=re.MULTILINE)
    config.write_text(text)


def no_standard_library(environment):
    based_on(environment)


def static_python(environment):
    based_on(environment, f"{Path(SITE).parent}/encodings/__init__.py")


def library_alone(environment):
    shutil.rmtree(environment.package / "cuda")


MISSING = {
    no_python: "GRAPE6_PYTHON",
    no_numpy: "numpy is missing",
    no_cffi: "cffi is missing",
    no_bridge: "without the bridge",
    other_bridge: "installed for Python 3.99",
    no_standard_library: "standard library",
    static_python: "without a shared library",
    library_alone: "not inside its Python package",
}


@pytest.mark.parametrize("spoil", MISSING, ids=lambda f: f.__name__)
def test_row05_a_missing_piece_is_named_and_no_interpreter_starts(environment, spoil):
    spoil(environment)
    done = environment.start("refused")
    code, _, _, text = done.stdout.split(" ", 3)
    assert (done.returncode, int(code)) == (0, PYTHON), done.stderr
    assert MISSING[spoil] in text
    assert done.stderr == f"grape6: {text}"


# ---- Python that fails -------------------------------------------------------------

CALLS = ["open", "kernels", "allocate", "release", "close"]


def answers(environment):
    """{call: (code, text)} of each of the five, and what was printed on stderr."""
    done = environment.start("codes")
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^(\w+)\(.*\) (-?\d+) (.*)$", done.stdout, re.MULTILINE)
    return {call: (int(code), text) for call, code, text in lines}, done.stderr


@pytest.mark.parametrize("error", ["ValueError('no luck')", "SystemExit(0)", "KeyboardInterrupt()",
                                   "MemoryError()", "None.nothing"])  # fmt: skip
@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_raises_gives_a_code_and_a_text(environment, call, error):
    where = environment.device
    define = "open_device" if call == "open" else f"Device.{call}"
    where.write_text(where.read_text() + f"""
def fail(*arguments):
    raise {error}
{define} = fail
""")  # fmt: skip
    found, printed = answers(environment)
    later = set(CALLS) - {"close"} if call == "open" else {call}
    memory = error.startswith("MemoryError")
    assert found[call][0] == (capi.CONSTANTS["G6X_E_MEMORY"] if memory else PYTHON)
    assert memory or re.match(r"\w+", error)[0] in found[call][1] or "None" in error
    assert all(found[name][0] > 0 for name in set(CALLS) - later - {"release"})
    assert call != "open" or found["kernels"][1] == "the device is not open"
    assert all(code != 0 for code, _ in found.values())
    assert printed == ""


def test_a_failure_of_the_failure_handling_is_no_success(environment):
    where = environment.package / "cuda/bridge.py"
    where.write_text(where.read_text() + "\nBridge._code_and_text = Bridge.open = None\n")
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
    return subprocess.run([environment.python, "-c", script], capture_output=True, text=True,
                          env=env, timeout=20, check=False)  # fmt: skip


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


def test_a_host_linked_to_another_python_is_told_so(installed):
    code = """
    int Py_IsInitialized(void) { return 0; }
    const char *Py_GetVersion(void) { return "3.99.1 (main)"; }
    """
    fake = installed.parts.fake("libfake.so", code) / "libfake.so"
    copy = installed.package / "libfake.so"  # LD_PRELOAD takes no blank
    done = installed.start("codes", env={"LD_PRELOAD": shutil.copy(fake, copy).name,
                                         "LD_LIBRARY_PATH": installed.parts.with_driver(
                                             installed.package)})  # fmt: skip
    assert re.match(f"start {PYTHON} this program has loaded Python 3.99", done.stdout)


def test_a_python_process_of_another_version_is_told_so(environment):
    other_bridge(environment)
    script = f"import ctypes; print(ctypes.CDLL({str(environment.library)!r}).bridge_calls_())"
    done = run_script(environment, script)
    assert int(done.stdout) == PYTHON
    assert f"the Python here is 3.{sys.version_info.minor}" in done.stderr.splitlines()[0]
