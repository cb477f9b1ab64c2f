"""The class Grape6: NumPy in and out, against the oracle; typed errors; nothing left behind."""

import gc
import itertools
import re
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grape6py
from grape6py import Grape6, Grape6Error, Grape6Warning, errors, partial, plummer
from grape6py._lib import cluster
from grape6py._lib.codes import from_code
from grape6py._lib.declarations import constants
from grape6py._lib.neighbours import Neighbours
from grape6py.errors import ArgumentError, NotFiniteError
from grape6py.forces import grape6 as session
from grape6py.reference import direct_sum, predict
from tools import run

MODEL = plummer(300, seed=1)
MASS, POS, VEL = MODEL
SPOILT = np.where(np.arange(300)[:, None] == 3, np.nan, POS)
TOLERANCE = {"grape": 1e-4, "double": 1e-12, "single": 1e-2}


@pytest.fixture
def grape():
    with Grape6(precision="double") as made:
        made.set_particles(*MODEL)
        yield made


def assert_forces(found, true, tolerance=1e-12):
    """Acc, jerk and pot within a tolerance relative to their size in the mean."""
    for name in ("acc", "jerk", "pot"):
        value, right = getattr(found, name), getattr(true, name)
        assert value.shape == right.shape
        if value.size:
            assert np.abs(value - right).max() <= tolerance * np.abs(right).mean(), name


def same(one, two):
    return all(np.array_equal(getattr(one, k), getattr(two, k)) for k in ("acc", "jerk", "pot"))


@pytest.mark.parametrize("precision", list(TOLERANCE))
def test_every_mode_agrees_with_the_oracle(precision):
    with Grape6(precision=precision) as grape:
        assert grape.precision == precision
        grape.set_particles(*MODEL)
        found = grape.forces(eps=0.01, nn=True, h=0.3)
    true = direct_sum(*MODEL, eps2=0.01 * 0.01, nearest=True, h2=0.3 * 0.3, extended=True)
    assert_forces(found, true, TOLERANCE[precision])
    assert np.array_equal(found.nearest, true.nearest)
    assert np.allclose(found.distance, np.float64(true.distance), rtol=1e-3)
    assert all(map(np.array_equal, found.neighbours, true.neighbours))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 70), ni=st.integers(0, 9),
       eps=st.sampled_from([0, 0.1, 3]), is_own=st.booleans())  # fmt: skip
def test_other_targets_agree_with_the_oracle(seed, n, ni, eps, is_own):
    """Targets with the index of a particle do not feel that one."""
    random = np.random.default_rng(seed)
    mass, pos, vel = random.random(n), random.normal(size=(n, 3)), random.normal(size=(n, 3))
    at, moving = random.normal(size=(ni, 3)), random.normal(size=(ni, 3))
    index = random.integers(0, n, ni) if is_own else None
    with Grape6(precision="double") as grape:
        grape.set_particles(mass, pos, vel)
        found = grape.forces(at, moving, index, eps=eps)
    assert found.nearest is found.distance is found.neighbours is None  # not asked for
    true = direct_sum(mass, pos, vel, target_pos=at, target_vel=moving, target_index=index,
                      eps2=eps * eps)  # fmt: skip
    assert_forces(found, true, 1e-11)


def test_foreign_targets_stay_foreign_if_a_particle_has_index_minus_one():
    with Grape6() as grape:
        grape.set_particles([1, 1], np.eye(3)[:2], index=[-1, -2])
        assert grape.forces([[0, 0, 0]], nn=True).pot[0] == -2


@pytest.mark.parametrize("more", [True, False])
def test_particles_are_predicted_from_natural_derivatives(more):
    """Snap, and the jerks that come, can be switched off."""
    random = np.random.default_rng(2)
    acc, jerk, snap = random.normal(size=(3, 300, 3))
    times, now = random.integers(0, 8, 300) / 64, 0.25
    with Grape6(precision="double", snap=more, jerk=more) as grape:
        grape.set_particles(*MODEL, acc, jerk, snap, time=times)
        found = grape.forces(time=now, eps=0.1)
    assert (found.jerk is not None) == more
    pos, vel = predict(now - times, POS, VEL, acc / 2, jerk / 6, more * snap / 18, extended=True)
    true = direct_sum(MASS, pos, vel, eps2=0.1 * 0.1, extended=True)
    assert_forces(found if more else found._replace(jerk=true.jerk), true)


