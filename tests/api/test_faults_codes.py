"""Misuse of a session in this process: the code is minus the row, the outputs are NaN."""

import re

import numpy as np
import pytest

import capi
from particles import assert_force, assert_nan, cloud, direct

pytestmark = pytest.mark.backends("cpu cuda:grape cpu-tree:grape gpu")

ORIGIN = np.zeros((1, 3))
BAD = [np.nan, np.inf, -np.inf]
SOURCE = cloud(50, seed=41)
X, V, INDEX = SOURCE.x[:6].copy(), SOURCE.v[:6].copy(), SOURCE.index[:6].copy()


@pytest.fixture
def filled(plain):
    """In one mode and instruction set: what is refused is so before any of these matters."""
    plain.put_cloud(SOURCE)
    return plain


FIELDS = ["mass", "x", "v", "a2", "j6", "k18", "tj"]


# Each field with a NaN; infinity of each sign once: all go through one look at the exponents.
@pytest.mark.parametrize(
    ("field", "bad"), [*((field, np.nan) for field in FIELDS), ("x", np.inf), ("tj", -np.inf)]
)
def test_row06_a_j_particle_with_nan_spoils_forces_until_rewritten(filled, field, bad):
    values = {"mass": 1.0, "x": (1, 1, 1), field: bad if field in ("mass", "tj") else (0, bad, 0)}
    assert filled.put(17, 170, **values) == -6
    found = filled.force(50, X, V, INDEX)
    code, message = filled.error()
    assert found.code == code == -6
    assert_nan(found)
    assert {"17", "170"} <= set(re.findall(r"\d+", message))
    below = filled.force(17, X, V, INDEX)
    assert_force(below, direct(X, V, INDEX, SOURCE.take(range(17))), 1e-4)
    assert filled.put(17, 17, SOURCE.mass[17], SOURCE.x[17], SOURCE.v[17]) == 0
    assert_force(filled.force(50, X, V, INDEX), direct(X, V, INDEX, SOURCE), 1e-4)


def test_row06_bulk_writes_and_mxonly_are_checked_too_and_all_others_written(plain):
    source, x = SOURCE.take(range(50)), np.array([np.nan, 0, 0])
    source.x[20, 2] = np.nan
    assert plain.put_cloud(source) == -6
    assert plain.force(50, X, V, INDEX).code == -6
    assert_force(plain.force(20, X, V, INDEX), direct(X, V, INDEX, SOURCE.take(range(20))), 1e-4)
    assert plain.put_cloud(SOURCE) == 0
    assert_force(plain.force(50, X, V, INDEX), direct(X, V, INDEX, SOURCE), 1e-4)
    assert capi.call("g6_set_j_particle_mxonly", plain.cluster, 3, 3, 1.0, x) == -6
    assert plain.force(50, X, V, INDEX).code == -6


@pytest.mark.backends("cpu cuda:grape gpu")
@pytest.mark.parametrize("field", ["x", "v"], ids=lambda f: f"row07-{f}")
def test_an_i_particle_with_nan_spoils_its_own_row_only(session, field):
    session.put_cloud(SOURCE)
    good, others = session.force(50, X, V, INDEX), [0, 1, 3, 4, 5]
    for bad in BAD:
        i = {"x": X.copy(), "v": V.copy()}
        i[field][2, 1] = bad
        found = session.force(50, i["x"], i["v"], INDEX)
        assert found.code == session.error()[0] == -7
        assert_nan(found, 2)
        assert (found.acc[others] == good.acc[others]).all()
        assert (found.pot[others] == good.pot[others]).all()
        assert (found.nearest[others] == good.nearest[others]).all()
        assert found.nearest[2] >= 0


@pytest.mark.parametrize(("eps2", "ti"), [*((bad, 0.0) for bad in (-1.0, *BAD)),
                                          *((0.0, bad) for bad in BAD)],
                         ids=lambda value: f"row11-{value}")  # fmt: skip
def test_an_impossible_softening_or_time_fails_the_call(filled, eps2, ti):
    filled.set_ti(ti)
    found = filled.force(50, X, V, INDEX, eps2=eps2)
    assert found.code == filled.error()[0] == -11
    assert_nan(found)
    assert filled.set_ti(0.0) == 0
    assert filled.force(50, X, V, INDEX).code == 0


