"""Trees of which each rank of a program has a part, by the calls of C, in one process."""

import numpy as np
import pytest

import capi
from grape6py import plummer
from particles import assert_nan

N = 3000
MASS, POS, VEL = plummer(N, seed=4)
CODE = {name: value for name, value in capi.CONSTANTS.items() if name.startswith("G6X_")}
FMM, BH = CODE["G6X_TREE_FMM"], CODE["G6X_TREE_BARNES_HUT"]
EPS2 = 1e-4


def whole(mass=MASS, pos=POS, vel=None):
    fastest = -1.0 if vel is None else np.abs(vel).max()
    mean = np.zeros(3) if vel is None else (mass[:, None] * vel).sum(axis=0) / mass.sum()
    return np.concatenate(
        [pos.min(0), pos.max(0), [mass.max(), len(mass), fastest], mean, [mass.sum()]]
    )


def opened(rows, box, vel=None):
    arrays = POS[rows].copy(), None if vel is None else vel[rows].copy(), MASS[rows].copy()
    return capi.call("g6x_tree_open_in", box, len(arrays[0]), *arrays)


def by_key(box):
    """Numbers of all particles along the curve."""
    key = np.empty(N, np.uint64)
    assert capi.call("g6x_tree_keys", box, N, POS, key) == 0
    assert key.max() < 2**63
    return np.argsort(key, kind="stable")


def regions(rows, size=0.0):
    runs = [POS[rows[k : k + 256]] for k in range(0, len(rows), 256)]
    return np.array([[*x.min(axis=0), *x.max(axis=0), size] for x in runs]).reshape(-1, 7)


def part(tree, where, method=FMM, order=5, theta=0.6, bound=0.0):
    """What targets in some regions may look at: as g6x_tree_part writes it."""
    buffer, size = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for _ in range(2):  # once to learn how large it is
        args = EPS2, method, order, theta, bound, len(where), where, buffer, buffer.nbytes, size
        assert capi.call("g6x_tree_part", tree, *args) == 0
        buffer = buffer if buffer.nbytes >= size[0] else np.zeros(size[0] // 8, np.int64)
    return buffer


def forces_with(tree, parts, ni, x=None, v=None, method=FMM, order=5, theta=0.6, last=None,
                bound=0.0):  # fmt: skip
    found, done = capi.Force.blank(ni), np.zeros(3, np.int64)
    given = np.array([p.ctypes.data for p in parts] or [0], np.int64)
    args = [tree, len(parts), given if parts else None, ni, x, v, None, EPS2, method, order, theta]
    found.code = capi.call(
        "g6x_tree_forces_with", *args, last, bound, found.acc, found.jerk, found.pot, done
    )
    return found, done


def one(method, order, theta, last, bound, vel):
    """Forces of one tree of all."""
    tree, found = capi.call("g6x_tree_open", N, POS, vel, MASS), capi.Force.blank(N)
    args = tree, N, None, None, None, EPS2, method, order, theta, last, bound
    assert capi.call("g6x_tree_forces", *args, found.acc, found.jerk, found.pot) == 0
    capi.call("g6x_tree_close", tree)
    return found


def exact():
    r = POS[None] - POS[:, None]
    s2 = (r**2).sum(axis=2) + EPS2
    v = VEL[None] - VEL[:, None]
    along = 3 * (r * v).sum(axis=2) / s2
    by = (MASS * s2**-1.5)[:, :, None]
    return (by * r).sum(axis=1), (by * (v - along[:, :, None] * r)).sum(axis=1)


ACC, JERK = exact()
SIZE = np.linalg.norm(ACC, axis=1)


def error(found, right):
    return np.median(np.linalg.norm(found - right, axis=1) / np.linalg.norm(right, axis=1))


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("method", "order", "theta", "bound", "moving"), [
    (FMM, 5, 0.6, 0.0, True), (BH, 5, 0.7, 0.0, False), (FMM, 4, 1.4, 1e-2, True),
    (BH, 5, 1.4, 1e-3, False), (FMM, 5, 0.05, 0.0, False),
])  # fmt: skip
def test_forces_have_the_errors_of_one_tree(ranks, method, order, theta, bound, moving):
    vel = VEL if moving else None
    box = whole(vel=vel)
    domains = np.array_split(by_key(box), ranks)
    trees = [opened(rows, box, vel) for rows in domains]
    setting = {"method": method, "order": order, "theta": theta, "bound": bound}
    acc, jerk = np.empty((N, 3)), np.empty((N, 3))
    for r, rows in enumerate(domains):
        where = regions(rows, SIZE[rows].min() if bound else 0.0)
        parts = [part(tree, where, **setting) for k, tree in enumerate(trees) if k != r]
        last = SIZE[rows].copy() if bound else None
        found, done = forces_with(trees[r], parts, len(rows), last=last, **setting)
        assert found.code == 0
        assert done[0] > 0
        acc[rows], jerk[rows] = found.acc, found.jerk
    single = one(method, order, theta, SIZE if bound else None, bound, vel)
    assert error(acc, ACC) < 1.1 * error(single.acc, ACC) + 1e-7
    if moving:
        assert error(jerk, JERK) < 1.1 * error(single.jerk, JERK)
    else:
        assert np.isnan(jerk).all()
    for tree in trees:
        assert capi.call("g6x_tree_close", tree) == 0


