"""The tree's kernels on the stand-in for a card: the same forces as the tree on the CPU."""

import ctypes
import re
import subprocess

import numpy as np
import pytest

import capi
import samples
import tools
from cards import FLAGS
from grape6py import Tree, reference
from grape6py.cuda import tree as card_tree
from grape6py.errors import NotFiniteError
from once import made_once
from variants import run as compile_with


def build(folder):
    """Compiles the tree's kernels for the CPU, and a program that tells the sizes of structures."""
    folder.mkdir(parents=True, exist_ok=True)
    kernels, here = capi.ROOT / "grape6py/cuda", capi.TESTS / "c"
    paths = [f"-I{capi.ROOT / 'csrc'}", f"-I{kernels}", f"-I{here}"]
    command = [
        tools.need("g++"),
        "-x",
        "c++",
        *FLAGS,
        '-DGRAPE6_ON_CPU="card.h"',
        "-DMODE=2",
        *paths,
    ]
    compile_with([*command, "-c", here / "card.cc", "-o", folder / "card.o"])
    compile_with([*command, "-DCARD_MODE=tree", "-c", kernels / "tree.cu", "-o", folder / "tree.o"])
    compile_with([tools.need("g++"), "-shared", folder / "card.o", folder / "tree.o", "-o",
                  folder / "libtree.so"])  # fmt: skip


class StandIn:
    """A card of NumPy's arrays whose kernels are those of libtree.so."""

    xp = np

    def __init__(self, path):
        self._library = ctypes.CDLL(str(path))
        self.launched = []

    def launch(self, name, blocks, threads, job):
        self.launched.append(name)
        kernel = ctypes.cast(getattr(self._library, f"{name}_tree"), ctypes.c_void_p)
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(job))
        assert not self._library.card_launch(
            kernel, blocks, 1, 1, threads, 1, 1, 0, None, arguments, None
        )

    def address(self, array):
        return array.ctypes.data

    def sort(self, keys):
        return np.argsort(keys, kind="stable")

    def read(self, array):
        return array.tobytes()


@pytest.fixture(scope="session")
def card(shared_folder):
    return StandIn(made_once(shared_folder / "card-tree", build) / "libtree.so")


@pytest.fixture(autouse=True)
def _rooms(monkeypatch):
    """Lists begin as short as ever in each test."""
    monkeypatch.setattr(card_tree.CardTree, "_large", [2048, 0, 2048])
    monkeypatch.setattr(card_tree.CardTree, "_parts", [99] * 3)
    monkeypatch.setattr(card_tree.CardTree, "_groups", {})


def sums(card, pos, mass, theta=0.6, order=5, eps=0.01, **targets):
    """Forces by the kernels."""
    tree = card_tree.CardTree(card, np.ascontiguousarray(pos), np.ascontiguousarray(mass))
    return tree.forces(card_tree.Setting(theta, order, eps * eps), **targets)


def rows(vectors):
    return np.linalg.norm(vectors, axis=-1)


def relative(found, right):
    return rows(found - right) / rows(right)


METHODS = {0: "bh", 2: "fmm", 3: "fmm", 4: "fmm", 5: "fmm", 6: "fmm"}


@pytest.mark.parametrize("order", METHODS)
@pytest.mark.parametrize("sample", ["plummer", "lattice", "far_off"])
def test_forces_are_those_of_the_cpu(card, sample, order):
    mass, pos = samples.SAMPLES[sample](1500, 3)[:2]
    acc, pot, _ = sums(card, pos, mass, order=order)
    with Tree(pos, mass) as tree:
        right = tree.forces(eps=0.01, theta=0.6, order=order or 5, method=METHODS[order])
    # but for the few wide groups: see below
    assert np.quantile(relative(acc, right.acc), 0.85) < 3e-6
    assert np.quantile(np.abs(pot / right.pot - 1), 0.85) < 1e-6


@pytest.mark.parametrize("theta", [1e-3, 0.6])
@pytest.mark.parametrize("sample", ["clustered", "disk", "coincident"])
def test_errors_are_those_of_the_cpu(card, sample, theta):
    """Groups that are wide beside what is in them are summed in parts here, in double there: what
    is far from a single target may be nearer, in units of its size, than from a group."""
    mass, pos = samples.SAMPLES[sample](1500, 3)[:2]
    exact = reference.direct_sum(mass, pos, np.zeros_like(pos), eps2=1e-4).acc
    acc, _, _ = sums(card, pos, mass, theta=theta)
    with Tree(pos, mass) as tree:
        right = tree.forces(eps=0.01, theta=theta, order=5).acc
    for share in (0.5, 0.99):
        error, usual = (np.quantile(relative(found, exact), share) for found in (acc, right))
        assert error < 6 * usual + 2e-6


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1023, 1024, 1025])
def test_any_number_of_particles(card, n):
    mass, pos = samples.plummer(n, 5)
    acc, pot, _ = sums(card, pos, mass, theta=1e-3)
    right = reference.direct_sum(mass, pos, np.zeros_like(pos), eps2=1e-4)
    assert np.abs(acc - right.acc).max() <= 1e-5 * max(rows(right.acc).max(), 1e-30)
    assert np.abs(pot - right.pot).max() <= 1e-5 * np.abs(right.pot).max()


