"""The command line: compilers get what they need, misses give a non-zero exit status."""

import ctypes
import json
import os
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import capi
import tools
from grape6py import Grape6, paths, read_snapshot
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
    assert output(capsys, "config", "--python") == f"written to {file}:\n{file.read_text()}"
    lines = dict(line.split(" = ") for line in file.read_text().splitlines())
    assert lines["executable"] == sys.executable
    assert os.path.exists(lines.get("libpython", "/"))
    found = json.loads(output(capsys, "config", "--python", "--json"))
    assert found == {"file": str(file), **lines}


def test_config_says_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "INTERPRETER", tmp_path / "nowhere" / "interpreter")
    assert main(["config", "--python"]) == 1
    printed = capsys.readouterr()
    assert f"executable = {sys.executable}\n" in printed.out  # what to write where it may not
    assert "nowhere" in printed.err
    monkeypatch.setattr(paths, "LIBRARY", tmp_path / "libgrape6.so")
    assert main(["config", "--libs"]) == 1
    assert "does not exist" in capsys.readouterr().err


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
    assert f"backend:      {about['backend']}\n" in output(capsys, "info")


MISSING = "pip install 'grape6py[cuda12]'"


@pytest.fixture
def info(capsys, monkeypatch):
    """What `grape6 info` says where a driver has some devices, and NVRTC's version is this."""

    def info(count, version, **env):
        def put(value):
            return lambda where: setattr(where._obj, "value", value)

        def name(text, _, device):
            text.value = (b"First", b"Second")[device]

        driver = SimpleNamespace(cuInit=lambda _: 0, cuDeviceGetCount=put(count),
                                 cuDriverGetVersion=put(12040), cuDeviceGetName=name)  # fmt: skip
        monkeypatch.setattr("grape6py.cli.info.ctypes", Mock(wraps=ctypes, CDLL=lambda _: driver))
        cupy = version and Mock(__spec__=True, nvrtc=Mock(getVersion=version))
        for module in ("cupy", "cupy_backends.cuda.libs"):
            monkeypatch.setitem(sys.modules, module, cupy)
        for variable, value in env.items():
            monkeypatch.setenv(variable, value)
        return json.loads(output(capsys, "info", "--json"))

    return info


@pytest.mark.parametrize(("count", "devices", "version", "gpu"), [
    (0, "", None, "none: the NVIDIA driver sees no device"),
    (2, "", None, f"First, Second: not used, CuPy is missing: {MISSING}"),
    (2, "1", None, f"Second: not used, CuPy is missing: {MISSING}"),
    (2, "0,2", None, "none: GRAPE6_DEVICES=0,2, but the devices are 0 to 1"),
    (1, "", lambda: (12, 9), "First"),
    (1, "", Mock(side_effect=RuntimeError("Failure finding libnvrtc.so.12")),
     "First: not used, CUDA's run-time compiler (NVRTC) is missing: "
     f"{MISSING} (Failure finding libnvrtc.so.12)"),
    (1, "", Mock(side_effect=ValueError("no luck")),
     "First: not used, CuPy cannot be used: no luck"),
])  # fmt: skip
def test_info_names_the_devices_or_what_they_lack(info, count, devices, version, gpu):
    tools.need_bridge()
    about = info(count, version, GRAPE6_DEVICES=devices)
    assert about["gpu"] == gpu
    assert about["devices"] == ([] if gpu.startswith("none") else gpu.split(":")[0].split(", "))


def test_info_says_whether_processes_share_a_gpu(info, tmp_path):
    assert "mps" not in info(0, None)
    daemon = tmp_path / "nvidia-cuda-mps-control.pid"
    for running, told in ((None, "does not run: processes that share a GPU take turns"),
                          (f"{os.getpid()}\n", f"runs ({tmp_path})"), ("", "does not run"),
                          ("99999999", "does not run")):  # fmt: skip
        if running is not None:
            daemon.write_text(running)
        assert info(1, None, CUDA_MPS_PIPE_DIRECTORY=str(tmp_path))["mps"].startswith(told)


