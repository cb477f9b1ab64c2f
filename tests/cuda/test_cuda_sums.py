"""Sums of the CUDA backend: accuracy, equal bits, and what the GPU leaves to the host, for all of
its kernels. What tests/api asks of every backend is not asked again.
"""

import functools

import numpy as np
import pytest

import capi
import fake_device
import particles
from grape6py import reference
from on_gpu import (
    MASSLESS,
    ORDINARY,
    RESTING,
    SOURCE,
    N,
    V,
    X,
    against_the_oracle,
    assert_close,
    bits,
    calls_of_the_driver,
    fill,
    like_source,
    run,
)
from particles import cloud
from test_accuracy import LIMITS as ON_THE_CPU
from test_accuracy import errors as errors_of
from test_accuracy import plummer
from walking import FORMS, random_walks

pytestmark = pytest.mark.backends("cuda")

# Median and largest error of 16384 bodies; at 2048 an eighth of the pairs averages.
LIMITS = ON_THE_CPU | {
    "grape": {"acc": (2e-8, 1.3e-6), "jerk": (1.7e-7, 1e-5), "pot": (6e-9, 6e-8)}
}
SMALLER_N = 3
CLOSE = {"grape": (1e-6, 1e-5), "double": (1e-13, 1e-11), "single": (1e-4, 1e-1)}
KERNELS = {"few": 3, "some": 40, "middle": 150, "wide": None}  # by i particles of a call
BLOCKS = pytest.mark.parametrize("block", KERNELS.values(), ids=KERNELS)


# ---- accuracy ----------------------------------------------------------------------


@functools.cache
def exact_sum(make, *given, eps2):
    source = make(*given)
    exact = reference.direct_sum(source.mass, source.x, source.v, eps2=eps2, extended=True,
                                 rows=np.arange(0, len(source), 3), nearest=True)  # fmt: skip
    return source, exact


def third(session, source, eps2, block):
    """Forces on each third particle."""
    session.put_cloud(source)
    found = session.force(len(source), *(a[::3] for a in (source.x, source.v, source.index)), eps2,
                          block=block)  # fmt: skip
    assert found.code == 0
    return found


@BLOCKS
@pytest.mark.parametrize("eps2", [0.0, 1e-4], ids=["unsoftened", "softened"])
def test_plummer_spheres_are_within_the_published_errors(new_session, mode, eps2, block):
    source, exact = exact_sum(plummer, 2048, 1, eps2=eps2)
    found = third(new_session(precision=mode), source, eps2, block)
    for name, error in errors_of(found, exact).items():
        median, largest = LIMITS[mode][name]
        assert np.median(error) <= SMALLER_N * median, (name, np.median(error))
        assert error.max() <= SMALLER_N * largest, (name, error.max())
    if mode != "single":
        assert (found.nearest == exact.nearest).all()


