"""``Tree`` with a CUDA device's arrays: what it takes and gives and its faults are as with NumPy's.

The device is the stand-in for a GPU, CuPy that of fake_arrays.py. Forces differ by rounding, and
in groups of targets that are wide beside what is in them.
"""

import threading
import warnings
import weakref

import numpy as np
import pytest

import fake_arrays
from fake_gpu import assert_equal_bits, relative
from grape6py import Grape6Warning, Tree, errors, plummer, reference
from grape6py._lib.tree import HostTree
from grape6py._lib.tree_setting import Setting, Targets
from grape6py.cuda.tree import device_tree
from grape6py.cuda.tree.device_tree import DeviceTree
from grape6py.cuda.tree.octree import Octree
from grape6py.errors import ArgumentError, NotFiniteError

N = 700
MASS, POS, VEL = plummer(N, seed=31)


def arrays(neighbours):
    return neighbours.start, neighbours.index


def close_to(found, expected):
    """Forces are those of the host, but for rounding and the few groups that are wide."""
    assert found.acc.dtype == found.pot.dtype == np.float64
    acc, pot = (a if isinstance(a, np.ndarray) else a.get() for a in (found.acc, found.pot))
    assert acc.shape == expected.acc.shape
    assert np.quantile(relative(acc, expected.acc), 0.85) < 3e-6
    assert np.quantile(np.abs(pot / expected.pot - 1), 0.85) < 1e-6


# ---- results ------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [{"theta": 0.6}, {"theta": 0.6, "method": "bh"},
                                     {"theta": 0.5, "order": 4}])  # fmt: skip
def test_forces_are_the_devices_and_those_of_the_host(cupy, put, setting):
    device, host = Tree(put(POS), put(MASS)), Tree(POS, MASS)
    found, expected = (tree.forces(eps=0.01, **setting) for tree in (device, host))
    assert isinstance(found.acc, cupy.ndarray)
    assert found.jerk is None
    close_to(found, expected)


@pytest.mark.parametrize("size", [1e-80, 1.0, 1e80])
def test_forces_that_add_up_to_zero(put, size):
    mass, pos, vel = MASS * np.where(np.arange(N) % 5, 1, -2), POS * size, VEL
    trees = Tree(put(pos), put(mass), put(vel)), Tree(pos, mass, vel)
    found, expected = (tree.forces(theta=0.6, momentum=True) for tree in trees)
    for here, there in ((found.acc, expected.acc), (found.jerk, expected.jerk)):
        unit = np.abs(there).max()
        here, there = here.get() / unit, there / unit
        assert np.abs(mass @ here).max() < 1e-14 * (np.abs(mass) @ np.abs(here)).max()
        assert np.median(relative(here, there)) < 1e-5
    with pytest.raises(ArgumentError, match="give no targets"):
        trees[0].forces(put(pos), momentum=True)


@pytest.mark.parametrize("given", [{}, {"accuracy": 0.1}, {"bound": 1.0}], ids=str)
def test_few_particles_are_summed_pair_by_pair(put, given):
    mass, pos, vel = plummer(700, seed=2)
    mass[7] = 1e3
    exact = reference.direct_sum(mass, pos, vel, eps2=1e-4)
    if "bound" in given:
        given = given | {"last_acc": put(np.linalg.norm(exact.acc, axis=1))}
    acc, pot, jerk = Tree(put(mass), put(pos), put(vel)).forces(eps=0.01, **given)
    for name, found in (("acc", acc), ("pot", pot), ("jerk", jerk)):
        assert np.median(relative(found.get(), getattr(exact, name))) < 1e-5, name


@pytest.mark.parametrize(("method", "targets"), [("fmm", None), ("fmm", "others"),
                                                 ("bh", "last accelerations")])  # fmt: skip
def test_an_accuracy_asked_for_is_had(put, targets, method, monkeypatch):
    monkeypatch.setattr(device_tree, "are_few", lambda *_, **__: False)
    mass, pos, _ = plummer(1500, seed=2)
    tree, given = Tree(put(pos), put(mass)), {}
    exact = reference.direct_sum(mass, pos, 0 * pos)
    if targets:
        given = {"last_acc": put(np.linalg.norm(exact.acc, axis=1))}
    if targets == "others":
        given = {"targets": put(pos), "self_index": put(np.arange(1500, dtype=np.int32))}
    acc = tree.forces(accuracy=1e-4, method=method, **given).acc.get()
    assert 1e-4 / 30 < np.median(relative(acc, exact.acc)) < 1.5e-4