def test_the_time_is_the_latest_one_named():
    still = {"mass": [1, 1], "pos": [[0, 0, 0], [1, 0, 0]], "vel": [[0, 0, 0], [1, 0, 0]]}
    with Grape6() as grape:
        assert grape.time == 0
        grape.set_particles(**still, time=5)
        assert grape.time == 5
        assert grape.forces().pot[0] == -1  # not extrapolated back to time 0
        assert grape.forces(time=6).pot[0] == -0.5
        assert grape.forces().pot[0] == -0.5  # the time stays
        grape.set_particles(1, [[0, 0, 0]], time=5.5, address=[0])
        assert grape.forces().pot[0] == -0.5
        grape.set_particles(**still, time=2)
        assert grape.forces().pot[0] == -1


def test_long_neighbour_lists_come_whole():
    with Grape6(precision="double", neighbour_self=True) as grape:
        grape.set_particles(1, np.random.default_rng(1).normal(size=(2500, 3)))
        found = grape.forces(h=np.tile([-1.0, np.inf, np.nan, np.inf], 625)).neighbours
    assert {len(one) for one in found[1::2]} == {2500}
    assert {len(one) for one in found[::2]} == {0}
    assert np.array_equal(found[1], np.arange(2500))


def test_neighbours_are_one_array_and_a_sequence_of_lists(grape):
    found = grape.forces(h=np.where(np.arange(300) % 3, 0.5, -1.0)).neighbours
    assert isinstance(found, Neighbours)
    assert (len(found), found.start.dtype, found.index.dtype) == (300, np.int64, np.int32)
    lists, ends = list(found), [*found.start, len(found.index)]
    assert (ends[0], ends[-2]) == (0, ends[-1])
    for i in (0, 1, 299, -1, -300):
        assert np.array_equal(found[i], lists[i])
        assert np.array_equal(found[i], found.index[ends[i % 300] : ends[i % 300 + 1]])
    assert all(map(np.array_equal, found[5:20:2], lists[5:20:2]))
    assert [len(each) for each in reversed(found)] == [len(each) for each in lists[::-1]]
    for outside in (300, -301):
        with pytest.raises(IndexError):
            found[outside]
    assert repr(found) == f"<Neighbours: 300 lists, {len(found.index)} neighbours>"


def test_anything_that_numpy_understands_goes_in_and_is_not_changed(grape):
    before = [array.copy() for array in MODEL]
    with Grape6(precision="double") as other:
        other.set_particles(MASS.tolist(), np.asfortranarray(POS), VEL[:, ::-1][:, ::-1])
        assert same(grape.forces(), other.forces(POS, VEL, np.arange(300)))
        other.set_particles(1, [(0, 0, 0), (1, 0, 0)], index=np.array([5, 9], np.uint16))
        assert list(other.index) == [5, 9]
    assert all(map(np.array_equal, before, MODEL))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_sets_and_updates_are_those_of_a_table(seed):
    """Updates keep the index unless told, and addresses never written are nobody."""
    random, table = np.random.default_rng(seed), {}
    with Grape6(precision="double") as grape:
        for _ in range(4):
            n = int(random.integers(1, 9))
            given_ = {"mass": random.random(n), "pos": random.normal(size=(n, 3)),
                      "vel": random.normal(size=(n, 3))}  # fmt: skip
            address = random.choice([*range(11), 5000], n, replace=False)
            index = random.permutation(99)[:n] if random.random() < 0.5 else None
            if random.random() < 0.4:
                table, address = {}, None
            grape.set_particles(**given_, address=address, index=index)
            for k, at in enumerate(range(n) if address is None else address.tolist()):
                own = table[at][0] if at in table else at
                label = own if index is None else index[k]
                table[at] = label, *(array[k] for array in given_.values())
        labels, *bodies = map(np.array, zip(*map(table.get, sorted(table)), strict=True))
        found = grape.forces(eps=0.1, nn=True)
        assert grape.n == len(table)
        assert list(grape.index) == list(labels)
    true = direct_sum(*bodies, index=labels, eps2=0.1 * 0.1, nearest=True)
    assert_forces(found, true, 1e-11)
    assert np.array_equal(found.nearest, true.nearest)


