"""g6x_hermite_evolve: it is the same blocks as by the single calls, wherever it returns between."""

import threading
import time

import numpy as np
import pytest

import capi
import tools
from grape6py import plummer
from grape6py._lib.library import ffi, lib, pointer
from particles import assert_nan

EPS2, ETA, LEAST, MOST = 1e-3, 0.02, 2.0**-40, 1 / 16
SHAPES = {"t": (), "dt": (), "x": (3,), "v": (3,), "a": (3,), "j": (3,)}
ROWS = {"xi": (3,), "vi": (3,), "acc": (3,), "jerk": (3,), "pot": ()}


class Bodies:
    """An integration of 60 bodies at most on a cluster of its own, which has its j particles."""

    def __init__(self, cluster, n=60, **numbers):
        mass, pos, vel = (array[:n] for array in plummer(60, seed=2))
        arrays = {name: np.zeros((n, *shape)) for name, shape in (SHAPES | ROWS).items()}
        arrays["address"] = np.zeros(n, np.int32)
        arrays |= {"mass": mass, "rounding": np.full(n, 2.0**-24)}
        arrays["x"][:], arrays["v"][:], arrays["dt"][:] = pos, vel, MOST / 32
        self.cluster, self.n, self.arrays = cluster, n, arrays
        self.h = ffi.new("struct g6x_hermite *", {"n": n, "eta": ETA, "dtmin": LEAST})
        self.h.dtmax = MOST
        for name, array in arrays.items():
            setattr(self.h, name, pointer(array))
        self.e = ffi.new("struct g6x_evolution *", {"passes": 1, "eps2": EPS2} | numbers)
        assert lib.g6_open(cluster) == 0
        self.write(np.arange(n, dtype=np.int32), arrays["t"], pos, vel, arrays["a"], arrays["j"])

    def write(self, address, t, x, v, a, j):
        mass, j6, a2 = self.arrays["mass"][address], j / 6, a / 2
        kept = [np.ascontiguousarray(q) for q in (address, t, mass, j6, a2, v, x)]
        to, times, masses, *rest = map(pointer, kept)
        none = ffi.NULL
        head = self.cluster, len(address), to, none, times, none, masses, none
        assert lib.g6x_set_j_particles(*head, *rest) == 0

    def evolve(self, t_end, **numbers):
        for name, value in ({"t_end": t_end} | numbers).items():
            setattr(self.e, name, value)
        return lib.g6x_hermite_evolve(self.cluster, self.h, self.e)

    def block(self):
        """Of two passes: with one, hard pairs are corrected once more."""
        h, q = self.h, self.arrays
        time = (q["t"] + q["dt"]).min()
        address = np.flatnonzero(q["t"] + q["dt"] == time).astype(np.int32)
        ni = len(address)
        q["address"][:ni] = address
        state = h.t, h.x, h.v, h.a, h.j
        assert lib.g6x_hermite_predict(ni, h.address, time, *state, h.xi, h.vi) == 0
        lib.g6_set_ti(self.cluster, time)
        radii = pointer(np.full(ni, -1.0))
        call = self.cluster, self.n, ni, h.address, h.xi, h.vi
        for steps in ffi.NULL, h.dt:
            assert lib.g6calc_firsthalf(*call, h.acc, h.jerk, h.pot, EPS2, radii) == 0
            assert lib.g6calc_lasthalf(*call, EPS2, radii, h.acc, h.jerk, h.pot) == 0
            noise = q["rounding"][address] * q["pot"][:ni] ** 2
            rest = h.acc, h.jerk, pointer(noise), h.t, steps, h.x, h.v, h.a, h.j, h.xi, h.vi
            assert lib.g6x_hermite_correct(ni, h.address, time, ETA, LEAST, MOST, *rest) >= 0
            rows = (q[name][:ni] for name in ("xi", "vi", "acc", "jerk"))
            self.write(address, np.full(ni, time), *rows)

    def state(self):
        return b"".join(self.arrays[name].tobytes() for name in SHAPES)


@pytest.fixture
def bodies():
    made = []

    def make(*arguments, **numbers):
        made.append(Bodies(7000 + len(made), *arguments, **numbers))
        return made[-1]

    yield make
    for each in made:
        lib.g6_close(each.cluster)


