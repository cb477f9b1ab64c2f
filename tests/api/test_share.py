"""Shares of the j particles: clusters that find scale and origin together have the bits of one."""

import numpy as np
import pytest

import capi
from particles import cloud

pytestmark = pytest.mark.backends("cpu cuda gpu")

N = 3500
CUTS = [0, 1024, 1024, 3072, N]  # the second share has none
TOPS, LIMB, LIMBS = (capi.CONSTANTS[f"G6X_PARTIAL_{k}"] for k in ("TOPS", "LIMB", "LIMBS"))
ARGUMENT, NULL = capi.CONSTANTS["G6X_E_ARGUMENT"], capi.CONSTANTS["G6X_E_NULL"]
ROWS = np.r_[0:40, 1020:1030, 3400:3420]


def summed(calls, length):
    """Words of all shares, added."""
    total = np.zeros(length, np.int64)
    for call in calls:
        words = np.full(length, 777, np.int64)
        assert call(words) == 0
        total += words
    return total


def find_scale(shares):
    """What the shares do after each change of j particles."""
    sample = summed(
        [lambda w, k=k, s=s: capi.call("g6x_get_sample", s.cluster, CUTS[k + 1] - CUTS[k], N,
                                       CUTS[k], w) for k, s in enumerate(shares)],
        capi.CONSTANTS["G6X_SAMPLE_WORDS"],
    )  # fmt: skip
    assert sample[::7].tolist() == [1] * 15
    for share in shares:
        assert capi.call("g6x_set_sample", share.cluster, sample) == 0
    counts = summed(
        [lambda w, k=k, s=s: capi.call("g6x_get_counts", s.cluster, CUTS[k + 1] - CUTS[k], w)
         for k, s in enumerate(shares)],
        capi.CONSTANTS["G6X_COUNT_WORDS"],
    )  # fmt: skip
    for share in shares:
        assert capi.call("g6x_set_counts", share.cluster, counts) == 0


def forces(shares, source):
    """By tops, their maximum, and sums of limbs, as MPI does it."""
    x, v, index = (np.ascontiguousarray(a[ROWS]) for a in (source.x, source.v, source.index))
    ni, rows = len(x), []
    for k, share in enumerate(shares):
        share.set_ti(0.25)
        share.first(CUTS[k + 1] - CUTS[k], x, v, index, eps2=1e-6)
        rows.append(share.partial(ni))
    tops = np.empty((len(rows), ni, TOPS), np.int32)
    for words, top in zip(rows, tops, strict=True):
        assert capi.call("g6x_get_tops", ni, words, top) == 0
    top = np.ascontiguousarray(tops.max(axis=0))
    for words in rows:
        assert capi.call("g6x_raise_partial", ni, words, top) == 0
    limbs = slice(LIMB, LIMB + LIMBS)
    rows[0][:, limbs] = sum(words[:, limbs] for words in rows)
    out = capi.Force.blank(ni)
    assert capi.call("g6x_from_partial", ni, rows[0], out.acc, out.jerk, out.pot) == 0
    return out


def shared(new_session, source, **options):
    made = [new_session(**options) for _ in CUTS[1:]]
    for k, session in enumerate(made):
        session.put_cloud(source.take(np.arange(CUTS[k], CUTS[k + 1])))
    return made


def expected(session, source):
    session.set_ti(0.25)
    arrays = (np.ascontiguousarray(a[ROWS]) for a in (source.x, source.v, source.index))
    return session.force(N, *arrays, eps2=1e-6)


def far(source):
    source.x[:] = 100 * source.x + np.array([1e4, 0, -1e3])
    source.v[:] += 3
    return source


