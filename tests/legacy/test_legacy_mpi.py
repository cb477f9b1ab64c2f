"""legacy_examples/mpi_hermite.f90: with partial sums a run has the same bits on 1, 2 and 3 ranks.

With doubles it has not, but agrees to the rounding of the mode.
"""

import functools

import numpy as np
import pytest

import capi
import legacy
import tools
from grape6py import models, read_snapshot, reference, write_snapshot
from test_legacy_ph4 import check_forces, mode_is

LARGER = 3500  # four blocks of j addresses, the last one not full
SHORT = {legacy.SNAPSHOT.name: "0.03125", "larger.dat": "0.0009765625"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With two snapshots: one block of j addresses, and several."""
    folder = tmp_path_factory.mktemp("mpi")
    # From the centre outwards: shares of it, left alone, would have scales of their own.
    model = models.plummer(LARGER, seed=6)
    order = np.argsort((model.pos**2).sum(axis=1))
    write_snapshot(folder / "larger.dat", *(column[order] for column in model))
    (folder / legacy.SNAPSHOT.name).symlink_to(legacy.SNAPSHOT)
    return folder


@pytest.fixture(scope="module")
def start(build, folder):
    """Starts the program on some ranks."""
    tools.need("gfortran")
    tools.need("mpif90")

    def start(ranks, snapshot, *arguments, environment=()):
        program = build / "mpi_hermite"
        return legacy.mpirun(ranks, program, folder / snapshot, *arguments, environment=environment)

    return start


@pytest.fixture(scope="module")
def run(start):
    """Output of the program."""

    def run(*arguments, environment=()):
        process = start(*arguments, environment=environment)
        assert process.returncode == 0, process.stderr
        return process.stdout

    return functools.cache(run)


@functools.cache
def truth(folder, snapshot):
    particles = read_snapshot(folder / snapshot)
    return reference.direct_sum(*particles, eps2=(4 / len(particles.mass)) ** 2, extended=True)


@pytest.mark.parametrize("mode", ["grape", "double"])
@pytest.mark.parametrize("snapshot", SHORT)
def test_partial_sums_give_one_output_for_any_number_of_ranks(run, snapshot, mode):
    arguments = (snapshot, "-p", "-f", "-t", SHORT[snapshot])
    one, two, three = (run(n, *arguments, environment=mode_is(mode)) for n in (1, 2, 3))
    assert "bits of the state" in one
    assert one == two
    assert one == three


def test_one_rank_with_partial_sums_has_the_bits_of_one_board(run):
    """Partial sums of everything, with the scale set by hand, are the force itself."""
    for snapshot, tend in SHORT.items():
        partial, doubles = (run(1, snapshot, how, "-f", "-t", tend) for how in ("-p", "-d"))
        assert partial == doubles


@pytest.mark.parametrize(("mode", "limit"), [("grape", 1e-6), ("double", 1e-14)])
@pytest.mark.parametrize("snapshot", SHORT)
def test_doubles_agree_to_the_rounding_of_the_mode(run, snapshot, mode, limit):
    arguments = (snapshot, "-d", "-f", "-t", SHORT[snapshot])
    one, *more = (run(n, *arguments, environment=mode_is(mode)) for n in (1, 2, 3))
    for text in more:
        (acc, pot), right = legacy.forces(text), legacy.forces(one)
        size = np.linalg.norm(right[0], axis=1)
        assert (np.abs(acc - right[0]).max(axis=1) <= limit * size).all()
        assert (np.abs(pot - right[1]) <= limit * np.abs(right[1])).all()
        assert legacy.energies(text) == pytest.approx(legacy.energies(one), rel=1e-8)
    # And they are cut up in different ways, so that the test of partial sums is one.
    assert len({text.split("bits of the state")[1] for text in (one, *more)}) > 1


@pytest.mark.parametrize("mode", ["grape", "double"])
@pytest.mark.parametrize("how", ["-p", "-d"])
@pytest.mark.parametrize("snapshot", SHORT)
def test_first_forces_are_within_the_goal_of_the_mode(run, folder, snapshot, how, mode):
    text = run(3, snapshot, how, "-f", "-t", SHORT[snapshot], environment=mode_is(mode))
    exact = truth(folder, snapshot)
    check_forces(text, mode, exact, rows=len(exact.pot))


@pytest.mark.parametrize(
    ("ranks", "how", "mode"), [(1, "-p", "double"), (2, "-p", "grape"), (3, "-d", "grape")]
)
def test_energy_is_kept_over_one_time_unit(run, ranks, how, mode):
    text = run(ranks, legacy.SNAPSHOT.name, how, environment=mode_is(mode))
    legacy.assert_energy_is_kept(text)


@pytest.mark.parametrize("pipes", ["1", "16384"])
def test_partial_sums_do_not_depend_on_pipes(run, pipes):
    arguments = (2, "larger.dat", "-p", "-f", "-t", SHORT["larger.dat"])
    text = run(*arguments, environment=(("GRAPE6_NPIPES", pipes),))
    assert text == run(*arguments, environment=mode_is("grape"))


@pytest.mark.parametrize("arguments", [("-t", "0"), ("-a",), ("-q",)])
def test_all_ranks_end_when_an_option_is_bad(start, arguments):
    process = start(2, legacy.SNAPSHOT.name, *arguments)
    assert process.returncode == 1
    assert "mpi_hermite: " in process.stderr


def test_all_ranks_end_when_the_library_reports_a_fault(start):
    process = start(2, "larger.dat", environment=(("GRAPE6_ISA", "none"),))
    assert process.returncode == 1
    assert "the GRAPE fails" in process.stderr


def test_the_program_is_as_long_as_an_example_may_be():
    lines = (capi.ROOT / "legacy_examples" / "mpi_hermite.f90").read_text().splitlines()
    assert len(lines) <= 400
    assert max(map(len, lines)) <= 100
