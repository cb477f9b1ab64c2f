"""Machine code of the kernels that a wheel brings: which files, for whom, and none without NVRTC.
What compiles them here is made up; the true compiler's code is looked at in test_cuda_kernels.py.
"""

import tomllib
from unittest.mock import Mock

import pytest

import capi
import machine_code as ahead
import nvrtc
from grape6py.cuda import compiler, machine_code


@pytest.fixture
def compiles(monkeypatch, tmp_path):
    """Options of what was compiled, for one kernel and two architectures."""
    calls = []

    def compile_cubin(text, options):
        calls.append(options)
        return " ".join(options).encode(), ""

    monkeypatch.setattr(nvrtc, "version", lambda: (13, 5))
    monkeypatch.setattr(nvrtc, "compile_cubin", compile_cubin)
    monkeypatch.setattr(ahead, "direct", lambda: ["few"])
    monkeypatch.setattr(ahead, "others", lambda: ["tree_keys", "tree_expand_groups_5"])
    monkeypatch.setattr(machine_code, "MADE_FOR", (80, 120))
    monkeypatch.setattr(machine_code, "PACKAGED", str(tmp_path))
    monkeypatch.setattr(compiler, "KERNELS", compiler.KERNELS)
    return calls


def test_a_wheel_s_code_is_what_a_device_of_its_kind_looks_for(compiles, tmp_path, capsys):
    ahead.main(tmp_path)
    assert len(compiles) == len(list(tmp_path.iterdir())) == 2 * (3 + 2)
    assert machine_code.find(["tree_keys"], "single", 120, 13)
    for capability, option in ((80, "-arch=sm_80"), (89, "-arch=sm_80"), (121, "-arch=sm_120")):
        found = machine_code.find(["few"], "double", capability, 13)
        assert found["few"].decode().split() == [*compiler.options_of("few", "double"), option]
    for capability, cuda in ((75, 13), (90, 13), (80, 12)):
        assert machine_code.find(["few"], "double", capability, cuda) == {}
    assert "10 files" in capsys.readouterr().out


def test_without_nvrtc_one_line_says_so(monkeypatch, tmp_path, capsys):
    missing = Mock(side_effect=nvrtc.Missing("nvidia-cuda-nvrtc not found"))
    monkeypatch.setattr(compiler, "KERNELS", compiler.KERNELS)
    monkeypatch.setattr(nvrtc, "library", missing)
    ahead.main(tmp_path / "code")
    assert list((tmp_path / "code").iterdir()) == []
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize(("value", "made"), [(None, False), ("0", False), ("1", True)])
def test_a_build_makes_it_if_asked_and_has_the_bridge_in_any_case(value, made):
    settings = pytest.importorskip("scikit_build_core.settings.skbuild_read_settings")
    project = tomllib.loads((capi.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    env = {} if value is None else {"GRAPE6_MACHINE_CODE": value}
    build = settings.SettingsReader(project, {}, state="wheel", env=env).settings
    assert "GRAPE6_BRIDGE" in build.cmake.define
    assert ("GRAPE6_MACHINE_CODE" in build.cmake.define) == made
    assert bool(build.build.requires) == made