def dense(source):
    """So dense but for an eighth that the mode is double."""
    source.x[: N - N // 7] *= 2.0**-25
    return source


def test_the_samples_have_an_origin_and_the_mode_double(new_session):
    def row(change):
        source = change(cloud(N, seed=31, moving=True))
        session = new_session(precision="grape")
        session.put_cloud(source)
        session.first(N, source.x[:1], source.v[:1], source.index[:1])
        return session.origin(N), session.partial(1)[0]

    origin, words = row(far)
    assert origin[0].any()
    assert words[0] // 16 % 16 == 2  # numbers of bins: docs/reproducibility.md
    assert row(dense)[1][0] // 16 % 16 == 3


@pytest.mark.parametrize("change", [lambda source: source, far, dense])
def test_shares_have_scale_origin_and_bits_of_one_cluster(new_session, mode, change):
    source = change(cloud(N, seed=31, moving=True))
    one = new_session(precision=mode)
    one.put_cloud(source)
    shares = shared(new_session, source, precision=mode)
    find_scale(shares)
    wanted = expected(one, source)
    for k, share in enumerate(shares):
        assert share.scale(CUTS[k + 1] - CUTS[k]) == one.scale(N)
        assert share.origin(CUTS[k + 1] - CUTS[k]).tolist() == one.origin(N).tolist()
    assert forces(shares, source).bits() == wanted.bits()
    source.x[:] *= 64  # all is found anew
    one.put_cloud(source)
    for k, share in enumerate(shares):
        share.put_cloud(source.take(np.arange(CUTS[k], CUTS[k + 1])))
    find_scale(shares)
    assert forces(shares, source).bits() == expected(one, source).bits()


def test_a_share_that_ends_has_a_scale_of_its_own(new_session):
    source = cloud(N, seed=31)
    source.x[:1024] /= 64
    shares = shared(new_session, source)
    own = shares[0].scale(1024), shares[0].origin(1024).tolist()
    find_scale(shares)
    assert (shares[0].scale(1024), shares[0].origin(1024).tolist()) != own
    assert capi.call("g6x_end_share", shares[0].cluster) == 0
    assert (shares[0].scale(1024), shares[0].origin(1024).tolist()) == own


def test_words_that_make_no_sense_are_refused(new_session):
    session = new_session()
    session.put_cloud(cloud(100, seed=1))
    sample = np.zeros(capi.CONSTANTS["G6X_SAMPLE_WORDS"], np.int64)
    counts = np.zeros(capi.CONSTANTS["G6X_COUNT_WORDS"], np.int64)
    c = session.cluster
    assert capi.call("g6x_set_counts", c, counts) == ARGUMENT
    assert "g6x_set_sample first" in session.error()[1]
    for nj, all_, first in ((-1, 100, 0), (100, 99, 0), (100, 150, 60), (100, 100, -1)):
        assert capi.call("g6x_get_sample", c, nj, all_, first, sample) == ARGUMENT
    assert capi.call("g6x_get_counts", c, -1, counts) == ARGUMENT
    sample[7] = 2
    assert capi.call("g6x_set_sample", c, sample) == ARGUMENT
    assert "2 shares have sample 1" in session.error()[1]
    sample[7] = 0
    assert capi.call("g6x_set_sample", c, sample) == 0
    counts[3] = -1
    assert capi.call("g6x_set_counts", c, counts) == ARGUMENT
    assert "word 3 is -1" in session.error()[1]
    for name in ("g6x_set_sample", "g6x_set_counts"):
        assert capi.call(name, c, None) == NULL


def test_rows_that_make_no_sense_are_refused(new_session):
    session = new_session()
    source = cloud(100, seed=1)
    session.put_cloud(source)
    session.first(100, source.x[:4], source.v[:4], source.index[:4])
    words, top = session.partial(4), np.zeros((4, TOPS), np.int32)
    assert capi.call("g6x_get_tops", 4, words, top) == 0
    top[2, 5] = 2
    assert capi.call("g6x_raise_partial", 4, words.copy(), top) == ARGUMENT
    top[2, 5], top[1, 0] = 0, 99
    assert capi.call("g6x_raise_partial", 4, words, top) == ARGUMENT
    words[3, 0] = 0
    assert capi.call("g6x_get_tops", 4, words, top) == ARGUMENT
    assert capi.call("g6x_get_tops", -1, words, top) == ARGUMENT
    assert capi.call("g6x_raise_partial", 4, None, top) == NULL


def test_an_invalid_row_of_one_share_is_invalid_in_all(new_session):
    session = new_session()
    source = cloud(100, seed=1)
    session.put_cloud(source)
    session.first(100, source.x[:2], source.v[:2], source.index[:2])
    words, top = session.partial(2), np.empty((2, TOPS), np.int32)
    assert capi.call("g6x_get_tops", 2, words, top) == 0
    top[1, 3:] = 1
    assert capi.call("g6x_raise_partial", 2, words, top) == 0
    out = capi.Force.blank(2)
    assert capi.call("g6x_from_partial", 2, words, out.acc, out.jerk, out.pot) == -8
    assert np.isfinite(out.acc[0]).all()
    assert np.isnan(out.acc[1]).all()


def test_particles_of_an_integration_are_shared_or_refused(new_session):
    session = new_session()
    source = cloud(100, seed=1)
    t, zero = np.zeros(100), np.zeros((100, 3))
    given = t, source.mass, zero, zero, source.v, source.x
    share = "g6x_share_particles", session.cluster
    assert capi.call(*share, 100, 10, 60, *given) == 0
    whole = new_session()
    whole.put_cloud(source)
    assert session.scale(50) == whole.scale(100)
    for first, end in ((-1, 5), (6, 5), (0, 101)):
        assert capi.call(*share, 100, first, end, *given) == ARGUMENT
    assert capi.call(*share, 100, 0, 50, None, *given[1:]) == NULL
    bad = np.array(source.x)
    bad[70] = np.nan
    assert capi.call(*share, 100, 0, 50, *given[:-1], bad) < 0
    assert capi.call(*share, 0, 0, 0, *[None] * 6) == 0
    assert session.scale(50) != []


@pytest.mark.parametrize(("all_of_them", "first"), [(2**63 - 1, 0), (2**63 - 1, 2**63 - 2), (5, 5),
                                                    (5, 2**63 - 1), (-1, 0), (5, -1)])  # fmt: skip
def test_numbers_of_particles_that_are_none(new_session, all_of_them, first):
    session, words = new_session(), np.zeros(capi.CONSTANTS["G6X_SAMPLE_WORDS"], np.int64)
    session.put_cloud(cloud(1))
    call = session.cluster, 1, all_of_them, first, words
    assert capi.call("g6x_get_sample", *call) == ARGUMENT
    found = session.force(1, np.zeros((1, 3)))  # refused until an exchange succeeds
    assert found.code == ARGUMENT
    assert np.isnan(found.acc).all()
    assert capi.call("g6x_end_share", session.cluster) == 0
    assert session.force(1, np.zeros((1, 3))).code == 0