# ---- selftest ----------------------------------------------------------------------
def test_selftest_passes_in_every_mode_and_instruction_set(capsys):
    start = time.process_time()
    result = json.loads(output(capsys, "selftest", "--json"))
    assert time.process_time() - start < 10
    assert result["ok"]
    isas = json.loads(output(capsys, "info", "--json"))["isas"]
    judged = {(check["isa"], check["mode"]) for check in result["checks"]}
    assert judged == {(isa, mode) for isa in isas for mode in ("grape", "double", "single")}
    assert {*isas, *result["skipped"]} == set(capi.ISAS)


def test_selftest_notices_wrong_results(capsys, monkeypatch):
    """Neighbours of another model, and forces a little too strong: all must be missed."""
    model, real = selftest.plummer, selftest.reference.direct_sum

    def stronger(*arguments, **keywords):
        sums = real(*arguments, **keywords)
        changed = {"acc": sums.acc * (1 + 1e-3), "pot": sums.pot * (1 + 1e-3)}
        changed |= {} if sums.jerk is None else {"jerk": sums.jerk * (1 + 1e-2)}
        for name in ("nearest", "neighbours"):
            changed |= {} if getattr(sums, name) is None else {name: getattr(sums, name)[::-1]}
        return sums._replace(**changed)

    monkeypatch.setattr(selftest.reference, "direct_sum", stronger)
    monkeypatch.setattr(selftest, "plummer", lambda _, seed: model(selftest.N, seed))
    assert main(["selftest"]) == 1
    *groups, verdict = re.split(r"\n(?=\S)", capsys.readouterr().out.rstrip())
    assert "missed" in verdict
    for group in [group for group in groups if re.match(r"MISS cpu \w+ +grape", group)]:
        missed = set(re.findall(r"^ {7}(.*?) +\S+ > ", group, re.MULTILINE))
        sums = {f"{name}{kind}" for name in ("acc", "jerk", "pot") for kind in ("", ", softened")}
        wanted = {f"{name}, median error" for name in sums}
        assert missed >= {"nearest neighbours wrong", "lists wrong"} | wanted
    assert any("MISS" in group and " grape " in group for group in groups)


# ---- bench -------------------------------------------------------------------------
@pytest.mark.parametrize(("precision", "isa", "slots"), [
    ("grape", "base", 40), ("grape", "best", 40), ("double", "base", 74), ("single", "base", 34),
    ("double", "base --nn", 77),
])  # fmt: skip
def test_bench_reports_pairs_a_second_and_the_share_of_issue_slots(capsys, precision, isa, slots):
    words = (f"bench direct --n 512 --ni 32 --samples 3 --seconds 0.002 --threads 1 --json "
             f"--precision {precision} --isa {isa}")  # fmt: skip
    result = json.loads(output(capsys, *words.split()))
    nearest = "--nn" in words
    wanted = {"n": 512, "ni": 32, "mode": precision, "threads": 1, "nn": nearest, "backend": "cpu"}
    assert {key: result[key] for key in wanted} == wanted
    assert result["isa"] == "base" if "base" in isa else result["isa"] in capi.COMPILED
    assert result["pairs_per_s"] > 0
    share = result["pairs_per_s"] * slots / 16 / result["fma_vectors_per_s"]
    assert result["slot_share"] == pytest.approx(share * 512 / result["vector_bits"])


def test_the_second_error_of_a_kind_is_printed_as_the_first(capfd, monkeypatch):
    monkeypatch.setattr(machine, "describe", lambda: Grape6(backend="cpu", threads=-5))
    for _ in range(2):
        assert main(["info"]) == 1
        text = "grape6: option THREADS: the value -5 is not from 0 to 1024\n"
        assert capfd.readouterr().err == text
