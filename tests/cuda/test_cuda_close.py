"""Close pairs and clusters far from the origin on the CUDA backend."""

import functools

import numpy as np
import pytest

import capi
from grape6py import reference
from on_gpu import RESTING, N, assert_close, calls_of_the_driver, like_source
from particles import cloud

pytestmark = pytest.mark.backends("cuda")

TOLERANCE = {"grape": (1e-6, 1e-5), "double": (1e-13, 1e-11), "single": (1e-4, 1e-1)}


def with_partners(separation, n=1500, seed=9):
    """A blob, each fifth body of which has a partner at this separation, at another address."""
    rng, source = np.random.default_rng(seed), cloud(n, seed=seed)
    first, second = rng.permutation(n)[: n // 5 * 2].reshape(2, -1)
    direction = rng.standard_normal((len(first), 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    source.x[second] = source.x[first] + separation * direction
    return source


@functools.cache
def exact_sum(separation, eps2):
    source = with_partners(separation)
    return reference.direct_sum(source.mass, source.x, source.v, eps2=eps2, extended=True,
                                rows=np.arange(0, len(source), 3), nearest=True)  # fmt: skip


@pytest.mark.parametrize("block", [3, 40, 150, None], ids=["few", "some", "middle", "wide"])
@pytest.mark.parametrize("eps2", [0.0, 1e-8], ids=["unsoftened", "softened"])
@pytest.mark.parametrize("separation", [1e-5, 1e-10, 0.0])
def test_close_pairs_are_as_good_as_others(new_session, mode, separation, eps2, block):
    source, session = with_partners(separation), new_session(precision=mode)
    rows = np.arange(0, len(source), 3)
    session.put_cloud(source)
    found = session.force(len(source), source.x[rows], source.v[rows], source.index[rows], eps2,
                          block=block)  # fmt: skip
    exact = exact_sum(separation, eps2)
    assert found.code == 0
    assert_close(found, exact, TOLERANCE[mode])
    distance = [np.linalg.norm(source.x[n] - source.x[rows], axis=1)
                for n in (found.nearest, exact.nearest)]  # fmt: skip
    assert (distance[0] <= distance[1] * (1 + TOLERANCE[mode][1])).all()


def test_close_pairs_keep_the_promise_of_equal_bits(new_session, mode):
    source, session = with_partners(1e-8), new_session(precision=mode)
    session.put_cloud(source)
    args = len(source), source.x, source.v, source.index
    expected = session.force(*args).bits()
    for block in (1, 7, 40, 150):
        assert session.force(*args, block=block).bits() == expected, block
    assert session.force(*args, nearest=False).bits() == expected


def test_i_particles_on_j_particles_of_other_indices(new_session, mode):
    """As in treecodes: at distance zero, softened, acc takes nothing from them and pot -m / eps."""
    source, session, eps2 = cloud(1500, seed=4), new_session(precision=mode), 1e-4
    session.put_cloud(source)
    rows, others = np.arange(0, 1500, 2), np.arange(0, 1500, 2) + 5000
    there = session.force(1500, source.x[rows], source.v[rows], others, eps2)
    own = session.force(1500, source.x[rows], source.v[rows], source.index[rows], eps2)
    own.pot -= source.mass[rows] / eps2**0.5
    assert_close(there, own, TOLERANCE[mode])
    assert (there.nearest == source.index[rows]).all()


@pytest.mark.parametrize("ni", [8, 100, 700])
def test_pairs_at_one_place_without_softening_are_left_out_and_counted(new_session, mode, ni):
    source, session = cloud(1500, seed=4), new_session(precision=mode)
    session.put_cloud(source)
    rows = np.arange(ni)
    there = session.force(1500, source.x[rows], source.v[rows], rows + 5000)
    expected = session.force(1500, source.x[rows], source.v[rows], rows)
    assert_close(there, expected, TOLERANCE[mode])
    code, words = capi.text("g6x_last_warning", session.cluster)
    assert code == 1
    assert words.startswith(f"{ni} pairs of different particles at one place")


@pytest.mark.parametrize("block", [3, 150, None])
def test_a_cluster_far_away_has_the_bits_of_the_same_cluster_here(new_session, mode, block):
    source, far = cloud(1500, seed=6), np.array([1e6, -4096.0, 0.0])
    source.x = np.rint(source.x * 2**24) / 2**24
    source.x[3] = source.x[4] + 2.0**-24
    found = []
    for by in (0.0, far):
        session, there = new_session(precision=mode), source.take(np.arange(1500))
        there.x = source.x + by
        session.put_cloud(there)
        found.append(session.force(1500, there.x, there.v, there.index, block=block))
    if mode == "double":
        assert_close(*found, (1e-14, 1e-11))
    else:
        assert found[0].bits() == found[1].bits()


@pytest.mark.parametrize("ni", [40, 300], ids=["few", "wide"])
def test_a_close_pair_is_done_where_the_sum_is(make, ni):
    source = like_source(RESTING)
    source.x[N - 1] = source.x[7] + 1e-12
    assert b"o" not in calls_of_the_driver(make(), source, ni)


@pytest.mark.parametrize("ni", [10, 100, 300])
def test_a_pair_beyond_the_range_of_the_bins_is_left_to_the_host(make, ni):
    source = like_source(RESTING)
    source.x[7] = (1e-60, 0, 0)
    source.x[N - 1] = (2e-60, 0, 0)
    assert b"o" in calls_of_the_driver(make(), source, ni)
