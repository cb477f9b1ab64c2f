"""mpi_hermite.f90 and treecode.c of legacy_examples/ on the ranks of MPI.

With partial sums, and with walks, a run has the same bits on any number of ranks. With doubles it
has not, but agrees to the rounding of the mode."""

import numpy as np
import pytest

import tools
from grape6py import models, read_snapshot, reference, write_snapshot
from legacy import AUTO, DOUBLE, GRAPE, SNAPSHOT, assert_forces, mpirun, odd_bodies, output_of

pytestmark = pytest.mark.full
TOOLS = {"mpi_hermite": ("gfortran", "mpif90"), "treecode_mpi": ("mpicc",)}
LARGER = 3500  # four blocks of j addresses, the last one not full
SHORT = {SNAPSHOT.name: "0.03125", "larger.dat": "0.0009765625"}
CASES = pytest.mark.parametrize(("snapshot", "mode"), [
    (SNAPSHOT.name, AUTO), ("larger.dat", DOUBLE),
], ids=["1024-auto", "larger-double"])  # fmt: skip
TREECODE = ("-d", "0.015625", "-t", "0.375", "-f")  # with an output on the way


@pytest.fixture(scope="module")
def start(build):
    """Starts a program on some ranks."""

    def start(name, ranks, *arguments, environment=()):
        for tool in TOOLS[name]:
            tools.need(tool)
        return mpirun(ranks, build / name, *arguments, environment=environment)

    return start


# ---- mpi_hermite -------------------------------------------------------------
@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With two snapshots: one block of j addresses, and several."""
    folder = tmp_path_factory.mktemp("mpi")
    # From the centre outwards: shares of it, left alone, would have scales of their own.
    model = models.plummer(LARGER, seed=6)
    order = np.argsort((model.pos**2).sum(axis=1))
    write_snapshot(folder / "larger.dat", *(column[order] for column in model))
    (folder / SNAPSHOT.name).symlink_to(SNAPSHOT)
    return folder


@CASES
def test_partial_sums_give_one_output_for_any_number_of_ranks(start, folder, snapshot, mode):
    """Partial sums of everything, with the scale set by hand, are the force of one board."""
    path, short = folder / snapshot, ("-f", "-t", SHORT[snapshot])
    (one,) = {output_of(start("mpi_hermite", n, path, way, *short, environment=mode))
              for n, way in ((1, "-p"), (2, "-p"), (3, "-p"), (1, "-d"))}  # fmt: skip
    assert "bits of the state" in one
    particles = read_snapshot(path)
    eps2 = (4 / len(particles.mass)) ** 2
    assert_forces(one, reference.direct_sum(*particles, eps2=eps2, extended=True), mode)


# ---- treecode_mpi ------------------------------------------------------------
@pytest.fixture(scope="module")
def same_bits(start, run):
    """Checks that what treecode_walks prints all ranks print; returns that."""

    def same_bits(*arguments, ranks=(1, 2, 3), environment=()):
        text = output_of(run("treecode_walks", *arguments, environment=environment))
        for number in ranks:
            process = start("treecode_mpi", number, *arguments, environment=environment)
            assert output_of(process) == text
        return text

    return same_bits


@pytest.mark.parametrize(("arguments", "mode"), [("", GRAPE), ("-o 1 -g 1", DOUBLE)])
def test_any_number_of_ranks_has_the_bits_of_one(same_bits, arguments, mode):
    text = same_bits(SNAPSHOT, *TREECODE, *arguments.split(), environment=mode)
    assert text.count(" force ") == 1024


def test_so_it_is_where_ranks_have_unequal_branches_or_none(same_bits, tmp_path):
    """Two unequal clusters apart; cells that cannot be divided stand above the branches; fewer
    groups than ranks."""
    (mass, pos, vel), there = models.plummer(1000, seed=6), models.plummer(100, seed=7)
    file = tmp_path / "bodies.dat"
    write_snapshot(file, np.append(mass, there.mass) / 1100, np.vstack([pos, there.pos + 20]),
                   np.vstack([vel, there.vel]))  # fmt: skip
    same_bits(file, *TREECODE, "-o", "0.8", ranks=(3, 5))
    file.unlink()
    write_snapshot(file, *odd_bodies())
    same_bits(file, "-e", "0.01", *TREECODE, ranks=(2, 3))
    for n in (1, 9):
        file.write_text("".join(f"1 {i} {i * i} 0 0 0.5 0\n" for i in range(n)))
        same_bits(file, "-e", f"0.{n}", "-t", "0.01", "-f", ranks=(4,))
