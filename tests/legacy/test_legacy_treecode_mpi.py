"""legacy_examples/treecode.c on the ranks of MPI: a run has the bits of a single one on any number.

The forces of a single one are judged in test_legacy_treecode.py.
"""

import numpy as np
import pytest

import tools
from grape6py import models, write_snapshot
from legacy import PARTS, SNAPSHOT, mpirun, numbers, output_of

DOUBLE = (("GRAPE6_PRECISION", "double"),)
SHORT = ("-d", "0.015625", "-t", "0.375", "-f")  # with an output on the way


@pytest.fixture(scope="module")
def start(build):
    """Starts the program on some ranks."""
    tools.need("mpicc")

    def start(ranks, *arguments, environment=()):
        return mpirun(ranks, build / "treecode_mpi", *arguments, environment=environment)

    return start


@pytest.fixture(scope="module")
def alike(start, run):
    """Checks that what one program prints all ranks print; returns that."""

    def alike(*arguments, ranks=(1, 2, 3), environment=()):
        text = output_of(run("treecode_walks", *arguments, environment=environment))
        for number in ranks:
            assert output_of(start(number, *arguments, environment=environment)) == text
        return text

    return alike


@pytest.fixture(scope="module")
def larger(tmp_path_factory):
    """Two unequal clusters apart, so that ranks have unequal branches."""
    here, there = models.plummer(3000, seed=6), models.plummer(200, seed=7)
    file = tmp_path_factory.mktemp("treecode") / "larger.dat"
    both = [np.concatenate(columns) for columns in zip(here, there, strict=True)]
    both[1][3000:] += 20
    write_snapshot(file, both[0] / 3200, *both[1:])
    return file


@pytest.mark.parametrize("environment", [(), DOUBLE], ids=["grape", "double"])
@pytest.mark.parametrize("arguments", [(), ("-o", "0"), ("-o", "1", "-g", "1"), ("-g", "300")])
def test_any_number_of_ranks_has_the_bits_of_one(alike, arguments, environment):
    text = alike(SNAPSHOT, *SHORT, *arguments, environment=environment)
    assert text.count(" force ") == 1024


def test_so_it_is_where_ranks_have_unequal_branches(alike, larger):
    alike(larger, *SHORT, "-o", "0.8", ranks=(2, 3, 5))


def test_so_it_is_with_bodies_in_one_place_and_without_mass(alike, tmp_path):
    """Cells that cannot be divided stand above the branches."""
    pos = np.vstack([np.zeros((200, 3)), np.random.default_rng(3).standard_normal((300, 3))])
    pos[:20, 0] = -7
    file = tmp_path / "odd.dat"
    write_snapshot(file, np.where(np.arange(500) % 3 == 0, 0, 1 / 500), pos)
    alike(file, "-e", "0.01", *SHORT, ranks=(2, 3, 4))


@pytest.mark.parametrize("n", [1, 2, 9])
def test_ranks_may_be_more_than_groups(alike, tmp_path, n):
    file = tmp_path / "small.dat"
    file.write_text("".join(f"1 {i} {i * i} 0 0 0.5 0\n" for i in range(n)))
    alike(file, "-e", "0.1", "-t", "0.01", "-f", ranks=(2, 4))


def test_the_time_taken_is_told_by_one_rank(start):
    arguments = SNAPSHOT, "-t", "0.0625"
    text = output_of(start(2, *arguments, "-w"))
    (taken,) = numbers(PARTS, text)
    assert 0 < taken[4] < taken[0]  # they have exchanged something
    rest = [line for line in text.splitlines() if not line.startswith(" seconds")]
    assert rest == output_of(start(2, *arguments)).splitlines()


@pytest.mark.parametrize("arguments", [("-t", "0"), ("-e",), ("-q",), ("no such file",)])
def test_all_ranks_end_when_an_argument_is_bad(start, arguments):
    process = start(2, *arguments)
    assert process.returncode == 1
    assert "treecode: " in process.stderr
    assert process.stdout == ""


def test_all_ranks_end_when_the_library_reports_a_fault(start):
    process = start(2, SNAPSHOT, environment=(("GRAPE6_ISA", "none"),))
    assert process.returncode == 1
    assert "cannot open the GRAPE" in process.stderr
