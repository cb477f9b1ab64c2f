"""Lists of particles at rest, written one after another from address 0 on: they take a short way
through the library, and nothing shows of it. A twin that has all particles from one call, in
descending order of their addresses, has the same bits."""

import numpy as np
import pytest

import capi

pytestmark = pytest.mark.backends("cpu cuda")

ZERO = np.zeros(3)
MOST = 1500


class Board:
    """A session, and what it should hold: by address index, time, mass and k18, j6, a2, v, x."""

    def __init__(self, new_session, seed, mode="grape"):
        self.rng = np.random.default_rng(seed)
        self.new_session, self.mode = new_session, mode
        self.session = new_session(precision=mode)
        self.slots = {}
        self.time = 0.0
        self.middle = np.zeros(3)

    def write(self, address, index, mass, x, tj=0.0, moving=None, call="g6_set_j_particle"):
        vectors, times = moving or [ZERO] * 4, [tj, 0.0]
        make = capi.by_pointer if call.endswith("_") else capi.call
        if call.endswith("mxonly"):
            times, tj = [], 0.0
        given = [] if call.endswith("mxonly") else vectors
        code = make(call, self.session.cluster, address, index, *times, mass, *given, x)
        self.slots[address] = (index, tj, mass, *vectors, x)
        assert code == (0 if np.isfinite([mass, *x]).all() else capi.CONSTANTS["G6X_E_J_NAN"])

    def place(self):
        return self.middle + self.rng.standard_normal(3) * 2.0 ** self.rng.integers(-3, 3)

    def list(self, first, n, indices=None, tj=0.0, call="g6_set_j_particle"):
        indices = np.arange(first, first + n) if indices is None else indices
        for k in range(n):
            mass = 2.0 ** self.rng.integers(-9, 2)
            self.write(first + k, int(indices[k]), mass, self.place(), tj, call=call)

    def scattered(self, n, below, moving):
        for address in self.rng.choice(below, min(n, below), replace=False):
            vectors = [self.rng.standard_normal(3) for _ in range(4)] if moving else None
            if vectors and moving < 2:
                vectors[0] = ZERO
            index = int(self.rng.integers(below))
            self.write(int(address), index, 0.5, self.place(), 0.25 * bool(moving), vectors)

    def set_time(self, time):
        self.time = time
        assert self.session.set_ti(time) == 0

    def twin(self):
        twin = self.new_session(precision=self.mode)
        addresses = np.array(sorted(self.slots, reverse=True), np.int32)
        rows = [self.slots[a] for a in addresses]
        index, tj, mass, *vectors = (np.ascontiguousarray(c) for c in zip(*rows, strict=True))
        code = capi.call("g6x_set_j_particles", twin.cluster, len(rows), addresses,
                         index.astype(np.int32), tj, None, mass, *vectors)  # fmt: skip
        assert code == 0
        twin.set_ti(self.time)
        return twin

    def check(self, nj, ni=9, nearest=True):
        """The bits of forces, lists, scale, rows and predicted particles are those of the twin."""
        rng, twin = self.rng, self.twin()
        x, v = rng.standard_normal((2, ni, 3))
        x += self.middle
        index = rng.integers(-1, max(self.slots) + 2, ni)
        for row in range(0, ni, 2):  # i particles are j particles, too
            address = int(rng.choice(list(self.slots)))
            index[row], x[row] = self.slots[address][0], self.slots[address][-1]
        found = []
        for session in (self.session, twin):
            force = session.force(nj, x, v, index, 1e-4, h2=0.5, nearest=nearest)
            assert force.code == 0, session.error()
            lists = [session.neighbours(pipe) for pipe in range(3)]
            arrays = session.partial(ni), session.origin(nj), *session.predicted(nj)
            found.append((force.bits(), force.nearest.tolist(), lists, session.scale(nj),
                          *(array.tobytes() for array in arrays)))  # fmt: skip
        for mine, other in zip(*found, strict=True):
            assert mine == other
        twin.close()


@pytest.fixture
def board(new_session):
    return lambda seed, mode="grape": Board(new_session, seed, mode)


CALLS = ["g6_set_j_particle", "g6_set_j_particle_", "g6_set_j_particle_mxonly"]


@pytest.mark.parametrize(("call", "mode"), list(zip(CALLS, capi.MODES, strict=True)))
def test_lists_of_a_treecode(board, mode, call):
    b = board(1, mode)
    for n, ni in ((1100, 40), (1030, 300), (3, 2)):
        b.list(0, n, call=call)
        b.check(n, ni)
        b.check(max(b.slots) + 1, 5)  # what an earlier list has left behind is still there


