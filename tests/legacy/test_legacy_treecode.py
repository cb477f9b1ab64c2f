"""The treecode in the manner of Makino's: lists of mixed bodies and cells, fresh for each group.

Its forces are judged by the oracle's direct sum: by the errors of a tree of monopoles here, with
theta = 0 by those of the mode in test_legacy.py, as are its energies."""

import numpy as np
import pytest

import legacy
from grape6py import reference
from legacy import DOUBLE, EPS, GRAPE, SNAPSHOT, forces, output_of
from particles import relative
from tools import run as run_tool

ONE_STEP = ("-t", "0.001", "-f")


def test_forces_have_the_errors_of_a_tree_and_tend_to_the_direct_sum_with_theta(run, stars):
    medians, exact = [], reference.direct_sum(*stars[:2], eps2=EPS**2, extended=True)
    for theta in (1, 0.5, 0.2):
        text = output_of(run("treecode", SNAPSHOT, "-o", theta, *ONE_STEP))
        acc, pot = legacy.force_errors(text, exact)
        medians.append(np.median(acc))
        if theta == 0.5:
            assert medians[-1] <= 3e-3
            assert acc.max() <= 3e-2
            assert pot.max() <= 5e-3
    assert (np.diff(medians) < 0).all()
    assert medians[0] > 1e-3
    assert medians[-1] < 5e-4


@pytest.mark.parametrize(("options", "mode", "limits"), [
    ("-o 0", GRAPE, {"treecode_walks": 3e-6, "treecode_g5": 1e-6}),
    ("-o 1", DOUBLE, {"treecode_walks": 1e-12, "treecode_g5": 1e-12}),
    ("-g 64", GRAPE, {"treecode_walks": 3e-6, "treecode_g5": 1e-6}),
])  # fmt: skip
def test_other_calls_give_the_same_forces(run, options, mode, limits):
    """The lists of all groups in one call; and a GRAPE-5's calls, where a body is among those of
    its list, and m / eps is taken out of the potential."""
    args = SNAPSHOT, *options.split(), *ONE_STEP
    single = output_of(run("treecode", *args, environment=mode))
    acc, pot = forces(single)
    for name, limit in limits.items():
        text = output_of(run(name, *args, environment=mode))
        (other_acc, other_pot) = forces(text)
        assert relative(other_acc, acc).max() <= limit
        assert np.abs(other_pot / pot - 1).max() <= limit
        assert text.splitlines()[-2] == single.splitlines()[-2]  # steps, lists, mean length


def test_threads_with_boards_of_their_own_have_the_bits_of_one(run, tmp_path):
    program = tmp_path / "treecode"
    source = legacy.EXAMPLES / "treecode.c"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", "-DGRAPE5"]
    link = [*legacy.grape6_config("--cflags", "--libs"), "-lm"]
    run_tool(["gcc", *flags, source, "-o", program, *link], timeout=120)
    env = {"OMP_NUM_THREADS": "3", "GRAPE6_THREADS": "1"}
    done = run_tool([program, SNAPSHOT, *ONE_STEP], env=env, timeout=120)
    assert output_of(done) == output_of(run("treecode_g5", SNAPSHOT, *ONE_STEP))
