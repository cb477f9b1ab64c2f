"""Lists of particles at rest on the CUDA backend: how they travel, and
that nothing is lost on the way. What they give is in test_lists_at_rest.py."""

import numpy as np
import pytest

import capi
from fake_device import driver, fail
from on_gpu import on_gpu
from test_lists_at_rest import Board

pytestmark = pytest.mark.backends("cuda")
SENT_AT_REST = 32768  # csrc/cuda/cuda.h


def force(board, nj, ni=5):
    x = np.arange(3.0 * ni).reshape(ni, 3)
    found = board.session.force(nj, x, None, np.arange(ni), 1e-2)
    assert found.code == 0, board.session.error()
    return found


def calls_of(board, nj, ni=5):
    """Letters of the driver's calls in a force call, without its looking for the end."""
    driver().fake_gpu_calls()
    force(board, nj, ni)
    return driver().fake_gpu_calls().decode().replace("q", "")


def test_a_list_needs_no_launch_of_its_own(new_session):
    """The prediction takes it from pinned memory: two launches, as for one of a list before."""
    board = Board(new_session, 1)
    board.list(0, 1500)
    calls_of(board, 1500)  # all that there is goes to the GPU at first
    for n in (1500, 1300):
        board.list(0, n)
        assert calls_of(board, n) == "ll"
        board.check(n)
        assert calls_of(board, n) == "l"


def test_what_a_call_does_not_reach_is_sent_as_well(new_session):
    board = Board(new_session, 2)
    board.list(0, 3000)
    force(board, 3000)
    board.list(0, 3000)
    force(board, 700)
    board.check(3000)
    board.list(0, 2900)
    assert board.session.first(2900, *np.zeros((2, 0, 3)), np.zeros(0, np.int32)) == 0  # no target
    board.list(1000, 50)
    board.check(3000)


@pytest.mark.full
def test_a_list_too_long_for_one_launch(new_session):
    board, n = Board(new_session, 3), SENT_AT_REST + 700
    board.list(0, n)
    force(board, n)
    board.list(0, n)
    board.check(n, 2)


def test_prediction_on_the_host():
    script = """
import itertools
import test_cuda_lists
numbers = itertools.count()
board = test_cuda_lists.Board(lambda **options: Session(next(numbers), **options), 4)
for n in (1200, 1100):
    board.list(0, n)
    print(test_cuda_lists.calls_of(board, n))
    board.check(n)
"""
    calls = capi.run_python(script, GRAPE6_PREDICT="host").stdout.split()
    assert calls == ["ll", "ll"]  # what is sent is waited for by queries, which do not count


@pytest.mark.backends("auto")
@pytest.mark.parametrize("n", range(1, 7))
def test_auto_a_gpu_that_fails_loses_no_particle(new_session, n):
    board = Board(new_session, 5)
    assert on_gpu(board.session)
    board.list(0, 1400)
    force(board, 1400)
    board.list(0, 1200)
    fail(n)
    found = force(board, 1300)
    fail(0)
    expected = board.twin()
    x = np.arange(15.0).reshape(5, 3)
    right = expected.force(1300, x, None, np.arange(5), 1e-2)
    assert found.acc == pytest.approx(right.acc, rel=1e-4)
    assert found.pot == pytest.approx(right.pot, rel=1e-5)
    assert capi.call("g6x_get_scale", board.session.cluster, 1300, np.zeros(3, np.int32)) == 0
