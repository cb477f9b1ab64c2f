"""legacy_examples/ph4_style.cc: the library called as ph4 calls it, with by-value names of its own.

What the program prints is compared with sums made here in NumPy; calls that must not change
anything, with the plain run.
"""

import functools
import subprocess

import numpy as np
import pytest

import capi
import legacy
import tools
from grape6py import read_snapshot, reference
from test_accuracy import LIMITS

N = 1024
# The published errors are those of 16384 bodies; of 1024 a sixteenth of the pairs averages.
SMALLER_N = 4
SHORT = ("-t", "0.0625")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    tools.need("g++")
    folder = tmp_path_factory.mktemp("ph4")
    legacy.make(folder, "CXXFLAGS=-O2 -Wall -Wextra -Wconversion -Werror", folder / "ph4_style")
    return folder / "ph4_style"


@pytest.fixture(scope="module")
def run(program):
    """Output of the program, with nothing but `environment` in its environment."""

    def run(*arguments, environment=()):
        return legacy.output_of(
            subprocess.run(
                [program, *map(str, arguments)],
                env=dict(environment),
                cwd="/",
                capture_output=True,
                text=True,
                timeout=120,
            )
        )

    return functools.cache(run)


def mode_is(mode):
    return (("GRAPE6_PRECISION", mode),)


@functools.cache
def snapshot():
    return read_snapshot(legacy.SNAPSHOT)


@functools.cache
def truth():
    return reference.direct_sum(*snapshot(), eps2=legacy.EPS**2, nearest=True, extended=True)


def check_forces(text, mode, exact, rows=N, factor=SMALLER_N):
    """The lines `force i ax ay az pot` of a program are within the goal of the mode."""
    force = np.array(legacy.numbers(rf"force{legacy.NUMBER * 5}", text))
    assert force[:, 0].tolist() == list(range(1, rows + 1))
    acc, pot = exact.acc[:rows], exact.pot[:rows]
    error = np.linalg.norm((force[:, 1:4] - acc).astype(float), axis=1)
    error /= np.linalg.norm(acc.astype(float), axis=1)
    assert np.median(error) <= factor * LIMITS[mode]["acc"][0]
    assert error.max() <= factor * LIMITS[mode]["acc"][1]
    error = np.abs(force[:, 4] / pot - 1)
    assert np.median(error) <= factor * LIMITS[mode]["pot"][0]
    assert error.max() <= factor * LIMITS[mode]["pot"][1]


@pytest.mark.parametrize("mode", ["grape", "double"])
def test_first_forces_are_within_the_goal_of_the_mode(run, mode):
    text = run(legacy.SNAPSHOT, *SHORT, "-f", environment=mode_is(mode))
    check_forces(text, mode, truth())


def test_five_forces_are_printed_unless_all_are_asked_for(run):
    few, everyone = run(legacy.SNAPSHOT, *SHORT), run(legacy.SNAPSHOT, *SHORT, "-f")
    forces = [line for line in everyone.splitlines() if "force " in line]
    assert len(forces) == N + 1  # "... first force pass"
    assert [line for line in few.splitlines() if "force " in line] == forces[:5] + forces[-1:]


@pytest.mark.parametrize("mode", ["grape", "double"])
def test_energy_is_kept_over_one_time_unit(run, mode):
    text = run(legacy.SNAPSHOT, environment=mode_is(mode))
    (error,) = legacy.numbers(rf"relative energy error{legacy.NUMBER}", text)
    assert error <= legacy.ENERGY_ERROR
    times, host, pot = legacy.energies(text).T
    assert list(times) == [0, 0.25, 0.5, 0.75, 1]
    assert np.abs(host / host[0] - 1).max() <= legacy.ENERGY_ERROR
    assert np.abs(pot / host - 1).max() <= legacy.ENERGY_ERROR


