"""Partial sums: shares of j in whole blocks, merged in any order, give one cluster's bits; so do
clusters that find scale and origin together. Words of any call: test_fuzz.py."""

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


# ---- shares that find scale and origin together -----------------------------------------
CUTS = [0, 1024, 1024, 2048, N]  # the second share has none
TOPS, LIMB, LIMBS = (capi.CONSTANTS[f"G6X_PARTIAL_{k}"] for k in ("TOPS", "LIMB", "LIMBS"))
ARGUMENT, NULL = capi.CONSTANTS["G6X_E_ARGUMENT"], capi.CONSTANTS["G6X_E_NULL"]


class Shares:
    """Clusters with a share of a source each."""

    def __init__(self, new_session, source, **options):
        self.all = [new_session(**options) for _ in CUTS[1:]]
        self.sizes = np.diff(CUTS).tolist()
        self.put(source)

    def put(self, source):
        for k, session in enumerate(self.all):
            session.put_cloud(source.take(np.arange(CUTS[k], CUTS[k + 1])))

    def agree(self, what, length):
        """The words of all shares are added, and given to all; returns them."""
        total = np.zeros(capi.CONSTANTS[length], np.int64)
        for k, session in enumerate(self.all):
            words = np.full(len(total), 777, np.int64)
            more = [N, CUTS[k]] if what == "sample" else []
            assert capi.call(f"g6x_get_{what}", session.cluster, self.sizes[k], *more, words) == 0
            total += words
        for session in self.all:
            assert capi.call(f"g6x_set_{what}", session.cluster, total) == 0
        return total

    def find_scale(self):
        assert self.agree("sample", "G6X_SAMPLE_WORDS")[::7].tolist() == [1] * 15
        self.agree("counts", "G6X_COUNT_WORDS")

    def forces(self, source):
        """By tops, their maximum, and sums of limbs, as MPI does it."""
        x, v, index = (np.ascontiguousarray(a[ROWS]) for a in (source.x, source.v, source.index))
        ni, rows = len(x), []
        for session, nj in zip(self.all, self.sizes, strict=True):
            session.set_ti(0.25)
            session.first(nj, x, v, index, eps2=1e-6)
            rows.append(session.partial(ni))
        tops = np.empty((len(rows), ni, TOPS), np.int32)
        for words, top in zip(rows, tops, strict=True):
            assert capi.call("g6x_get_tops", ni, words, top) == 0
        top = np.ascontiguousarray(tops.max(axis=0))
        for words in rows:
            assert capi.call("g6x_raise_partial", ni, words, top) == 0
        limbs = slice(LIMB, LIMB + LIMBS)
        rows[0][:, limbs] = sum(words[:, limbs] for words in rows)
        return forces(rows[0]).bits()


def expected(session, source):
    session.set_ti(0.25)
    arrays = (np.ascontiguousarray(a[ROWS]) for a in (source.x, source.v, source.index))
    return session.force(N, *arrays, eps2=1e-6).bits()


