"""Who is left out of a sum: pairs of equal index, and nobody else."""

import numpy as np
import pytest

from particles import assert_force, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda cpu-tree:grape cuda-tree:grape gpu")
LARGE = [16777216, 16777217, 2147483647, -2147483648, -5, 33554433, 0, 2147483646]


def line(session, indices):
    """Unit masses at x = 1, 2, 4, ... with these indices."""
    for address, index in enumerate(indices):
        session.put(address, index, 1.0, (2.0**address, 0, 0))


def test_row10_3_5_3_36_own_index_is_excluded_at_a_nonzero_distance(plain):
    line(plain, [5, 6])
    found = plain.force(2, [[0, 0, 0], [1 + 1e-9, 0, 0]], index=[5, 5], h2=np.inf)
    assert found.acc[:, 0] == pytest.approx([0.25, 1], rel=1e-6)
    assert found.pot == pytest.approx([-0.5, -1], rel=1e-6)
    assert found.nearest.tolist() == [6, 6]
    assert [plain.neighbours(i)[2] for i in (0, 1)] == [[6], [6]]


WHO = {  # indices of j, index of i, addresses that pull
    "3.19 an i index of -1": ([0, 1, 2], -1, [0, 1, 2]),
    "3.20 an i particle absent from j": ([10, 20], 99, [0, 1]),
    "2.4 a j index of -1": ([-1, 4], 4, [0]),
    "2.4 an address equal to the index": ([1, 0], 0, [0]),
    "2.4 several j particles of one index": ([3, 8, 3, 3], 3, [1]),
    "2.4 one beside several of another": ([3, 8, 3, 3], 8, [0, 2, 3]),
    "3.17 any 32-bit integer": (LARGE, LARGE[1], [0, 2, 3, 4, 5, 6, 7]),
    "3.17 the lowest": (LARGE, LARGE[3], [0, 1, 2, 4, 5, 6, 7]),
    "3.17 the highest": (LARGE, LARGE[2], [0, 1, 3, 4, 5, 6, 7]),
}


def test_those_of_another_index_pull(plain):
    for who, (indices, index, pull) in WHO.items():
        line(plain, indices)
        found = plain.force(len(indices), [[0, 0, 0]], index=[index], h2=np.inf)
        assert found.acc[0, 0] == pytest.approx(sum(4.0**-a for a in pull), rel=1e-6), who
        assert found.nearest[0] == indices[pull[0]], who
        assert plain.neighbours(0) == (0, len(pull), sorted(indices[a] for a in pull)), who


@pytest.mark.backends("cpu cuda gpu")
def test_2_4_exclusion_survives_thousands_of_rewrites(in_double):
    rng = np.random.default_rng(4)
    state = cloud(2500, seed=6)
    state.index[:] = rng.integers(-3, 400, 2500)
    in_double.put_cloud(state)
    for _ in range(15):
        rows = rng.permutation(2500)[: rng.integers(1, 300)]
        state.index[rows] = rng.integers(-3, 400, len(rows)) * rng.choice([1, 7919])
        in_double.put_cloud(state.take(rows), rows)
        nj = int(rng.integers(1, 2501))
        x, v = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
        index = rng.choice(state.index, 4)
        index[index == -1] = 17
        found = in_double.force(nj, x, v, index)
        expected = direct(x, v, index, state.take(range(nj)))
        assert_force(found, expected, 1e-11)
        assert (found.nearest == expected[3]).all()


def test_row09_a_distinct_particle_at_the_same_place_adds_nothing(plain):
    plain.put(0, 1, 5.0, (1, 1, 1), v=(3, 0, 0))
    plain.put(1, 2, 1.0, (1, 1, 2))
    found = plain.force(2, [[1, 1, 1]], index=[9])
    assert found.code == 0
    assert found.acc[0].tolist() == pytest.approx([0, 0, 1])
    assert found.jerk[0].tolist() == pytest.approx([0, 0, 0])
    assert found.pot[0] == pytest.approx(-1)
    other = -1 / np.sqrt(1.25)
    for index, pot in (9, other - 10), (1, other):
        softened = plain.force(2, [[1, 1, 1]], index=[index], eps2=0.25)
        assert softened.pot[0] == pytest.approx(pot, rel=1e-6)
