"""Partial sums: shares of j in whole blocks, merged in any order, give one cluster's bits."""

import itertools

import numpy as np
import pytest

import capi
from particles import assert_nan, assert_zero, cloud

pytestmark = pytest.mark.backends("cpu cuda gpu")

WORDS = capi.CONSTANTS["G6X_PARTIAL_WORDS"]
N = 3500
SOURCE = cloud(N, seed=31, moving=True)
ROWS = np.r_[0:40, 1020:1030, 3400:3420]
X, V, INDEX = (np.ascontiguousarray(a[ROWS]) for a in (SOURCE.x, SOURCE.v, SOURCE.index))


def partial(session, nj):
    """Words of one share, from a firsthalf alone."""
    words = np.full((len(X), WORDS), 777, np.int64)
    assert session.first(nj, X, V, INDEX, eps2=1e-6) == 0
    assert capi.call("g6x_get_partial", session.cluster, len(X), words) == 0
    return words


def merged(shares):
    total = shares[0].copy()
    for share in shares[1:]:
        assert capi.call("g6x_add_partial", len(total), total, share) == 0
    return total


def forces(words, code=0):
    out = capi.Force.blank(len(words))
    assert capi.call("g6x_from_partial", len(words), words, out.acc, out.jerk, out.pot) == code
    return out


def share(new_session, precision, isa, blocks, scale):
    """A session that holds these blocks of 1024 addresses, packed, with a given scale."""
    session = new_session(precision=precision, isa=isa)
    for key, value in zip(("LENGTH", "MASS", "VELOCITY"), scale, strict=True):
        session.set_int(f"G6X_SCALE_{key}", int(value))
    rows = np.concatenate([np.arange(1024 * b, min(1024 * (b + 1), N)) for b in blocks])
    session.put_cloud(SOURCE.take(rows))
    session.set_ti(0.25)
    return partial(session, len(rows))


def whole(new_session, precision, isa):
    session, scale = new_session(precision=precision, isa=isa), np.zeros(3, np.int32)
    session.put_cloud(SOURCE)
    session.set_ti(0.25)
    assert capi.call("g6x_get_scale", session.cluster, N, scale) == 0
    return session, scale, session.force(N, X, V, INDEX, eps2=1e-6)


def test_shares_in_whole_blocks_merge_to_the_bits_of_one_cluster(new_session, mode, isa):
    _, scale, expected = whole(new_session, mode, isa)
    for cut in ([[0], [1, 2, 3]], [[0, 2], [1, 3]], [[3], [2], [1], [0]]):
        parts = [share(new_session, mode, isa, blocks, scale) for blocks in cut]
        assert forces(merged(parts)).bits() == expected.bits(), cut


def test_the_order_of_merging_does_not_matter(new_session):
    _, scale, expected = whole(new_session, "grape", None)
    parts = [share(new_session, "grape", None, [b], scale) for b in range(4)]
    bits = {forces(merged(order)).bits() for order in itertools.permutations(parts)}
    pairs = merged([merged(parts[:2]), merged(parts[2:])])
    assert bits | {forces(pairs).bits()} == {expected.bits()}


def test_one_cluster_alone_gives_its_own_force(new_session, mode):
    session, _, expected = whole(new_session, mode, None)
    assert forces(partial(session, N)).bits() == expected.bits()


def test_partial_sums_can_be_had_before_and_after_lasthalf(new_session):
    session, _, expected = whole(new_session, "grape", None)
    before = partial(session, N)
    after = np.zeros_like(before)
    assert session.last(N, X, V, INDEX).bits() == expected.bits()
    assert capi.call("g6x_get_partial", session.cluster, len(X), after) == 0
    assert (before == after).all()