@pytest.mark.parametrize("change", ["none", "far", "dense"])
def test_shares_have_scale_origin_and_bits_of_one_cluster(new_session, mode, change):
    """Of a dense set, but for an eighth, mode grape makes double."""
    source = cloud(N, seed=31, moving=True)
    if change == "far":
        source.x[:] = 100 * source.x + np.array([1e4, 0, -1e3])
        source.v[:] += 3
    elif change == "dense":
        source.x[: N - N // 7] *= 2.0**-25
    one, shares = new_session(precision=mode), Shares(new_session, source, precision=mode)
    one.put_cloud(source)
    shares.find_scale()
    wanted = expected(one, source)
    bins = one.partial(len(ROWS))[0, 0] // 16 % 16  # their number: docs/reproducibility.md
    assert mode != "grape" or bins == (3 if change == "dense" else 2)
    assert change != "far" or mode == "double" or one.origin(N)[0].any()
    for nj, share in zip(shares.sizes, shares.all, strict=True):
        assert share.scale(nj) == one.scale(N)
        assert share.origin(nj).tolist() == one.origin(N).tolist()
    assert shares.forces(source) == wanted
    assert capi.call("g6x_end_share", shares.all[0].cluster) == 0
    alone = new_session(precision=mode)
    alone.put_cloud(source.take(range(1024)))
    assert shares.all[0].scale(1024) == alone.scale(1024)
    source.x[:] *= 64  # all is found anew
    one.put_cloud(source)
    shares.put(source)
    shares.find_scale()
    assert shares.forces(source) == expected(one, source)


def test_words_that_make_no_sense_are_refused(plain):
    plain.put_cloud(cloud(100, seed=1))
    sample = np.zeros(capi.CONSTANTS["G6X_SAMPLE_WORDS"], np.int64)
    counts = np.zeros(capi.CONSTANTS["G6X_COUNT_WORDS"], np.int64)
    c = plain.cluster
    assert capi.call("g6x_set_counts", c, counts) == ARGUMENT
    assert "g6x_set_sample first" in plain.error()[1]
    for nj, all_, first in ((-1, 100, 0), (100, 99, 0), (100, 150, 60), (100, 100, -1),
                            (100, 2**63 - 1, 2**63 - 2), (100, 5, 2**63 - 1)):  # fmt: skip
        assert capi.call("g6x_get_sample", c, nj, all_, first, sample) == ARGUMENT
    found = plain.force(1, np.zeros((1, 3)))  # refused until an exchange succeeds
    assert found.code == ARGUMENT
    assert np.isnan(found.acc).all()
    assert capi.call("g6x_get_counts", c, -1, counts) == ARGUMENT
    for word, place, why in ((2, 0, "2 shares have sample 1"), (1, -1, "sample 1 has a NaN")):
        sample[:], sample[7], sample[9] = 0, word, place
        assert capi.call("g6x_set_sample", c, sample) == ARGUMENT
        assert why in plain.error()[1]
    assert capi.call("g6x_set_sample", c, 0 * sample) == 0
    counts[:], counts[3] = 0, -1
    assert capi.call("g6x_set_counts", c, counts) == ARGUMENT
    assert "word 3 is -1" in plain.error()[1]
    assert capi.call("g6x_end_share", c) == 0
    assert plain.force(1, np.zeros((1, 3))).code == 0


def test_rows_that_make_no_sense_are_refused(plain):
    """A row that is invalid in one share is so in all."""
    source = cloud(100, seed=1)
    plain.put_cloud(source)
    plain.first(100, source.x[:4], source.v[:4], source.index[:4])
    words, top = plain.partial(4), np.zeros((4, TOPS), np.int32)
    assert capi.call("g6x_get_tops", 4, words, top) == 0
    raised, invalid = words.copy(), top.copy()
    invalid[1, 3:] = 1
    assert capi.call("g6x_raise_partial", 4, raised, invalid) == 0
    out = forces(raised, code=-8)
    assert np.isfinite(out.acc[0]).all()
    assert np.isnan(out.acc[1]).all()
    for row, column, value in (2, 5, 2), (1, 0, 99):
        wrong = top.copy()
        wrong[row, column] = value
        assert capi.call("g6x_raise_partial", 4, words.copy(), wrong) == ARGUMENT
    assert capi.call("g6x_get_tops", -1, words, top) == ARGUMENT
    words[3, 0] = 0
    assert capi.call("g6x_get_tops", 4, words, top) == ARGUMENT


def test_particles_of_an_integration_are_shared_or_refused(new_session):
    session, whole = new_session(), new_session()
    source = cloud(100, seed=1)
    t, zero = np.zeros(100), np.zeros((100, 3))
    given = t, source.mass, zero, zero, source.v, source.x
    share = "g6x_share_particles", session.cluster
    assert capi.call(*share, 100, 10, 60, *given) == 0
    whole.put_cloud(source)
    assert session.scale(50) == whole.scale(100)
    for first, end in ((-1, 5), (6, 5), (0, 101)):
        assert capi.call(*share, 100, first, end, *given) == ARGUMENT
    assert capi.call(*share, 100, 0, 50, None, *given[1:]) == NULL
    bad = np.array(source.x)
    bad[70] = np.nan
    assert capi.call(*share, 100, 0, 50, *given[:-1], bad) < 0
    assert capi.call(*share, 0, 0, 0, *[None] * 6) == 0
