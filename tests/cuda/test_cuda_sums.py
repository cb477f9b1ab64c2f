"""Sums of the CUDA backend: accuracy, equal bits, and what the GPU leaves to the host, for all of
its kernels. What tests/api asks of every backend is not asked again."""

import functools

import numpy as np
import pytest

import capi
import fake_device
import particles
from grape6py import reference
from on_gpu import SOURCE, N, V, X, bits, fill, run
from particles import cloud
from test_accuracy import LIMITS as ON_CPU
from test_accuracy import plummer
from test_lists_at_rest import Board

pytestmark = pytest.mark.backends("cuda")
on_both = pytest.mark.backends("cuda gpu")

# Median and largest error of 16384 bodies; at 2048 an eighth of the pairs averages.
LIMITS = ON_CPU | {"grape": {"acc": (2e-8, 1.3e-6), "jerk": (1.7e-7, 1e-5), "pot": (6e-9, 6e-8)}}
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


@on_both
@BLOCKS
@pytest.mark.parametrize("eps2", [0.0, 1e-4], ids=["unsoftened", "softened"])
def test_plummer_spheres_are_within_the_published_errors(new_session, mode, eps2, block):
    source, exact = exact_sum(plummer, 2048, 1, eps2=eps2)
    found = third(new_session(precision=mode), source, eps2, block)
    particles.assert_close(found, exact, LIMITS[mode], SMALLER_N)
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


@on_both
@BLOCKS
@pytest.mark.parametrize("eps2", [0.0, 1e-8], ids=["unsoftened", "softened"])
@pytest.mark.parametrize("separation", [1e-10, 0.0])
def test_close_pairs_are_as_good_as_others(new_session, mode, separation, eps2, block):
    source, exact = exact_sum(with_partners, separation, eps2=eps2)
    found = third(new_session(precision=mode), source, eps2, block)
    particles.assert_close(found, exact, CLOSE[mode])
    distance = [np.linalg.norm(source.x[n] - source.x[::3], axis=1)
                for n in (found.nearest, exact.nearest)]  # fmt: skip
    assert (distance[0] <= distance[1] * (1 + CLOSE[mode][1])).all()


# ---- equal bits ----------------------------------------------------------------------
@on_both
@pytest.mark.parametrize("jerk", [1, 0], ids=["jerk", "no-jerk"])
def test_any_cut_of_the_i_particles_gives_the_same_bits(make, jerk):
    rows = slice(0, 800)  # these take the wide kernel, 150 the kernel middle in all modes
    session = make()
    session.set_int("G6X_JERK", jerk)
    expected = bits(run(session, rows))
    for block in (7, 48, 150):
        assert bits(run(session, rows, block=block)) == expected, block
    assert run(session, rows, nearest=False).bits() == expected[: -4 * 800]
    few = np.r_[0:20, 1000:1020]
    assert bits(run(session, few, block=1)) == bits(run(session, few))


@pytest.mark.parametrize("block", [None, 48])
def test_blocks_of_the_gpu_may_run_in_any_order(make, monkeypatch, block):
    session, rows = make(), slice(0, 900)
    expected = bits(run(session, rows, block=block))
    monkeypatch.setenv("GRAPE6_TEST_FAKE_GPU_ORDER", "1")
    assert bits(run(session, rows, block=block)) == expected
    assert bits(run(make(), rows, block=block)) == expected


@pytest.mark.parametrize(("places", "ni"), [(1, 300), (4, 20000), (132, 300)])
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
    """Then the GPU's slots hold predicted particles: what comes from a device is sent again."""
    script = """
import sys
import arrays_on_gpu, fake_arrays
from grape6py import Grape6
from on_gpu import *
for k, mode in enumerate(MODES):
    print(*(bits(run(fill(Session(k, precision=mode)), rows)).hex()
            for rows in (slice(0, 200), slice(0, 900))))
cupy = sys.modules["cupy"] = fake_arrays.Module()
with Grape6() as device, Grape6() as host:
    assert device.backend.startswith("cuda ")
    motion = arrays_on_gpu.MOTION
    arrays_on_gpu.fill(cupy, device, host, snap=motion["snap"], time=motion["time"])
    for step in range(3):
        arrays_on_gpu.compare(cupy, device, host, time=0.1 + step, nn=True)
        rows = np.arange(step, 300)
        new = arrays_on_gpu.MASS[rows], arrays_on_gpu.POS[rows] + 1
        arrays_on_gpu.put(cupy, device, host, *new, time=step, address=rows)
        arrays_on_gpu.compare(cupy, device, host, rows, time=0.1 + step, nn=True)
"""
    on_host = capi.run_python(script, GRAPE6_PREDICT="host").stdout.split()
    sessions = [fill(new_session(precision=mode)) for mode in capi.MODES]
    few_and_many = slice(0, 200), slice(0, 900)
    assert on_host == [bits(run(s, rows)).hex() for s in sessions for rows in few_and_many]


# ---- what the GPU leaves to the host -------------------------------------------------
def test_particles_beyond_single_precisions_range(new_session, mode):
    rng, source = np.random.default_rng(9), cloud(1500, seed=8)
    source.x[5::97] *= 10.0 ** rng.uniform(15, 80, (len(source.x[5::97]), 1))
    source.mass *= 10.0 ** rng.uniform(-60, 0, len(source))
    rows = np.unique(np.r_[0:40, 5:1500:97, 1024:1300])
    session = new_session(precision=mode)
    session.put_cloud(source)
    args = source.x[rows], source.v[rows], source.index[rows]
    expected = particles.direct(*args, source)
    for block in (None, 48):
        found = session.force(len(source), *args, block=block)
        particles.assert_force(found, expected, 1e-2)


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


@pytest.mark.full
def test_a_list_of_particles_at_rest_too_long_for_one_launch(new_session):
    board, n = Board(new_session, 3), 32768 + 700  # csrc/cuda/cuda.h
    board.list(0, n)
    board.check(n, 5)


# ---- corners ---------------------------------------------------------------------------
@pytest.mark.parametrize("ni", [10, 300])
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