LABELS = {
    "permuted": lambda rng, n: rng.permutation(n),
    "of bodies": lambda rng, n: np.sort(rng.choice(4_000_000, n, replace=False)),
    "several times": lambda rng, n: rng.integers(0, n // 3, n),
    "many times": lambda rng, n: rng.integers(0, 3, n),
    "all sorts": lambda rng, n: rng.integers(-(2**31), 2**31, n),
}


@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_lists(board, labels):
    b = board(2)
    for n in (500, 1100):
        b.list(0, n, LABELS[labels](b.rng, n))
        b.check(n, 80)
        b.list(n // 2, 5, LABELS[labels](b.rng, n)[:5])
        b.check(n - 7, 80)


@pytest.mark.parametrize("seed", range(6))
def test_mixed_writes(board, seed):
    """Lists, parts of lists, scattered writes, derivatives, and times that move, in any order."""
    b = board(100 + seed, ["grape", "grape", "double", "single"][seed % 4])
    b.list(0, int(b.rng.integers(1, MOST)))
    moving = 2 if seed % 3 == 2 else 1
    for _ in range(14):
        n = max(b.slots) + 1
        what = b.rng.integers(9)
        if what < 2 and seed % 4:
            b.middle = b.rng.choice([0.0, 0.0, 100.0, -5e4], 3)  # another origin
        if what == 0:
            b.list(0, int(b.rng.integers(1, MOST)), tj=float(b.rng.integers(2)))
        elif what == 1:
            first = int(b.rng.integers(n))
            b.list(first, int(b.rng.integers(1, 300)), tj=float(b.rng.integers(2)))
        elif what < 4:
            b.scattered(int(b.rng.integers(1, 40)), n, moving * (what == 3))
        elif what == 4:
            b.set_time(float(b.rng.integers(4)) / 4)
        elif what == 5:
            for _ in range(8):  # the calls alternate
                b.list(0, 3, call=CALLS[b.rng.integers(3)])
                b.write(n // 2, 7, 1.0, b.place())
        elif what == 6:
            x, index = b.place()[None], np.zeros(1, np.int32)
            assert b.session.first(n, x, x, index) == 0  # and never asked for
        else:
            b.check(int(b.rng.integers(1, n + 5)) if what == 7 else n, int(b.rng.integers(1, 90)))
    b.check(max(b.slots) + 1)


def test_lists_of_two_sessions_at_once_and_after_a_closing(board):
    one, other = board(3), board(4)
    for k in range(1200):
        one.list(k, 1)
        other.list(k, 1, indices=[5 * k])
    one.check(1200)
    other.check(1200)
    one.session.close()
    assert capi.call("g6_open", one.session.cluster) == 0
    one.slots.clear()
    one.list(0, 300)
    one.check(300)
    force = one.session.force(1200, np.ones((1, 3)))
    assert force.bits() == one.session.force(300, np.ones((1, 3))).bits()


@pytest.mark.full
@pytest.mark.backends("cpu")
def test_a_list_longer_than_fits(board):
    b = board(5)
    n = 65536 + 1500
    b.list(0, n)
    b.check(n, 3)
    b.list(65530, 12)
    b.check(n, 3)


def test_a_nan_in_a_list_is_not_forgotten(board):
    b = board(6)
    b.list(0, 1200)
    b.check(1200)
    b.list(0, 700)
    b.write(700, 700, 1.0, np.array([0, np.nan, 0]))
    b.list(701, 100)
    x, index = np.ones((1, 3)), np.array([-1])
    force = b.session.force(1200, x, x, index)
    assert force.code == capi.CONSTANTS["G6X_E_J_NAN"]
    assert np.isnan(force.acc).all()
    assert b.session.force(700, x, x, index).code == 0
    b.list(0, 701)
    b.check(1200)
    for address, bad in (3, [np.inf, 0, 0, 0]), (100, [1, np.nan, 0, 0]):  # waits for its slot
        b.write(address, address, bad[0], np.array(bad[1:]))
        b.list(0, 200)
        b.check(1200)
    for k in range(4):  # each number is looked at
        row = np.array([1.0, 2.0, 3.0, 4.0])
        row[k] = (np.nan, np.inf, -np.inf, np.nan)[k]
        b.write(10, 10, row[3], row[:3])
        assert "address 10" in b.session.error()[1]
        b.list(10, 3)
        vectors = [np.array([0.0, 0.0, np.nan]) if q == k else ZERO for q in range(4)]
        code = capi.call("g6_set_j_particle", b.session.cluster, 13, 0, 0.0, 0.0, 1.0, *vectors,
                         ZERO)  # fmt: skip
        assert code == capi.CONSTANTS["G6X_E_J_NAN"]
        b.list(13, 1)
    b.check(1200)


def test_zeros_of_the_callers_own_minus_zero_and_null_pointers_in_a_list(board):
    """Zeros in arrays of their own, not in one for all."""
    b = board(8)
    b.list(0, 5)
    b.write(5, 5, 1.0, ZERO, moving=[ZERO, ZERO, ZERO, np.array([-0.0, 0.0, -0.0])])
    b.list(6, 2)
    for missing in range(5):
        vectors = [None if k == missing else ZERO for k in range(5)]
        code = capi.call("g6_set_j_particle", b.session.cluster, 8, 8, 0.0, 0.0, 1.0, *vectors)
        assert code == capi.CONSTANTS["G6X_E_NULL"]
    b.list(8, 2)
    zeros = [np.zeros(3) for _ in range(4)]
    for k in range(10, 50):
        b.write(k, k, 1.0, b.place(), moving=zeros)
    b.check(50)


def test_writes_between_the_halves(board):
    """A list written before the last half does not change what the first half was asked."""
    b = board(9)
    b.list(0, 1300)
    x, v = b.rng.standard_normal((2, 7, 3))
    index = np.arange(7, dtype=np.int32)
    expected = b.session.force(1300, x, v, index)
    assert b.session.first(1300, x, v, index) == 0
    b.list(0, 900)
    assert b.session.last(1300, x, v, index).bits() == expected.bits()
    b.check(1300)


@pytest.mark.full
@pytest.mark.backends("cpu")
@pytest.mark.skipif("GRAPE6_TEST_BACKEND" in capi.os.environ, reason="a child has no device")
def test_threads_and_a_fork_in_the_middle_of_a_list():
    capi.run_c("list_threads", timeout=100)