@pytest.mark.parametrize(("order", "method"), [(5, "fmm"), (3, "fmm"), (0, "bh")])
def test_forces_on_targets_have_the_bits_that_the_kernels_give(put, tree_gpu, order, method):
    number = np.arange(0, N, 3, dtype=np.int32)
    targets, last = POS[number] + 0.01, np.linspace(0.5, 2, len(number))
    kernels = Octree(tree_gpu, POS, MASS, VEL)
    setting, vel = Setting(0.6, order, 1e-4, 1e-3), VEL[number].copy()
    expected = kernels.forces(setting, Targets(targets, vel, number, last))
    tree = Tree(put(POS), put(MASS), put(VEL))
    found = tree.forces(
        put(targets), put(VEL[number]), self_index=put(number), last_acc=put(last), eps=1e-2,
        bound=1e-3, theta=0.6, method=method, order=order or 5,
    )  # fmt: skip
    assert found.acc.tobytes() == expected[0].tobytes()
    assert found.pot.tobytes() == expected[1].tobytes()
    assert found.jerk.tobytes() == expected[2].tobytes()
    host = Tree(POS, MASS, VEL).forces(eps=1e-2, theta=0.6, method=method, order=order or 5).jerk
    jerk = tree.forces(eps=1e-2, theta=0.6, method=method, order=order or 5).jerk.get()
    assert np.median(relative(jerk, host)) < 3e-5


def test_searches_are_the_devices_and_those_of_the_host(put):
    device, host = Tree(put(POS), put(MASS)), Tree(POS, MASS)
    number, radii = np.arange(0, N, 5), np.linspace(-0.1, 0.5, len(POS[::5]))
    for who, radius in (({}, 0.1), ({}, np.inf), ({}, np.linspace(0, 0.3, N)),
                        ({"targets": POS[::5] + 0.01}, radii),
                        ({"targets": POS[::5], "self_index": number}, 0.2)):  # fmt: skip
        given = {name: put(value) for name, value in who.items()}
        radius_there = put(radius) if np.ndim(radius) else radius
        for found, expected in (
            (arrays(device.neighbours(radius_there, **given, csr=True)),
             arrays(host.neighbours(radius, **who, csr=True))),
            (device.nearest(4, **given), host.nearest(4, **who)),
        ):  # fmt: skip
            assert_equal_bits(found, expected)
        found = device.neighbours(radius_there, **given)
        for ours, theirs in zip(found, host.neighbours(radius, **who), strict=True):
            assert np.array_equal(ours.get(), theirs)


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
        Tree(POS, with_bad(MASS, 3), backend="cuda")
    with pytest.raises(ArgumentError, match="pos lies on a CUDA device, but cpu computes on"):
        Tree(put(POS), MASS, backend="cpu")


@pytest.mark.parametrize("k", [1, 31, 32, 33, 128, 129])
def test_any_number_of_the_nearest_is_found(put, k):
    """Also among particles at equal distances and at one place, and fewer than k."""
    steps = np.arange(6.0)
    lattice = np.array(np.meshgrid(steps, steps, steps)).reshape(3, -1).T
    for pos in np.vstack([lattice, lattice[:70]]), POS[:100]:
        pos = np.random.default_rng(k).permutation(pos)
        targets = pos[:40]
        device, host = Tree(put(pos), np.ones(len(pos))), Tree(pos, np.ones(len(pos)))
        assert_equal_bits(device.nearest(k, put(targets)), host.nearest(k, targets))


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


@pytest.mark.parametrize(
    ("how", "stream"), [("dlpack", None), ("both", None), ("interface", 77), ("interface", None)]
)
def test_arrays_that_are_still_being_written_are_waited_for(cupy, put, how, stream):
    """Without, they are NaN."""
    expected = Tree(put(POS), put(MASS)).forces(put(POS[:50]), self_index=put(np.arange(50)))
    late = [fake_arrays.Late(cupy, a, how, stream) for a in (POS, MASS, POS[:50], np.arange(50))]
    found = Tree(*late[:2]).forces(late[2], self_index=late[3])
    assert found.acc.tobytes() == expected.acc.tobytes()