def test_row_4_an_unknown_option_is_refused_by_name():
    for wrong in ({"backend": "cray"}, {"precision": "quad"}, {"isa": "mmx"}, {"isa": ["avx2"]}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} = .* is unknown; there are: "):
            Grape6(**wrong)
    angles = ({"backend": "cpu-tree", "theta": theta} for theta in (-0.1, 1.5, np.nan))
    for wrong in ({"threads": -1}, {"threads": 1.5}, {"verify": 2}, {"verify": np.nan}, *angles):
        with pytest.raises(ValueError, match=r"\w"):
            Grape6(**wrong)


@pytest.mark.parametrize("name", ["mass", "pos", "vel", "acc", "jerk", "snap", "time"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_row_6_a_particle_that_is_not_finite_is_named(grape, name, value):
    before = grape.forces()
    given_arrays = {"mass": MASS, "time": np.zeros(300), "index": np.arange(300) + 1000}
    given_arrays = {"pos": POS, name: POS} | given_arrays
    given_arrays[name] = given_arrays[name].copy()
    given_arrays[name][17] = value
    with pytest.raises(errors.NotFiniteError, match=rf"{name}\[17\].*1017.*is not finite"):
        grape.set_particles(**given_arrays)
    assert issubclass(errors.NotFiniteError, ValueError)
    assert same(before, grape.forces())


def test_row_9_a_pair_at_one_place_adds_nothing_and_warns_once():
    with Grape6(precision="double") as grape:
        grape.set_particles(1, [[0, 0, 0], [0, 0, 0], [0, 2, 0]])
        with pytest.warns(Grape6Warning):
            found = grape.forces()
        assert np.array_equal(found.pot, [-0.5, -0.5, -1])
        with warnings.catch_warnings(action="error"):
            grape.forces()


def test_row_17_nobody_and_no_targets():
    with Grape6() as grape:
        empty = grape.forces(nn=True, h=1)
        assert empty.acc.shape == (0, 3)
        assert len(empty.neighbours) == 0
        assert empty.neighbours.start.tolist() == [0]
        found = grape.forces([[1, 2, 3]], index=[8], nn=True, h=1)
        assert not found.acc.any()
        assert found.pot[0] == 0
        assert found.nearest[0] == 8
        assert list(found.neighbours[0]) == []
        assert grape.forces([[1, 2, 3]], nn=True).nearest[0] == -1
        grape.set_particles(1, [[1, 0, 0]])
        assert grape.forces(np.empty((0, 3))).pot.shape == (0,)


def test_row_21_a_closed_session_is_a_runtimeerror(grape):
    grape.close()
    grape.close()
    for call in (grape.forces, lambda: grape.set_particles(*MODEL), grape.__enter__):
        with pytest.raises(RuntimeError, match="closed"):
            call()
    assert repr(grape) == "<Grape6, closed>"


def test_row_28_ten_million_bodies_are_announced_with_an_estimate(grape, monkeypatch):
    monkeypatch.setattr(session, "LARGE", 300)
    with pytest.warns(Grape6Warning, match=r"300 particles: about .* GB .* about .* s "):
        grape.set_particles(*MODEL)
    with pytest.warns(Grape6Warning, match=r"300 targets and 300 particles: about"):
        grape.forces()


def test_row_31_ctrl_c_works_between_chunks_which_change_no_bit(grape, monkeypatch):
    """A signal is delivered while the targets are summed; the session stays usable."""
    before = grape.forces(nn=True, h=0.2)
    monkeypatch.setattr(cluster, "CHUNK_ROWS", 7)
    calls = itertools.count()

    def interrupted(self, *arguments):
        if next(calls) == 5:
            raise KeyboardInterrupt
        return prepare(self, *arguments)

    prepare = cluster.Board.prepare
    with monkeypatch.context() as patch:
        patch.setattr(cluster.Board, "prepare", interrupted)
        with pytest.raises(KeyboardInterrupt):
            grape.forces()
    assert next(calls) == 6
    cut = grape.forces(nn=True, h=0.2)
    assert same(before, cut)
    assert np.array_equal(before.nearest, cut.nearest)
    assert all(map(np.array_equal, before.neighbours, cut.neighbours))


def test_row_35_threads_may_share_a_session_and_the_interpreter(grape):
    right = grape.forces()

    def work(rows):
        return rows, grape.forces(POS[rows], VEL[rows], np.arange(300)[rows])

    with ThreadPoolExecutor(8) as pool:
        for rows, found in pool.map(work, [slice(0, 100), slice(100, 300)] * 8):
            assert np.array_equal(found.acc, right.acc[rows])


@pytest.mark.parametrize(("call", "wrong", "complaint"), [
    *(("set_particles", {"mass": MASS, "pos": POS} | wrong, complaint) for wrong, complaint in (
        ({"pos": POS.T}, r"pos has shape \(3, 300\), not \(n, 3\)"),
        ({"mass": MASS[:5]}, r"mass has shape \(5,\), not \(300,\)"),
        ({"vel": VEL[:5]}, r"vel has shape \(5, 3\), not \(300, 3\)"),
        ({"index": np.arange(5)}, r"index has shape \(5,\), not \(300,\)"),
        ({"index": np.arange(300.0)}, "index holds float64, not integers"),
        ({"pos": [["a", "b", "c"]]}, "pos is not an array of real numbers"),
        ({"pos": POS * 1j}, "pos is not an array of real numbers: it is complex"),
        ({"pos": [[1, 2, 3], [1, 2]]}, "pos is not an array of real numbers"))),
    ("set_particles", {"mass": 1, "pos": POS[:2], "address": [5, -3]},
     r"address\[1\] = -3 is negative"),  # row 13
    *(("set_particles", {"mass": 1, "pos": POS[:2]} | wrong, "beyond 32 bits")  # row 27
      for wrong in ({"index": [2**31, 0]}, {"address": [2**31, 0]}, {"index": [2**70, 0]})),
    ("forces", {"vel": VEL}, "give their pos too"), ("forces", {"index": [1]}, "give their pos to"),
    ("forces", {"h": [1, 2]}, r"h has shape \(2,\), not \(300,\)"),
    ("forces", {"pos": SPOILT}, r"pos\[3\] is not finite"),  # row 7
    ("forces", {"pos": POS, "vel": SPOILT}, r"vel\[3\] is not finite"),
    *(("forces", wrong, next(iter(wrong))) for wrong in (  # row 11
        {"eps": -1}, {"eps": np.nan}, {"eps": np.inf}, {"eps": 1e200}, {"time": np.nan},
        {"time": "now"})),
])  # fmt: skip
def test_rows_7_11_13_27_wrong_shapes_kinds_and_numbers_are_named(grape, call, wrong, complaint):
    kinds = {"is negative": IndexError, "beyond 32": OverflowError}
    kind = next((kinds[words] for words in kinds if words in complaint), ValueError)
    with pytest.raises(kind, match=complaint) as caught:
        getattr(grape, call)(**wrong)
    assert isinstance(caught.value, Grape6Error)
    assert grape.n == 300
    assert np.isfinite(grape.forces().pot).all()


def test_every_code_of_the_header_has_a_typed_exception():
    codes = {name: getattr(constants, name) for name in dir(constants) if name[:6] == "G6X_E_"}
    assert len(codes) >= 18
    kinds = dict.fromkeys(codes, Grape6Error)
    for kind, words in {
        ValueError: "J_NAN ARGUMENT", OverflowError: "RANGE OVERFLOW", IndexError: "ADDRESS PIPE",
        RuntimeError: "NO_FIRSTHALF NOT_OPEN FORK", MemoryError: "MEMORY DEVICE_MEMORY",
    }.items():  # fmt: skip
        kinds |= {f"G6X_E_{word}": kind for word in words.split()}
    assert kinds.keys() == codes.keys()
    for name, code in codes.items():
        error = from_code(code, "text")
        assert type(error) is not Grape6Error, name
        assert isinstance(error, kinds[name])
        assert (error.code, str(error)) == (code, "text")
    assert str(from_code(-999, "")) == "the library returned code -999 without a text"


def test_ids_are_given_back_even_without_close():
    """Released ids are taken in turn: as many are seen as sessions were ever open at once."""
    gc.collect()
    gc.freeze()  # the collector looks at nothing that was there before
    seen = set()
    for _ in range(200):
        made = Grape6()
        made.set_particles(*MODEL)
        seen.add(made._board.cluster)
        del made
        gc.collect()
    gc.unfreeze()
    assert len(seen) < 100


def test_a_session_says_what_it_is(grape):
    with Grape6(isa="base") as other:
        assert other.backend == "cpu base"
    assert re.fullmatch(r"cpu \w+", grape.backend)
    assert grape.threads >= 1
    grape.threads = 1
    assert grape.threads == 1
    assert repr(grape) == f"<Grape6 on {grape.backend}, mode double, 300 particles>"


def test_importing_the_package_does_not_open_the_library():
    code = "import grape6py, sys; print(sorted({'numpy', 'cffi'} & set(sys.modules)))"
    assert run([sys.executable, "-c", code]).stdout == "[]\n"
    assert set(grape6py.__all__) <= set(dir(grape6py))
    assert all(getattr(grape6py, name) is not None for name in grape6py.__all__)


def test_shares_have_the_bits_of_all_and_a_scale_is_kept_until_it_is_given_up():
    """With jerks, over ranks: tests/ranks/rank_programs.py."""
    model = plummer(2148, seed=3)
    model = model._replace(pos=np.add(model.pos, [1000, 0, -3]))  # so that the origin counts
    targets = model.pos[::20] + 0.01, model.vel[::20]
    with Grape6(jerk=False) as whole, Grape6(jerk=False) as session:
        whole.set_particles(*model)
        own, right, rows = whole.scale, whole.forces(*targets, eps=0.01, time=0.125), []
        for share in (slice(1024), slice(1024, 2048), slice(2048, None)):
            session.set_particles(*(array[share] for array in model))
            session.scale = own
            assert session.scale == own
            rows.append(session.partial(*targets, eps=0.01, time=0.125))
        for merged in rows[::-1], [partial.merged(rows[1:]), rows[0]]:
            found = partial.forces(partial.merged(merged))
            assert found.jerk is None
            assert np.array_equal(found.acc, right.acc)
            assert np.array_equal(found.pot, right.pot)
        number = np.arange(50)
        found = partial.forces(whole.partial(model.pos[:50], model.vel[:50], number, eps=0.0))
        right = whole.forces(model.pos[:50], model.vel[:50], number)
        assert np.array_equal(found.acc, right.acc)
        assert partial.forces(rows[0][:0]).acc.shape == (0, 3)
        assert session.partial(model.pos[:0]).shape == (0, 32)
        session.scale = own._replace(length=own.length + 3)
        session.set_particles(model.mass, 2 * model.pos)
        assert session.scale.length == own.length + 3
        other = session.partial(targets[0])
        session.scale = None
        assert session.scale.length != own.length + 3
        with pytest.raises(ArgumentError, match="mass = 100000"):
            session.scale = own._replace(mass=100000)
        with pytest.raises(NotFiniteError, match=r"pos\[2\]"):
            session.partial(np.where(np.arange(9).reshape(3, 3) == 6, np.nan, 1.0))
    for wrong, words in (([rows[0], other], "scale"), ([], "of no parts"),
                         ([rows[0], rows[0][:5]], "rows of 108 and of 5 targets")):  # fmt: skip
        with pytest.raises(ArgumentError, match=words):
            partial.merged(wrong)
    for wrong in (rows[0][:, :5], rows[0].astype(float), [1, 2]):
        with pytest.raises(ArgumentError, match="partial rows are int64"):
            partial.forces(wrong)
