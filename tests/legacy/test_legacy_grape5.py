"""The program in the manner of GRAPE-5's: forces and energies by direct sum, in pieces.

Its forces are judged by the oracle's direct sum.
"""

import numpy as np
import pytest

from grape6py import reference
from legacy import EPS, SNAPSHOT, assert_energy_is_kept, force_errors, forces, output_of

DOUBLE = (("GRAPE6_PRECISION", "double"),)
ONE_STEP = ("-t", "0.001", "-f")


def of_program(run, *arguments, environment=()):
    return output_of(run("grape5_style", *arguments, environment=environment))


@pytest.mark.parametrize(
    ("environment", "acc_error", "pot_error"),
    [((), 1e-6, 1e-6), (DOUBLE, 1e-12, 1e-12)],
    ids=["grape", "double"],
)
@pytest.mark.parametrize("size", [2000, 1024, 300, 1])
def test_forces_are_those_of_a_direct_sum(run, stars, size, environment, acc_error, pot_error):
    mass, pos, _ = stars
    exact = reference.direct_sum(mass, pos, eps2=EPS**2, extended=True)
    text = of_program(run, SNAPSHOT, "-j", size, *ONE_STEP, environment=environment)
    acc, pot = force_errors(text, exact)
    assert len(acc) == 1024
    assert acc.max() <= acc_error
    assert pot.max() <= pot_error


def test_energy_is_kept_over_one_time_unit(run):
    text = of_program(run, SNAPSHOT)
    assert_energy_is_kept(text, 1e-4, host_limit=1e-3, pot_limit=1e-6)
    assert len(forces(text)[0]) == 5


@pytest.mark.parametrize("npipes", ["1", "7", "16384"])
def test_output_does_not_depend_on_the_number_of_pipelines(run, npipes):
    short = (SNAPSHOT, "-d", "0.0078125", "-t", "0.0625", "-f")
    text = of_program(run, *short)
    assert of_program(run, *short, environment=(("GRAPE6_NPIPES", npipes),)) == text


def test_a_program_that_expects_positive_potentials_gets_them_by_a_switch(run):
    positive = (("GRAPE6_G5_POT_SIGN", "1"),)
    text = of_program(run, SNAPSHOT, "-p", *ONE_STEP, environment=positive)
    assert text == of_program(run, SNAPSHOT, *ONE_STEP)


def test_without_softening_nothing_is_to_be_taken_out_of_the_potential(run, tmp_path):
    file = tmp_path / "two.dat"
    file.write_text("1 0 0 0 0 0.5 0\n1 1 0 0 0 -0.5 0\n")
    acc, pot = forces(of_program(run, file, "-e", "0", "-t", "0.01"))
    np.testing.assert_allclose(acc[:, 0], [1, -1], rtol=1e-6)
    np.testing.assert_allclose(pot, [-1, -1], rtol=1e-6)


def test_a_missing_snapshot_ends_with_a_message_and_status_1(run):
    process = run("grape5_style", "missing.dat")
    assert process.returncode == 1
    assert "missing.dat" in process.stderr