def test_a_tree_does_not_change_with_the_arrays_it_was_made_of(put):
    pos, mass = put(POS), put(MASS)
    tree = Tree(pos, mass)
    first = tree.forces(eps=0.1), tree.nearest(3)
    pos[:], mass[:] = 7.0, -1.0
    again = tree.forces(eps=0.1), tree.nearest(3)
    for before, after in zip(first, again, strict=True):
        assert before[0].tobytes() == after[0].tobytes()
        assert before[1].tobytes() == after[1].tobytes()


def test_no_particles_and_no_targets(put):
    empty, nobody = put(np.empty((0, 3))), np.empty((0, 3))
    for tree in (Tree(empty, 1.0), Tree(put(POS), 1.0)):
        assert tree.forces(empty).acc.shape == (0, 3)
        assert tree.nearest(3, empty).index.shape == (0, 3)
        assert tree.neighbours(1.0, empty) == []
    tree = Tree(empty, 1.0)
    assert len(tree) == 0
    assert tree.forces().pot.shape == (0,)
    two = put(np.ones((2, 3)))
    assert not Tree(empty, 1.0, empty).forces(two).jerk.get().any()
    found, expected = tree.forces(two, eps=0.1), Tree(nobody, 1.0).forces(np.ones((2, 3)), eps=0.1)
    assert np.array_equal(found.acc.get(), expected.acc)
    assert np.array_equal(found.pot.get(), expected.pot)
    assert [len(row) for row in tree.neighbours(np.inf, two)] == [0, 0]
    assert (tree.nearest(3, two).index.get() == -1).all()
    assert (tree.nearest(3, two).distance.get() == np.inf).all()