def test_repeated_runs_have_equal_bits(card):
    mass, pos = samples.plummer(2000, 7)
    first, again = (sums(card, pos, mass) for _ in range(2))
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])


def test_lists_grow_and_long_ones_are_taken_in_parts(card, monkeypatch):
    mass, pos = samples.plummer(1500, 9)
    right = sums(card, pos, mass, theta=0.3)
    for name, short in {"_large": [8, 0, 8], "_parts": [8, 8, 8], "_groups": {}}.items():
        monkeypatch.setattr(card_tree.CardTree, name, short)
    monkeypatch.setattr(card_tree.CardTree, "_first", ([], [6000, 4, 4]))
    card.launched.clear()
    acc, _, _ = sums(card, pos, mass, theta=0.3)
    assert card.launched.count("tree_walk_hypers") > 1
    assert card.launched.count("tree_near_singles") > 1
    assert np.median(relative(acc, right[0])) < 1e-3
    assert relative(acc, right[0]).max() < 1e-2


def test_targets_of_their_own(card):
    mass, pos = samples.plummer(1500, 11)
    choice = np.random.default_rng(1).permutation(1500)[:300].astype(np.int32)
    targets = np.ascontiguousarray(pos[choice])
    all_of_them, _, _ = sums(card, pos, mass, theta=1e-3)
    acc, _, _ = sums(card, pos, mass, theta=1e-3, targets=targets, self_index=choice)
    assert relative(acc, all_of_them[choice]).max() < 3e-5
    acc, pot, _ = sums(card, pos, mass, theta=1e-3, targets=targets + 100.0)
    away = rows(targets + 100.0 - (mass[:, None] * pos).sum(0) / mass.sum())
    assert np.allclose(pot, -mass.sum() / away, rtol=1e-3)
    assert sums(card, pos, mass, targets=np.empty((0, 3)))[0].shape == (0, 3)


def test_pairs_at_one_place_and_very_close_ones_without_softening(card):
    mass, pos = samples.plummer(500, 13)
    pos[1], pos[3] = pos[0], pos[2]
    pos[3, 0] += 5e-12
    acc, _, counts = sums(card, pos, mass, theta=1e-3, eps=0.0)
    assert counts.coincidences == 2
    apart = pos[3] - pos[2]
    assert np.isclose(acc[2, 0], mass[3] / apart[0] ** 2, rtol=1e-4)
    assert np.isfinite(acc).all()


def test_no_close_pair_is_forgotten_for_want_of_room(card, monkeypatch):
    monkeypatch.setattr(card_tree, "PART_ROOM", 8)
    mass, pos = samples.plummer(400, 19)
    pos[200:] = pos[:200]
    pos[200:, 1] += 5e-12
    acc, _, _ = sums(card, pos, mass, theta=1e-3, eps=0.0)
    apart = pos[200:, 1] - pos[:200, 1]
    near = apart > 0  # where doubles tell them apart
    assert near.sum() > 100
    assert np.allclose(acc[:200, 1][near], (mass[200:] / apart**2)[near], rtol=1e-3)


def test_a_bound_in_shares_of_the_last_acceleration(card):
    mass, pos = samples.plummer(1500, 15)
    exact = sums(card, pos, mass, theta=1e-3)[0]
    last = rows(exact)
    tree = card_tree.CardTree(card, np.ascontiguousarray(pos), mass)
    errors = []
    for bound in (1e-2, 1e-4):
        setting = card_tree.Setting(0.8, 5, 1e-4, bound)
        errors.append(np.median(relative(tree.forces(setting, last_acc=last)[0], exact)))
    assert errors[1] < errors[0] / 2


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_particle_that_is_not_finite_is_named(card, bad):
    mass, pos = samples.plummer(300, 17)
    pos[123, 1] = bad
    with pytest.raises(NotFiniteError, match="particle 123 "):
        sums(card, pos, mass)


def test_structures_have_the_sizes_that_python_takes(card, shared_folder, tmp_path):
    names = {"tree_cell": card_tree.CELL, "tree_moments": card_tree.MOMENTS,
             "tree_far": card_tree.FAR, "tree_place": card_tree.PLACE,
             "tree_group": card_tree.GROUP_BYTES, "tree_box": card_tree.BOX,
             "tree_opening": card_tree.OPENING, "tree_status": ctypes.sizeof(card_tree.Status),
             "tree_card_job": ctypes.sizeof(card_tree.Job)}  # fmt: skip
    program = tmp_path / "sizes.cc"
    prints = "".join(f'printf("{name} %zu\\n", sizeof(struct {name}));' for name in names)
    program.write_text('#include "base.cuh"\n#include "tree.cuh"\n#include <stdio.h>\n'
                       f"int main() {{ {prints} }}\n")  # fmt: skip
    paths = [f"-I{capi.ROOT / 'csrc'}", f"-I{capi.ROOT / 'grape6py/cuda'}", f"-I{capi.TESTS / 'c'}"]
    command = ["g++", *FLAGS, '-DGRAPE6_ON_CPU="card.h"', "-DMODE=2", "-DCARD_MODE=tree", *paths]
    made = shared_folder / "card-tree" / "card.o"
    compile_with([*command, program, made, "-o", tmp_path / "sizes"])
    told = subprocess.run([tmp_path / "sizes"], check=True, capture_output=True, text=True).stdout
    assert {n: int(size) for n, size in re.findall(r"(\w+) (\d+)", told)} == names