def with_partners(separation, n=1500, seed=9):
    """A blob, each fifth body of which has a partner at this separation, at another address."""
    rng, source = np.random.default_rng(seed), cloud(n, seed=seed)
    first, second = rng.permutation(n)[: n // 5 * 2].reshape(2, -1)
    direction = rng.standard_normal((len(first), 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    source.x[second] = source.x[first] + separation * direction
    return source


@BLOCKS
@pytest.mark.parametrize("eps2", [0.0, 1e-8], ids=["unsoftened", "softened"])
@pytest.mark.parametrize("separation", [1e-5, 1e-10, 0.0])
def test_close_pairs_are_as_good_as_others(new_session, mode, separation, eps2, block):
    source, exact = exact_sum(with_partners, separation, eps2=eps2)
    found = third(new_session(precision=mode), source, eps2, block)
    assert_close(found, exact, CLOSE[mode])
    distance = [np.linalg.norm(source.x[n] - source.x[::3], axis=1)
                for n in (found.nearest, exact.nearest)]  # fmt: skip
    assert (distance[0] <= distance[1] * (1 + CLOSE[mode][1])).all()


@pytest.mark.parametrize("seed", range(4))
def test_random_blocks_agree_with_the_cpu(new_session, cpu, mode, seed):
    rng = np.random.default_rng(seed)
    source = cloud(int(rng.integers(1, 3000)), seed=seed, moving=True)
    source.x *= 10.0 ** rng.uniform(-3, 3)
    rows = rng.permutation(len(source))[: int(rng.integers(1, 400))]
    x, v = (np.ascontiguousarray(a[rows].astype(float)) for a in source.at(0.5))
    eps2 = float(rng.choice([0.0, 1e-4]))
    found = []

    def compute(session):
        session.put_cloud(source)
        session.set_ti(0.5)
        found.append(session.force(len(source), x, v, source.index[rows], eps2, h2=0.01))
        found[-1].lists = [session.neighbours(i) for i in range(0, len(rows), 29)]

    compute(new_session(precision=mode))
    with cpu(precision=mode) as session:
        compute(session)
    assert_close(*found, {**CLOSE, "double": (1e-14, 1e-12), "single": (1e-5, 1e-2)}[mode])
    if mode != "single":
        assert (found[0].nearest == found[1].nearest).all()
        assert found[0].lists == found[1].lists


@pytest.mark.parametrize("eps2", [0.0, 1e-4])
@pytest.mark.parametrize("ni", [8, 100, 700])
def test_i_particles_on_j_particles_of_other_indices(new_session, mode, ni, eps2):
    """As in treecodes: at distance zero acc takes nothing from them and pot -m / eps; without
    softening nothing, and they are counted."""
    source, session, rows = cloud(1500, seed=4), new_session(precision=mode), np.arange(ni)
    session.put_cloud(source)
    there = session.force(1500, source.x[rows], source.v[rows], rows + 5000, eps2)
    code, words = capi.text("g6x_last_warning", session.cluster)
    own = session.force(1500, source.x[rows], source.v[rows], rows, eps2)
    own.pot -= source.mass[rows] / eps2**0.5 if eps2 else 0
    assert_close(there, own, CLOSE[mode])
    assert (there.nearest == source.index[rows]).all()
    assert code == (eps2 == 0)
    assert eps2 or words.startswith(f"{ni} pairs of different particles at one place")


# ---- equal bits ----------------------------------------------------------------------


@pytest.mark.parametrize("jerk", [1, 0], ids=["jerk", "no-jerk"])
def test_any_cut_of_the_i_particles_gives_the_same_bits(make, jerk):
    rows = slice(0, 800)  # 150 take the kernel middle in all modes, 777 and more the wide one
    session = make()
    session.set_int("G6X_JERK", jerk)
    expected = bits(run(session, rows))
    for block in (7, 48, 100, 150, 777):
        assert bits(run(session, rows, block=block)) == expected, block
    assert run(session, rows, nearest=False).bits() == expected[: -4 * 800]
    few = np.r_[0:20, 1000:1020]
    assert bits(run(session, few, block=1)) == bits(run(session, few))


@pytest.mark.parametrize("block", [None, 48, 150])
def test_blocks_of_the_gpu_may_run_in_any_order(make, monkeypatch, block):
    session, rows = make(), slice(0, 900)
    expected = bits(run(session, rows, block=block))
    monkeypatch.setenv("GRAPE6_TEST_FAKE_GPU_ORDER", "1")
    assert bits(run(session, rows, block=block)) == expected
    assert bits(run(make(), rows, block=block)) == expected


@pytest.mark.parametrize(("places", "ni"), [(1, 300), (4, 20000), (132, 45000), (132, 300)])
def test_many_i_particles_in_pieces(new_session, monkeypatch, places, ni):
    monkeypatch.setattr(fake_device.Device, "multiprocessors", places)
    session, source, targets = new_session(), cloud(600, seed=2), cloud(ni, seed=3)
    session.put_cloud(source)
    close = np.arange(77, ni, 5000)  # the GPU leaves these to the host
    targets.x[close] = source.x[:600][close % 600] + 1e-9
    outside = np.full(ni, -1)
    whole = session.force(600, targets.x, targets.v, outside)
    assert whole.code == 0
    rows = np.unique(np.r_[close, 0:70, ni - 70 : ni, np.arange(0, ni, 97)])
    pieces = session.force(600, targets.x[rows], targets.v[rows], outside[rows], block=48)
    for name in ("acc", "jerk", "pot", "nearest"):
        assert (getattr(whole, name)[rows] == getattr(pieces, name)).all(), name


def test_prediction_on_the_host_gives_the_same_bits(new_session):
    script = """
from on_gpu import *
for k, mode in enumerate(MODES):
    session = fill(Session(k, precision=mode))
    assert on_gpu(session)
    print(*(bits(run(session, rows)).hex() for rows in (slice(0, 200), slice(0, 900))))
"""
    on_host = capi.run_python(script, GRAPE6_PREDICT="host").stdout.split()
    sessions = [fill(new_session(precision=mode)) for mode in capi.MODES]
    few_and_many = slice(0, 200), slice(0, 900)
    assert on_host == [bits(run(s, rows)).hex() for s in sessions for rows in few_and_many]


def test_partial_sums_do_not_change_the_forces_before_or_after(make):
    session, rows = make(), np.r_[0:300]
    expected = bits(run(session, rows))
    args = N, X[rows], V[rows], SOURCE.index[rows]
    for nearest in (True, False, True):
        assert session.first(*args, eps2=1e-6) == 0
        words = session.partial(300)
        found = session.last(*args, eps2=1e-6, nearest=nearest)
        assert found.bits() == expected[: -4 * 300]
        value = capi.Force.blank(300)
        capi.call("g6x_from_partial", 300, words, value.acc, value.jerk, value.pot)
        assert value.bits() == found.bits()
    assert bits(found) == expected


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS[:2])
def test_walks_in_many_pieces_and_any_order_have_the_bits_of_small_calls(plain, monkeypatch, form):
    """More than the buffers hold at a time."""
    part = random_walks(seed=0, sizes=(3, 5), n=40000, lengths=(20000, 20000))
    job = part.take([k % 2 for k in range(400)])
    found, alone = form(plain, job), form(plain, part)
    assert found.code == alone.code == 0
    for w in range(400):
        assert found.bits(job.targets(w)) == alone.bits(part.targets(w % 2))
    job = random_walks(sizes=(300, 40, 700), eps2=1e-6)
    forwards = form(plain, job).bits()
    monkeypatch.setenv("GRAPE6_TEST_FAKE_GPU_ORDER", "backwards")
    assert form(plain, job).bits() == forwards


@BLOCKS
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


# ---- what the GPU leaves to the host -------------------------------------------------


def test_particles_beyond_single_precisions_range(new_session, mode):
    rng, source = np.random.default_rng(9), cloud(1500, seed=8)
    source.x[5::97] *= 10.0 ** rng.uniform(15, 80, (len(source.x[5::97]), 1))
    source.mass *= 10.0 ** rng.uniform(-60, 0, len(source))
    rows = np.unique(np.r_[0:40, 5:1500:97, 1024:1300])
    session = new_session(precision=mode)
    # those beyond all others have all these at one distance
    against_the_oracle(session, source, rows, 1e-2, blocks=(None, 48), nearest=False)


@pytest.mark.full
def test_more_pairs_for_the_host_than_there_is_space_for(new_session):
    """There is space for 65536: here every row is close to a particle of each of 67 blocks."""
    blocks, ni = 67, 1000
    rng, session = np.random.default_rng(11), new_session(precision="single")
    session.set_int("G6X_SCALE_LENGTH", 0)
    source = cloud(blocks, seed=12)
    source.x[:] = 1e-12 * rng.standard_normal((blocks, 3))
    source.x[-1] = (1.0, 0.0, 0.0)
    session.put_cloud(source, 1024 * np.arange(blocks))
    x = 1e-12 * rng.standard_normal((ni, 3))
    outside = np.full(ni, -1)
    found = session.force(1024 * blocks, x, index=outside)
    expected = particles.direct(x, np.zeros_like(x), outside, source)
    particles.assert_force(found, expected, 1e-6)
    assert (found.nearest == expected[3]).all()
    again = session.force(1024 * blocks, x[:300], index=outside[:300])
    assert again.bits() == b"".join(a[:300].tobytes() for a in (found.acc, found.jerk, found.pot))


def test_more_j_particles_than_are_sent_at_a_time(new_session):
    """8192 go to the GPU in one piece; of 65536 that were written it is known which they are."""
    rng, session = np.random.default_rng(13), new_session()
    source = cloud(70_000, seed=14)
    args = source.x[:8].copy(), source.v[:8], source.index[:8]
    for written in (70_000, 20_000, 70_000):
        source.mass[:written] *= rng.uniform(0.5, 1.5, written)
        source.x[8:written] += 0.1
        session.put_cloud(source.take(np.arange(written)))
        found, expected = session.force(70_000, *args), particles.direct(*args, source)
        particles.assert_force(found, expected, 1e-6)
        assert (found.nearest == expected[3]).all()


@pytest.mark.parametrize("ni", [10, 40, 300])
def test_only_what_is_beyond_the_range_of_the_bins_is_left_to_the_host(make, ni):
    """Which fetches the bins: results that the GPU gives out itself take no copy."""

    def calls(source, jerk=1):
        session = make()
        session.set_int("G6X_JERK", jerk)
        return calls_of_the_driver(session, source, ni)

    expected = calls(SOURCE)
    assert b"o" not in expected
    for kind, jerk in ((ORDINARY, 0), (RESTING, 1), (RESTING, 0), (MASSLESS, 1)):
        assert calls(like_source(kind), jerk) == expected, (kind, jerk)
    source = like_source(RESTING)
    source.x[N - 1] = source.x[7] + 1e-12
    assert b"o" not in calls(source)
    source.x[[7, N - 1], :] = [[1e-60, 0, 0], [2e-60, 0, 0]]
    assert b"o" in calls(source)


# ---- corners ---------------------------------------------------------------------------


@pytest.mark.parametrize("nj", [1, 64, 65, 256, 1023, 1024, 1025, 2049])
def test_any_number_of_j_particles_counts_just_those(make, nj):
    session = make()
    rows = np.r_[0:30]
    args = X[rows], V[rows], SOURCE.index[rows]
    found = session.force(nj, *args, eps2=1e-6)
    alone = make(SOURCE.take(np.arange(nj))).force(nj, *args, eps2=1e-6)
    assert_close(found, alone, (1e-5, 1e-2))
    assert (found.nearest == alone.nearest).all()


def test_the_mode_of_an_open_session_may_change(new_session):
    rows = np.r_[0:200]
    fresh = {m: bits(run(fill(new_session(precision=m)), rows)) for m in capi.MODES}
    session = fill(new_session())
    for mode in "grape double single double grape single grape".split():
        session.set_int("G6X_PRECISION", capi.MODES[mode])
        assert bits(run(session, rows)) == fresh[mode], mode


@pytest.mark.parametrize("what", [["mass"], ["v"], ["mass", "v"]], ids="-".join)
def test_all_masses_or_velocities_may_be_zero(new_session, mode, what):
    source, rows = cloud(1500, seed=13), np.r_[0:300]
    for name in what:
        getattr(source, name)[:] = 0
    tolerance = {"grape": 1e-4, "double": 1e-11, "single": 1e-2}[mode]
    against_the_oracle(new_session(precision=mode), source, rows, tolerance, blocks=(None, 48))


@pytest.mark.parametrize("ni", [10, 100, 300])
def test_each_i_particle_may_have_its_own_softening(make, mode, ni):
    """With the bits of a call in which all have it."""
    softenings, session, rows = np.array([1e-4, 0.0, 1e-2, 1.0]), make(), np.arange(ni)
    eps2 = softenings[np.random.default_rng(ni).integers(0, 4, ni)]
    eps2[[0, -1]] = 0.0  # neither the first nor the last may speak for all
    args = N, X[rows], V[rows], SOURCE.index[rows], eps2
    assert session.first(*args, name="g6calc_firsthalf0", more=[0]) == 0
    found = session.last(*args, name="g6calc_lasthalf0", more=[0])
    for softening in softenings:
        mine = np.flatnonzero(eps2 == softening)
        alone = run(session, mine, eps2=softening)
        for name in ("acc", "jerk", "pot"):
            assert (getattr(found, name)[mine] == getattr(alone, name)).all(), (softening, name)
