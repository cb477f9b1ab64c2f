"""The program with kira's calls: each habit of kira's shows in what comes out.

Judged by the oracle, by brute force in NumPy, and by runs that must not differ: other numbers of
pipes, a board that is released on the way or not."""

import re

import numpy as np
import pytest

from grape6py import reference
from legacy import DOUBLE, EPS, NUMBER, SNAPSHOT, numbers, output_of

KIRA = (("GRAPE6_CLIENT", "kira"),)
SHORT = (SNAPSHOT, "-t", "0.0625", "-f")
NDENS = 12


def lists(text):
    """{body: (radius, neighbours)} of the first density, bodies counted from 0."""
    found = {}
    for line in re.findall(r"^ neighbours (.*)$", text, re.MULTILINE):
        body, radius, length, *members = line.split()
        assert len(members) == int(length)
        found[int(body) - 1] = float(radius), [int(k) - 1 for k in members]
    return found


def board(text):
    """Releases, resets, and lists that were too long for their capacity."""
    pattern = rf"board released{NUMBER}, reset{NUMBER}, lists too long{NUMBER}"
    (counts,) = numbers(pattern.replace(NUMBER, r"\s(\d+)"), text)
    return counts


@pytest.mark.parametrize("environment", [(), DOUBLE], ids=["grape", "double"])
def test_3_5_a_pair_with_the_index_of_its_centre_of_mass_feels_all_others(
    run, stars, distance, environment
):
    mass, pos, _ = stars
    pair = np.unravel_index(distance.argmin(), distance.shape)
    others = np.delete(np.arange(1024), pair)
    exact = reference.direct_sum(mass[others], pos[others], target_pos=pos[list(pair)], eps2=EPS**2,
                                 extended=True)  # fmt: skip
    text = output_of(run("kira_style", *SHORT, environment=environment))
    found = numbers(rf"perturbation{NUMBER}{NUMBER}{NUMBER}{NUMBER}", text)[:2]
    assert [int(body) - 1 for body, *_ in found] == list(map(int, pair))
    error = np.linalg.norm(np.array(found)[:, 1:] - exact.acc.astype(float), axis=1)
    limit = 1e-13 if environment == DOUBLE else 2e-7
    assert (error <= limit * np.linalg.norm(exact.acc.astype(float), axis=1)).all()


@pytest.mark.parametrize(("capacity", "environment"), [(4096, ()), (40, KIRA), (16, ())])
def test_lists_are_right_also_after_overflow(run, stars, distance, environment, capacity):
    """Those of brute force; and the density centre follows."""
    text = output_of(run("kira_style", *SHORT, "-n", capacity, environment=environment))
    found = lists(text)
    mass, pos, _ = stars
    rho = [mass[found[i][1]].sum() / found[i][0] ** 3 for i in range(1024)]
    got = numbers(rf"density centre{NUMBER}{NUMBER}{NUMBER}", text)[0]
    assert got == pytest.approx(rho @ pos / np.sum(rho), abs=1.1e-5)
    assert "no density" not in text
    assert set(found) == set(range(1024))
    for body, (radius, members) in found.items():
        assert NDENS <= len(members) <= capacity
        assert members == np.flatnonzero(distance[body] <= radius).tolist()
    assert (board(text)[2] > 0) == (capacity < 100)


@pytest.mark.parametrize("blocks", [0, 1, 37])
def test_2_13_a_board_released_and_filled_again_changes_nothing(run, blocks):
    text = output_of(run("kira_style", *SHORT))
    other = output_of(run("kira_style", *SHORT, "-r", blocks))
    (count,) = numbers(rf"blocks{NUMBER}", other)
    assert board(other)[:2] == (count // blocks if blocks else 0, 0)
    text, other = (re.sub(r"\n board released.*", "", each) for each in (text, other))
    assert other == text


@pytest.mark.parametrize(("pipes", "itself"), [("128", "0"), ("48", "1")])
def test_3_2_lists_that_would_mislead_kira_are_told(run, pipes, itself):
    environment = (("GRAPE6_NPIPES", pipes), ("GRAPE6_NEIGHBOUR_SELF", itself))
    process = run("kira_style", *SHORT, environment=environment)
    assert process.returncode == 0
    assert process.stderr.count("GRAPE6_CLIENT=kira") == 1
    assert process.stdout == output_of(run("kira_style", *SHORT))


@pytest.mark.parametrize("environment", [(), KIRA], ids=["unset", "kira"])
@pytest.mark.parametrize("n", [1, 2, 3, 12, 13])
def test_2_7_the_last_node_is_its_own_neighbour_and_the_smallest_systems_run(
    run, tmp_path, n, environment
):
    rng = np.random.default_rng(n)
    file = tmp_path / "small.dat"
    np.savetxt(file, np.column_stack([np.full(n, 1 / n), rng.standard_normal((n, 6))]))
    text = output_of(run("kira_style", file, "-e", "0.1", environment=environment))
    assert " last node   nearest 1   neighbours 0   pot 0   acc 0\n" in text
    assert board(text)[1] == 0
    assert max(numbers(rf"relative energy error{NUMBER}", text)) <= 1e-5
    assert ("density" in text) == (n > NDENS)
    assert ("perturbation" in text) == (n > 1)
