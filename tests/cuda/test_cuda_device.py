"""The Python side of a CUDA device, over a CuPy that fails as the tests want it (fake_cupy.py), and
the text that the kernels are compiled from. What a true CuPy does is for a machine with a GPU."""

import contextlib
import ctypes
import importlib
import os
import sys
import tempfile
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fake_arrays
import fake_cupy
from capi import CODES
from grape6py import errors
from grape6py.cuda import cache, compiler, launcher, machine_code
from grape6py.cuda import errors as cuda_errors
from grape6py.cuda.tree import request


@pytest.fixture
def faked(monkeypatch, tmp_path):
    """The state of what lies below, and the module."""
    return fake_cupy.install(monkeypatch, tmp_path / "cache")


@pytest.fixture
def opened(faked):
    """A device."""
    return faked[1].open_device("", 0)


# ---- devices -----------------------------------------------------------------------
@pytest.mark.parametrize(("usable", "choices"), [("", "0101"), ("1", "1111"), ("1,0", "1010")])
def test_row34_devices_are_dealt_out_in_turn(faked, usable, choices):
    _, device = faked
    names = [device.open_device(usable, choice).name for choice in range(4)]
    assert names == [f"Fake {number}" for number in choices]


@pytest.mark.parametrize("usable", ["2", "-1", "0,", "one"])
def test_devices_that_are_not_there_are_refused(faked, usable):
    _, device = faked
    with pytest.raises(errors.BackendError, match=f"GRAPE6_DEVICES={usable}: .* 0 to 1") as caught:
        device.open_device(usable, 0)
    assert caught.value.code == CODES["NO_DEVICE"]


@pytest.mark.parametrize(("names", "two"), [
    (["cupy_cuda13x-14.2.0.dist-info", "cupy_cuda12x-14.0.1.dist-info"], True),
    (["cupy-14.2.0.dist-info", "cupy_cuda13x-14.2.0.dist-info"], True),
    (["cupy_cuda13x-14.2.0.dist-info", "cupy_xarray-0.1.4.dist-info", "cupy", "cupyx",
      "~upy_cuda12x-14.0.1.dist-info", "numpy-2.4.0.dist-info"], False)])  # fmt: skip
def test_row04_two_wheels_of_cupy_are_refused_in_words(faked, monkeypatch, tmp_path, names, two):
    _, device = faked
    for name in names:
        (tmp_path / name).mkdir()
    where = str(tmp_path / "cupy_backends/__init__.py")
    monkeypatch.setattr(device.cupy_backends, "__file__", where)
    if not two:
        return device.open_device("", 0).close(lost=False)
    with pytest.raises(errors.BackendError, match="pip uninstall") as caught:
        device.open_device("", 0)
    assert caught.value.code == CODES["RUNTIME"]


# ---- memory ------------------------------------------------------------------------
@pytest.mark.parametrize("pinned", [False, True])
def test_memory_is_zeroed_and_released(faked, opened, pinned):
    for _ in range(3):
        address = opened.allocate(pinned, 100)
        assert ctypes.string_at(address, 100) == bytes(100)
        ctypes.memset(address, 1, 100)
        opened.release(address)
    assert faked[0].used == 512
    assert faked[0].calls.count("allocate") == 1


def test_what_is_kept_is_bounded_whatever_sizes_it_has(faked, opened, monkeypatch):
    limits = type(opened._gpu.memory).release.__globals__
    for name, limit in {"MOST": 4096, "SMALL": 2048}.items():
        monkeypatch.setitem(limits, name, limit)
    for pinned in (True, False, True):
        for size in range(100, 3500, 500):
            opened.release(opened.allocate(pinned, size))
            assert faked[0].used <= 4096


