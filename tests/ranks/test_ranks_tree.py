"""``Tree(comm=...)``: the forces of any number of ranks have the errors of one tree."""

import pytest

import capi
import on_ranks

PROGRAM = capi.TESTS / "ranks" / "tree_programs.py"


def said(ranks, name, *arguments):
    return on_ranks.said(ranks, name, *arguments, program=PROGRAM)


@pytest.mark.parametrize(("ranks", "shape"), [
    *((ranks, "plummer") for ranks in (1, 2, 3, 5)), (3, "clustered"), (3, "flat"), (3, "two"),
    (2, "both signs"), (3, "one place"),
])  # fmt: skip
def test_errors_are_those_of_one_tree(ranks, shape):
    found = said(ranks, "forces", shape, 3000)
    assert len(found) == 4
    for row in found:
        by_accuracy = "accuracy" in row["setting"]
        if shape == "both signs" and by_accuracy:  # forces nearly cancel: samples differ much
            continue
        for what, most in ("acc", 1.1), ("jerk", 1.1), ("pot", 1.2):
            assert row[what] < (1.5 if by_accuracy else most), row
        assert row["acc tail"] < (2.0 if by_accuracy else 1.25), row
        if "momentum" in row["setting"]:
            assert row["net"] < 1e-14
        elif not by_accuracy:
            assert row["net"] < 1e-4


@pytest.mark.parametrize("ranks", [1, 3])
def test_other_targets_and_neighbours(ranks):
    assert said(ranks, "others", 4200) == [{"ok": True}]


@pytest.mark.parametrize("scale", [1, 1e160, 1e-170])
def test_of_equally_near_ones_the_lowest_numbers_come_first(scale):
    assert said(3, "ties", scale) == [{"ok": True}]


@pytest.mark.parametrize("ranks", [1, 4])
def test_few_particles_and_none(ranks):
    assert said(ranks, "few") == [{"ok": True}]


@pytest.mark.parametrize("shape", ["plummer", "clustered", "two"])
def test_ranks_get_the_same_share_of_the_work(shape):
    (found,) = said(4, "balance", shape, 6000)
    assert found["largest"][-1] < 1.1


def test_an_error_of_one_rank_is_one_of_all():
    (found,) = said(3, "wrong")
    wanted = ["pos[0]", "THREADS", "whether vel and work are given differs", "theta = 7",
              "theta differs between the ranks: 0.", "targets[0]", "self_index[0]", "k differs",
              "methods differ", "whether targets", "different calls"]  # fmt: skip
    for k, word in enumerate(wanted):
        texts = [row[k] for row in found["texts"]]
        assert all("Error: " in text and word in text for text in texts), texts
