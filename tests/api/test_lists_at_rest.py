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
        fine = np.isfinite([mass, *x, *np.concatenate(vectors)]).all()
        assert code == (0 if fine else capi.CONSTANTS["G6X_E_J_NAN"])

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
LABELS = [
    np.arange, np.random.default_rng(1).permutation,
    lambda n: np.sort(np.random.default_rng(n).choice(4_000_000, n, replace=False)),
    lambda n: np.arange(n) * 7 % (n // 3 + 1),  # several times
    lambda n: np.arange(n) % 3, lambda n: np.random.default_rng(n).integers(-(2**31), 2**31, n),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_mixed_writes(board, seed):
    b = board(100 + seed, list(capi.MODES)[seed % 3])
    b.list(0, 1100, LABELS[seed](1100), call=CALLS[seed % 3])
    moving = 2 if seed % 3 == 2 else 1
    for _ in range(12):
        n = max(b.slots) + 1
        what, more = b.rng.integers(9), int(b.rng.integers(1, MOST))
        if what < 2 and seed % 4:
            b.middle = b.rng.choice([0.0, 0.0, 100.0, -5e4], 3)  # another origin
        if what == 0:
            labels = LABELS[b.rng.integers(len(LABELS))](more)
            b.list(0, more, labels, float(b.rng.integers(2)), CALLS[b.rng.integers(2)])
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
        elif what == 6:  # written between the halves
            x, v = b.rng.standard_normal((2, 7, 3))
            index = np.arange(7, dtype=np.int32)
            expected = b.session.force(n, x, v, index)
            assert b.session.first(n, x, v, index) == 0
            b.list(0, 900)
            assert b.session.last(n, x, v, index).bits() == expected.bits()
        else:
            b.check(int(b.rng.integers(1, n + 5)) if what == 7 else n, int(b.rng.integers(1, 90)))
    b.check(max(b.slots) + 1)


@pytest.mark.full
@pytest.mark.backends("cpu")
def test_a_list_longer_than_fits(board):
    b = board(5)
    n = 65536 + 1500
    b.list(0, n)
    b.check(n, 3)
    b.list(65530, 12)
    b.check(n, 3)


@pytest.mark.full
@pytest.mark.backends("cpu")
@pytest.mark.skipif("GRAPE6_TEST_BACKEND" in capi.os.environ, reason="a child has no device")
def test_threads_in_the_middle_of_a_list():
    capi.run_c("list_threads", timeout=100)


@pytest.mark.backends("cpu")
def test_row30_a_fork_in_the_middle_of_a_list():
    """Of the forking thread or of another: parent and child both go on with it."""
    capi.run_python("""
import threading
s = Session(0)
def write(rows, more=0):
    for a in rows: s.put(a, a, 1.0 + a + more, (a + 1, more, 3))
def force():
    return s.force(400, [[-1, 0, 0]]).bits()
write(range(400))
expected = force()
for by_another in (False, True):
    write(range(400), 7)
    assert force() != expected
    thread = threading.Thread(target=write, args=(range(200),))
    thread.start() if by_another else write(range(200))
    if by_another: thread.join()
    child = os.fork()
    write(range(200, 400))
    good = force() == expected
    if not child: os._exit(not good)
    assert good and os.waitpid(child, 0)[1] == 0
""")