def test_a_rank_without_particles_has_the_others():
    box = whole(vel=VEL)
    full, empty = opened(np.arange(N), box, VEL), opened(np.arange(0), box, VEL)
    x, v = POS[:50] + 1.0, VEL[:50].copy()
    found, _ = forces_with(empty, [part(full, regions(np.arange(N)))], 50, x, v)
    alone, _ = forces_with(full, [part(empty, regions(np.arange(9)))], 50, x, v)
    assert found.code == alone.code == 0
    np.testing.assert_allclose(found.acc, alone.acc, rtol=1e-2)
    nothing, _ = forces_with(empty, [], 50, x, v)
    assert nothing.code == 0
    assert not nothing.acc.any()
    bad = x.copy()
    bad[3] = np.nan
    found, _ = forces_with(empty, [part(full, regions(np.arange(N)))], 50, bad, v)
    assert found.code == CODE["G6X_E_I_NAN"]
    assert_nan(found.acc[3])
    assert np.isfinite(found.acc[4]).all()
    order = np.empty(N, np.int32)
    assert capi.call("g6x_tree_by_key", full, order) == N
    assert np.array_equal(order, by_key(box))
    assert capi.call("g6x_tree_by_key", empty, order) == 0


def test_what_is_wrong_has_its_code():
    box, size = whole(), np.zeros(1, np.int64)
    tree = opened(np.arange(N), box)
    argument, null = CODE["G6X_E_ARGUMENT"], CODE["G6X_E_NULL"]
    not_open, key = CODE["G6X_E_NOT_OPEN"], np.zeros(N, np.uint64)
    assert capi.call("g6x_tree_open_in", None, N, POS, None, MASS) == null
    assert capi.call("g6x_tree_open_in", box, N, POS, VEL, MASS) == argument
    for column, value in ((0, np.nan), (0, 1e9), (6, -1.0), (7, 0.0), (12, -1.0)):
        wrong = box.copy()
        wrong[column] = value
        assert capi.call("g6x_tree_open_in", wrong, N, POS, None, MASS) == argument
        assert capi.call("g6x_tree_keys", wrong, N, POS, key) == argument
    assert capi.call("g6x_tree_keys", box, -1, POS, key) == argument
    assert capi.call("g6x_tree_keys", box, N, None, key) == null
    assert capi.call("g6x_tree_by_key", tree, None) == null
    assert capi.call("g6x_tree_by_key", 12345, None) == not_open
    where = regions(np.arange(N))
    good = [EPS2, FMM, 5, 0.5, 0.0, len(where), where, None, 0, size]
    assert capi.call("g6x_tree_part", tree, *good) == 0
    for column, value, code in ((0, -1.0, argument), (0, np.nan, argument), (1, 9, argument),
                                (2, 7, argument), (3, 0.0, argument), (4, np.nan, argument),
                                (5, -1, argument), (6, None, null), (9, None, null)):  # fmt: skip
        args = list(good)
        args[column] = value
        assert capi.call("g6x_tree_part", tree, *args) == code
    assert capi.call("g6x_tree_part", 12345, *good) == not_open
    other = part(tree, where)
    broken = other.copy()
    broken[3] += 16  # bytes
    moving = other.copy()
    moving[2] = 1
    for parts, setting in (([broken], {}), ([moving], {}), ([other], {"theta": 0.0}),
                           ([other], {"method": FMM + CODE["G6X_TREE_MOMENTUM"]})):  # fmt: skip
        found, _ = forces_with(tree, parts, N, **setting)
        assert found.code == argument
        assert_nan(found.acc)
    found = capi.Force.blank(N)
    args = [tree, 1, np.zeros(1, np.int64), N, None, None, None, EPS2, FMM, 5, 0.5, None, 0.0]
    assert capi.call("g6x_tree_forces_with", *args, found.acc, None, found.pot, None) == null


def test_a_box_that_does_not_resolve_the_particles_is_refused():
    pos = POS.copy()
    pos[:100] = 1e9 + POS[:100] * 1e-4
    arrays = pos, None, MASS
    code = capi.call("g6x_tree_open_in", whole(pos=pos), N, *arrays)
    assert code == CODE["G6X_E_RANGE"]
    many = capi.call("g6x_tree_open", N, *arrays)
    size, order = np.zeros(1, np.int64), np.empty(N, np.int32)
    args = EPS2, FMM, 5, 0.5, 0.0, 1, np.zeros((1, 7)), None, 0, size
    assert capi.call("g6x_tree_part", many, *args) == CODE["G6X_E_RANGE"]
    assert capi.call("g6x_tree_by_key", many, order) == CODE["G6X_E_RANGE"]
