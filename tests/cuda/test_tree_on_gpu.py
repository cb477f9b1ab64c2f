"""``Tree`` with a CUDA device's arrays: what it takes and gives, memory, streams. The rest is that
of all trees: tests/tree.

The device is the stand-in for a GPU, CuPy that of fake_arrays.py. Forces differ by rounding, and
in groups of targets that are wide beside what is in them."""

import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fake_arrays
from grape6py import Tree, errors, plummer
from grape6py._lib.tree import HostTree
from grape6py.cuda.tree.device_tree import DeviceTree
from grape6py.errors import ArgumentError, NotFiniteError
from particles import relative

N = 700
MASS, POS, _ = plummer(N, seed=31)


def close_to(found, expected):
    """Forces are those of the host, but for rounding and the few groups that are wide."""
    assert found.acc.dtype == found.pot.dtype == np.float64
    acc, pot = (a if isinstance(a, np.ndarray) else a.get() for a in (found.acc, found.pot))
    assert acc.shape == expected.acc.shape
    assert np.quantile(relative(acc, expected.acc), 0.85) < 3e-6
    assert np.quantile(np.abs(pot / expected.pot - 1), 0.85) < 1e-6


def test_a_tree_of_numpy_arrays_is_where_the_backend_says(put, monkeypatch):
    monkeypatch.setattr("grape6py.forces.tree_backends._device_of", lambda *_: 0)
    monkeypatch.setattr("grape6py.forces.tree_backends._MANY", N)
    monkeypatch.setattr("grape6py._arrays.transfer.LARGE", 1)  # so that all are copied in pieces
    expected = Tree(put(POS), put(MASS)).forces(theta=0.6, eps=0.1)
    for backend in "cuda", "auto", "tree", "cuda-tree":
        tree = Tree(POS, MASS, backend=backend)
        assert isinstance(tree._tree, DeviceTree)
        found = tree.forces(theta=0.6, eps=0.1)
        assert isinstance(found.acc, np.ndarray)
        assert np.array_equal(found.acc, expected.acc.get())
        assert isinstance(tree.nearest(3).index, np.ndarray)
        assert not isinstance(tree.forces(put(POS), theta=0.6).acc, np.ndarray)
    for few in Tree(POS, MASS, backend="cpu"), Tree(POS[1:], MASS[1:]), Tree(POS, MASS, threads=1):
        assert isinstance(few._tree, HostTree)
    with pytest.raises(NotFiniteError, match=r"mass\[3\] is not finite: nan"):
        Tree(POS, np.where(np.arange(N) == 3, np.nan, MASS), backend="cuda")
    with pytest.raises(ArgumentError, match="pos lies on a CUDA device, but cpu computes on"):
        Tree(put(POS), MASS, backend="cpu")


@pytest.mark.backends("cuda gpu")
def test_results_lie_where_the_targets_lie(cupy, put):
    device, host = Tree(put(POS), MASS), Tree(POS, MASS)
    expected = host.forces(POS[:50], theta=0.6, eps=0.1)
    found = device.forces(POS[:50], theta=0.6, eps=0.1)
    assert isinstance(found.acc, np.ndarray)
    close_to(found, expected)
    assert isinstance(device.nearest(2, POS[:50]).distance, np.ndarray)
    assert isinstance(device.neighbours(0.1, POS[:50])[0], np.ndarray)
    assert isinstance(device.neighbours(put(np.ones(50)), POS[:50])[0], cupy.ndarray)
    assert isinstance(device.forces(POS[:5], self_index=put(np.arange(5))).acc, cupy.ndarray)
    last = cupy.cuda.runtime.getDeviceCount() - 1
    with cupy.cuda.Device(last):
        targets = put(POS[:50])
    there = host.forces(targets, theta=0.6, eps=0.1)
    assert there.acc.device.id == last
    assert np.array_equal(there.acc.get(), expected.acc)
    index, distance = host.nearest(3, targets)
    assert np.array_equal(index.get(), host.nearest(3, POS[:50]).index)
    assert distance.device.id == last
    assert isinstance(host.neighbours(0.1, put(POS[:5]))[3], cupy.ndarray)


