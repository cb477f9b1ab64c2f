"""The tree's kernels on the stand-in for a card: the same forces as the tree on the CPU."""

import re
import subprocess

import numpy as np
import pytest

import capi
import samples
from cards import FLAGS, METHODS, WARPS_AND_BLOCKS, relative, rows, shortened
from grape6py import Tree, reference
from grape6py.cuda.tree import build, settings
from grape6py.cuda.tree import octree as card_tree
from variants import run as compile_with


def sums(tree_card, pos, mass, theta=0.6, order=5, eps=0.01, **targets):
    """Forces by the kernels."""
    tree = card_tree.Octree(tree_card, np.ascontiguousarray(pos), np.ascontiguousarray(mass))
    acc, pot, jerk, counts = tree.forces(settings.Setting(theta, order, eps * eps), **targets)
    assert jerk is None
    return acc, pot, counts


@WARPS_AND_BLOCKS
@pytest.mark.parametrize("order", METHODS)
@pytest.mark.parametrize("sample", ["plummer", "lattice", "far_off"])
def test_forces_are_those_of_the_cpu(tree_card, sample, order):
    mass, pos = samples.SAMPLES[sample](1500, 3)[:2]
    acc, pot, _ = sums(tree_card, pos, mass, order=order)
    with Tree(pos, mass) as tree:
        right = tree.forces(eps=0.01, theta=0.6, order=order or 5, method=METHODS[order])
    # but for the few wide groups: see below
    assert np.quantile(relative(acc, right.acc), 0.85) < 3e-6
    assert np.quantile(np.abs(pot / right.pot - 1), 0.85) < 1e-6


@pytest.mark.parametrize("theta", [1e-3, 0.6])
@pytest.mark.parametrize("sample", ["clustered", "disk", "coincident"])
def test_errors_are_those_of_the_cpu(tree_card, sample, theta):
    """Groups that are wide beside what is in them are summed in parts here, in double there: what
    is far from a single target may be nearer, in units of its size, than from a group."""
    mass, pos = samples.SAMPLES[sample](1500, 3)[:2]
    exact = reference.direct_sum(mass, pos, np.zeros_like(pos), eps2=1e-4).acc
    acc, _, _ = sums(tree_card, pos, mass, theta=theta)
    with Tree(pos, mass) as tree:
        right = tree.forces(eps=0.01, theta=theta, order=5).acc
    for share in (0.5, 0.99):
        error, usual = (np.quantile(relative(found, exact), share) for found in (acc, right))
        assert error < 6 * usual + 2e-6


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1023, 1024, 1025])
def test_any_number_of_particles(tree_card, n):
    mass, pos = samples.plummer(n, 5)
    acc, pot, _ = sums(tree_card, pos, mass, theta=1e-3)
    right = reference.direct_sum(mass, pos, np.zeros_like(pos), eps2=1e-4)
    assert np.abs(acc - right.acc).max() <= 1e-5 * max(rows(right.acc).max(), 1e-30)
    assert np.abs(pot - right.pot).max() <= 1e-5 * np.abs(right.pot).max()


def test_long_groups_are_taken_in_parts_whose_lists_grow(tree_card, monkeypatch):
    mass, pos = samples.plummer(1500, 9)
    right = sums(tree_card, pos, mass, theta=0.3)
    shortened(monkeypatch, tree_card, [8, 0, 8], [4, 4, 4], [8, 8, 8])
    tree_card.launched.clear()
    acc, _, _ = sums(tree_card, pos, mass, theta=0.3)
    assert tree_card.launched.count("tree_walk_hypers") > 1
    assert tree_card.launched.count("tree_near_singles") > 1
    assert np.median(relative(acc, right[0])) < 1e-3
    assert relative(acc, right[0]).max() < 1e-2


@WARPS_AND_BLOCKS
def test_single_targets_whose_lists_are_long_are_summed_and_counted_once(tree_card, monkeypatch):
    mass, pos = samples.plummer(1500, 9)
    found = []
    for longest in [64, 64, 8], [480, 480, 60]:  # of few of the targets, and of many: of no eight
        shortened(monkeypatch, tree_card, [8, 0, 8], [4, 4, 4], longest)
        found.append(sums(tree_card, pos, mass, theta=0.3))
    (first, _, once), (again, _, counts) = found
    assert np.array_equal(first, again)
    assert counts == once