def test_row11_a_bad_softening_of_one_particle_fails_the_call(filled):
    args = 50, X, V, INDEX, np.array([0.1, 0.1, -0.1, 0.1, 0.1, 0.1])
    assert filled.first(*args, name="g6calc_firsthalf0", more=[0]) == -11
    out = filled.last(*args, name="g6calc_lasthalf0", more=[0])
    assert out.code == -11
    assert_nan(out)


def test_row11_negative_counts_are_refused(filled):
    zero3, zero = np.zeros((6, 3)), np.zeros(6)
    for nj, ni in (-1, 6), (50, -1), (-5, -5):
        args = filled.cluster, nj, ni, INDEX, X, V, zero3, zero3, zero, 0.0, zero
        assert capi.call("g6calc_firsthalf", *args) == -11
        assert filled.force(50, X, V, INDEX).code == 0
    for n in (-1, -2147483648):
        assert capi.call("g6x_set_j_particles", filled.cluster, n, *[None] * 10) == -11
        assert capi.call("g6_get_predicted_j_particles", filled.cluster, n, *[zero3] * 2) == -11
    assert not zero3.any()
    assert capi.call("g6x_set_j_particles", filled.cluster, 0, *[None] * 10) == 0


def test_row13_a_negative_address_is_refused(filled):
    before = filled.force(50, X, V, INDEX)
    for address in (-1, -2147483648):
        assert filled.put(address, 1, 1.0, (1, 0, 0)) == -13
        code, message = filled.error()
        assert code == -13
        assert str(address) in message
        assert filled.put_cloud(cloud(3), [address, 60, 61]) == -13
        assert filled.force(50, X, V, INDEX).bits() == before.bits()
        assert filled.force(62, ORIGIN, h2=np.inf).code == 0
        assert filled.neighbours(0)[1] == 52


def test_row18_lasthalf_without_firsthalf(filled):
    assert capi.call("g6_read_neighbour_list", filled.cluster) == -18
    assert filled.neighbours(0)[:2] == (-18, 0)
    out = filled.last(50, X, V, INDEX)
    assert out.code == filled.error()[0] == -18
    assert_nan(out)


@pytest.mark.parametrize(("nj", "ni"), [(50, 4), (49, 6), (51, 6), (0, 6), (50, 2), (50, 10)],
                         ids=lambda n: f"row20-{n}")  # fmt: skip
def test_lasthalf_with_other_counts_gives_nan(filled, nj, ni):
    """In the rows that there are in both halves; those beyond are left alone."""
    filled.first(50, X, V, INDEX)
    found = filled.last(nj, *(np.resize(a, (ni, *a.shape[1:])) for a in (X, V, INDEX)))
    assert found.code == filled.error()[0] == -20
    assert_nan(found, slice(6))
    assert (found.acc[6:] == capi.UNTOUCHED).all()
    assert (found.pot[6:] == capi.UNTOUCHED).all()
    assert filled.last(50, X, V, INDEX).code == 0


def test_row25_the_list_of_a_pipe_that_was_not_used_is_refused(filled):
    filled.force(50, X, V, INDEX, h2=np.inf)
    for pipe in (6, 7, 47, 10**6, 2147483647, -1):
        assert filled.neighbours(pipe) == (-25, 0, [])
    assert filled.neighbours(5)[0] == 0


def test_row18_nearest_neighbours_are_not_made_up_after_a_write(filled):
    filled.first(50, X, V, INDEX)
    expected = filled.last(50, X, V, INDEX, nearest=False)
    filled.put(3, 3, 9.0, (9, 9, 9))
    again = filled.last(50, X, V, INDEX, nearest=False)
    assert again.code == 0
    assert again.bits() == expected.bits()
    found = filled.last(50, X, V, INDEX)
    assert found.code == -18
    assert_nan(found)
    assert (found.nearest == -1).all()


@pytest.mark.backends("cpu cuda:grape gpu")
@pytest.mark.parametrize("block", [None, 1], ids=["together", "one-by-one"])
def test_a_force_that_fits_no_double_is_nan_and_named(session, block):
    for address, x in enumerate((1e-40, 1.0)):
        session.put(address, address, 1e250, (x, 0, 0))
    far = np.full((16, 3), 1e30)
    found = session.force(2, np.vstack([ORIGIN, far]), block=block)
    assert found.code == -8
    assert session.error()[0] == -8
    assert np.isnan(found.acc[0]).all()
    assert np.isfinite(found.acc[1:]).all()
    assert found.pot[0] == pytest.approx(-1e290, rel=1e-6)


