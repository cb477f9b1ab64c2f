"""Partial sums: shares of j in whole blocks, merged in any order, give one cluster's bits.

Words of any call and spoilt ones, on the CPU: test_fuzz.py. Scales of shares: test_share.py."""

import itertools

import numpy as np
import pytest

import capi
from on_gpu import fill
from particles import assert_nan, assert_zero, cloud

pytestmark = pytest.mark.backends("cpu cuda gpu")
N = 2300
SOURCE = cloud(N, seed=31, moving=True)
ROWS = np.r_[0:40, 1020:1030, 2200:2220]
X, V, INDEX = (np.ascontiguousarray(a[ROWS]) for a in (SOURCE.x, SOURCE.v, SOURCE.index))


def partial(session, nj, x=X, code=0):
    """Words of one share, from a firsthalf alone."""
    session.first(nj, x, V, INDEX, eps2=1e-6)
    return session.partial(len(x), code)


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
    session = new_session(precision=precision, isa=isa)
    for key, value in zip(("LENGTH", "MASS", "VELOCITY"), scale, strict=True):
        session.set_int(f"G6X_SCALE_{key}", value)
    rows = np.flatnonzero(np.isin(np.arange(N) // 1024, blocks))
    return partial(fill(session, SOURCE.take(rows), 0.25), len(rows))


@pytest.fixture
def whole(new_session):
    return lambda precision="grape", isa=None: fill(new_session(precision=precision, isa=isa),
                                                    SOURCE, 0.25)  # fmt: skip


def test_shares_in_whole_blocks_merge_to_the_bits_of_one_cluster(new_session, whole, mode, isa):
    session = whole(mode, isa)
    scale, expected = session.scale(N), session.force(N, X, V, INDEX, eps2=1e-6)
    for cut in ([[0, 2], [1], []], [[2], [], [1], [0]]):
        parts = [share(new_session, mode, isa, blocks, scale) for blocks in cut]
        assert forces(merged(parts)).bits() == expected.bits(), cut
    before = partial(session, N)  # of a last half to come and of one that was
    assert session.last(N, X, V, INDEX).bits() == forces(before).bits() == expected.bits()
    assert (before == session.partial(len(X))).all()
    assert_zero(forces(partial(session, 0)))


def test_row09_pairs_at_one_place_are_counted_once_with_partial_sums_between(plain):
    ni, pairs, source = 300, 4, cloud(1100, seed=32)  # rows 3 and 100, with two others each
    source.x[[100, 1050]] = source.x[3]
    plain.put_cloud(source)
    args = 1100, source.x[:ni], source.v[:ni], source.index[:ni]
    for number, (before, nearest) in enumerate(itertools.product((1, 0, 2), (True, False)), 1):
        assert plain.first(*args) == 0
        for _ in range(before):
            plain.partial(ni)
        assert plain.last(*args, nearest=nearest).code == 0
        plain.partial(ni)
        code, text = capi.text("g6x_last_warning", plain.cluster)
        assert code == number, (before, nearest)
        assert text.startswith(f"{pairs} pairs"), (before, nearest, text)


def test_row07_a_nan_row_stays_nan_after_merging(whole):
    session, bad = whole(), X.copy()
    expected = session.force(N, X, V, INDEX, eps2=1e-6)
    clean = partial(session, N)
    bad[3, 1] = np.nan
    found = forces(merged([clean, partial(session, N, bad, code=-7)]), code=-8)
    others = np.arange(len(X)) != 3
    assert np.isnan(found.acc[3]).all()
    assert np.isnan(found.pot[3])
    assert found.acc[others] == pytest.approx(2 * expected.acc[others], rel=1e-9)


def test_words_of_no_sum_or_of_another_precision_scale_or_origin_are_not_added(whole):
    sessions = [whole(mode) for mode in ("grape", "double", "grape", "grape")]
    sessions[2].set_int("G6X_SCALE_LENGTH", 33)
    assert sessions[3].set_double("G6X_ORIGIN_X", 2.0) == 0
    good, *others = (partial(session, N) for session in sessions)
    bad = good.copy()
    bad[2] = 777
    for other in (*others, bad):
        assert capi.call("g6x_add_partial", len(good), good.copy(), other) == -11
        assert capi.call("g6x_add_partial", -1, good, other) == -11
    assert_nan(forces(bad, code=-11))
    assert capi.call("g6x_from_partial", -1, good, *np.zeros((3, 9))) == -11


@pytest.mark.backends("cpu")
def test_sums_of_another_instruction_set_are_refused(whole):
    """Their bits would be neither one's nor the other's."""
    rows = [partial(whole(isa=isa), N) for isa in ("avx2", "base")]
    assert capi.call("g6x_add_partial", len(X), *rows) == -11
    assert "instruction set" in capi.text("g6x_last_error", -1)[1]
    assert_nan(forces(rows[0], code=-11))  # not the first share's


def test_rows_of_an_earlier_sum_are_not_taken_for_those_of_one_that_fails(plain):
    plain.put_cloud(cloud(4))
    plain.first(4, X[:2], V[:2], INDEX[:2])
    words = plain.partial(2)
    plain.first(4, X[:3], V[:3], INDEX[:3])
    assert capi.call("g6x_get_partial", plain.cluster, 2, words) == -20
    assert_nan(forces(words, code=-20))
    top = np.zeros((2, 6), np.int32)
    assert capi.call("g6x_get_tops", 2, words, top) == -20
    assert (top > 2**30).all()  # with the maximum of these, no other share's rows are valid