def test_many_threads_use_one_tree(put):
    tree = Tree(put(POS), put(MASS))
    right, wrong = tree.forces(eps=0.1).acc.get(), []

    def work(k):
        targets = put(POS[k::5])
        for _ in range(3):
            found = tree.forces(eps=0.1).acc.get(), tree.nearest(2, targets).index.get()
            if not np.array_equal(found[0], right) or len(found[1]) != len(POS[k::5]):
                wrong.append(k)

    workers = [threading.Thread(target=work, args=[k]) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


# ---- faults -------------------------------------------------------------------------------


def with_bad(array, row, bad=np.nan):
    array = np.array(array, float)
    array[row] = bad
    return array


MAKING = {
    "pos of the wrong shape": {"pos": MASS},
    "mass of the wrong shape": {"mass": MASS[:-1]},
    "NaN in pos": {"pos": with_bad(POS, (77, 1))},
    "NaN in vel": {"vel": with_bad(VEL, (5, 1))},
    "infinity in mass": {"mass": with_bad(MASS, 9, np.inf)},
    "complex": {"pos": POS * 1j},
}
TARGETS = POS[:9]
USING = {
    "targets of the wrong shape": ("forces", {"targets": POS[0]}),
    "NaN in targets": ("forces", {"targets": with_bad(TARGETS, (5, 0))}),
    "numbers too large": ("forces", {"targets": TARGETS, "self_index": np.full(9, N)}),
    "numbers below -1": ("nearest", {"targets": TARGETS, "self_index": np.arange(9) - 2}),
    "numbers beyond 32 bits": ("nearest", {"targets": TARGETS, "self_index": np.full(9, 2**40)}),
    "numbers that are none": ("forces", {"targets": TARGETS, "self_index": np.ones(9)}),
    "numbers without targets": ("forces", {"self_index": np.arange(N)}),
    "NaN in targets of searches": ("nearest", {"targets": with_bad(TARGETS, (5, 0))}),
    "NaN in velocities": ("forces", {"targets": TARGETS, "vel": with_bad(TARGETS, (5, 0))}),
    "NaN in last_acc": ("forces", {"last_acc": with_bad(MASS, 3), "bound": 0.1}),
    "velocities without targets": ("forces", {"vel": POS}),
    "no last_acc": ("forces", {"bound": 0.1}),
    "theta": ("forces", {"theta": 1.6}),
    "order": ("forces", {"order": 7}),
    "method": ("forces", {"method": "direct"}),
    "k": ("nearest", {"k": -1}),
    "radii of the wrong shape": ("neighbours", {"radius": np.ones(3)}),
    "targets of neighbours": ("neighbours", {"radius": 1.0, "targets": with_bad(TARGETS, (1, 1))}),
}


def arrays_to(put, arguments):
    return {k: put(v) if isinstance(v, np.ndarray) else v for k, v in arguments.items()}


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize("wrong", MAKING.values(), ids=MAKING)
def test_what_cannot_be_a_tree_is_refused_as_on_the_host(put, wrong):
    given = {"pos": POS, "mass": MASS, **wrong}
    with pytest.raises(errors.Grape6Error) as expected:
        Tree(**given)
    with pytest.raises(type(expected.value)) as found:
        Tree(**arrays_to(put, given))
    assert str(found.value) == str(expected.value)


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize(("call", "wrong"), USING.values(), ids=USING)
def test_wrong_calls_are_refused_as_on_the_host(put, call, wrong):
    with pytest.raises(errors.Grape6Error) as expected:
        getattr(Tree(POS, MASS), call)(**wrong)
    tree = Tree(put(POS), put(MASS))
    for given in (wrong, arrays_to(put, wrong)):
        with pytest.raises(type(expected.value)) as found:
            getattr(tree, call)(**given)
        assert str(found.value) == str(expected.value)
    close_to(tree.forces(theta=0.6, eps=0.1), Tree(POS, MASS).forces(theta=0.6, eps=0.1))


def test_row11_last_accelerations_are_not_negative(put):
    last = with_bad(np.ones(N), 4, -1.0)
    for tree, given in ((Tree(POS, MASS), last), (Tree(put(POS), MASS), put(last))):
        with pytest.raises(errors.ArgumentError, match=r"last_acc\[4\] = -1"):
            tree.forces(last_acc=given, bound=0.1)
        with pytest.raises(errors.ArgumentError, match=r"last_acc\[4\] = -1"):
            tree.forces(last_acc=given)
        tree.forces(last_acc=given, theta=0.6)  # of which nothing is asked


def test_arrays_of_another_device_are_refused(cupy, put):
    with pytest.raises(errors.ArgumentError, match="mass lies on CUDA device 1, but the tree lies"):
        Tree(put(POS), cupy.on(1, MASS))
    with pytest.raises(errors.ArgumentError, match="targets lies on CUDA device 1"):
        Tree(put(POS), MASS).forces(cupy.on(1, POS))
    tree = Tree(cupy.on(1, POS), MASS)  # which need not be the current one
    assert tree.forces(eps=0.1).acc.device.id == 1
    assert tree.nearest(2).distance.device.id == 1


@pytest.mark.backends("cuda gpu")
def test_row08_a_force_that_does_not_fit(put):
    pos = np.array([[0.0, 0, 0], [1e-187, 0, 0]])
    for tree in (Tree(pos, 1.0), Tree(put(pos), 1.0)):
        with pytest.raises(errors.RangeError, match="the force on target 0 of a tree does not fit"):
            tree.forces()


def test_row09_pairs_at_one_place_leave_one_warning(put):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for tree in (Tree(np.zeros((32, 3)), 1.0), Tree(put(np.zeros((32, 3))), 1.0)):
            tree.forces(eps=1.0)
            tree.forces()
            tree.forces()
    assert [warning.category for warning in said] == [Grape6Warning] * 2
    assert str(said[0].message) == str(said[1].message)
    assert said[1].filename == __file__


def test_row01_a_device_without_memory(cupy, put, monkeypatch):
    class OutOfMemoryError(MemoryError):
        """CuPy's, which is a MemoryError."""

    def refuse(*_):
        raise OutOfMemoryError("Out of memory allocating 8 bytes")

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
        assert repr(tree) == f"<Tree: {N} particles>"
    assert memory() is None
    assert repr(tree) == "<Tree: closed>"
    tree.close()
    for use in (tree.forces, tree.nearest, lambda: tree.neighbours(1.0), tree.__enter__):
        with pytest.raises(errors.NotOpenError):
            use()
    forgotten = Tree(put(POS), put(MASS))
    memory = weakref.ref(forgotten._tree._tree)
    del forgotten
    assert memory() is None