@WARPS_AND_BLOCKS
def test_how_long_lists_are_at_first_changes_no_digit(tree_card, monkeypatch):
    mass, pos = samples.SAMPLES["clustered"](5000, 9)
    right = sums(tree_card, pos, mass)
    longest = settings.Rooms.of(settings.Setting(0.6)).longest
    monkeypatch.setattr(card_tree, "LEAST_SLOTS", 3)
    monkeypatch.setattr(card_tree, "LEAST_LISTS", 16)
    monkeypatch.setattr(card_tree, "SLOT_LISTS", 16)
    monkeypatch.setattr(card_tree, "LIST_BYTES", 0)
    shortened(monkeypatch, tree_card, [8, 0, 8], [4, 4, 4], longest)
    tree_card.launched.clear()
    short = sums(tree_card, pos, mass)
    assert tree_card.launched.count("tree_groups_of_kind") > 50
    (rooms,) = tree_card.rooms.values()
    assert rooms.groups == [8, 8, 8]
    lengthened = sums(tree_card, pos, mass)
    for again in short, lengthened:
        assert all(np.array_equal(a, b) for a, b in zip(again[:2], right[:2], strict=True))
        assert again[2] == right[2]


def test_lists_that_another_thread_lengthens_meanwhile_are_not_taken_for_long_ones(
    tree_card, monkeypatch
):
    mass, pos = samples.plummer(1500, 9)
    right = sums(tree_card, pos, mass)
    shortened(monkeypatch, tree_card, [8, 0, 8], [4000] * 3, [4000] * 3)
    launch = tree_card.launch

    def meanwhile(name, *rest):
        launch(name, *rest)
        if name == "tree_walk_supers":
            (rooms,) = tree_card.rooms.values()
            rooms.large = [9000, 0, 9000]

    monkeypatch.setattr(tree_card, "launch", meanwhile)
    found = sums(tree_card, pos, mass)
    assert np.array_equal(found[0], right[0])


@pytest.mark.parametrize(("count", "made"), [(1200, 3), (320, 1)])  # of each other kind; of groups
def test_lists_of_tiny_angles_are_those_of_groups(tree_card, count, made):
    """Where most of them are long, parts of groups would cost many times as much."""
    mass, pos = samples.plummer(9000, 3)
    middle = np.ascontiguousarray(pos[np.argsort(rows(pos))[:count]])
    sums(tree_card, pos, mass, theta=0.1, targets=middle)
    assert tree_card.launched.count("tree_groups_of_kind") == made


def test_targets_of_their_own(tree_card):
    mass, pos = samples.plummer(1500, 11)
    choice = np.random.default_rng(1).permutation(1500)[:300].astype(np.int32)
    targets = np.ascontiguousarray(pos[choice])
    all_of_them, _, _ = sums(tree_card, pos, mass, theta=1e-3)
    acc, _, _ = sums(tree_card, pos, mass, theta=1e-3, targets=targets, self_index=choice)
    assert relative(acc, all_of_them[choice]).max() < 3e-5
    acc, pot, _ = sums(tree_card, pos, mass, theta=1e-3, targets=targets + 100.0)
    away = rows(targets + 100.0 - (mass[:, None] * pos).sum(0) / mass.sum())
    assert np.allclose(pot, -mass.sum() / away, rtol=1e-3)
    assert sums(tree_card, pos, mass, targets=np.empty((0, 3)))[0].shape == (0, 3)


def test_pairs_at_one_place_and_very_close_ones_without_softening(tree_card):
    mass, pos = samples.plummer(500, 13)
    pos[1], pos[3] = pos[0], pos[2]
    pos[3, 0] += 5e-12
    acc, _, counts = sums(tree_card, pos, mass, theta=1e-3, eps=0.0)
    assert counts.coincidences == 2
    apart = pos[3] - pos[2]
    assert np.isclose(acc[2, 0], mass[3] / apart[0] ** 2, rtol=1e-4)
    assert np.isfinite(acc).all()


def test_no_close_pair_is_forgotten_for_want_of_room(tree_card, monkeypatch):
    monkeypatch.setattr(card_tree, "AGAIN_ROOM", 8)
    mass, pos = samples.plummer(400, 19)
    pos[200:] = pos[:200]
    pos[200:, 1] += 5e-12
    acc, _, _ = sums(tree_card, pos, mass, theta=1e-3, eps=0.0)
    apart = pos[200:, 1] - pos[:200, 1]
    near = apart > 0  # where doubles tell them apart
    assert near.sum() > 100
    assert np.allclose(acc[:200, 1][near], (mass[200:] / apart**2)[near], rtol=1e-3)


def test_no_target_is_forgotten_where_most_are_summed_again(tree_card, monkeypatch):
    """Single targets: some are found at once, so many as half the room, the others later."""
    mass, pos = samples.plummer(1500, 9)
    shortened(monkeypatch, tree_card, [3000, 0, 3000], [4, 4, 4], [8, 8, 8])
    right = sums(tree_card, pos, mass, theta=0.3)
    for name, few in ("AGAIN_ROOM", 1), ("LEAST_SLOTS", 100), ("SLOT_LISTS", 0), ("LIST_BYTES", 0):
        monkeypatch.setattr(card_tree, name, few)
    found = sums(tree_card, pos, mass, theta=0.3)
    assert np.array_equal(found[0], right[0])
    assert found[2] == right[2]