@pytest.mark.backends("cuda gpu")
def test_any_arrays_of_the_device(cupy, put):
    """Single precision, strides, a mass for all, and other libraries' arrays."""
    wide = np.random.default_rng(3).standard_normal((N, 8))
    pos = put(wide)[:, 1:4]
    expected = Tree(wide[:, 1:4], 1 / N).forces(eps=0.1, theta=0.6)
    close_to(Tree(pos, 1 / N).forces(eps=0.1, theta=0.6), expected)
    for how in ("interface", "dlpack"):
        foreign = fake_arrays.Foreign(put(wide[:, 1:4].copy()), how)
        close_to(Tree(foreign, put(np.float64(1 / N))).forces(eps=0.1, theta=0.6), expected)
    single = POS.astype(np.float32)
    found = Tree(put(single), put(MASS.astype(np.float32))).nearest(3, put(single[::2]))
    assert found.distance.tobytes() == Tree(single, MASS).nearest(3, single[::2])[1].tobytes()


def test_arrays_that_are_still_being_written_are_waited_for_and_copied(cupy, put):
    """Without, they are NaN. What is written later changes nothing."""
    pos, mass = put(POS), put(MASS)
    tree, targets = Tree(pos, mass), (put(POS[:50]), put(np.arange(50)))
    expected = tree.forces(targets[0], self_index=targets[1])
    for how, stream in ("dlpack", None), ("both", None), ("interface", 77), ("interface", None):
        late = [fake_arrays.Late(cupy, a, how, stream)
                for a in (POS, MASS, POS[:50], np.arange(50))]  # fmt: skip
        found = Tree(*late[:2]).forces(late[2], self_index=late[3])
        assert found.acc.tobytes() == expected.acc.tobytes()
    pos[:], mass[:] = 7.0, -1.0
    again = tree.forces(targets[0], self_index=targets[1])
    assert again.acc.tobytes() == expected.acc.tobytes()


def test_many_threads_use_one_tree(put):
    tree = Tree(put(POS), put(MASS))
    right = tree.forces(eps=0.1).acc.get()

    def work(k):
        targets = put(POS[k::5])
        for _ in range(3):
            assert np.array_equal(tree.forces(eps=0.1).acc.get(), right)
            assert len(tree.nearest(2, targets).index.get()) == len(targets)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))


# ---- faults -------------------------------------------------------------------------------
def test_arrays_of_another_device_are_refused(cupy, put):
    with pytest.raises(errors.ArgumentError, match="mass lies on CUDA device 1, but the tree lies"):
        Tree(put(POS), cupy.on(1, MASS))
    with pytest.raises(errors.ArgumentError, match="targets lies on CUDA device 1"):
        Tree(put(POS), MASS).forces(cupy.on(1, POS))
    tree = Tree(cupy.on(1, POS), MASS)  # which need not be the current one
    assert tree.forces(eps=0.1).acc.device.id == 1
    assert tree.nearest(2).distance.device.id == 1


def test_row01_a_device_without_memory(cupy, put, monkeypatch):
    def refuse(*_):  # CuPy's error is a MemoryError
        raise MemoryError("Out of memory allocating 8 bytes")

    tree = Tree(put(POS), put(MASS))
    with monkeypatch.context() as patch:
        patch.setattr(cupy, "empty", refuse)
        for use in (lambda: Tree(put(POS), put(MASS)), tree.forces, tree.nearest,
                    lambda: tree.neighbours(1.0)):  # fmt: skip
            with pytest.raises(errors.OutOfMemoryError, match="allocating 8 bytes") as fault:
                use()
            assert fault.value.code == -1
    close_to(tree.forces(theta=0.6, eps=0.1), Tree(POS, MASS).forces(theta=0.6, eps=0.1))


def test_trees_close_and_free_their_memory(put):
    with Tree(put(POS), put(MASS)) as tree:
        memory = weakref.ref(tree._tree._tree)
    assert memory() is None
    assert repr(tree) == "<Tree: closed>"
    forgotten = Tree(put(POS), put(MASS))
    memory = weakref.ref(forgotten._tree._tree)
    del forgotten
    assert memory() is None
