"""Many walks on a graphics card: the tests of the CPU again, with the kernels run on the CPU in
processes of their own, and what only a card does."""

import pytest

import capi
from cards import pytest_on

PRELUDE = """
from walking import *
session = Session(1)
job = random_walks(sizes=(300, 40, 700), eps2=1e-6)
"""


@pytest.mark.parametrize("name", ["walks_on_card", "test_walks", "test_walks_faults"])
def test_the_walks_are_right_on_a_card(card, name):
    chosen = "not base and not avx512"
    text, outcomes = pytest_on(card, f"tests/{name}.py", "-k", chosen)
    assert outcomes, text
    assert set(outcomes.values()) == {"PASSED"}, text[-10000:]


def on_card(card, program, **env):
    env = {"GRAPE6_BACKEND": "cuda", **env}
    return capi.run_python(PRELUDE + program, GRAPE6_TEST_CARD=str(card), **env)


def test_calls_of_many_pieces(card):
    """More walks than the buffers hold at a time, in both forms, have the bits of small calls."""
    on_card(card, """
parts = [random_walks(seed=k, sizes=(3, 5), n=40000, lengths=(20000, 20000)) for k in range(6)]
job = parts[0].take([k % 2 for k in range(400)])
for form in (by_numbers, by_copies):
    found, alone = form(session, job), form(session, parts[0])
    assert found.code == alone.code == 0
    for w in range(400):
        assert found.bits(job.targets(w)) == alone.bits(parts[0].targets(w % 2))
""")  # fmt: skip


def test_bits_do_not_depend_on_the_order_of_the_blocks(card):
    program = "import hashlib; print(hashlib.sha256(by_numbers(session, job).bits()).hexdigest())"
    forwards = on_card(card, program).stdout
    assert on_card(card, program, GRAPE6_TEST_CARD_ORDER="backwards").stdout == forwards


def test_a_force_call_in_progress_is_not_disturbed(card):
    on_card(card, """
source = cloud(600)
session.put_cloud(source)
args = 600, source.x[:100], source.v[:100], source.index[:100]
plain = session.force(*args).bits()
session.first(*args)
session.set_int("G6X_PRECISION", MODES["double"])
walks = by_numbers(session, job)
acc, pot, size = expected(job)
assert (np.abs(walks.acc - acc).max(1) <= 1e-13 * size).all()
assert session.last(*args).bits() == plain
""")  # fmt: skip


@pytest.mark.parametrize("form", ["by_numbers", "by_copies"])
@pytest.mark.parametrize("call", [1, 2, 3, 5])
def test_row02_a_card_that_fails(card, form, call):
    """`auto` goes on with the CPU; whoever wanted the card gets NaN and the code."""
    program = f"""
import ctypes
ctypes.CDLL({str(card)!r}).card_fail({call}, 719, 1)
found = {form}(session, job)
"""
    on_card(card, program + "assert found.code == -2 and np.isnan(found.acc).all()",
            GRAPE6_LOG="none")  # fmt: skip
    same = f"assert found.code == 0 and found.bits() == {form}(session, job).bits()"
    on_card(card, program + same + "\nassert text('g6x_backend', 1)[1].startswith('cpu')",
            GRAPE6_BACKEND="auto", GRAPE6_LOG="none")  # fmt: skip


def test_row02_a_card_that_fails_between_dispatch_and_retrieve(card):
    on_card(card, f"""
import ctypes
flights = [Flight(session, k, job) for k in range(2)]
ctypes.CDLL({str(card)!r}).card_fail(1, 719, 1)
for flight in flights:
    found = flight.retrieve()
    assert found.code == -2 and np.isnan(found.acc).all() and np.isnan(found.pot).all()
assert by_pointers(session, job).code == 0
""", GRAPE6_BACKEND="auto", GRAPE6_LOG="none")  # fmt: skip