def test_it_makes_the_blocks_that_single_calls_make(bodies):
    one, other = bodies(passes=2), bodies()
    assert one.evolve(0.1) == 0
    for _ in range(one.e.blocks):
        other.block()
    assert one.state() == other.state()
    assert (other.arrays["t"] + other.arrays["dt"]).min() == one.e.next > 0.1 >= one.e.time
    assert one.e.steps > one.e.blocks > 50
    assert one.e.force_seconds > 0
    nobody = bodies(0)
    assert nobody.evolve(np.inf) == 0
    assert (nobody.e.blocks, nobody.e.next) == (0, np.inf)


@pytest.mark.parametrize("numbers", [{"seconds": 1e-9}, {"most_blocks": 3}, {"stop": 1}])
def test_where_it_returns_does_not_matter(bodies, numbers):
    whole, cut = bodies(), bodies()
    assert whole.evolve(0.1) == 0
    flag = ffi.new("int *", 1)
    given = {name: flag if name == "stop" else value for name, value in numbers.items()}
    calls = 0
    while cut.e.blocks < whole.e.blocks:
        assert cut.evolve(0.1, **given) == ("seconds" in numbers)
        calls += 1
    assert calls == -(-whole.e.blocks // numbers.get("most_blocks", 1))
    assert cut.state() == whole.state()


WRONG = [
    *[("e", name, value) for name, value in
      (("passes", 0), ("most_blocks", -1), ("eps2", -1.0), ("ni", 61), ("ni", -1), ("blocks", -1),
       ("steps", 2**63 - 1), ("clamped", 2**62 + 1), ("t_end", np.nan), ("eps2", np.nan),
       ("seconds", np.nan))],
    *[("a block", name, value) for name, value in (("row", 7), ("pass", 7), ("next", np.nan))],
    *[("dt", 5, value) for value in (0.0, -1.0, np.nan, np.inf)],
    *[("t", 5, value) for value in (np.nan, np.inf, -np.inf)],
    ("no jerk", 0, 0),
]  # fmt: skip


def test_what_is_wrong_is_refused_before_anything_is_moved(bodies):
    for where, what, value in WRONG:
        b, given = bodies(), {"t_end": 0.1}
        if where in b.arrays:
            b.arrays[where][what] = value
        elif where == "no jerk":
            lib.g6x_set_int(b.cluster, lib.G6X_JERK, 0)
        else:
            given |= {"ni": 3 * (where == "a block"), what: value}
        before = b.state()
        assert b.evolve(**given) == lib.G6X_E_ARGUMENT, (where, what, value)
        assert b.state() == before
    b = bodies()
    for name in SHAPES | ROWS | {"mass": (), "address": ()}:
        kept = getattr(b.h, name)
        setattr(b.h, name, ffi.NULL)
        assert b.evolve(0.1) == lib.G6X_E_NULL
        setattr(b.h, name, kept)
    assert lib.g6x_hermite_evolve(b.cluster, ffi.NULL, b.e) == lib.G6X_E_NULL
    assert lib.g6x_hermite_evolve(b.cluster, b.h, ffi.NULL) == lib.G6X_E_NULL
    assert b.evolve(0.1, blocks=1, most_blocks=2**63 - 1) == 0


@pytest.mark.parametrize(("name", "value"), [("x", np.nan), ("mass", np.inf)])
def test_a_body_that_leaves_the_numbers_is_an_error_and_no_block_is_under_way(bodies, name, value):
    b = bodies()
    b.arrays[name][5] = value
    assert b.evolve(0.1) < 0
    assert (b.e.ni, b.e.blocks, b.arrays["t"][5]) == (0, 0, 0)
    assert np.isfinite(b.arrays["a"][5]).all()


def test_results_of_a_call_before_are_not_those_of_the_integration(bodies):
    b = bodies()
    session, far = capi.Session.unopened(b.cluster), np.full((5, 3), 9.0)
    args = b.n, far, far, np.arange(5, dtype=np.int32)
    assert session.first(*args, eps2=EPS2) == 0
    assert b.evolve(0.1) == 0
    found = session.last(*args)
    assert found.code == lib.G6X_E_NO_FIRSTHALF
    assert_nan(found)


def test_a_close_that_waits_for_an_integration_lets_others_work(bodies):
    long, stop, done = bodies(), ffi.new("int *"), []
    calls = lambda: long.evolve(np.inf, stop=stop), lambda: lib.g6_close(long.cluster)
    threads = [threading.Thread(target=lambda call=call: done.append(call())) for call in calls]
    threads[0].start()
    while not long.e.blocks:  # it is at work
        time.sleep(0.01)
    threads[1].start()
    time.sleep(0.1)
    assert bodies(10).evolve(0.01) == 0
    assert not done
    stop[0] = 1
    for thread in threads:
        thread.join()
    assert 0 in done  # close returns nothing here


def outside(bodies, **more):
    names = {"field_acc": (3,), "field_jerk": (3,)} | more
    for name, shape in names.items():
        bodies.arrays[name] = np.zeros((bodies.n, *shape))
        setattr(bodies.h, name, pointer(bodies.arrays[name]))


def test_row26_half_of_what_is_from_outside(bodies):
    for missing in ("field_acc", "field_jerk"):
        b = bodies()
        outside(b)
        field = ffi.new("struct g6x_field *", {"terms": 1})
        field.term[0].kind, field.term[0].p = lib.G6X_FIELD_PLUMMER, [1, 1, 0]
        b.h.field = field
        assert lib.g6x_hermite_add_field(b.h, b.n, 0.0) == 0
        setattr(b.h, missing, ffi.NULL)
        assert lib.g6x_hermite_add_field(b.h, b.n, 0.0) == lib.G6X_E_NULL
        b.h.field = ffi.NULL
        assert lib.g6x_hermite_add_field(b.h, b.n, 0.0) == lib.G6X_E_NULL
        assert b.evolve(MOST) == lib.G6X_E_NULL


def test_blocks_beyond_the_bodies(bodies):
    for ni, address, code in (61, 0, -11), (60, 60, -13), (60, -1, -13), (60, 2**31 - 1, -13):
        b = bodies()
        outside(b, work=(), power=(), rate=())
        b.arrays["address"][-1] = address
        assert lib.g6x_hermite_add_field(b.h, ni, 0.0) == code
        assert lib.g6x_hermite_work(b.h, ni, 0.0, ffi.NULL) == code
        if ni == 60:  # a block that was never begun
            b.arrays["address"][:-1] = np.arange(59)
            assert b.evolve(MOST, ni=60, next=MOST / 32) == lib.G6X_E_ADDRESS


def test_j_particles_with_other_indices_or_missing_ones(bodies):
    """An index would be taken as a row; and a body's own force would act on it."""
    for labels in ([10**8, 10**8 + 1], [1, 0], [0, -1], [0]):
        b = bodies(n=2)
        for name in ("nearest", "close", "left"):
            b.arrays[name] = np.zeros(2, np.int32 if name == "nearest" else float)
            setattr(b.h, name, pointer(b.arrays[name]))
        lib.g6_close(b.cluster)
        lib.g6_open(b.cluster)
        for address, label in enumerate(labels):
            x = pointer(b.arrays["x"][address].copy())
            assert lib.g6_set_j_particle_mxonly(b.cluster, address, label, 0.5, x) == 0
        for closer in (0.0, 0.1):
            assert b.evolve(MOST, closer=closer) == lib.G6X_E_ARGUMENT


def test_a_share_that_was_refused_is_none(bodies):
    b = bodies()
    arrays = [b.arrays[name] for name in ("t", "mass", "j", "a", "v", "x")]
    arrays[-1] = arrays[-1].copy()
    arrays[-1][5, 1] = np.nan
    b.h.words = ffi.new("long long[]", 32 * 60)
    b.h.share_end = 60
    assert lib.g6x_share_particles(b.cluster, 60, 0, 60, *map(pointer, arrays)) == lib.G6X_E_J_NAN
    assert b.evolve(MOST) == lib.G6X_E_ARGUMENT


def test_the_types_of_fortran_are_as_long_as_those_of_c(tmp_path):
    """The library would read what stands behind a shorter one."""
    names = "g6x_hermite", "g6x_evolution", "g6x_field", "g6x_few_bodies", "g6x_perturber"
    sizes = "".join(f"  type({name}) :: v{k}\n" for k, name in enumerate(names))
    (tmp_path / "sizes.f90").write_text(
        f"program sizes\n  use iso_c_binding\n  use g6lib\n{sizes}"
        f"  print *, {', '.join(f'c_sizeof(v{k})' for k in range(len(names)))}\nend program\n"
    )
    source = capi.ROOT / "include/g6lib.f90"
    command = [tools.need("gfortran"), source, "sizes.f90", "-o", "sizes"]
    command += ["-Wl,--unresolved-symbols=ignore-all"]
    tools.run(command, cwd=tmp_path)
    found = tools.run([tmp_path / "sizes"]).stdout.split()
    assert [int(word) for word in found] == [ffi.sizeof(f"struct {name}") for name in names]
