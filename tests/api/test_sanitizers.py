"""The whole API under tools that see what a test cannot: bounds, leaks, races, undefined sums."""

import pytest

import capi
import tools
from variants import clean

pytestmark = pytest.mark.full


def test_the_whole_api_under_address_and_undefined_sanitizers(variants):
    program = variants["address"].program("walk", "-DBOARD_N=1200")
    clean([program], UBSAN_OPTIONS="print_stacktrace=1")


def test_row35_eight_threads_on_four_sessions_and_trees_under_the_thread_sanitizer(variants):
    clean([variants["thread"].program("crowd")], TSAN_OPTIONS="halt_on_error=1")


def test_the_whole_api_under_valgrind():
    """In one instruction set and with fewer particles: valgrind knows no AVX-512, and is slow."""
    valgrind = [tools.need("valgrind"), "--quiet", "--error-exitcode=9", "--leak-check=full",
                "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"]  # fmt: skip
    clean([*valgrind, capi.compile_c("walk", True, "-DBOARD_N=300"), "2", str(capi.ISAS["avx2"])])
