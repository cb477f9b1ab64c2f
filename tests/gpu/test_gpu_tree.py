"""``Tree`` with CuPy's own arrays on a true card: pytest -m gpu. Skipped where there is none. The
rules are tested on a stand-in (test_tree_on_card.py); here are streams, true memory and arithmetic.
"""

import numpy as np
import pytest

from cards import relative
from grape6py import Tree, errors, models, reference
from samples import SAMPLES
from test_gpu_arrays import SLOW, OnlyDLPack, OnlyInterface

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

N = 20000


@pytest.fixture(scope="module", params=SAMPLES)
def pair(request):
    """Mass and positions of a sample, its tree on the card and that on the host."""
    mass, pos = SAMPLES[request.param](N, 41)
    with Tree(cupy.asarray(pos), cupy.asarray(mass)) as device, Tree(pos, mass) as host:
        yield mass, pos, device, host


def targets_of(pos):
    """Places in and about the box, a third of them particles; and which these are."""
    rng = np.random.default_rng(1)
    low, high = pos.min(axis=0), pos.max(axis=0)
    targets = rng.uniform(low - (high - low) / 5, high + (high - low) / 5, (999, 3))
    own = np.full(len(targets), -1)
    own[::3] = rng.integers(0, len(pos), 333)
    targets[::3] = pos[own[::3]]
    return targets, own


def assert_same(found, expected):
    """Arrays of the card with the host's bits."""
    for ours, theirs in zip(found, expected, strict=True):
        assert isinstance(ours, cupy.ndarray)
        assert ours.dtype == theirs.dtype
        assert ours.get().tobytes() == theirs.tobytes()


@pytest.mark.parametrize("blocks", [0, 8192], ids=["warps", "blocks"])  # a group
@pytest.mark.parametrize("method", ["fmm", "bh"])
def test_forces_are_as_good_as_the_hosts(pair, method, blocks, monkeypatch):
    monkeypatch.setattr("grape6py.cuda.tree.octree.BLOCKS", blocks)
    mass, pos, device, host = pair
    rows = np.arange(0, len(pos), 100)
    exact = reference.direct_sum(mass, pos, rows=rows, eps2=1e-4).acc
    found, expected = (tree.forces(eps=0.01, theta=0.5, method=method) for tree in (device, host))
    assert isinstance(found.acc, cupy.ndarray)
    for share in (0.5, 0.99):
        error, usual = (np.quantile(relative(acc[rows], exact), share)
                        for acc in (found.acc.get(), expected.acc))  # fmt: skip
        assert error < 6 * usual + 2e-6
    assert np.median(np.abs(found.pot.get() / expected.pot - 1)) < 1e-4
    again = device.forces(eps=0.01, theta=0.5, method=method)
    assert_same(again[:2], [found.acc.get(), found.pot.get()])
    few = {"targets": cupy.asarray(pos[rows]), "self_index": cupy.asarray(rows)}
    alone = device.forces(eps=0.01, theta=0.5, method=method, **few)
    error = relative(alone.acc.get(), exact)
    assert np.median(error) < 6 * np.median(relative(expected.acc[rows], exact)) + 2e-6
    again = device.forces(eps=0.01, theta=0.5, method=method, **few)
    assert_same(again[:2], [alone.acc.get(), alone.pot.get()])


def test_searches_have_the_hosts_bits(pair):
    _, pos, device, host = pair
    targets, own = targets_of(pos)
    on_card = {"targets": cupy.asarray(targets), "self_index": cupy.asarray(own)}
    on_host = {"targets": targets, "self_index": own}
    for k in (1, 8, 100):
        assert_same(device.nearest(k), host.nearest(k))
        assert_same(device.nearest(k, **on_card), host.nearest(k, **on_host))
    near = host.nearest(30).distance[:, -1]
    for radius in (0.0, near, 2 * np.median(near)):
        there = cupy.asarray(radius) if np.ndim(radius) else radius
        assert_same(device.neighbours(there, csr=True), host.neighbours(radius, csr=True))
    radius = np.where(np.arange(999) % 50, np.median(near), np.inf)
    found = device.neighbours(cupy.asarray(radius), **on_card, csr=True)
    assert_same(found, host.neighbours(radius, **on_host, csr=True))
    found = device.neighbours(0.0, **on_card)
    assert_same(found, host.neighbours(0.0, **on_host))


@pytest.fixture(scope="module")
def plummer():
    return SAMPLES["plummer"](N, 43)


