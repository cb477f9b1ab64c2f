"""Trees of which each rank of a program has a part, by the calls of C, in one process."""

import numpy as np
import pytest

import capi
from grape6py import plummer
from octrees import whole_of
from particles import assert_nan
from samples import truth

N = 3000
MASS, POS, VEL = plummer(N, seed=4)
CODE = {name: value for name, value in capi.CONSTANTS.items() if name.startswith("G6X_")}
FMM, BH = CODE["G6X_TREE_FMM"], CODE["G6X_TREE_BARNES_HUT"]
EPS2 = 1e-4


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
    args += [last, bound, found.acc, found.jerk, found.pot, done]
    found.code = capi.call("g6x_tree_forces_with", *args)
    assert found.code or done[0] > 0 or not parts
    return found


@pytest.mark.parametrize(("method", "order", "theta", "bound", "moving"), [
    (FMM, 5, 0.6, 0.0, True), (BH, 5, 1.4, 1e-3, False), (FMM, 4, 1.4, 1e-2, True),
])  # fmt: skip
def test_forces_have_the_errors_of_one_tree(method, order, theta, bound, moving):
    vel = VEL if moving else None
    box, true = whole_of(MASS, POS, vel), truth(MASS, POS, VEL, EPS2**0.5, count=N)
    domains, size = np.array_split(by_key(box), 3), np.linalg.norm(true.acc, axis=1)
    trees = [opened(rows, box, vel) for rows in domains]
    setting = {"method": method, "order": order, "theta": theta, "bound": bound}
    all_of_them = capi.Force.blank(N)
    for r, rows in enumerate(domains):
        where = regions(rows, size[rows].min() if bound else 0.0)
        parts = [part(tree, where, **setting) for k, tree in enumerate(trees) if k != r]
        found = forces_with(trees[r], parts, len(rows), last=size[rows].copy(), **setting)
        assert found.code == 0
        all_of_them.acc[rows], all_of_them.jerk[rows] = found.acc, found.jerk
    single = forces_with(opened(np.arange(N), box, vel), [], N, last=size, **setting)
    for of in ("acc", "jerk") if moving else ("acc",):
        ours, theirs = (np.median(true.errors(forces, of)) for forces in (all_of_them, single))
        assert ours < 1.1 * theirs
    assert moving or np.isnan(all_of_them.jerk).all()
    assert all(capi.call("g6x_tree_close", tree) == 0 for tree in trees)


def test_a_rank_without_particles_has_the_others():
    box = whole_of(MASS, POS, VEL)
    full, empty = opened(np.arange(N), box, VEL), opened(np.arange(0), box, VEL)
    x, v, of_full = POS[:50] + 1.0, VEL[:50].copy(), [part(full, regions(np.arange(N)))]
    found = forces_with(empty, of_full, 50, x, v)
    alone = forces_with(full, [part(empty, regions(np.arange(9)))], 50, x, v)
    assert found.code == alone.code == 0
    np.testing.assert_allclose(found.acc, alone.acc, rtol=1e-2)
    assert not forces_with(empty, [], 50, x, v).acc.any()
    x[3] = np.nan
    found = forces_with(empty, of_full, 50, x, v)
    assert found.code == CODE["G6X_E_I_NAN"]
    assert_nan(found.acc[3])
    assert np.isfinite(found.acc[4]).all()
    order = np.empty(N, np.int32)
    assert capi.call("g6x_tree_by_key", full, order) == N
    assert np.array_equal(order, by_key(box))
    assert capi.call("g6x_tree_by_key", empty, order) == 0


def test_what_is_wrong_has_its_code():
    box, size = whole_of(MASS, POS), np.zeros(1, np.int64)
    tree, where = opened(np.arange(N), box), regions(np.arange(N))
    argument, null, not_open = (CODE[f"G6X_E_{name}"] for name in ("ARGUMENT", "NULL", "NOT_OPEN"))
    opening, keys = [box, N, POS, None, MASS], [box, N, POS, np.zeros(N, np.uint64)]
    parts = [tree, EPS2, FMM, 5, 0.5, 0.0, len(where), where, None, 0, size]
    assert capi.call("g6x_tree_part", *parts) == 0
    boxes = [box.copy() for _ in range(5)]
    for wrong, column, value in zip(boxes, (0, 0, 6, 7, 12), (np.nan, 1e9, -1, 0, -1), strict=True):
        wrong[column] = value
    for call, good, wrong in [
        ("g6x_tree_open_in", opening, [(0, None, null), (3, VEL, argument)]),
        *((call, good, [(0, bad, argument)]) for bad in boxes
          for call, good in (("g6x_tree_open_in", opening), ("g6x_tree_keys", keys))),
        ("g6x_tree_keys", keys, [(1, -1, argument), (2, None, null)]),
        ("g6x_tree_by_key", [tree, None], [(0, 12345, not_open), (1, None, null)]),
        ("g6x_tree_part", parts, [
            (0, 12345, not_open), (1, -1.0, argument), (1, np.nan, argument), (2, 9, argument),
            (3, 7, argument), (4, 0.0, argument), (5, np.nan, argument), (6, -1, argument),
            (7, None, null), (10, None, null)]),
    ]:  # fmt: skip
        for column, value, code in wrong:
            assert capi.call(call, *good[:column], value, *good[column + 1 :]) == code
    other = part(tree, where)
    broken, moving = other.copy(), other.copy()
    broken[3] += 16  # bytes
    moving[2] = 1
    for parts, setting in (([broken], {}), ([moving], {}), ([other], {"theta": 0.0}),
                           ([other], {"method": FMM + CODE["G6X_TREE_MOMENTUM"]})):  # fmt: skip
        found = forces_with(tree, parts, N, **setting)
        assert found.code == argument
        assert_nan(found.acc)
    found = capi.Force.blank(N)
    args = [tree, 1, np.zeros(1, np.int64), N, None, None, None, EPS2, FMM, 5, 0.5, None, 0.0]
    assert capi.call("g6x_tree_forces_with", *args, found.acc, None, found.pot, None) == null


def test_a_box_that_does_not_resolve_the_particles_is_refused():
    pos = POS.copy()
    pos[:100] = 1e9 + POS[:100] * 1e-4
    arrays = pos, None, MASS
    assert capi.call("g6x_tree_open_in", whole_of(MASS, pos), N, *arrays) == CODE["G6X_E_RANGE"]
    many = capi.call("g6x_tree_open", N, *arrays)
    size, order = np.zeros(1, np.int64), np.empty(N, np.int32)
    args = EPS2, FMM, 5, 0.5, 0.0, 1, np.zeros((1, 7)), None, 0, size
    assert capi.call("g6x_tree_part", many, *args) == CODE["G6X_E_RANGE"]
    assert capi.call("g6x_tree_by_key", many, order) == CODE["G6X_E_RANGE"]
