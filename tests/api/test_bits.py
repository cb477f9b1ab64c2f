"""Order-free sums: the bits of a force depend on the j particles and their addresses alone.

Each promise is checked per mode and instruction set by comparing whole results byte for byte."""

import hashlib

import numpy as np
import pytest

import capi
from on_gpu import fill
from particles import assert_same, cloud

N = 2100
SOURCE = cloud(N, seed=61, moving=True)
TIME = 0.375
X, V = (a.astype(float) for a in SOURCE.at(TIME))
ROWS = np.r_[0:70, 1000:1060, 2070:2100]
pytestmark = pytest.mark.backends("cpu gpu")


def digest(force, rows=slice(None)):
    parts = (force.acc[rows], force.jerk[rows], force.pot[rows], force.nearest[rows])
    return hashlib.sha256(b"".join(p.tobytes() for p in parts)).hexdigest()


@pytest.fixture
def make(new_session, mode, isa):
    """Sessions of this mode and instruction set that hold SOURCE at TIME."""

    options = {"precision": mode, "isa": isa}
    return lambda source=SOURCE, **more: fill(new_session(**options, **more), source, TIME)


def run(session, rows=ROWS, **options):
    found = session.force(N, X[rows], V[rows], SOURCE.index[rows], eps2=1e-6, **options)
    assert found.code == 0
    return found


@pytest.fixture
def reference(make):
    return digest(run(make(threads=1)))


@pytest.mark.backends("cpu cuda gpu")
def test_how_forces_are_asked_for_does_not_matter(make, reference):
    session, rng = make(), np.random.default_rng(2)
    for threads, block, h2 in (2, 1, None), (3, 7, np.inf), (5, 48, 0.01), (1, None, np.inf):
        session.set_int("G6X_THREADS", threads)
        assert digest(run(session, block=block, h2=h2)) == reference, (threads, block, h2)
    order = rng.permutation(len(ROWS))
    for block in (None, 5):
        found = run(session, rows=ROWS[order], block=block)
        assert digest(found, np.argsort(order)) == reference
    assert digest(run(session, rows=np.arange(N)), ROWS) == reference
    x, v = np.repeat(X[ROWS], 2, axis=0), np.repeat(V[ROWS], 2, axis=0)
    index = np.repeat(SOURCE.index[ROWS], 2)
    x[1::2] = rng.standard_normal(x[1::2].shape) * 10.0 ** rng.integers(-9, 13, (len(ROWS), 1))
    v[1::2] = 1e9
    index[1::2] = rng.integers(-5, 2 * N, len(ROWS))
    h2 = np.where(np.arange(len(x)) % 2, np.inf, 0.0)
    found = session.force(N, x, v, index, eps2=1e-6, h2=h2)
    assert digest(found, slice(0, None, 2)) == reference


