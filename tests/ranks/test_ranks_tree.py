"""``Tree(comm=...)`` over MPI: forces have the errors of one tree, an error of one rank is one of
all. tests/tree has the rest, on threads in place of ranks."""

import pytest

import capi
import on_ranks

PROGRAM = capi.TESTS / "ranks" / "tree_programs.py"


@pytest.mark.full
@pytest.mark.parametrize(("n", "kinds"), [(4200, ""), (1200, "cpu gpu gpu")])
def test_errors_are_those_of_one_tree(fake_gpu, n, kinds):
    """On GPUs, the stand-in, or CPUs; the last gives no particles. A GPU rounds long sums more."""
    environment = {"GRAPE6_TRANSFERS": "host", "KINDS": kinds, "FAKE_GPU": str(fake_gpu)}
    *found, near = on_ranks.said(3, "forces", "plummer", n, program=PROGRAM,
                                 environment=environment)  # fmt: skip
    assert len(found) == 3
    assert near["near"]
    for row in found:
        by_accuracy = "accuracy" in row["setting"]
        assert row["net"] < (1e-14 if by_accuracy else 1e-4)
        for of, most in ("acc", 1.1), ("jerk", 1.1), ("pot", 1.2):
            assert row[of] < ((2 if kinds else 1.5) if by_accuracy else 1.2 if kinds else most), row
        assert kinds or row["acc tail"] < (2.0 if by_accuracy else 1.25), row


@pytest.mark.full
def test_an_error_of_one_rank_is_one_of_all():
    (found,) = on_ranks.said(3, "wrong", program=PROGRAM)
    wanted = ["pos[0]", "THREADS", "whether vel and work are given differs", "theta = 7",
              "theta differs between the ranks: 0.", "targets[0]", "self_index[0]", "k differs",
              "methods differ", "whether targets", "different calls"]  # fmt: skip
    for k, word in enumerate(wanted):
        texts = [row[k] for row in found["texts"]]
        assert all("Error: " in text and word in text for text in texts), texts