@pytest.mark.parametrize("method", ["fmm", "bh"])
def test_jerks_are_as_good_as_the_hosts(method):
    mass, pos, vel = models.plummer(N, seed=47)
    rows = np.arange(0, N, 100)
    exact = reference.direct_sum(mass, pos, vel, rows=rows, eps2=1e-4).jerk
    device = Tree(*map(cupy.asarray, (pos, mass, vel))).forces(eps=0.01, theta=0.5, method=method)
    host = Tree(pos, mass, vel).forces(eps=0.01, theta=0.5, method=method)
    for share in (0.5, 0.99):
        error, usual = (np.quantile(relative(jerk[rows], exact), share)
                        for jerk in (device.jerk.get(), host.jerk))  # fmt: skip
        assert error < 6 * usual + 2e-5


@pytest.mark.parametrize("non_blocking", [False, True])
def test_the_current_stream_comes_first(plummer, non_blocking):
    """Particles and targets that a slow kernel is still writing when they are handed in."""
    mass, pos = plummer
    expected = Tree(pos, mass).nearest(3, pos[:3000])
    kernel = cupy.RawKernel(SLOW, "late")
    truth = [cupy.asarray(a) for a in (pos, mass)]
    stream = cupy.cuda.Stream(non_blocking=non_blocking)
    cupy.cuda.Device().synchronize()

    def late():
        made = [cupy.full_like(a, cupy.nan) for a in truth]
        for to, source in zip(made, truth, strict=True):
            kernel((1,), (256,), (to, source, np.int32(source.size), np.int64(100_000_000)))
        return made

    with stream:
        tree = Tree(*late())
        found = tree.nearest(3, late()[0][:3000])
    assert_same(found, expected)
    with cupy.cuda.Stream(non_blocking=True):  # a tree may be used on any
        assert_same(tree.nearest(3, truth[0][:3000]), expected)


def test_other_arrays_are_taken(plummer):
    mass, pos = plummer
    expected = Tree(pos, mass).nearest(4)
    for kind in (OnlyDLPack, OnlyInterface):
        assert_same(Tree(kind(cupy.asarray(pos)), kind(cupy.asarray(mass))).nearest(4), expected)
    single = cupy.asarray(pos, cupy.float32)
    assert_same(Tree(cupy.asfortranarray(single), 1.0).nearest(4, single[::7]),
                Tree(single.get(), 1.0).nearest(4, single.get()[::7]))  # fmt: skip
    tree = Tree(cupy.asarray(pos), mass)
    assert isinstance(tree.forces(pos[:9]).acc, np.ndarray)
    assert isinstance(Tree(pos, mass).forces(cupy.asarray(pos[:9])).acc, cupy.ndarray)


def test_faults_are_named_as_on_the_host(plummer):
    mass, pos = plummer
    bad = pos.copy()
    bad[77, 1] = np.nan
    with pytest.raises(errors.NotFiniteError, match=r"pos\[77\] is not finite"):
        Tree(cupy.asarray(bad), mass)
    tree = Tree(cupy.asarray(pos), cupy.asarray(mass))
    for use in (tree.forces, tree.nearest, lambda targets: tree.neighbours(1.0, targets)):
        with pytest.raises(errors.NotFiniteError, match=r"targets\[77\] is not finite"):
            use(targets=cupy.asarray(bad))
    with pytest.raises(errors.AddressError, match=r"self\[0\] = 20000"):
        tree.nearest(1, cupy.asarray(pos[:1]), self_index=cupy.asarray([N]))
    with pytest.raises(errors.RangeError, match="target 0 of a tree"):
        Tree(cupy.asarray([[0.0, 0, 0], [1e-187, 0, 0]]), 1.0).forces()


def test_memory_comes_back(plummer):
    mass, pos = map(cupy.asarray, plummer)
    pool, used = cupy.get_default_memory_pool(), []
    for _ in range(5):
        with Tree(pos, mass) as tree:
            tree.forces(pos[:100])
            tree.nearest(3)
        used.append(pool.used_bytes())
    assert used[-1] == used[1]
    tree = Tree(pos, mass)
    before = tree.nearest(3).index
    pool.set_limit(size=pool.total_bytes() + 1_000_000)
    try:
        with pytest.raises(errors.OutOfMemoryError):
            tree.neighbours(np.inf)
    finally:
        pool.set_limit(size=0)
    assert_same([tree.nearest(3).index], [before.get()])
