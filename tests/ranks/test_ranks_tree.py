"""``Tree(comm=...)`` over MPI: forces have the errors of one tree, an error of one rank is one of
all. tests/tree has the rest, on threads in place of ranks."""

import pytest

import capi
import on_ranks

PROGRAM = capi.TESTS / "ranks" / "tree_programs.py"


def said(ranks, name, *arguments):
    return on_ranks.said(ranks, name, *arguments, program=PROGRAM)


@pytest.mark.full
@pytest.mark.parametrize(
    ("ranks", "name"), [(1, "plummer"), (2, "both signs"), (3, "few places"), (5, "clustered")]
)
def test_errors_are_those_of_one_tree(ranks, name):
    *found, near = said(ranks, "forces", name, 4200)
    assert len(found) == 3
    assert near["near"]
    for row in found:
        by_accuracy = "accuracy" in row["setting"]
        if name == "both signs" and by_accuracy:  # forces nearly cancel: samples differ much
            continue
        for of, most in ("acc", 1.1), ("jerk", 1.1), ("pot", 1.2):
            assert row[of] < (1.5 if by_accuracy else most), row
        assert row["acc tail"] < (2.0 if by_accuracy else 1.25), row
        assert row["net"] < (1e-14 if by_accuracy else 1e-4)


@pytest.mark.full
def test_an_error_of_one_rank_is_one_of_all():
    (found,) = said(3, "wrong")
    wanted = ["pos[0]", "THREADS", "whether vel and work are given differs", "theta = 7",
              "theta differs between the ranks: 0.", "targets[0]", "self_index[0]", "k differs",
              "methods differ", "whether targets", "different calls"]  # fmt: skip
    for k, word in enumerate(wanted):
        texts = [row[k] for row in found["texts"]]
        assert all("Error: " in text and word in text for text in texts), texts
