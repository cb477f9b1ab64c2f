"""legacy_examples/ph4_style.cc: the library called as ph4 calls it, with by-value names of its own.

What the program prints is compared with sums made here in NumPy; calls that must not change
anything, with the plain run.
"""

import functools

import numpy as np
import pytest

import capi
import legacy
import tools
from grape6py import read_snapshot, reference
from test_accuracy import LIMITS
from variants import run

N = 1024
# The published errors are those of 16384 bodies; of 1024 a sixteenth of the pairs averages.
SMALLER_N = 4
SHORT = ("-t", "0.0625")


@pytest.fixture(scope="module")
def ph4(run):
    """Output of the program."""

    def ph4(*arguments, environment=()):
        return legacy.output_of(run("ph4_style", *arguments, environment=environment))

    return ph4


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
    errors = legacy.force_errors(text, exact)
    assert len(errors[0]) == rows
    for name, error in zip(("acc", "pot"), errors, strict=True):
        median, largest = LIMITS[mode][name]
        assert np.median(error) <= factor * median
        assert error.max() <= factor * largest


@pytest.mark.parametrize("mode", ["grape", "double"])
def test_first_forces_are_within_the_goal_of_the_mode(ph4, mode):
    text = ph4(legacy.SNAPSHOT, *SHORT, "-f", environment=mode_is(mode))
    check_forces(text, mode, truth())


def test_five_forces_are_printed_unless_all_are_asked_for(ph4):
    few, everyone = ph4(legacy.SNAPSHOT, *SHORT), ph4(legacy.SNAPSHOT, *SHORT, "-f")
    forces = [line for line in everyone.splitlines() if "force " in line]
    assert len(forces) == N + 1  # "... first force pass"
    assert [line for line in few.splitlines() if "force " in line] == forces[:5] + forces[-1:]


def test_3_22_infinite_radii_occur_and_force_passes_collect_no_lists(ph4):
    text = ph4(legacy.SNAPSHOT, *SHORT)
    assert legacy.numbers(rf"neighbours in the first force pass{legacy.NUMBER}", text) == [0]
    tried, infinite = legacy.numbers(
        rf"radii tried{legacy.NUMBER}\s+infinite{legacy.NUMBER}", text
    )[0]
    assert infinite > 10
    assert tried > 2 * N


@pytest.mark.parametrize("pattern", [0, 1, 2])
def test_3_17_output_does_not_depend_on_the_ids(ph4, pattern):
    assert ph4(legacy.SNAPSHOT, *SHORT, "-i", pattern) == ph4(legacy.SNAPSHOT, *SHORT)


@pytest.mark.parametrize("rank", [3, 32652, 2147483647, -5])
def test_3_14_output_does_not_depend_on_the_cluster(ph4, rank):
    assert ph4(legacy.SNAPSHOT, *SHORT, "-r", rank) == ph4(legacy.SNAPSHOT, *SHORT)


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
def test_3_7_3_13_output_does_not_depend_on_pipes_and_threads(ph4, setting):
    text = ph4(legacy.SNAPSHOT, *SHORT, environment=(setting,))
    assert text == ph4(legacy.SNAPSHOT, *SHORT)


def test_without_softening_the_forces_are_as_good(ph4):
    text = ph4(legacy.SNAPSHOT, *SHORT, "-e", "0", environment=mode_is("double"))
    exact = reference.direct_sum(*snapshot(), extended=True)
    check_forces(text, "double", exact, rows=5)


def test_3_15_the_by_value_names_are_those_of_the_program(build, ph4):
    tools.need("nm")
    symbols = run(["nm", "-P", build / "ph4_style"]).stdout
    kinds = {line.split()[0]: line.split()[1] for line in symbols.splitlines()}
    own = {name for name, kind in kinds.items() if name in capi.SIGNATURES and kind == "T"}
    used = {name for name, kind in kinds.items() if name.rstrip("_") in capi.SIGNATURES} - own
    assert len(own) == 16
    assert used == {name + "_" for name in own}