def test_a_bound_in_shares_of_the_last_acceleration(tree_card):
    mass, pos = samples.plummer(1500, 15)
    exact = sums(tree_card, pos, mass, theta=1e-3)[0]
    last = rows(exact)
    tree = card_tree.Octree(tree_card, np.ascontiguousarray(pos), mass)
    errors = []
    for bound in (1e-2, 1e-4):
        setting = settings.Setting(0.8, 5, 1e-4, bound)
        errors.append(np.median(relative(tree.forces(setting, last_acc=last)[0], exact)))
    assert errors[1] < errors[0] / 2


def test_structures_have_the_sizes_that_python_takes(tree_card, shared_folder, tmp_path):
    names = {"tree_cell", "tree_moments", "tree_far", "tree_place", "tree_group", "tree_box",
             "tree_opening", "tree_rates", "tree_motion", "tree_flow", "tree_status",
             "tree_card_job", "tree_search_job"}  # fmt: skip
    program = tmp_path / "sizes.cc"
    prints = "".join(f'printf("{name} %zu\\n", sizeof(struct {name}));' for name in names)
    program.write_text(f'#include "tree/tree.cu"\n#include <stdio.h>\nint main() {{ {prints} }}\n')
    paths = [
        f"-I{capi.ROOT / 'csrc'}",
        f"-I{capi.ROOT / 'grape6py/cuda/kernels'}",
        f"-I{capi.TESTS / 'c'}",
    ]
    command = ["g++", *FLAGS, '-DGRAPE6_ON_CPU="card.h"', "-DMODE=2", "-DCARD_MODE=tree", *paths]
    made = shared_folder / "card" / "card.o"
    compile_with([*command, program, made, "-o", tmp_path / "sizes"])
    told = subprocess.run([tmp_path / "sizes"], check=True, capture_output=True, text=True).stdout
    sizes = {n: int(size) for n, size in re.findall(r"(\w+) (\d+)", told)}
    assert sizes == {name: build.ffi.sizeof(f"struct {name}") for name in names}


@pytest.mark.parametrize("n", [4, 40])
def test_only_targets_count_pairs_at_one_place(tree_card, n):
    pos = np.repeat([[1.0, 2, 3], [0, 0, 0]], [n, 3], axis=0)
    counts = sums(tree_card, pos, np.ones(n + 3), eps=0.0)[2]
    assert counts.coincidences == n * (n - 1) + 6


@pytest.mark.parametrize("order", [0, 5])
@pytest.mark.parametrize("eps", [1e-25, 1e-13, 1e-9])
def test_softening_far_below_what_single_precision_holds(tree_card, eps, order):
    mass, pos = samples.plummer(300, 23)
    pos[1], pos[3] = pos[0], pos[2] + [2 * eps, 0, 0]
    acc, pot, counts = sums(tree_card, pos, mass, 1e-3, order, eps)
    exact = reference.direct_sum(mass, pos, np.zeros_like(pos), eps2=eps * eps)
    assert np.allclose(pot, exact.pot, rtol=1e-5)
    assert relative(acc, exact.acc).max() < 1e-4
    assert counts.coincidences == 0


def test_forces_do_not_depend_on_those_before(tree_card, monkeypatch):
    mass, pos = samples.plummer(1500, 25)
    at = np.ascontiguousarray(pos[:700] * 1.1)
    shortened(monkeypatch, tree_card, [8, 0, 8], [40, 4, 4], [99] * 3)
    tree = card_tree.Octree(tree_card, np.ascontiguousarray(pos), mass)
    setting = settings.Setting(0.5, 5, 1e-4)
    first = tree.forces(setting, at)[0]
    own = tree.forces(setting)[0]
    tree.forces(settings.Setting(0.2, 6, 1e-4))
    assert np.array_equal(tree.forces(setting, at)[0], first)
    assert np.array_equal(tree.forces(setting)[0], own)
    fresh = card_tree.Octree(tree_card, np.ascontiguousarray(pos), mass)
    assert np.array_equal(fresh.forces(setting)[0], own)


@pytest.mark.parametrize("eps", [0.0, 1e-6, 0.01])
def test_targets_at_the_places_of_particles_are_summed_as_groups(tree_card, eps):
    mass, pos = samples.plummer(1500, 27)
    own = sums(tree_card, pos, mass, theta=0.5, eps=eps)
    parts = tree_card.launched.count("tree_groups_of_kind")
    tree_card.launched.clear()
    foreign = sums(tree_card, pos, mass, theta=0.5, eps=eps, targets=np.ascontiguousarray(pos))
    assert np.median(relative(foreign[0], own[0])) < 1e-6
    assert relative(foreign[0], own[0]).max() < 1e-5
    assert tree_card.launched.count("tree_groups_of_kind") == parts