def test_row01_what_is_kept_and_cupys_pools_are_freed_and_it_is_tried_once_more(faked, opened):
    fake, _ = faked
    opened.release(opened.allocate(False, 400))
    fake.limit, fake.pooled = 700, 400
    opened.allocate(False, 1000)
    assert fake.calls.count("allocate") == 3
    words = "0.00 GB were requested, 0.25 of 2.00 GB are"
    with pytest.raises(errors.OutOfMemoryError, match=words):
        opened.allocate(False, 100)
    assert fake.calls.count("allocate") == 5
    assert fake.used == 1024


def test_row01_a_trees_device_is_asked_to_free_memory(monkeypatch, tmp_path):
    """What the failed attempt had is gone before the second one."""
    _, module = fake_cupy.install(monkeypatch, tmp_path)
    arrays = fake_arrays.Module()
    arrays.cuda.ExternalStream = lambda _: contextlib.nullcontext()
    monkeypatch.setattr(module, "tree_gpu", lambda number: SimpleNamespace(xp=arrays))
    freed, attempts = [], []
    monkeypatch.setattr(module, "free_cupys_blocks", lambda: freed.append(arrays.current))

    def answer(self, job, array):
        piece = np.zeros(3)
        attempts.append(weakref.ref(piece))
        if job == "too large" or len(attempts) == 1:
            raise MemoryError
        assert attempts[0]() is None

    monkeypatch.setattr(request.SessionTree, "answer", answer)
    device = module.Device(0)
    device.tree("small", None)
    assert (len(attempts), freed) == (2, [0])
    with pytest.raises(MemoryError):
        device.tree("too large", None)
    assert len(attempts) == 4
    device.close(lost=False)
    assert freed == 3 * [0]


def test_closing_gives_large_memory_of_the_device_back(faked):
    fake, device = faked
    fake.limit = 1 << 30
    for _ in range(2):
        opened = device.open_device("", 0)
        for what in ((False, 10), (True, 8 << 20), (False, 64 << 20)):
            opened.allocate(*what)
        opened.close(lost=False)
        assert fake.used == 512 + (8 << 20)


def test_row02_a_lost_device_is_left_alone(faked, opened):
    fake, _ = faked
    opened.allocate(False, 10)
    fake.calls.clear()
    fake.broken = RuntimeError("CUDA was called")
    opened.close(lost=True)
    assert (fake.calls, fake.used) == ([], 512)


# ---- kernels -----------------------------------------------------------------------
def compiled(fake):
    return [call[1] for call in fake.calls if call[0] == "compile"]


def test_a_kernel_is_compiled_when_it_is_wanted_once_and_may_use_all_shared_memory(faked, opened):
    fake, device = faked
    assert compiled(fake) == []
    first = opened.kernels("double", ["one", "two"])
    assert opened.kernels("double", ["two", "one"]) == first[::-1]
    assert device.open_device("", 1).kernels("double", ["one"]) == first[:1]  # found in the cache
    expected = [(*compiler.options_of(name, "double"), "-arch=sm_90") for name in ("one", "two")]
    assert sorted(compiled(fake)) == sorted(expected)
    assert ("shared", first[0], "dynamic", 232448 - 1024) in fake.calls


def test_kernels_of_trees_are_found_as_others_are(monkeypatch, faked):
    asked = []

    def loaded(names, *what):
        asked.append((names, *what[:2]))
        return dict.fromkeys(names)

    cuda = SimpleNamespace(Device=lambda: SimpleNamespace(compute_capability="90"))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(importlib.import_module("grape6py.cuda.gpu"), "loaded", loaded)
    work = launcher.TreeLauncher()
    work.prepare(("tree_keys", "leapfrog_kick", "tree_expand_groups_5_soft"))
    work.prepare(("tree_keys", "tree_gather"))
    assert asked == [(["leapfrog_kick"], "double", 90),
                     (["tree_keys", "tree_expand_groups_5_soft"], "single", 90),
                     (["tree_gather"], "single", 90)]  # fmt: skip


@pytest.mark.parametrize(("capability", "option", "is_code"), [
    (75, "sm_75", True), (90, "sm_90", True), (86, "sm_80", True), (89, "sm_80", True),
    (103, "sm_100", True), (120, "compute_100", False), (110, "compute_100", False)])  # fmt: skip
