"""The Python side of a CUDA device, over a CuPy that fails as the tests want it (fake_cupy.py), and
the text that the kernels are compiled from. What a true CuPy does is for a machine with a GPU.
"""

import ctypes
import os
import re
import subprocess
import tempfile
import warnings

import pytest

import capi
import fake_cupy
from fake_gpu import FLAGS
from grape6py import errors
from grape6py.cuda import cache, compiler
from grape6py.cuda import errors as cuda_errors
from grape6py.cuda.tree import build
from variants import run as compile_with

CODES = {name: capi.CONSTANTS[f"G6X_E_{name}"]
         for name in ("DEVICE_MEMORY", "DEVICE_LOST", "NO_DEVICE", "RUNTIME")}  # fmt: skip


@pytest.fixture
def faked(monkeypatch):
    return fake_cupy.install(monkeypatch)


def code_of(explained):
    return explained and explained[0]


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


def test_row04_two_cupy_wheels_are_refused_with_what_to_do(monkeypatch):
    _, device = fake_cupy.install(monkeypatch)
    with warnings.catch_warnings(record=True) as said:
        warnings.warn("... because multiple CuPy packages are installed", stacklevel=1)
    monkeypatch.setattr(device, "_said", said)
    with pytest.raises(errors.BackendError, match="pip uninstall") as caught:
        device.open_device("", 0)
    assert caught.value.code == CODES["RUNTIME"]


# ---- memory ------------------------------------------------------------------------


@pytest.mark.parametrize("pinned", [False, True])
def test_memory_is_zeroed_and_released(faked, pinned):
    fake, device = faked
    opened = device.open_device("", 0)
    address = opened.allocate(pinned, 100)
    assert ctypes.string_at(address, 100) == bytes(100)
    assert fake.used == 100
    opened.release(address)
    assert fake.used == 0


def test_row01_the_pools_are_emptied_and_it_is_tried_once_more(faked):
    fake, device = faked
    opened = device.open_device("", 0)
    fake.limit, fake.pooled = 50, 100
    opened.allocate(False, 100)
    assert fake.calls.count("allocate") == 2
    with pytest.raises(errors.OutOfMemoryError, match=r"0.00 GB were wanted, 0.25 of 2.00 GB are"):
        opened.allocate(False, 100)
    assert fake.calls.count("allocate") == 4
    assert fake.used == 100


def test_closing_gives_all_back(faked):
    fake, device = faked
    opened = device.open_device("", 0)
    for pinned in (False, True, False):
        opened.allocate(pinned, 10)
    opened.close(lost=False)
    assert fake.used == 0
    assert "free_all_blocks" in fake.calls


def test_row02_a_lost_device_is_left_alone(faked):
    fake, device = faked
    opened = device.open_device("", 0)
    opened.allocate(False, 10)
    fake.calls.clear()
    fake.broken = RuntimeError("CUDA was called")
    opened.close(lost=True)
    del opened
    assert (fake.calls, fake.used) == ([], 10)


# ---- kernels -----------------------------------------------------------------------


@pytest.fixture
def text(monkeypatch):
    monkeypatch.setattr(compiler, "read", lambda: "text")


def test_kernels_are_compiled_once_a_precision_and_may_use_all_shared_memory(faked, text):
    fake, device = faked
    opened = device.open_device("", 0)
    first = opened.kernels("double", ["one", "two"])
    assert opened.kernels("double", ["two", "one"]) == first[::-1]
    compiled = [call for call in fake.calls if call[0] == "RawModule"]
    assert compiled == [("RawModule", compiler.options("double"))]
    assert ("shared", first[0], "dynamic", 232448 - 1024) in fake.calls


@pytest.mark.parametrize("error", [PermissionError("cache"), FileNotFoundError("no folder"),
                                   OSError(28, "no space left")])  # fmt: skip
def test_row39_without_a_cache_folder_kernels_are_compiled_in_memory(faked, text, error):
    fake, device = faked
    fake.cache_error = error
    assert len(device.open_device("", 0).kernels("grape", ["one"])) == 1
    assert ("compile", (*compiler.options("grape"), "-ftz=true"), True) in fake.calls
    assert ("load", b"cubin") in fake.calls


def test_an_include_is_pasted_where_it_stands_and_lines_keep_their_numbers(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "KERNELS", tmp_path)
    (tmp_path / "shared").mkdir()
    (tmp_path / "a.cu").write_text('a\n#include "one.cuh" // why\nb\n#include <other.h>\n')
    (tmp_path / "one.cuh").write_text('#pragma once\n# include "shared/two.h"\nc\n')
    (tmp_path / "shared" / "two.h").write_text("d\n")
    numbered, place = {}, None
    for line in compiler.read("a.cu").splitlines():
        if found := re.fullmatch(r'#line (\d+) "(.*)"', line):
            place = (found[2], int(found[1]))
        elif line:
            numbered[line] = place
        if not found:
            place = (place[0], place[1] + 1)
    assert list(numbered) == ["a", "#pragma once", "d", "c", "b", "#include <other.h>"]
    assert [numbered[line] for line in "abcd"] == [
        ("a.cu", 1), ("a.cu", 3), ("one.cuh", 3), ("shared/two.h", 1)]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why"),
    [('#include "no.h"\n', "no.h of grape6py is missing"), ('#include "a.cu"\n', "itself")],
)
def test_an_include_that_cannot_be_is_named(monkeypatch, tmp_path, text, why):
    monkeypatch.setattr(compiler, "KERNELS", tmp_path)
    (tmp_path / "a.cu").write_text(text)
    with pytest.raises(FileNotFoundError, match=why):
        compiler.read("a.cu")


