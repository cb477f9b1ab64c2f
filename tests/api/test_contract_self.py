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


def test_row10_3_5_3_36_own_index_is_excluded_at_a_nonzero_distance(session):
    line(session, [5, 6])
    found = session.force(2, [[0, 0, 0], [1 + 1e-9, 0, 0]], index=[5, 5], h2=np.inf)
    assert found.acc[:, 0] == pytest.approx([0.25, 1], rel=1e-6)
    assert found.pot == pytest.approx([-0.5, -1], rel=1e-6)
    assert found.nearest.tolist() == [6, 6]
    assert [session.neighbours(i)[2] for i in (0, 1)] == [[6], [6]]


def test_2_4_copies_of_one_i_particle_get_the_same_bits(session):
    source = cloud(100)
    session.put_cloud(source)
    found = session.force(
        100, np.tile(source.x[7], (48, 1)), np.tile(source.v[7], (48, 1)), [7] * 48
    )
    assert (found.acc == found.acc[0]).all()
    assert (found.jerk == found.jerk[0]).all()
    assert_force(found, direct(source.x[7:8], source.v[7:8], [7], source), 1e-4)


WHO = {  # indices of j, index of i, addresses that pull
    "3.19 an i index of -1": ([0, 1, 2], -1, [0, 1, 2]),
    "3.20 an i particle absent from j": ([10, 20], 99, [0, 1]),
    "2.4 a j index of -1": ([-1, 4], 4, [0]),
    "2.4 an address equal to the index": ([1, 0], 0, [0]),
    "2.4 several j particles of one index": ([3, 8, 3, 3], 3, [1]),
    "2.4 one beside several of another": ([3, 8, 3, 3], 8, [0, 2, 3]),
}


@pytest.mark.parametrize("who", WHO)
def test_those_of_another_index_pull(session, who):
    indices, index, pull = WHO[who]
    line(session, indices)
    found = session.force(len(indices), [[0, 0, 0]], index=[index], h2=np.inf)
    assert found.acc[0, 0] == pytest.approx(sum(4.0**-a for a in pull), rel=1e-6)
    assert found.nearest[0] == indices[pull[0]]
    assert session.neighbours(0) == (0, len(pull), sorted(indices[a] for a in pull))


def test_3_17_indices_are_any_32_bit_integers(session):
    line(session, LARGE)
    total = sum(4.0**-a for a in range(8))
    found = session.force(8, np.zeros((8, 3)), index=LARGE, h2=np.inf)
    assert found.acc[:, 0] == pytest.approx([total - 4.0**-a for a in range(8)], rel=1e-6)
    for pipe, index in enumerate(LARGE):
        assert session.neighbours(pipe)[2] == sorted(set(LARGE) - {index})


def test_3_18_nearest_and_lists_hold_indices_not_addresses(session):
    line(session, [501, 77, 33])
    found = session.force(3, [[1.1, 0, 0], [2.1, 0, 0], [3.9, 0, 0]], index=[9, 9, 9], h2=1.0)
    assert found.nearest.tolist() == [501, 77, 33]
    assert session.neighbours(0)[2] == [77, 501]


def test_2_4_exclusion_follows_a_changed_index(session):
    line(session, [1, 2])
    origin = [[0, 0, 0], [0, 0, 0]]
    assert session.force(2, origin, index=[1, 2]).acc[:, 0] == pytest.approx([0.25, 1])
    session.put(0, 2, 1.0, (1, 0, 0))
    session.put(1, 1, 1.0, (2, 0, 0))
    assert session.force(2, origin, index=[1, 2]).acc[:, 0] == pytest.approx([1, 0.25])
    session.put(1, 2, 1.0, (2, 0, 0))
    assert session.force(2, origin, index=[1, 2]).acc[:, 0] == pytest.approx([1.25, 0])


def test_2_4_exclusion_survives_thousands_of_rewrites(exact):
    rng = np.random.default_rng(4)
    state = cloud(2500, seed=6)
    state.index[:] = rng.integers(-3, 400, 2500)
    exact.put_cloud(state)
    for _ in range(25):
        rows = rng.permutation(2500)[: rng.integers(1, 300)]
        state.index[rows] = rng.integers(-3, 400, len(rows)) * rng.choice([1, 7919])
        exact.put_cloud(state.take(rows), rows)
        nj = int(rng.integers(1, 2501))
        x, v = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
        index = rng.choice(state.index, 4)
        index[index == -1] = 17
        found = exact.force(nj, x, v, index)
        expected = direct(x, v, index, state.take(range(nj)))
        assert_force(found, expected, 1e-11)
        assert (found.nearest == expected[3]).all()


def test_row09_a_distinct_particle_at_the_same_place_adds_nothing(session):
    session.put(0, 1, 5.0, (1, 1, 1), v=(3, 0, 0))
    session.put(1, 2, 1.0, (1, 1, 2))
    found = session.force(2, [[1, 1, 1]], index=[9])
    assert found.code == 0
    assert found.acc[0].tolist() == pytest.approx([0, 0, 1])
    assert found.jerk[0].tolist() == pytest.approx([0, 0, 0])
    assert found.pot[0] == pytest.approx(-1)
    softened = session.force(2, [[1, 1, 1]], index=[9], eps2=0.25)
    assert softened.pot[0] == pytest.approx(-10 - 1 / np.sqrt(1.25), rel=1e-6)


def test_row10_3_35_softening_excludes_the_own_potential_too(session):
    session.put(0, 1, 5.0, (1, 1, 1))
    assert session.force(1, [[1, 1, 1]], index=[1], eps2=0.25).pot[0] == 0
    assert session.force(1, [[1, 1, 1]], index=[2], eps2=0.25).pot[0] == pytest.approx(-10)