@pytest.mark.parametrize("ni", [10, 300])
def test_row09_pairs_at_one_place_are_counted_once_with_partial_sums_between(session, ni):
    source = cloud(1100, seed=32)
    source.x[[100, 1050]] = source.x[3]
    session.put_cloud(source)
    args = 1100, source.x[:ni], source.v[:ni], source.index[:ni]
    pairs = {10: 2, 300: 4}[ni]  # row 3 with two others; of 300 rows, 100 with two as well
    words = np.zeros((ni, WORDS), np.int64)
    for number, (before, nearest) in enumerate(itertools.product((1, 0, 2), (True, False)), 1):
        assert session.first(*args) == 0
        for _ in range(before):
            assert capi.call("g6x_get_partial", session.cluster, ni, words) == 0
        assert session.last(*args, nearest=nearest).code == 0
        assert capi.call("g6x_get_partial", session.cluster, ni, words) == 0
        code, text = capi.text("g6x_last_warning", session.cluster)
        assert code == number, (before, nearest)
        assert text.startswith(f"{pairs} pairs"), (before, nearest, text)


def test_an_empty_share_changes_nothing(new_session):
    session, scale, expected = whole(new_session, "grape", None)
    words = partial(session, N)
    empty = new_session()
    for key, value in zip(("LENGTH", "MASS", "VELOCITY"), scale, strict=True):
        empty.set_int(f"G6X_SCALE_{key}", int(value))
    nothing = partial(empty, 0)
    assert forces(merged([words, nothing])).bits() == expected.bits()
    assert forces(merged([nothing, words])).bits() == expected.bits()
    zero = forces(nothing)
    assert_zero(zero)


def test_get_scale_is_near_the_data_and_follows_powers_of_two(new_session):
    exponents = []
    for a, b, c in ((0, 0, 0), (40, -40, 80)):
        session, scale = new_session(), np.zeros(3, np.int32)
        session.put_cloud(cloud(100).scaled(a, b, c))
        assert capi.call("g6x_get_scale", session.cluster, 100, scale) == 0
        exponents.append(scale)
    assert (abs(exponents[0]) < 20).all()
    assert (exponents[1] - exponents[0]).tolist() == [40, -40, 80]


def test_row07_a_nan_row_stays_nan_after_merging(new_session):
    session, _, expected = whole(new_session, "grape", None)
    clean, bad = partial(session, N), X.copy()
    bad[3, 1] = np.nan
    session.first(N, bad, V, INDEX, eps2=1e-6)
    words = np.zeros((len(X), WORDS), np.int64)
    capi.call("g6x_get_partial", session.cluster, len(X), words)
    found = forces(merged([clean, words]), code=-8)  # NaN, for whatever reason
    others = np.arange(len(X)) != 3
    assert np.isnan(found.acc[3]).all()
    assert np.isnan(found.pot[3])
    assert found.acc[others] == pytest.approx(2 * expected.acc[others], rel=1e-9)


def test_words_that_are_no_partial_sum_are_refused(new_session):
    session, _, _ = whole(new_session, "grape", None)
    good = partial(session, N)
    bad, kept = good.copy(), good.copy()
    bad[2] = 777
    assert capi.call("g6x_add_partial", len(good), kept, bad) == -11
    found = forces(bad, code=-11)
    assert_nan(found)


def test_sums_of_different_precision_or_scale_are_not_added(new_session):
    session, _, _ = whole(new_session, "grape", None)
    good = partial(session, N)
    session.set_int("G6X_SCALE_LENGTH", 33)
    assert capi.call("g6x_add_partial", len(good), good.copy(), partial(session, N)) == -11
    other, _, _ = whole(new_session, "double", None)
    assert capi.call("g6x_add_partial", len(good), good.copy(), partial(other, N)) == -11


def test_row18_row20_row26_partial_sums_of_nothing_are_refused(session):
    words = np.zeros((3, WORDS), np.int64)
    assert capi.call("g6x_get_partial", session.cluster, 3, words) == -18
    session.put_cloud(cloud(4))
    session.first(4, X[:2], V[:2], INDEX[:2])
    assert capi.call("g6x_get_partial", session.cluster, 3, words) == -20
    assert capi.call("g6x_get_partial", session.cluster, 2, None) == -26
    assert capi.call("g6x_add_partial", 2, words, None) == -26
    assert capi.call("g6x_from_partial", 2, words, None, None, None) == -26
