"""Many walks on a CUDA device: what only a device does; test_walks*.py have the rest."""

import numpy as np
import pytest

import capi
from fake_device import fail
from on_gpu import on_gpu
from particles import cloud
from walking import Flight, by_copies, by_numbers, by_pointers, expected, random_walks

pytestmark = pytest.mark.backends("cuda")
FORMS = pytest.mark.parametrize("form", [by_numbers, by_copies])
LOST = capi.CONSTANTS["G6X_E_DEVICE_LOST"]


@pytest.fixture
def board(new_session):
    return new_session()


@pytest.fixture
def job():
    return random_walks(sizes=(300, 40, 700), eps2=1e-6)


@FORMS
def test_calls_of_many_pieces(board, form):
    """More walks than the buffers hold at a time have the bits of small calls."""
    part = random_walks(seed=0, sizes=(3, 5), n=40000, lengths=(20000, 20000))
    job = part.take([k % 2 for k in range(400)])
    found, alone = form(board, job), form(board, part)
    assert found.code == alone.code == 0
    for w in range(400):
        assert found.bits(job.targets(w)) == alone.bits(part.targets(w % 2))


def test_bits_do_not_depend_on_the_order_of_the_blocks(board, job, monkeypatch):
    forwards = by_numbers(board, job).bits()
    monkeypatch.setenv("GRAPE6_TEST_FAKE_GPU_ORDER", "backwards")
    assert by_numbers(board, job).bits() == forwards


def test_a_force_call_in_progress_is_not_disturbed(board, job):
    source = cloud(600)
    board.put_cloud(source)
    args = 600, source.x[:100], source.v[:100], source.index[:100]
    plain = board.force(*args).bits()
    board.first(*args)
    board.set_int("G6X_PRECISION", capi.MODES["double"])
    walks = by_numbers(board, job)
    acc, _, size = expected(job)
    assert (np.abs(walks.acc - acc).max(1) <= 1e-13 * size).all()
    assert board.last(*args).bits() == plain


@FORMS
@pytest.mark.parametrize("call", [1, 2, 3, 5])
def test_row02_a_gpu_that_fails(board, job, form, call):
    fail(call)
    found = form(board, job)
    assert found.code == LOST
    assert np.isnan(found.acc).all()


@pytest.mark.backends("auto")
@FORMS
@pytest.mark.parametrize("call", [1, 2, 3, 5])
def test_auto_row02_goes_on_with_the_cpu(board, job, form, call):
    fail(call)
    found = form(board, job)
    assert found.code == 0
    assert found.bits() == form(board, job).bits()
    assert not on_gpu(board)


@pytest.mark.backends("auto")
def test_row02_a_gpu_that_fails_between_dispatch_and_retrieve(board, job):
    flights = [Flight(board, k, job) for k in range(2)]
    fail(1)
    for flight in flights:
        found = flight.retrieve()
        assert found.code == LOST
        assert np.isnan(found.acc).all()
        assert np.isnan(found.pot).all()
    assert by_pointers(board, job).code == 0
