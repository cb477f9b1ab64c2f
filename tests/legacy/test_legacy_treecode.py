"""The treecode in the manner of Makino's: lists of mixed bodies and cells, fresh for each group.

Its forces are judged by the oracle's direct sum: with theta = 0 by the errors of the mode, with
theta > 0 by those of a tree of monopoles.
"""

import subprocess

import numpy as np
import pytest

from grape6py import reference, write_snapshot
from legacy import (
    EPS,
    EXAMPLES,
    NUMBER,
    PARTS,
    SNAPSHOT,
    assert_energy_is_kept,
    energies,
    force_errors,
    forces,
    grape6_config,
    numbers,
    output_of,
)
from particles import relative

DOUBLE = (("GRAPE6_PRECISION", "double"),)
BHTREE = (("GRAPE6_CLIENT", "bhtree"),)
ONE_STEP = ("-t", "0.001", "-f")


@pytest.fixture(scope="module")
def exact(stars):
    mass, pos, _ = stars
    return reference.direct_sum(mass, pos, eps2=EPS**2, extended=True)


@pytest.fixture
def errors(run, exact):
    """Relative errors of acc and pot of all bodies of the snapshot at an opening angle."""

    def errors(theta, environment=()):
        process = run("treecode", SNAPSHOT, "-o", theta, *ONE_STEP, environment=environment)
        return force_errors(output_of(process), exact)

    return errors


@pytest.mark.parametrize(
    ("environment", "median", "largest"),
    [((), 4e-8, 1e-6), (DOUBLE, 6e-15, 4e-14)],
    ids=["grape", "double"],
)
def test_theta_zero_is_the_direct_sum(errors, environment, median, largest):
    """The published medians, times 4: a sixteenth of the pairs that they were measured with."""
    acc, pot = errors(0, environment)
    assert len(acc) == 1024
    assert np.median(acc) <= median
    assert acc.max() <= largest
    assert np.median(pot) <= median
    assert pot.max() <= largest


def test_theta_one_half_has_the_errors_of_a_tree(errors):
    acc, pot = errors(0.5)
    assert np.median(acc) <= 3e-3
    assert acc.max() <= 3e-2
    assert pot.max() <= 5e-3


def test_forces_tend_to_the_direct_sum_with_theta(errors):
    medians = [np.median(errors(theta)[0]) for theta in (1, 0.7, 0.5, 0.3, 0.15)]
    assert (np.diff(medians) < 0).all()
    assert medians[0] > 1e-3
    assert medians[-1] < 5e-4


@pytest.mark.parametrize("environment", [(), DOUBLE], ids=["grape", "double"])
def test_energy_is_kept_over_one_time_unit(run, environment):
    text = output_of(run("treecode", SNAPSHOT, environment=environment))
    assert_energy_is_kept(text, 1e-4, host_limit=1e-3, pot_limit=np.inf)
    assert len(forces(text)[0]) == 5


def test_3_35_the_potential_needs_no_self_term(run):
    """Makino's code adds m/eps to each potential: here that would be 0.5 of the energy."""
    host, pot = energies(output_of(run("treecode", SNAPSHOT, "-o", "0", *ONE_STEP)))[0, 1:]
    assert pot == pytest.approx(host, rel=1e-7)


@pytest.mark.parametrize(
    "environment",
    [(("GRAPE6_NPIPES", "1"),), (("GRAPE6_NPIPES", "7"),), (("GRAPE6_NPIPES", "16384"),), BHTREE],
    ids=lambda e: "=".join(e[0]),
)
def test_output_does_not_depend_on_the_number_of_pipes(run, environment):
    short = (SNAPSHOT, "-d", "0.0078125", "-t", "0.0625", "-f")
    text = output_of(run("treecode", *short))
    assert output_of(run("treecode", *short, environment=environment)) == text


def test_a_list_is_shorter_than_all_bodies_and_lists_are_shared(run):
    text = output_of(run("treecode", SNAPSHOT))
    steps, lists, length = numbers(rf"steps{NUMBER}\s+lists{NUMBER}\s+mean length{NUMBER}", text)[0]
    assert steps == 512
    assert lists < 0.2 * 1024 * (steps + 1)
    assert 50 < length < 700


def test_larger_groups_share_longer_lists_and_their_forces_are_nearer_the_sum(run, exact):
    found = []
    for most in (1, 16, 256, 1024):
        text = output_of(run("treecode_walks", SNAPSHOT, "-g", most, *ONE_STEP))
        (row,) = numbers(rf"lists{NUMBER}\s+mean length{NUMBER}", text)
        found.append((*row, np.median(force_errors(text, exact)[0])))
    lists, length, error = np.array(found).T
    assert (np.diff(lists) < 0).all()
    assert (np.diff(length) > 0).all()
    assert (np.diff(error) < 0).all()
    assert length[-1] == 1024


@pytest.mark.parametrize("name", ["treecode", "treecode_walks", "treecode_g5"])
def test_the_time_taken_is_one_line_more(run, name):
    short = (SNAPSHOT, "-t", "0.0625")
    text = output_of(run(name, *short, "-w"))
    (taken,) = numbers(PARTS, text)
    assert 0 < sum(taken[1:]) < taken[0] + 0.001  # rounded to four digits
    rest = [line for line in text.splitlines() if not line.startswith(" seconds")]
    assert rest == output_of(run(name, *short)).splitlines()


