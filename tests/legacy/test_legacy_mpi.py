"""mpi_hermite.f90 and treecode.c of legacy_examples/ on the ranks of MPI.

With partial sums, and with walks, a run has the same bits on any number of ranks. With doubles it
has not, but agrees to the rounding of the mode.
"""

import functools

import numpy as np
import pytest

import tools
from grape6py import models, read_snapshot, reference, write_snapshot
from legacy import (
    AUTO,
    DOUBLE,
    GRAPE,
    SNAPSHOT,
    assert_energy_is_kept,
    assert_forces,
    energies,
    forces,
    mpirun,
    odd_bodies,
    output_of,
)

pytestmark = pytest.mark.full

TOOLS = {"mpi_hermite": ("gfortran", "mpif90"), "treecode_mpi": ("mpicc",)}
LARGER = 3500  # four blocks of j addresses, the last one not full
SHORT = {SNAPSHOT.name: "0.03125", "larger.dat": "0.0009765625"}
CASES = pytest.mark.parametrize(
    ("snapshot", "mode"),
    [(SNAPSHOT.name, GRAPE), ("larger.dat", GRAPE), ("larger.dat", DOUBLE)],
    ids=["1024-grape", "larger-grape", "larger-double"],
)
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


@pytest.fixture(scope="module")
def hermite(start, folder):
    """Output of mpi_hermite."""

    def hermite(ranks, snapshot, *arguments, environment=()):
        process = start("mpi_hermite", ranks, folder / snapshot, *arguments,
                        environment=environment)  # fmt: skip
        assert process.returncode == 0, process.stderr
        return process.stdout

    return functools.cache(hermite)


@functools.cache
def truth(path):
    particles = read_snapshot(path)
    return reference.direct_sum(*particles, eps2=(4 / len(particles.mass)) ** 2, extended=True)


@pytest.mark.parametrize(
    ("snapshot", "mode"),
    [(SNAPSHOT.name, AUTO), ("larger.dat", AUTO), ("larger.dat", GRAPE), ("larger.dat", DOUBLE)],
    ids=["1024-auto", "larger-auto", "larger-grape", "larger-double"],
)
def test_partial_sums_give_one_output_for_any_number_of_ranks(hermite, folder, snapshot, mode):
    """Partial sums of everything, with the scale set by hand, are the force of one board."""
    one, two, three = (
        hermite(n, snapshot, "-p", "-f", "-t", SHORT[snapshot], environment=mode) for n in (1, 2, 3)
    )
    assert "bits of the state" in one
    assert one == two
    assert one == three
    assert one == hermite(1, snapshot, "-d", "-f", "-t", SHORT[snapshot], environment=mode)
    assert_forces(one, truth(folder / snapshot), mode)


@CASES
def test_doubles_agree_to_the_rounding_of_the_mode(hermite, folder, snapshot, mode):
    one, *more = (
        hermite(n, snapshot, "-d", "-f", "-t", SHORT[snapshot], environment=mode) for n in (1, 2, 3)
    )
    limit = 1e-6 if mode == GRAPE else 1e-14
    for text in more:
        assert_forces(text, truth(folder / snapshot), mode)
        (acc, pot), right = forces(text), forces(one)
        size = np.linalg.norm(right[0], axis=1)
        assert (np.abs(acc - right[0]).max(axis=1) <= limit * size).all()
        assert (np.abs(pot - right[1]) <= limit * np.abs(right[1])).all()
        assert energies(text) == pytest.approx(energies(one), rel=1e-8)
    # And they are cut up in different ways, so that the test of partial sums is one.
    assert len({text.split("bits of the state")[1] for text in (one, *more)}) > 1


@pytest.mark.parametrize(("ranks", "how", "mode"), [(2, "-p", AUTO), (3, "-d", DOUBLE)])
def test_energy_is_kept_over_one_time_unit(hermite, ranks, how, mode):
    assert_energy_is_kept(hermite(ranks, SNAPSHOT.name, how, environment=mode))


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


@pytest.mark.parametrize(("arguments", "mode"), [
    ("", GRAPE), ("-o 0", DOUBLE), ("-o 1 -g 1", GRAPE), ("-g 300", DOUBLE)
])  # fmt: skip
def test_any_number_of_ranks_has_the_bits_of_one(same_bits, arguments, mode):
    text = same_bits(SNAPSHOT, *TREECODE, *arguments.split(), environment=mode)
    assert text.count(" force ") == 1024


def test_so_it_is_where_ranks_have_unequal_branches(same_bits, tmp_path):
    """Two unequal clusters apart."""
    (mass, pos, vel), there = models.plummer(3000, seed=6), models.plummer(200, seed=7)
    file = tmp_path / "apart.dat"
    write_snapshot(file, np.append(mass, there.mass) / 3200, np.vstack([pos, there.pos + 20]),
                   np.vstack([vel, there.vel]))  # fmt: skip
    same_bits(file, *TREECODE, "-o", "0.8", ranks=(2, 3, 5))


def test_so_it_is_with_bodies_in_one_place_and_without_mass(same_bits, tmp_path):
    """Cells that cannot be divided stand above the branches."""
    file = tmp_path / "odd.dat"
    write_snapshot(file, *odd_bodies())
    same_bits(file, "-e", "0.01", *TREECODE, ranks=(2, 3, 4))


@pytest.mark.parametrize("n", [1, 2, 9])
def test_ranks_may_be_more_than_groups(same_bits, tmp_path, n):
    file = tmp_path / "small.dat"
    file.write_text("".join(f"1 {i} {i * i} 0 0 0.5 0\n" for i in range(n)))
    same_bits(file, "-e", "0.1", "-t", "0.01", "-f", ranks=(2, 4))


# ---- errors ------------------------------------------------------------------


@pytest.mark.parametrize(("name", "arguments", "environment", "said"), [
    *[("mpi_hermite", [SNAPSHOT, *words.split()], (), "mpi_hermite: ")
      for words in ("-t 0", "-a", "-q")],
    ("mpi_hermite", [SNAPSHOT], (("GRAPE6_ISA", "none"),), "the GRAPE fails"),
    ("treecode_mpi", ["-t", "0"], (), "treecode: "),
    ("treecode_mpi", ["no such file"], (), "treecode: "),
    ("treecode_mpi", [SNAPSHOT], (("GRAPE6_ISA", "none"),), "cannot open the GRAPE"),
])  # fmt: skip
def test_all_ranks_end_with_an_error(start, name, arguments, environment, said):
    process = start(name, 2, *arguments, environment=environment)
    assert process.returncode == 1
    assert said in process.stderr
    assert "energy" not in process.stdout