@pytest.mark.backends("cpu cuda gpu")
def test_how_particles_came_to_be_there_does_not_matter(make, reference, new_session, mode, isa):
    order = np.random.default_rng(1).permutation(N)
    session = new_session(precision=mode, isa=isa)
    session.put_cloud(SOURCE.take(order[: N // 2]), order[: N // 2])
    session.set_ti(TIME)
    session.force(N, X[:3])
    session.put_cloud(SOURCE.take(order[N // 2 :]), order[N // 2 :])
    assert digest(run(session)) == reference
    moved = SOURCE.take(np.arange(N))
    moved.x *= 1e3
    moved.mass *= 1e-9
    moved.index += 5
    session.put_cloud(moved)
    session.put(N + 500, 7, 1e9, (1e9, 0, 0))
    session.set_ti(1.0)
    run(session)
    session.put_cloud(SOURCE)
    session.set_ti(TIME)
    assert digest(run(session)) == reference


@pytest.mark.backends("cpu cuda gpu")
def test_2_3_many_rewritten_particles_have_the_bits_of_a_new_session(new_session):
    """Most keep their index and the exponents of their numbers; every 97th does not."""
    source, odd = cloud(40_000, seed=5), np.arange(0, 40_000, 97)
    rows, old = np.arange(0, 40_000, 2), new_session()
    old.put_cloud(source)
    old.force(40_000, source.x[:3], source.v[:3], source.index[:3])
    source.x[rows] *= 1.0 + 2.0**-20
    source.mass[odd] *= 1e3
    source.x[odd] *= 0.25
    source.index[odd] = source.index[odd][::-1].copy()
    rows = np.union1d(rows, odd)
    old.put_cloud(source.take(rows), rows)
    new = new_session()
    new.put_cloud(source)
    targets = source.x[:5], source.v[:5], source.index[:5]
    assert_same(old.force(40_000, *targets), new.force(40_000, *targets))


def test_at_block_edges_nearest_neighbours_blocks_and_threads_do_not_matter(make):
    for n in (1, 15, 16, 17, 33, 1024, 1025):
        rows = np.unique(np.linspace(0, n - 1, 40).astype(int))
        args = X[rows], V[rows], SOURCE.index[rows]
        found = []
        for threads, block, nearest in ((1, None, True), (3, None, False), (2, 7, True),
                                        (3, 1, True), (1, 16, False)):  # fmt: skip
            session = make(threads=threads)
            found.append(session.force(n, *args, eps2=1e-6, block=block, nearest=nearest))
        assert {f.code for f in found} == {0}
        assert len({f.bits() for f in found}) == 1
        assert len({f.nearest.tobytes() for f in found if f.nearest[0] != -777}) == 1


@pytest.mark.backends("cpu cuda gpu")
def test_close_pairs_and_wide_ranges_keep_the_promise_too(new_session, mode, isa):
    rng = np.random.default_rng(5)
    source = cloud(N, seed=63)
    source.x[1::2] = source.x[::2] + rng.standard_normal((N // 2, 3)) * 1e-9
    source.x[5::350] *= 1e12
    source.mass[:] = 10.0 ** rng.uniform(-25, 25, N)
    session = new_session(precision=mode, isa=isa, threads=1)
    session.put_cloud(source)
    args = source.x[ROWS], source.v[ROWS], source.index[ROWS]
    expected = digest(session.force(N, *args))
    session.set_int("G6X_THREADS", 3)
    assert digest(session.force(N, *args, block=1)) == expected
    order = rng.permutation(len(ROWS))
    shuffled = session.force(N, *[a[order] for a in args])
    assert digest(shuffled, np.argsort(order)) == expected


@pytest.fixture(scope="module")
def elsewhere(on_backend):
    """Digests of two other processes, in all modes and instruction sets."""
    script = """
import test_bits as t
for k, (mode, isa) in enumerate((mode, isa) for mode in MODES for isa in ISAS):
    s = Session(k, mode)
    if s.set_int("G6X_ISA", ISAS[isa], check=False) == 0:
        s.put_cloud(t.SOURCE); s.set_ti(t.TIME)
        print(mode, isa, t.digest(t.run(s)))
"""
    envs = {"GRAPE6_NPIPES": "1"}, {"GRAPE6_THREADS": "1", "GRAPE6_NPIPES": "16384"}
    backend = {"GRAPE6_BACKEND": "cuda" if on_backend == "gpu" else "cpu"}
    return [capi.run_python(script, **env, **backend).stdout for env in envs]


def test_a_new_process_gives_the_same_bits(elsewhere, reference, mode, isa):
    for printed in elsewhere:
        assert f"{mode} {isa} {reference}\n" in printed


@pytest.mark.backends("cpu")
def test_one_block_is_rounded_as_several_are(new_session, mode, isa):
    """With empty slots behind them the same particles are more than one block, whose sums go
    through bins: small calls, which do not, give the same bits, words, codes and warnings."""
    rng, behind = np.random.default_rng(8), 1500
    for _ in range(60):
        session = new_session(precision=mode, isa=isa, threads=1)
        session.put(behind, -5, 1.0, (0, 0, 0))
        n, scale = rng.integers(0, 201), 10.0 ** rng.integers(-3, 4)
        mass = 10.0 ** rng.uniform(-5, 5, n) * rng.choice([0, 1, 1, -1, 1e-250], n)
        sizes = scale * np.array([1, 1, 0.1, 3])[:, None, None]
        x, v, a2, j6 = sizes * rng.standard_normal((4, n, 3))
        v *= rng.choice([0.0, 1.0, 1e-160])
        x[: n // 8] = x[rng.permutation(n)[: n // 8]] + rng.choice([0, 1e-7, 1e-9]) * scale  # pairs
        bad = rng.integers(n) if n and rng.random() < 0.05 else -1
        for i in np.flatnonzero(rng.random(n) > 0.03):  # some slots are never set
            session.put(i, i, np.nan if i == bad else mass[i], x[i], v[i], a2[i], j6[i])
        session.set_ti(rng.choice([0.0, 2.0**-12]))
        rows = rng.integers(0, n + 1, rng.integers(1, 9))
        at, moving = np.vstack([x, [scale] * 3])[rows], np.vstack([v, [0] * 3])[rows]
        eps2 = rng.choice([0.0, 1e-4, 1e9]) * scale**2
        found = set()
        for nj in n, behind:
            force = session.force(nj, at, moving, rows, eps2, nearest=True)
            words = session.partial(len(rows), force.code)
            found.add((digest(force), force.code, words.tobytes(), session.error()))
        assert len(found) == 1, (n, rows, eps2)
        session.close()