def test_bodies_in_one_place_and_without_mass_are_no_matter(run, tmp_path):
    """A group larger than the pipes, a cell without size, cells without mass."""
    rng = np.random.default_rng(3)
    pos = np.vstack([np.zeros((200, 3)), rng.standard_normal((300, 3))])
    mass = np.where(np.arange(500) % 3 == 0, 0, 1 / 500)
    pos[:20, 0] = -7
    mass[:20] = 0
    file = tmp_path / "odd.dat"
    write_snapshot(file, mass, pos)
    exact = reference.direct_sum(mass, pos, eps2=0.01**2, extended=True)
    text = output_of(run("treecode", file, "-e", "0.01", "-o", "0", *ONE_STEP))
    acc, pot = force_errors(text, exact)
    assert acc.max() <= 1e-5  # bodies in the middle of the others have next to no force
    assert pot.max() <= 1e-6
    acc, _ = force_errors(
        output_of(run("treecode", file, "-e", "0.01", "-o", "1", *ONE_STEP)), exact
    )
    assert np.median(acc) <= 3e-2


@pytest.mark.parametrize("n", [1, 2])
def test_the_smallest_systems(run, tmp_path, n):
    file = tmp_path / "small.dat"
    file.write_text("".join(f"1 {i} 0 0 0 0.5 0\n" for i in range(n)))
    text = output_of(run("treecode", file, "-e", "0", "-t", "0.01"))
    acc, pot = forces(text)
    np.testing.assert_allclose(acc[:, 0], [1, -1] if n == 2 else [0], rtol=1e-6)
    np.testing.assert_allclose(pot, [-1, -1] if n == 2 else [0], rtol=1e-6)


@pytest.mark.parametrize("theta", [0, 0.5, 1])
@pytest.mark.parametrize(
    ("environment", "limit"), [((), 3e-6), (DOUBLE, 1e-12)], ids=["grape", "double"]
)
def test_many_walks_a_call_give_the_same_forces(run, theta, environment, limit):
    """The second build hands over the lists of all groups at once."""
    args = SNAPSHOT, "-o", theta, *ONE_STEP
    single, many = (
        output_of(run(name, *args, environment=environment))
        for name in ("treecode", "treecode_walks")
    )
    (acc, pot), (many_acc, many_pot) = forces(single), forces(many)
    assert relative(many_acc, acc).max() <= limit
    assert np.abs(many_pot / pot - 1).max() <= limit
    assert single.splitlines()[-2] == many.splitlines()[-2]  # steps, lists, mean length


def test_many_walks_keep_the_energy_as_well(run):
    single, many = (output_of(run(name, SNAPSHOT)) for name in ("treecode", "treecode_walks"))
    (error,) = numbers(rf"relative energy error{NUMBER}", many)
    assert error <= 1e-4
    assert energies(many) == pytest.approx(energies(single), rel=1e-4)


def test_many_walks_of_odd_bodies(run, tmp_path):
    file = tmp_path / "odd.dat"
    pos = np.vstack([np.zeros((200, 3)), np.random.default_rng(3).standard_normal((300, 3))])
    write_snapshot(file, np.where(np.arange(500) % 3 == 0, 0, 1 / 500), pos)
    args = file, "-e", "0.01", "-o", "0.7", *ONE_STEP
    single, many = (forces(output_of(run(n, *args))) for n in ("treecode", "treecode_walks"))
    assert relative(many[0][200:], single[0][200:]).max() <= 1e-5
    assert np.isfinite(many[0]).all()


@pytest.mark.parametrize("most", [64, 2048])
@pytest.mark.parametrize(
    ("environment", "limits"),
    [((), (1e-6, 3e-6)), (DOUBLE, (1e-12, 1e-12))],
    ids=["grape", "double"],
)
def test_the_calls_of_a_grape5_give_the_same_forces(run, most, environment, limits):
    """A body is among those of its list: m / eps is taken out of the potential."""
    args = SNAPSHOT, "-g", most, *ONE_STEP
    grape5 = output_of(run("treecode_g5", *args, environment=environment))
    acc5, pot5 = forces(grape5)
    for name, limit in zip(("treecode", "treecode_walks"), limits, strict=True):
        text = output_of(run(name, *args, environment=environment))
        acc, pot = forces(text)
        assert relative(acc5, acc).max() <= limit
        assert np.abs(pot5 / pot - 1).max() <= limit
        assert text.splitlines()[-2] == grape5.splitlines()[-2]  # steps, lists, mean length


def test_the_calls_of_a_grape5_keep_the_energy_as_well(run):
    single, grape5 = (output_of(run(name, SNAPSHOT)) for name in ("treecode", "treecode_g5"))
    assert energies(grape5) == pytest.approx(energies(single), rel=1e-4)


def test_threads_with_boards_of_their_own_have_the_bits_of_one(run, tmp_path):
    program = tmp_path / "treecode"
    source = EXAMPLES / "treecode.c"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-DGRAPE5"]
    link = [*grape6_config("--cflags", "--libs"), "-lm"]
    subprocess.run(["gcc", *flags, source, "-o", program, *link], check=True, timeout=120)
    env = {"OMP_NUM_THREADS": "3", "GRAPE6_THREADS": "1"}
    done = subprocess.run(
        [program, SNAPSHOT, *ONE_STEP], env=env, capture_output=True, text=True, timeout=120
    )
    assert output_of(done) == output_of(run("treecode_g5", SNAPSHOT, *ONE_STEP))


def test_without_softening_a_grape5_has_nothing_to_take_out(run, tmp_path):
    file = tmp_path / "two.dat"
    file.write_text("1 0 0 0 0 0.5 0\n1 1 0 0 0 -0.5 0\n")
    acc, pot = forces(output_of(run("treecode_g5", file, "-e", "0", "-t", "0.01")))
    np.testing.assert_allclose(acc[:, 0], [1, -1], rtol=1e-6)
    np.testing.assert_allclose(pot, [-1, -1], rtol=1e-6)
