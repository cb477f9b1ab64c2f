"""The new calls: instruction sets and first values.

Options, bulk writes, errors and texts in any order: test_fuzz.py."""

import ctypes
import os
import re
from pathlib import Path

import capi


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
