"""Sums and lists of the CUDA backend: accuracy, equal bits, what the
fake_gpu leaves to the host, corners.
"""

import functools

import numpy as np
import pytest

import capi
import fake_device
import particles
from grape6py import models, reference
from on_gpu import (
    MASSLESS,
    ORDINARY,
    RESTING,
    SOURCE,
    TIME,
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
from test_accuracy import as_cloud
from test_accuracy import errors as errors_of

pytestmark = pytest.mark.backends("cuda")


# ---- accuracy ----------------------------------------------------------------------

# median and largest relative error at N = 16384; at 2048 an eighth of the pairs average
LIMITS = {
    "grape": {"acc": (2e-8, 1.3e-6), "jerk": (1.7e-7, 1e-5), "pot": (6e-9, 6e-8)},
    "double": {"acc": (3e-15, 2e-14), "jerk": (5e-15, 1e-13), "pot": (1e-15, 1e-14)},
    "single": {"acc": (1e-6, 1e-2), "jerk": (1e-5, 1e-1), "pot": (1e-6, 1e-4)},
}
SMALLER_N = 3


@functools.cache
def sphere(seed, eps2):
    model = models.plummer(2048, seed, mass_fraction=0.999)
    source = as_cloud(model.mass, model.pos, model.vel)
    exact = reference.direct_sum(source.mass, source.x, source.v, eps2=eps2, extended=True,
                                 nearest=True)  # fmt: skip
    return source, exact


@pytest.mark.parametrize("block", [48, None], ids=["few", "wide"])
@pytest.mark.parametrize("eps2", [0.0, 1e-4], ids=["unsoftened", "softened"])
def test_plummer_spheres_are_within_the_published_errors(new_session, mode, eps2, block):
    source, exact = sphere(1, eps2)
    session = new_session(precision=mode)
    session.put_cloud(source)
    found = session.force(len(source), source.x, source.v, source.index, eps2, block=block)
    assert found.code == 0
    for name, error in errors_of(found, exact).items():
        median, largest = LIMITS[mode][name]
        assert np.median(error) <= SMALLER_N * median, (name, np.median(error))
        assert error.max() <= SMALLER_N * largest, (name, error.max())
    if mode != "single":
        assert (found.nearest == exact.nearest).all()


CLOSE = {"grape": (1e-6, 1e-5), "double": (1e-14, 1e-12), "single": (1e-5, 1e-2)}


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
    assert_close(*found, CLOSE[mode])
    if mode != "single":
        assert (found[0].nearest == found[1].nearest).all()
        assert found[0].lists == found[1].lists


# ---- equal bits ----------------------------------------------------------------------


@pytest.mark.parametrize("jerk", [1, 0], ids=["jerk", "no-jerk"])
def test_any_cut_of_the_i_particles_gives_the_same_bits(make, jerk):
    rows = slice(0, 800)  # 150 take the kernel middle in all modes, 777 and more the wide one
    session = make()
    session.set_int("G6X_JERK", jerk)
    expected = bits(run(session, rows))
    for block in (7, 48, 100, 150, 777):
        assert bits(run(session, rows, block=block)) == expected, block
    few = np.r_[0:20, 1000:1020]
    one = bits(run(session, few))
    assert bits(run(session, few, block=1)) == one


@pytest.mark.parametrize("block", [None, 48, 150])
def test_blocks_of_the_gpu_may_run_in_any_order(make, monkeypatch, block):
    session, rows = make(), slice(0, 900)
    expected = bits(run(session, rows, block=block))
    monkeypatch.setenv("GRAPE6_TEST_FAKE_GPU_ORDER", "1")
    assert bits(run(session, rows, block=block)) == expected
    assert bits(run(make(), rows, block=block)) == expected


def test_repeated_calls_give_the_same_bits(make):
    session = make()
    expected = bits(run(session, slice(0, 300)))
    for k in range(6):
        nearest = run(session, slice(0, 300), nearest=k % 3 != 0)
        assert nearest.bits() == expected[: -4 * 300]
        if k % 3:
            assert bits(nearest) == expected


@pytest.mark.parametrize("places", [1, 4, 132])
@pytest.mark.parametrize("ni", [300, 20000, 45000])
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


@pytest.mark.parametrize("where", [slice(0, 200), slice(0, 900)], ids=["few", "many"])
def test_prediction_on_the_host_gives_the_same_bits(make, mode, where):
    on_device = bits(run(make(), where)).hex()
    script = f"""
import on_gpu
s = Session(1, precision={mode!r}); s.put_cloud(on_gpu.SOURCE); s.set_ti(on_gpu.TIME)
assert on_gpu.on_gpu(s)
print(on_gpu.bits(on_gpu.run(s, {where!r})).hex())
"""
    on_host = capi.run_python(script, GRAPE6_PREDICT="host").stdout.strip()
    assert on_host == on_device


def test_shares_of_j_merge_to_the_bits_of_the_whole(make, new_session, mode):
    whole, rows = make(), np.r_[0:70, 1000:1300]
    expected = run(whole, rows)
    scale = np.zeros(3, np.int32)
    assert capi.call("g6x_get_scale", whole.cluster, N, scale) == 0
    total = np.zeros((len(rows), capi.CONSTANTS["G6X_PARTIAL_WORDS"]), np.int64)
    for number, share in enumerate((np.r_[1024:2048], np.r_[0:1024, 2048:N])):
        session = new_session(precision=mode)
        for key, value in zip(("LENGTH", "MASS", "VELOCITY"), scale, strict=True):
            session.set_int(f"G6X_SCALE_{key}", int(value))
        session.put_cloud(SOURCE.take(share))
        session.set_ti(TIME)
        assert session.first(len(share), X[rows], V[rows], SOURCE.index[rows], eps2=1e-6) == 0
        words = np.zeros_like(total)
        assert capi.call("g6x_get_partial", session.cluster, len(rows), words) == 0
        if number:
            assert capi.call("g6x_add_partial", len(rows), total, words) == 0
        total = total if number else words
    found = capi.Force.blank(len(rows))
    out = found.acc, found.jerk, found.pot
    assert capi.call("g6x_from_partial", len(rows), total, *out) == 0
    assert found.bits() == expected.bits()


def test_partial_sums_do_not_change_the_forces_before_or_after(make):
    session, rows = make(), np.r_[0:300]
    expected = bits(run(session, rows))
    words = np.zeros((300, capi.CONSTANTS["G6X_PARTIAL_WORDS"]), np.int64)
    args = N, X[rows], V[rows], SOURCE.index[rows]
    found = []
    for nearest in (True, False, True):
        assert session.first(*args, eps2=1e-6) == 0
        assert capi.call("g6x_get_partial", session.cluster, 300, words) == 0
        found.append(session.last(*args, eps2=1e-6, nearest=nearest))
        assert found[-1].bits() == expected[: -4 * 300]
        value = capi.Force.blank(300)
        capi.call("g6x_from_partial", 300, words, value.acc, value.jerk, value.pot)
        assert value.bits() == found[-1].bits()
    assert bits(found[-1]) == expected


# ---- lists -----------------------------------------------------------------------------


@pytest.mark.parametrize("block", [3, 100, 400])
def test_lists_of_everybody(make, block):
    session = make()
    args = N, X[:block], V[:block], SOURCE.index[:block]
    assert session.first(*args, h2=np.inf) == 0
    session.last(*args)
    for i in (block - 1, 0, block // 2, 0):
        assert session.neighbours(i) == (0, N - 1, [k for k in range(N) if k != i])


def test_lists_of_some(make, mode):
    session, rows = make(), slice(0, 70)
    args = N, X[rows], V[rows], SOURCE.index[rows]
    h2 = np.linspace(0, 0.3, 70)
    assert session.first(*args, h2=h2) == 0
    session.last(*args)
    expected = particles.lists(X[rows], V[rows], SOURCE.index[rows], SOURCE, h2, TIME)
    for i in range(70):
        length, found = session.neighbours(i)[1:]
        assert length == len(found)
        if mode == "single":
            assert abs(length - len(expected[i])) <= 1
        else:
            assert found == expected[i]


# ---- what the GPU leaves to the host -------------------------------------------------


def test_particles_beyond_single_precisions_range(new_session, mode):
    rng, source = np.random.default_rng(9), cloud(1500, seed=8)
    source.x[5::97] *= 10.0 ** rng.uniform(15, 80, (len(source.x[5::97]), 1))
    source.mass *= 10.0 ** rng.uniform(-60, 0, len(source))
    rows = np.unique(np.r_[0:40, 5:1500:97, 1024:1300])
    session = new_session(precision=mode)
    # those beyond all others have all these at one distance
    against_the_oracle(session, source, rows, 1e-2, blocks=(None, 48), nearest=False)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_units_far_from_one(new_session, mode, unit):
    source, rows = cloud(1500, seed=10), np.r_[0:300]
    source.x *= unit
    source.v *= unit**0.5
    source.mass *= 1 / unit
    tolerance = {"grape": 1e-4, "double": 1e-12, "single": 1e-2}[mode]
    session = new_session(precision=mode)
    against_the_oracle(session, source, rows, tolerance, blocks=(None,), nearest=False)


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


# ---- corners ---------------------------------------------------------------------------


def test_nothing_pulls_or_is_pulled(make):
    session = make()
    found = session.force(0, X[:300], V[:300], SOURCE.index[:300])
    assert found.code == 0
    assert not found.acc.any()
    assert not found.jerk.any()
    assert not found.pot.any()
    assert (found.nearest == SOURCE.index[:300]).all()
    assert session.neighbours(7) == (0, 0, [])
    assert session.force(N, np.zeros((0, 3))).code == 0
    assert run(session, slice(0, 50)).code == 0


@pytest.mark.parametrize("nj", [1, 64, 65, 256, 1023, 1024, 1025, 2049])
def test_any_number_of_j_particles_counts_just_those(make, nj):
    session = make()
    rows = np.r_[0:30]
    args = X[rows], V[rows], SOURCE.index[rows]
    found = session.force(nj, *args, eps2=1e-6)
    alone = make(SOURCE.take(np.arange(nj))).force(nj, *args, eps2=1e-6)
    assert_close(found, alone, (1e-5, 1e-2))
    assert (found.nearest == alone.nearest).all()


def test_more_j_particles_come_while_forces_are_asked_for(new_session, mode):
    session, rows = new_session(precision=mode), np.r_[0:40]
    session.set_ti(TIME)
    for end in (1, 2, 70, 1000, 1024, 1030, 2500, N):
        some = np.arange(0, end) if end == 1000 else np.arange(end // 2, end)
        session.put_cloud(SOURCE.take(some), some)
        session.force(end, X[rows], V[rows])
    expected = fill(new_session(precision=mode))
    session.put_cloud(SOURCE.take(np.arange(N)[::-1]), np.arange(N)[::-1])
    assert bits(run(session, rows)) == bits(run(expected, rows))


def test_the_mode_of_an_open_session_may_change(new_session):
    rows, fresh = np.r_[0:200], {}
    for mode in capi.MODES:
        session = fill(new_session(precision=mode))
        fresh[mode] = bits(run(session, rows))
    session = fill(new_session())
    for mode in "grape double single double grape single grape".split():
        session.set_int("G6X_PRECISION", capi.MODES[mode])
        assert bits(run(session, rows)) == fresh[mode], mode


@pytest.mark.parametrize("ni", [40, 300], ids=["few", "wide"])
def test_sums_of_zero_are_not_left_to_the_host(make, ni):
    """Which would fetch the bins: results that the GPU gives out itself take no copy."""
    expected = calls_of_the_driver(make(), SOURCE, ni)
    assert b"o" not in expected
    for kind, jerk in ((ORDINARY, 0), (RESTING, 1), (RESTING, 0), (MASSLESS, 1)):
        session = make()
        session.set_int("G6X_JERK", jerk)
        assert calls_of_the_driver(session, like_source(kind), ni) == expected, (kind, jerk)


@pytest.mark.parametrize("what", ["mass", "v", "both"])
def test_all_masses_or_velocities_may_be_zero(new_session, mode, what):
    source, rows = cloud(1500, seed=13), np.r_[0:300]
    for name in ("mass", "v") if what == "both" else (what,):
        getattr(source, name)[:] = 0
    tolerance = {"grape": 1e-4, "double": 1e-11, "single": 1e-2}[mode]
    against_the_oracle(new_session(precision=mode), source, rows, tolerance, blocks=(None, 48))


def forces_softened_each(session, rows, eps2):
    ni, out = len(rows), capi.Force.blank(len(rows))
    head = session.cluster, N, ni, SOURCE.index[rows], X[rows], V[rows]
    zero3, zero = np.zeros((ni, 3)), np.zeros(ni)
    assert capi.call("g6calc_firsthalf0", *head, zero3, zero3, zero, eps2, zero, 0) == 0
    assert capi.call("g6calc_lasthalf0", *head, eps2, zero, out.acc, out.jerk, out.pot, 0) == 0
    return out


@functools.cache
def truth_softened(eps2):
    at = SOURCE.at(TIME)
    return reference.direct_sum(SOURCE.mass, *at, rows=slice(0, 300), eps2=eps2, extended=True)


@pytest.mark.parametrize("ni", [10, 100, 300])
def test_each_i_particle_may_have_its_own_softening(make, mode, ni):
    softenings, session = (1e-4, 0.0, 1e-2, 1.0), make()
    rows = np.arange(ni)
    eps2 = np.array(softenings)[np.random.default_rng(ni).integers(0, 4, ni)]
    eps2[[0, -1]] = 0.0  # neither the first nor the last may speak for all
    found = forces_softened_each(session, rows, eps2)
    for softening in softenings:
        mine = np.flatnonzero(eps2 == softening)
        part = capi.Force(found.acc[mine], found.jerk[mine], found.pot[mine], None)
        exact = truth_softened(softening)
        exact = capi.Force(exact.acc[mine], exact.jerk[mine], exact.pot[mine], None)
        assert_close(part, exact, CLOSE[mode])
        for row in mine[:3]:
            alone = run(session, slice(row, row + 1), eps2=softening)
            for name in ("acc", "jerk", "pot"):
                assert (getattr(found, name)[row] == getattr(alone, name)[0]).all(), (row, name)
