"""The new calls: options, version and backend.

These, bulk writes, errors and texts in any order: test_fuzz.py."""

import ctypes
import os
import re
from pathlib import Path

import numpy as np

import capi

INT_OPTIONS = {
    "G6X_PRECISION": (0, [0, 1, 2, 3], [-1, 4, 99]),
    "G6X_THREADS": (0, [0, 1, 2, 3, 7], [-1]),
    "G6X_JERK": (1, [0, 1], [-1]),
    "G6X_SNAP": (1, [0, 1], [-1]),
    "G6X_NEIGHBOUR_SELF": (0, [0, 1], [-1]),
    "G6X_SCALE_LENGTH": (capi.CONSTANTS["G6X_AUTO"], [-100, 0, 100], []),
    "G6X_SCALE_MASS": (capi.CONSTANTS["G6X_AUTO"], [-100, 0, 100], []),
    "G6X_SCALE_VELOCITY": (capi.CONSTANTS["G6X_AUTO"], [-100, 0, 100], []),
    "G6X_TREE_METHOD": (0, [1, 0], [-1, 2]),
    "G6X_TREE_ORDER": (5, [2, 6, 4], [1, 7, -1]),
}


def test_options_have_a_default_a_range_and_a_memory(new_session):
    session, other = new_session(), new_session()
    for key, (default, good, bad) in INT_OPTIONS.items():
        assert session.get_int(key) == default
        for value in good:
            session.set_int(key, value)
            assert session.get_int(key) == value
        for value in bad:
            assert session.set_int(key, value, check=False) == -11
            assert session.get_int(key) == good[-1]
        assert other.get_int(key) == default
    for key, default in ("G6X_VERIFY", 0.0), ("G6X_THETA", 0.5):
        assert session.get_double(key) == default
        for fraction, code in ((0.25, 0), (1.0, 0), (1.5, -11), (-0.1, -11), (np.nan, -11), (0, 0)):
            assert session.set_double(key, fraction) == code
        assert session.get_double(key) == 0


def test_npipes_can_be_read_but_not_written(plain):
    assert plain.get_int("G6X_NPIPES") == capi.call("g6_npipes") == 48
    assert plain.set_int("G6X_NPIPES", 64, check=False) == -11
    assert capi.call("g6_npipes") == 48


def test_instruction_sets_that_the_machine_lacks_are_refused(plain):
    cpuinfo = Path("/proc/cpuinfo").read_text() + "flags:"
    flags = set(re.search(r"flags\s*:(.*)", cpuinfo)[1].split())
    has = {"avx2": {"avx2", "fma"} <= flags, "avx512": "avx512f" in flags, "base": True}
    has["neon"] = os.uname().machine == "aarch64"
    for name, code in capi.ISAS.items():
        result = plain.set_int("G6X_ISA", code, check=False)
        assert result == (0 if has[name] else -11), name
        if result == 0:
            assert plain.get_int("G6X_ISA") == code
            assert capi.text("g6x_backend", plain.cluster) == (0, f"cpu {name}")
    assert plain.set_int("G6X_ISA", 17, check=False) == -11


def test_the_rate_that_benchmarks_divide_by_is_that_of_vectors():
    rate = capi.library().g6x_fma_rate
    rate.restype, rate.argtypes = ctypes.c_double, [ctypes.c_int] * 2
    for code in capi.ISAS.values():
        for mode in capi.MODES.values():
            assert rate(code, mode) == 0 or rate(code, mode) > 1e6
    assert rate(0, 0) > 1e6
    assert rate(17, 0) == 0


def test_environment_gives_the_first_values():
    values = {"PRECISION": ("double", 1), "THREADS": ("1", 1), "ISA": ("base", 1),
              "JERK": ("0", 0), "SNAP": ("0", 0), "NEIGHBOUR_SELF": ("1", 1), "LOG": ("none", 0),
              "ON_ERROR": ("abort", 1), "TREE_METHOD": ("bh", 1),
              "TREE_ORDER": ("3", 3)}  # fmt: skip
    done = capi.run_python(f"""
call("g6_open", 0)
print(*(Session.unopened(0).get_int("G6X_" + key) for key in {list(values)}))
""", **{f"GRAPE6_{key}": word for key, (word, _) in values.items()})  # fmt: skip
    assert done.stdout.split() == [str(number) for _, number in values.values()]
    assert done.stderr == ""


def test_version_text_and_number_agree():
    number, name = capi.text("g6x_version")
    found = re.fullmatch(r"grape6py (\d+)\.(\d+)\.(\d+)\S*", name)
    major, minor, patch = map(int, found.groups())
    assert number == 10000 * major + 100 * minor + patch > 0