OWN_TESTS = ("g6x_tree_", "g6x_walks")  # of null pointers, elsewhere


def null_calls():
    """Each call with each of its pointers NULL in turn, except where NULL has a meaning.

    Those of trees take no cluster: see test_tree_faults.py.
    """
    optional = {"g6calc_firsthalf": {6, 7, 8}, "g6calc_firsthalf0": {6, 7, 8},
                "g6x_set_j_particles": {2, 3, 4, 5, 7, 8, 9, 10}, "g6x_hermite_correct": {8, 10},
                "g6x_set_j_particles_device": {2, 3, 4, 6, 7, 8, 9, 11},
                "g6x_get_predicted_j_particles_device": {4},
                "g6x_forces_device": {7, 11, 12, 13}, "g6x_hermite_next_device": {3},
                "g6x_force_part_device": {12}, "g6x_merge_parts_device": {7, 8, 9},
                "g6x_hermite_predict_device": {4}, "g6x_hermite_evolve_device": {3},
                "g6x_hermite_correct_device": {5}, "g6x_field_add": {5, 6, 7},
                "g6x_hermite_work": {3},
                "g6calc_firsthalf_all": {5, 6, 7}, "g6calc_firsthalf0_all": {5, 6, 7},
                "g6_set_i_particle_scales_from_real_value": {2, 3}}  # fmt: skip
    for name, letters in capi.SIGNATURES.items():
        unread = {3, 4, 5, 6, 7} if "lasthalf" in name else optional.get(name, set())
        if "lasthalf" in name and name.endswith("_all"):
            unread = {2, 3, 4, 5, 6}
        if name.startswith("g6_open_special"):
            unread = {1}
        for k, letter in enumerate(letters):
            if letter == "p" and k not in unread and not name.startswith(OWN_TESTS):
                yield pytest.param(name, k, id=f"row26-{name}-{k}")


@pytest.mark.backends("cpu cuda gpu")
@pytest.mark.parametrize(("name", "null"), list(null_calls()))
def test_a_null_pointer_is_named_not_followed(plain, name, null):
    plain.put_cloud(SOURCE)
    plain.first(1, X[:1], V[:1], INDEX[:1])
    capi.call("g6_open_all")
    memory = [np.zeros(64, np.int64) for _ in range(17)]
    memory[0][:], memory[1][:] = plain.cluster, 1
    args = []
    for k, letter in enumerate(capi.SIGNATURES[name]):
        if letter == "p":
            args.append(None if k == null else memory[k])
        elif letter == "d":
            args.append(0.0)
        else:
            args.append(plain.cluster if k == 0 and not name.endswith("_all") else 1)
    if "lasthalf" in name and not name.endswith("_all"):
        args[1] = args[2] = 1
    counted = (
        name.startswith(("g6x_add_", "g6x_from_", "g6x_raise_", "g6x_hermite_"))
        and "device" not in name
    )
    if counted and capi.SIGNATURES[name][0] != "p":
        args[0] = 1
    if name == "g6_get_neighbour_list":
        args[1] = 0
    if name.endswith("_all") and "lasthalf" in name:
        first = name.replace("lasthalf2", "firsthalf").replace("lasthalf", "firsthalf")
        more = [memory[1]] * 3
        firsts = [*args[:2], *memory[2:5], *more]
        firsts += [memory[8], memory[9], 0] if "0" in name else [0.0, memory[9]]
        assert capi.call(first, *firsts) == 0
    if name.startswith("g6_get_force"):
        capi.call("g6_set_nip", plain.cluster, 1)
    code = capi.call(name, *args)
    texts = ("g6x_last_error", "g6x_last_warning", "g6x_version", "g6x_backend")
    assert code == -26 or name in texts
    capi.call("g6_close_all")


@pytest.mark.backends("cpu cuda gpu")
def test_row26_a_null_id_or_count_in_a_pointer_form(plain):
    harmless = ("g6_close_", "g6_reset_")
    for name, args in (("g6_set_ti_", 2), ("g6_flush_jp_buffer_", 1), ("g6calc_firsthalf_", 11),
                       ("g6_read_neighbour_list_", 1), ("g6calc_lasthalf_", 11),
                       ("g6_close_", 1), ("g6_reset_", 1)):  # fmt: skip
        code = capi.by_pointer(name, *[None] * args)
        assert code in ((0, -26) if name in harmless else (-26,)), name
