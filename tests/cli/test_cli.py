"""The command line: compilers get what they need, misses give a non-zero exit status."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import capi
import tools
from grape6py import Grape6, paths, read_snapshot
from grape6py._lib.library import lib
from grape6py.cli import machine, main, selftest


def output(capsys, *arguments):
    """Standard output of a command that succeeds."""
    assert main(list(arguments)) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


# ---- config ------------------------------------------------------------------------


def test_config_puts_all_that_was_asked_on_one_line_in_order(capsys):
    line = output(capsys, "config", "--libs", "--cflags", "--fsource")
    lib, include = paths.LIBRARY_DIR, paths.INCLUDE_DIR
    assert line == (f"-L{lib} -Wl,-rpath,{lib} -lgrape6 -I{include} {include / 'g6lib.f90'}\n")
    apart = output(capsys, "config", "--libs-only", "--ldflags")
    assert apart == f"-lgrape6 -L{lib} -Wl,-rpath,{lib}\n"


def test_config_names_things_that_exist(capsys, monkeypatch):
    values = json.loads(output(capsys, "config", "--json"))
    for name in ("fsource", "data", "prefix", "includedir", "libdir", "pkgconfig"):
        assert os.path.exists(values[name])
    assert len(read_snapshot(values["data"]).mass) == 1024
    for name, file in (("includedir", "g6lib.h"), ("libdir", "libgrape6.so"),
                       ("pkgconfig", "grape6.pc")):  # fmt: skip
        assert os.path.exists(f"{values[name]}/{file}")
    assert json.loads(output(capsys, "config", "--json", "--prefix")).keys() == {"prefix"}
    monkeypatch.setattr(paths, "LIBRARY_DIR", Path("/my disk/lib"))  # escaped in flags alone
    assert output(capsys, "config", "--ldflags") == "-L/my\\ disk/lib -Wl,-rpath,/my\\ disk/lib\n"
    assert output(capsys, "config", "--libdir") == "/my disk/lib\n"


def test_config_python_tells_the_library_which_python_to_start(capsys, monkeypatch, tmp_path):
    file = tmp_path / "interpreter"
    monkeypatch.setattr(paths, "INTERPRETER", file)
    text = output(capsys, "config", "--python")
    assert text == f"written to {file}:\n{file.read_text()}"
    lines = dict(line.split(" = ") for line in file.read_text().splitlines())
    assert lines["executable"] == sys.executable
    assert os.path.exists(lines.get("libpython", "/"))
    assert json.loads(output(capsys, "config", "--python", "--json")) == {
        "file": str(file),
        **lines,
    }


def test_config_says_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "INTERPRETER", tmp_path / "nowhere" / "interpreter")
    assert main(["config", "--python"]) == 1
    printed = capsys.readouterr()
    assert f"executable = {sys.executable}\n" in printed.out  # what to write where it may not
    assert "nowhere" in printed.err
    monkeypatch.setattr(paths, "LIBRARY", tmp_path / "libgrape6.so")
    assert main(["config", "--libs"]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_a_c_program_builds_from_config_and_starts_with_an_empty_environment(tmp_path):
    compiler = tools.need("gcc")
    source, program = tmp_path / "prog.c", tmp_path / "prog"
    source.write_text(
        "#include <g6lib.h>\n"
        "int main(void) { return g6_npipes() != 48 || g6_open(0) || g6_close(0); }\n",
        encoding="ascii",
    )
    flags = subprocess.run(
        [sys.executable, "-m", "grape6py", "config", "--cflags", "--libs"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    subprocess.run([compiler, str(source), "-o", str(program), *shlex.split(flags)], check=True)
    subprocess.run([str(program)], env={}, cwd="/", check=True)


# ---- info --------------------------------------------------------------------------


def test_info_says_what_will_be_used(capsys, monkeypatch):
    monkeypatch.setenv("GRAPE6_SOMETHING", "7")
    about = json.loads(output(capsys, "info", "--json"))
    assert about["backend"].split()[0] == "cpu"
    assert about["backend"].split()[1] in about["isas"]
    assert "base" in about["isas"]
    assert about["npipes"] == 48
    assert about["environment"]["GRAPE6_SOMETHING"] == "7"
    assert about["path"] == str(paths.LIBRARY)
    assert about["gpu"]
    assert isinstance(about["devices"], list)
    text = output(capsys, "info")
    assert f"backend:      {about['backend']}\n" in text


DRIVER = """
#include <string.h>
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int *count) { return *count = COUNT, 0; }
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuDeviceGetName(char *name, int length, int device)
{ return strncpy(name, device ? "Second" : "First", length) == 0; }
"""


@pytest.fixture
def info(tmp_path):
    """What `grape6 info --json` says where a driver has some devices, and CuPy is this code."""

    def info(count, cupy, **env):
        source, compiler = tmp_path / "driver.c", tmp_path / "cupy_backends/cuda/libs/nvrtc.py"
        source.write_text(DRIVER.replace("COUNT", str(count)), encoding="ascii")
        gcc = [tools.need("gcc"), "-shared", "-fPIC", source, "-o", tmp_path / "libcuda.so.1"]
        subprocess.run(gcc, check=True)
        compiler.parent.mkdir(parents=True, exist_ok=True)
        for folder in list(compiler.parents)[:3]:
            (folder / "__init__.py").touch()  # else the installed package comes first
        compiler.write_text(cupy or "")
        if cupy is not None:
            (tmp_path / "cupy.py").touch()
        script = "import sys\n" + "sys.modules['cupy'] = None\n" * (cupy is None)
        script += "from grape6py.cli import main\nsys.exit(main(['info', '--json']))"
        env = os.environ | {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)} | env
        done = subprocess.run([sys.executable, "-c", script], env=env, check=False,
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return info


MISSING = "pip install 'grape6py[cuda12]'"


@pytest.mark.parametrize(("count", "devices", "cupy", "gpu"), [
    (0, "", None, "none: the NVIDIA driver sees no device"),
    (2, "", None, f"First, Second: not used, CuPy is missing: {MISSING}"),
    (2, "1", None, f"Second: not used, CuPy is missing: {MISSING}"),
    (2, "0,2", None, "none: GRAPE6_DEVICES=0,2, but the devices are 0 to 1"),
    (1, "", "def getVersion(): return 12, 9", "First"),
    (1, "", "raise RuntimeError('Failure finding libnvrtc.so.12')",
     "First: not used, CUDA's run-time compiler (NVRTC) is missing: "
     f"{MISSING} (Failure finding libnvrtc.so.12)"),
    (1, "", "raise ValueError('no luck')", "First: not used, CuPy cannot be used: no luck"),
])  # fmt: skip
def test_info_names_the_devices_or_what_they_lack(info, count, devices, cupy, gpu):
    about = info(count, cupy, GRAPE6_DEVICES=devices)
    assert about["gpu"] == gpu
    assert about["devices"] == ([] if gpu.startswith("none") else gpu.split(":")[0].split(", "))


def test_info_says_whether_processes_share_a_gpu(info, tmp_path):
    about = info(0, None)
    assert "mps" not in about
    folder = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    assert "take turns" in info(1, None, **folder)["mps"]
    daemon = tmp_path / "nvidia-cuda-mps-control.pid"
    for running, told in ((f"{os.getpid()}\n", f"runs ({tmp_path})"), ("", "does not run"),
                          ("99999999", "does not run")):  # fmt: skip
        daemon.write_text(running)
        assert info(1, None, **folder)["mps"].startswith(told)


# ---- selftest ----------------------------------------------------------------------


def test_selftest_passes_in_every_mode_and_instruction_set(capsys):
    result = json.loads(output(capsys, "selftest", "--json"))
    assert result["ok"]
    assert result["seconds"] < 10
    isas = json.loads(output(capsys, "info", "--json"))["isas"]
    judged = {(check["isa"], check["mode"]) for check in result["checks"]}
    assert judged == {(isa, mode) for isa in isas for mode in ("grape", "double", "single")}
    assert {*isas, *result["skipped"]} == set(capi.ISAS)


def test_selftest_names_what_the_machine_lacks_in_one_line_and_passes(capfd, monkeypatch):
    rate, sets = lib.g6x_fma_rate, machine.ISAS
    few = SimpleNamespace(g6x_fma_rate=lambda isa, mode: rate(isa, mode) * (isa < sets["avx2"]))
    monkeypatch.setattr(machine, "lib", few)
    *_, base, avx2, avx512, neon, verdict = output(capfd, "selftest").splitlines()
    assert base.startswith("ok   cpu base   single")
    assert avx2 == "skip cpu avx2   not on this machine"
    assert avx512 == "skip cpu avx512 not on this machine"
    assert neon == "skip cpu neon   not on this machine"
    assert verdict.endswith("all passed")


def test_selftest_fails_on_a_single_miss(capsys, monkeypatch):
    strict = selftest.LIMITS["grape"] | {"pot": (0.0, 1.0)}
    monkeypatch.setitem(selftest.LIMITS, "grape", strict)
    assert main(["selftest"]) == 1
    text = capsys.readouterr().out
    assert "MISS" in text
    assert "missed" in text.splitlines()[-1]


def test_selftest_notices_wrong_results(monkeypatch):
    """Neighbours of another model, and forces a little too strong: all must be missed."""
    model = selftest.plummer
    real = selftest.reference.direct_sum

    def stronger(*arguments, **keywords):
        sums = real(*arguments, **keywords)
        return sums._replace(
            acc=sums.acc * (1 + 1e-3),
            pot=sums.pot * (1 + 1e-3),
            jerk=None if sums.jerk is None else sums.jerk * (1 + 1e-2),
            nearest=None if sums.nearest is None else sums.nearest[::-1],
            neighbours=None if sums.neighbours is None else sums.neighbours[::-1],
        )

    monkeypatch.setattr(selftest.reference, "direct_sum", stronger)
    monkeypatch.setattr(selftest, "plummer", lambda _, seed: model(selftest.N, seed))
    missed = {
        check["check"]
        for check in selftest.judge(1)
        if not check["ok"] and check["mode"] == "grape"
    }
    assert missed >= {"nearest neighbours wrong", "lists wrong"} | {
        f"{name}{kind}, median error"
        for name in ("acc", "jerk", "pot")
        for kind in ("", ", softened")
    }


# ---- bench -------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["grape", "double", "single"])
@pytest.mark.parametrize("nearest", [[], ["--nn"]], ids=["", "nn"])
def test_bench_reports_pairs_a_second_and_the_share_of_the_issue_slots(capsys, precision, nearest):
    quick = ["--n", "512", "--ni", "32", "--samples", "3", "--seconds", "0.002", "--threads", "1"]
    arguments = ["bench", "direct", "--precision", precision, *nearest, *quick, "--json"]
    result = json.loads(output(capsys, *arguments))
    wanted = {"n": 512, "ni": 32, "mode": precision, "threads": 1, "nn": bool(nearest)}
    assert {key: result[key] for key in wanted} == wanted
    assert result["backend"] == "cpu"
    assert result["isa"] in capi.COMPILED
    assert result["pairs_per_s"] > 0
    slots = {"grape": 40, "double": 74, "single": 34}[precision] + 3 * bool(nearest)
    share = result["pairs_per_s"] * slots / 16 / result["fma_vectors_per_s"]
    assert result["slot_share"] == pytest.approx(share * 512 / result["vector_bits"])


@pytest.mark.parametrize("isa", capi.COMPILED)
def test_bench_measures_the_instruction_set_asked_for(capsys, isa):
    if isa not in json.loads(output(capsys, "info", "--json"))["isas"]:
        pytest.skip(f"this machine has no {isa}")
    quick = ["--n", "256", "--samples", "1", "--seconds", "0.001", "--isa", isa, "--json"]
    assert json.loads(output(capsys, "bench", "direct", *quick))["isa"] == isa


def test_bench_alone_measures_each_mode_and_says_what_more_there_is(capsys):
    *lines, more, _ = output(capsys, "bench").splitlines()
    assert [re.search(r"mode (\w+), n 16384, .* G pairs/s", line)[1] for line in lines] == [
        "grape", "double", "single"
    ]  # fmt: skip
    assert more.startswith("More: grape6 bench direct --help")


def test_the_second_error_of_a_kind_is_printed_as_the_first(capfd, monkeypatch):
    monkeypatch.setattr(machine, "describe", lambda: Grape6(backend="cpu", threads=-5))
    for _ in range(2):
        assert main(["info"]) == 1
        text = "grape6: option THREADS: the value -5 is not from 0 to 1024\n"
        assert capfd.readouterr().err == text