def test_3_17_3_18_nearest_neighbours_and_lists_come_back_as_ids(run):
    """Closest pair and density centre (Casertano & Hut 1985, ApJ 298, 80) from the ids."""
    mass, pos, _ = snapshot()
    distance = np.linalg.norm(pos[:, None] - pos, axis=2)
    np.fill_diagonal(distance, np.inf)
    text = run(legacy.SNAPSHOT, *SHORT)
    pair = legacy.numbers(rf"closest pair{legacy.NUMBER * 2}\s+distance{legacy.NUMBER}", text)[0]
    want = np.unravel_index(distance.argmin(), distance.shape)
    assert {int(pair[0]) - 1, int(pair[1]) - 1} == set(map(int, want))
    near = np.argsort(distance, axis=1)[:, :6]
    weight = mass[near[:, :5]].sum(axis=1) / np.take_along_axis(distance, near, axis=1)[:, 5] ** 3
    centre = weight @ pos / weight.sum()
    radius = weight @ np.linalg.norm(pos - centre, axis=1) / weight.sum()
    pattern = rf"density centre{legacy.NUMBER * 3}\s+density radius{legacy.NUMBER}"
    assert legacy.numbers(pattern, text)[0] == pytest.approx((*centre, radius), abs=1.1e-5)
    assert "no density" not in text


def test_3_22_infinite_radii_occur_and_force_passes_collect_no_lists(run):
    text = run(legacy.SNAPSHOT, *SHORT)
    assert legacy.numbers(rf"neighbours in the first force pass{legacy.NUMBER}", text) == [0]
    tried, infinite = legacy.numbers(
        rf"radii tried{legacy.NUMBER}\s+infinite{legacy.NUMBER}", text
    )[0]
    assert infinite > 10
    assert tried > 2 * N


@pytest.mark.parametrize("pattern", [0, 1, 2])
def test_3_17_output_does_not_depend_on_the_ids(run, pattern):
    assert run(legacy.SNAPSHOT, *SHORT, "-i", pattern) == run(legacy.SNAPSHOT, *SHORT)


@pytest.mark.parametrize("rank", [3, 32652, 2147483647, -5])
def test_3_14_output_does_not_depend_on_the_cluster(run, rank):
    assert run(legacy.SNAPSHOT, *SHORT, "-r", rank) == run(legacy.SNAPSHOT, *SHORT)


@pytest.mark.parametrize(
    "setting",
    [
        ("GRAPE6_NPIPES", "1"),
        ("GRAPE6_NPIPES", "48"),
        ("GRAPE6_NPIPES", "16384"),
        ("GRAPE6_CLIENT", "ph4"),
        ("GRAPE6_THREADS", "1"),
    ],
    ids="=".join,
)
def test_3_7_3_13_output_does_not_depend_on_pipes_and_threads(run, setting):
    text = run(legacy.SNAPSHOT, *SHORT, environment=(setting,))
    assert text == run(legacy.SNAPSHOT, *SHORT)


def test_without_softening_the_forces_are_as_good(run):
    text = run(legacy.SNAPSHOT, *SHORT, "-e", "0", environment=mode_is("double"))
    exact = reference.direct_sum(*snapshot(), extended=True)
    check_forces(text, "double", exact, rows=5)


@pytest.mark.parametrize("arguments", [("-e",), ("-t", "0"), ("-a", "x"), ("-q", "1")])
def test_bad_options_are_refused(program, arguments):
    process = subprocess.run(
        [program, legacy.SNAPSHOT, *arguments], env={}, capture_output=True, text=True, timeout=60
    )
    assert process.returncode == 1
    assert process.stderr.startswith("ph4_style: ")


def test_3_15_the_by_value_names_are_those_of_the_program(program):
    tools.need("nm")
    symbols = subprocess.run(
        ["nm", "-P", program], check=True, capture_output=True, text=True
    ).stdout
    kinds = {line.split()[0]: line.split()[1] for line in symbols.splitlines()}
    own = {name for name, kind in kinds.items() if name in capi.SIGNATURES and kind == "T"}
    used = {name for name, kind in kinds.items() if name.rstrip("_") in capi.SIGNATURES} - own
    assert len(own) == 16
    assert used == {name + "_" for name in own}
