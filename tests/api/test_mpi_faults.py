"""g6x_mpi_share and g6x_mpi_sum where one rank does something wrong: all ranks get the code and
NaN, and print a line; the next sum is right. The program: tests/c/mpi_faults.c."""

import numpy as np
import pytest

import capi
import tools
from legacy import mpirun
from tools import run

pytestmark = pytest.mark.full
BLOCK, ROWS = 1024, np.array([[1.5, 2.25, 3.125], [-20.5, 1.25, 0.125]])
# What the last rank does, and the codes of all ranks: of the share, and of the sum.
FAULTS = {
    "precision": (0, "ARGUMENT"), "scale": (0, "ARGUMENT"), "row": (0, "ARGUMENT"),
    "none": (0, "MISMATCH"), "fewer": (0, "MISMATCH"), "null": (0, "NULL"),
    "stale": (0, "ARGUMENT"), "short": ("ARGUMENT", "ARGUMENT"),
    "negative": ("ARGUMENT", "ARGUMENT"), "closed": ("NOT_OPEN", "NOT_OPEN"),
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("mpi") / "mpi_faults"
    library = capi.library_path()
    run([tools.need("mpicc"), "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wstrict-prototypes",
         "-Werror", f"-I{capi.ROOT / 'include'}", capi.TESTS / "c/mpi_faults.c", library,
         f"-Wl,-rpath,{library.parent}", "-o", path])  # fmt: skip
    return path


def true(ranks):
    k = np.arange(ranks * BLOCK)
    x = np.column_stack([k % 13 - 6.0, k % 7 * 0.5, k % 11 * 0.25])
    return -(1 / BLOCK / np.linalg.norm(ROWS[:, None] - x, axis=2)).sum(1)


def test_what_is_wrong_on_one_rank_is_an_error_on_all(program):
    """And is no longer one at the next sum."""
    ranks = 3
    done = mpirun(ranks, program, *FAULTS)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    for fault, codes in FAULTS.items():
        share, total = (code and capi.CODES[code] for code in codes)
        bad, good = ([line[3:] for line in lines if line[:2] == [fault, k]] for k in "01")
        assert len(bad) == len(good) == ranks
        for line in good:
            assert line == ["0"] * 4 + good[0][4:]
            np.testing.assert_allclose(np.array(line[4:], float), true(ranks), rtol=1e-6)
        for line in bad:
            found = [int(code) for code in line[:4]]
            assert found[:3] == [share, share, total], fault
            assert found[3] < 0 or fault == "none"
            assert np.isnan(np.array(line[4:], float)).all()
    kinds = {code for _, code in FAULTS.values()}
    assert done.stderr.count("grape6: ") >= ranks * len(kinds)  # each kind once


def test_sums_print_nothing_without_a_fault(program):
    done = mpirun(2, program, "right")
    assert (done.returncode, done.stderr) == (0, "")