def test_the_headers_shared_with_c_are_those_of_csrc():
    for name in ("shared/pair.h", "shared/rsqrt.h"):
        shared = compiler.read(name).removeprefix(f'#line 1 "{name}"\n')
        assert shared == (capi.ROOT / "csrc" / name).read_text()


# ---- faults ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"),
    [(2, "DEVICE_MEMORY"), (35, "RUNTIME"), (803, "RUNTIME"), (209, "RUNTIME"), (100, "NO_DEVICE"),
     (700, "DEVICE_LOST"), (719, "DEVICE_LOST"), (214, "DEVICE_LOST"), (999, "DEVICE_LOST")],
)  # fmt: skip
def test_numbers_of_cuda_become_rows_of_the_table(status, code):
    error = fake_cupy.CUDARuntimeError(status, "cudaErrorOfThatNumber: words")
    assert code_of(cuda_errors.explain(error, 13)) == CODES[code]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (fake_cupy.CUDARuntimeError(35, "cudaErrorInsufficientDriver"), "[cuda12]"),
        (RuntimeError("CuPy failed to load libnvrtc.so.13: OSError"), "NVRTC) is missing: pip"),
        (RuntimeError("Failed to auto-detect CUDA root directory"), "headers are missing: pip"),
        (fake_cupy.CompileException('x.cu(3): error: cannot open source file "cuda_fp16.h"'),
         "headers are missing: pip install 'grape6py[cuda13]'"),
        (fake_cupy.CompileException('direct.cu(3): error: identifier "y" is undefined\n\n1 error'),
         'do not compile: direct.cu(3): error: identifier "y" is undefined'),
    ],
)  # fmt: skip
def test_row04_a_missing_piece_is_named_with_the_extra_that_brings_it(error, words):
    code, text = cuda_errors.explain(error, 13)
    assert code == CODES["RUNTIME"]
    assert words in text


def test_an_exception_of_nobody_known_is_not_explained():
    assert cuda_errors.explain(ValueError("words"), 13) is None


# ---- structures of C -----------------------------------------------------------------


def test_structures_have_the_sizes_that_python_takes(fake_gpu, tmp_path):
    names = {"tree_cell", "tree_moments", "tree_far", "tree_place", "tree_group", "tree_box",
             "tree_opening", "tree_rates", "tree_motion", "tree_flow", "tree_status",
             "tree_card_job", "tree_search_job"}  # fmt: skip
    program = tmp_path / "sizes.cc"
    prints = "".join(f'printf("{name} %zu\\n", sizeof(struct {name}));' for name in names)
    program.write_text(f'#include "tree/tree.cu"\n#include <stdio.h>\nint main() {{ {prints} }}\n')
    command = ["g++", *FLAGS, "-O0", "-DMODE=2", "-DFAKE_GPU_MODE=tree"]
    made = fake_gpu.parent / "fake_gpu.o"
    compile_with([*command, program, made, "-o", tmp_path / "sizes"])
    told = subprocess.run([tmp_path / "sizes"], check=True, capture_output=True, text=True).stdout
    sizes = {n: int(size) for n, size in re.findall(r"(\w+) (\d+)", told)}
    assert sizes == {name: build.ffi.sizeof(f"struct {name}") for name in names}


# ---- CuPy's folder for compiled kernels, while CuPy is imported -----------------------


def test_a_folder_that_can_be_made_is_left_alone(tmp_path, monkeypatch):
    folder = str(tmp_path / "some" / "where")
    monkeypatch.setenv(cache.VARIABLE, folder)
    with cache.for_import():
        assert os.environ[cache.VARIABLE] == folder
        assert os.path.isdir(folder)


@pytest.mark.parametrize("told", [True, False], ids=["variable", "home"])
def test_row39_without_one_there_is_another_for_the_while(tmp_path, monkeypatch, told):
    """Root may write anywhere, but not under a file."""
    (tmp_path / "file").write_text("")
    bad = str(tmp_path / "file" / "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    if told:
        monkeypatch.setenv(cache.VARIABLE, bad)
    seen = []

    def fail():
        with cache.for_import():
            folder = os.environ[cache.VARIABLE]
            seen.extend([folder, os.path.isdir(folder)])
            raise ImportError

    pytest.raises(ImportError, fail)
    folder, there = seen
    assert there
    assert folder != bad
    assert os.environ.get(cache.VARIABLE) == (bad if told else None)
    assert not os.path.exists(folder)


def test_row39_no_folder_at_all_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(OSError, match="file"), cache.for_import():
        raise AssertionError