def test_a_device_newer_than_the_compiler_gets_what_it_can_run(capability, option, is_code):
    assert compiler.target(capability, (75, 80, 90, 100)) == (f"-arch={option}", is_code)


@pytest.mark.parametrize("number", [200, 209, 218, 222])
def test_machine_code_that_the_driver_does_not_take_is_compiled_again(faked, opened, number):
    fake, device = faked
    handles = opened.kernels("grape", ["few"])
    stale = next(call[1] for call in fake.calls if call[0] == "load")
    name = machine_code.file_name("few", "grape", 90, 13)
    Path(machine_code.folder(), name).write_bytes(machine_code.pack(name, b"of another driver"))
    fake.refused = {b"of another driver": number}
    assert device.open_device("", 1).kernels("grape", ["few"]) == handles
    assert len(compiled(fake)) == 2
    assert machine_code.find(["few"], "grape", 90, 13) == {"few": stale}


def test_row04_what_the_compiler_says_is_told(faked, opened):
    fake, device = faked
    fake.compile_error = 'few.cu(3): error: identifier "y" is undefined'
    with pytest.raises(compiler.CompileException) as caught:
        opened.kernels("grape", ["few", "some", "predict"])
    assert device.explain(caught.value) == (
        CODES["RUNTIME"], f"the kernels do not compile: {fake.compile_error}")  # fmt: skip


# ---- faults ------------------------------------------------------------------------
@pytest.mark.parametrize(("error", "code", "words"), [
    *((fake_cupy.CUDARuntimeError(status, "cudaErrorOfThatNumber: words"), code, "")
      for code, numbers in {"DEVICE_MEMORY": [2], "RUNTIME": [35, 803, 209], "NO_DEVICE": [100],
                            "DEVICE_LOST": [700, 719, 214, 999]}.items() for status in numbers),
    (fake_cupy.CUDARuntimeError(35, "cudaErrorInsufficientDriver"), "RUNTIME", "[cuda12]"),
    (RuntimeError("CuPy failed to load libnvrtc.so.13: OSError"), "RUNTIME",
     "NVRTC) is missing: pip"),
    (RuntimeError("Failed to auto-detect CUDA root directory"), "RUNTIME",
     "headers are missing: pip"),
    (fake_cupy.CompileException('x.cu(3): error: cannot open source file "cuda_fp16.h"'), "RUNTIME",
     "headers are missing: pip install 'grape6py[cuda13]'"),
    (fake_cupy.CompileException('direct.cu(3): error: identifier "y" is undefined\n\n1 error'),
     "RUNTIME", 'do not compile: direct.cu(3): error: identifier "y" is undefined'),
])  # fmt: skip
def test_row04_an_error_becomes_a_row_of_the_table_and_names_a_missing_piece(error, code, words):
    found, text = cuda_errors.explain(error, 13)
    assert found == CODES[code]
    assert words in text
    assert cuda_errors.explain(ValueError("words"), 13) is None  # of nobody known


# ---- CuPy's folder for compiled kernels, while CuPy is imported -----------------------
@pytest.mark.parametrize(("told", "good"), [("some/where", True), ("file/cache", False),
                                           (None, False)])  # fmt: skip
def test_row39_without_a_folder_that_can_be_made_there_is_another_for_the_while(
    tmp_path, monkeypatch, told, good
):
    """Root may write anywhere, but not under a file."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    told = told and str(tmp_path / told)
    if told:
        monkeypatch.setenv(cache.VARIABLE, told)
    with contextlib.suppress(ImportError), cache.for_import():
        folder = os.environ[cache.VARIABLE]
        assert os.path.isdir(folder)
        raise ImportError
    assert (folder == told) == good == os.path.exists(folder)
    assert os.environ.get(cache.VARIABLE) == told


def test_row39_no_folder_at_all_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(OSError, match="file"), cache.for_import():
        raise AssertionError
