"""``Tree`` on several GPUs of one process: errors as on one, exact searches, nobody waits for ever.

The devices are the stand-in's, CuPy that of fake_arrays.py.
"""

import gc
import weakref

import numpy as np
import pytest

import fake_arrays
from fake_gpu import relative
from grape6py import Leapfrog, Tree, plummer, reference
from grape6py.cuda import usable
from grape6py.cuda.tree import device_tree
from grape6py.errors import AddressError, ArgumentError, NotFiniteError
from grape6py.integrators.gravity import SharedTrees
from grape6py.ranks.devices import DevicesTree
from grape6py.ranks.threads import Crew

N, EPS = 3000, 1e-3
MASS, POS, VEL = plummer(N, seed=9)
EXACT = reference.direct_sum(MASS, POS, VEL, eps2=EPS * EPS)


@pytest.fixture(params=["of NumPy", "of CuPy"])
def several(request, cupy, monkeypatch):
    """Makes trees on two devices, of arrays of a kind."""
    monkeypatch.setenv("GRAPE6_DEVICES", "all")
    monkeypatch.setattr("grape6py.cuda.usable.SHARE", N // 2)
    monkeypatch.setattr("grape6py.tree_backends._device_of", lambda *_: 0)
    for name in usable.LOCAL_RANKS:
        monkeypatch.delenv(name, raising=False)
    for device in range(2):
        device_tree.gpu_of(device)  # whose fixtures are not for threads
    kind = cupy.asarray if request.param == "of CuPy" else np.asarray

    def make(*arrays, **options):
        return Tree(
            *map(kind, arrays), backend="auto" if kind is cupy.asarray else "cuda", **options
        )

    make.kind = kind
    return make


def host(array):
    return array.get() if isinstance(array, fake_arrays.Array) else array


@pytest.mark.parametrize(
    "walk", [{"theta": 0.6}, {"theta": 0.7, "method": "bh"}, {"accuracy": 1e-3}]
)
def test_errors_are_those_of_one_device(several, cupy, walk):
    tree, one = (
        several(POS, MASS, VEL),
        Tree(cupy.asarray(POS), cupy.asarray(MASS), cupy.asarray(VEL)),
    )
    assert isinstance(tree._tree, DevicesTree)
    found, alone = tree.forces(eps=EPS, **walk), one.forces(eps=EPS, **walk)
    assert isinstance(found.acc, type(several.kind(POS)))
    for ours, theirs, right in zip(found, alone, (EXACT.acc, EXACT.pot, EXACT.jerk), strict=True):
        ours, theirs = (relative(np.c_[host(a)], np.c_[right]) for a in (ours, theirs))
        assert np.median(ours) < 1.2 * np.median(theirs)
        assert ours.max() < 3 * theirs.max()


def test_momentum_is_closed_over_all(several):
    acc = host(several(POS, MASS).forces(eps=EPS, theta=0.7, momentum=True).acc)
    assert np.abs(MASS @ acc).max() < 1e-15 * np.abs(MASS[:, None] * acc).sum()


def test_targets_are_any_in_any_order(several):
    tree, number = several(POS, MASS, VEL), np.random.default_rng(1).permutation(N)[:1000]
    number = np.where(np.arange(1000) % 7, number, -1).astype(np.int32)
    at = np.where(number[:, None] < 0, POS[:1000] + 0.1, POS[number])
    speed = np.where(number[:, None] < 0, 0, VEL[number])
    right = reference.direct_sum(MASS, POS, VEL, target_pos=at, target_vel=speed,
                                 target_index=number, eps2=EPS * EPS)  # fmt: skip
    given = map(several.kind, (at, speed))
    found = tree.forces(*given, self_index=several.kind(number), eps=EPS, theta=0.4)
    for ours, theirs in zip(found, (right.acc, right.pot, right.jerk), strict=True):
        assert np.median(relative(np.c_[host(ours)], np.c_[theirs])) < 1e-4
    assert len(host(tree.forces(several.kind(POS[:0]), theta=0.5).pot)) == 0


def test_searches_are_exact(several, cupy):
    tree, one = several(POS, MASS), Tree(POS, MASS, backend="cpu")
    number = np.random.default_rng(2).permutation(N)[:500].astype(np.int32)
    radius = np.linspace(0, 0.4, 500)
    given = {"targets": POS[number], "self_index": number}
    there = {name: several.kind(value) for name, value in given.items()}
    for ours, theirs in (
        (tree.neighbours(several.kind(radius), **there, csr=True),
         one.neighbours(radius, **given, csr=True)),
        (tree.neighbours(0.05, csr=True), one.neighbours(0.05, csr=True)),
        (tree.nearest(5, **there), one.nearest(5, **given)),
        (tree.nearest(3), one.nearest(3)),
    ):  # fmt: skip
        for a, b in zip(ours, theirs, strict=True):
            assert host(a).tobytes() == b.tobytes()


def test_work_shares_out_the_next_tree(several):
    tree = several(POS, MASS)
    tree.forces(eps=EPS, theta=0.5)
    work = tree.work
    assert host(work).shape == (N,)
    assert host(work).min() > 0
    uneven = np.where(np.arange(N) < 300, 1e3, 1e-3)
    tree = several(POS, MASS, work=several.kind(uneven))
    sizes = [len(part._domain.pos) for part in tree._tree._trees]
    assert sum(sizes) == N
    parts = [host(part._domain.pos) for part in tree._tree._trees]
    heavy = [sum((POS[:300] == row).all(axis=1).any() for row in part) for part in parts]
    assert abs(heavy[0] - 150) < 30


def test_a_wrong_argument_is_an_error_of_the_call(several):
    with pytest.raises(NotFiniteError, match=r"mass\[2000\] is not finite"):
        several(POS, np.where(np.arange(N) == 2000, np.nan, MASS))
    tree = several(POS, MASS)
    with pytest.raises(AddressError, match=r"self\[1\] = 3000: the tree has 3000 particles"):
        tree.forces(several.kind(POS[:2]), self_index=several.kind(np.array([0, N], np.int32)))
    last = np.where(np.arange(N) == 5, -1.0, 1.0)
    with pytest.raises(ArgumentError, match=r"last_acc\[5\] = -1.0 is negative"):
        tree.forces(last_acc=several.kind(last), bound=1e-3)
    assert len(tree) == N
    assert host(tree.forces(theta=0.7).pot).max() < 0


def test_an_error_on_one_device_ends_the_call_on_all(several, monkeypatch):
    tree = several(POS, MASS)
    second = tree._tree._trees[1]._inner
    monkeypatch.setattr(second, "forces_with", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tree.forces(theta=0.7)
    monkeypatch.undo()


def test_an_error_keeps_nothing_of_its_call():
    """No garbage collection is needed to free what a call had on the devices."""
    crew, kept = Crew(fake_arrays.Module(), (0, 1)), []

    def work(rank):
        piece = np.zeros(3)
        kept.append(weakref.ref(piece))
        crew.swap(rank, piece)
        if rank:
            raise MemoryError
        crew.swap(rank, None)

    gc.disable()
    try:
        with pytest.raises(MemoryError):
            crew.call(work)
        assert [piece() for piece in kept] == [None, None]
    finally:
        gc.enable()


def test_particles_that_no_box_resolves(several):
    pos = np.vstack([1e-13 * POS[:1500], POS[1500:]])
    right = reference.direct_sum(MASS, pos, 0 * pos, eps2=0.0)
    tree = several(pos, MASS)
    found = tree.forces(theta=0.5)
    assert np.median(relative(host(found.acc), right.acc)) < 1e-3
    assert host(tree.nearest(1).index).shape == (N, 1)


def test_few_particles_stay_on_one_device(several, cupy):
    few = several(POS[: N - 1], MASS[: N - 1])
    assert not isinstance(few._tree, DevicesTree)


@pytest.mark.parametrize("several", ["of CuPy"], indirect=True)
def test_a_leapfrog_has_the_help_of_all(several, monkeypatch):
    options = {"eps": 0.05, "dt": 1 / 64, "theta": 0.7, "backend": "cuda-tree"}
    galaxy = Leapfrog(*map(several.kind, (MASS, POS, VEL)), **options)
    assert isinstance(galaxy._forces, SharedTrees)
    start = galaxy.energy().total
    galaxy.evolve(0.125)
    assert abs(galaxy.energy().total / start - 1) < 1e-3
    assert np.abs(galaxy.momentum() - MASS @ VEL).max() < 1e-14
    monkeypatch.setenv("GRAPE6_DEVICES", "0")
    one = Leapfrog(*map(several.kind, (MASS, POS, VEL)), **options)
    assert not isinstance(one._forces, SharedTrees)
    one.evolve(0.125)
    assert np.median(relative(host(galaxy.pos), host(one.pos))) < 1e-5
