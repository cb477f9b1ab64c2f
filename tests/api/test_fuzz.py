"""Random call sequences, valid and not, do what g6lib.h says: codes, forces, lists, NaN, bounds."""

import pytest

import capi
import fuzzing

PARTS = [str(path) for path in fuzzing.PARTS]


def test_random_sequences_keep_the_contract():
    fuzz = capi.compile_c("fuzz", True, *PARTS)
    assert fuzzing.run(fuzz, fuzzing.SEED, 8_000) is None


@pytest.mark.backends("auto cuda cpu-tree cuda-tree gpu")
def test_so_they_do_on_other_backends():
    """In a process of Python, which has the stand-in for a GPU."""
    fuzz = str(capi.compile_c("fuzz", True, *PARTS, "-shared", "-fPIC"))
    arguments = [b"fuzz", b"%d" % fuzzing.SEED, b"0", b"1500"]
    script = f"sys.exit(ctypes.CDLL({fuzz!r}).main(4, (ctypes.c_char_p * 4)(*{arguments})))"
    capi.run_python(script, GRAPE6_LOG="none")


@pytest.mark.full
def test_under_sanitizers_too(variants):
    assert fuzzing.run(fuzzing.program(variants), fuzzing.SEED, 3_000) is None
