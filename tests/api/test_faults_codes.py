"""Misuse of a session in this process: the code is minus the row, the outputs are NaN."""

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
    assert found.code == -6
    assert_nan(found)
    code, message = filled.error()
    assert code == -6
    assert "17" in message
    assert "170" in message
    below = filled.force(17, X, V, INDEX)
    assert_force(below, direct(X, V, INDEX, SOURCE.take(range(17))), 1e-4)
    assert filled.put(17, 17, SOURCE.mass[17], SOURCE.x[17], SOURCE.v[17]) == 0
    assert_force(filled.force(50, X, V, INDEX), direct(X, V, INDEX, SOURCE), 1e-4)


def test_row06_a_bulk_write_reports_and_writes_all_others(plain):
    source = SOURCE.take(range(50))
    source.x[20, 2] = np.nan
    assert plain.put_cloud(source) == -6
    assert plain.force(50, X, V, INDEX).code == -6
    assert_force(plain.force(20, X, V, INDEX), direct(X, V, INDEX, SOURCE.take(range(20))), 1e-4)
    assert plain.put(20, 20, SOURCE.mass[20], SOURCE.x[20], SOURCE.v[20]) == 0
    assert_force(plain.force(50, X, V, INDEX), direct(X, V, INDEX, SOURCE), 1e-4)


def test_row06_mxonly_is_checked_too(filled):
    x = np.array([np.nan, 0, 0])
    assert capi.call("g6_set_j_particle_mxonly", filled.cluster, 3, 3, 1.0, x) == -6
    assert filled.force(50, X, V, INDEX).code == -6


@pytest.mark.backends("cpu cuda:grape gpu")
@pytest.mark.parametrize("bad", BAD, ids=str)
@pytest.mark.parametrize("field", ["x", "v"], ids=lambda f: f"row07-{f}")
def test_an_i_particle_with_nan_spoils_its_own_row_only(session, field, bad):
    session.put_cloud(SOURCE)
    good = session.force(50, X, V, INDEX)
    x, v = X.copy(), V.copy()
    (x if field == "x" else v)[2, 1] = bad
    found = session.force(50, x, v, INDEX)
    assert found.code == -7
    assert session.error()[0] == -7
    assert_nan(found, 2)
    others = [0, 1, 3, 4, 5]
    assert (found.acc[others] == good.acc[others]).all()
    assert (found.pot[others] == good.pot[others]).all()
    assert (found.nearest[others] == good.nearest[others]).all()
    assert found.nearest[2] >= 0


@pytest.mark.parametrize("eps2", [-1.0, np.nan, np.inf, -np.inf], ids=lambda e: f"row11-eps2={e}")
def test_an_impossible_softening_fails_the_call(filled, eps2):
    found = filled.force(50, X, V, INDEX, eps2=eps2)
    assert found.code == -11
    assert filled.error()[0] == -11
    assert_nan(found)
    assert filled.force(50, X, V, INDEX).code == 0


@pytest.mark.parametrize("ti", BAD, ids=lambda t: f"row11-ti={t}")
def test_an_impossible_time_fails_the_force_calls(filled, ti):
    filled.set_ti(ti)
    found = filled.force(50, X, V, INDEX)
    assert found.code == -11 or (np.isinf(ti) and found.code < 0)
    assert_nan(found)
    assert filled.set_ti(0.0) == 0
    assert filled.force(50, X, V, INDEX).code == 0


def test_row11_a_bad_softening_of_one_particle_fails_the_call(filled):
    zero3, zero, out = np.zeros((6, 3)), np.zeros(6), capi.Force.blank(6)
    eps2 = np.array([0.1, 0.1, -0.1, 0.1, 0.1, 0.1])
    head = [filled.cluster, 50, 6, INDEX, X, V]
    assert capi.call("g6calc_firsthalf0", *head, zero3, zero3, zero, eps2, zero, 0) == -11
    assert capi.call("g6calc_lasthalf0", *head, eps2, zero, out.acc, out.jerk, out.pot, 0) == -11
    assert np.isnan(out.acc[2]).all()
    assert not (out.acc == capi.UNTOUCHED).any()
    assert not (out.pot == 0).any()


@pytest.mark.parametrize(("nj", "ni"), [(-1, 6), (50, -1), (-5, -5)], ids=lambda n: f"row11-{n}")
def test_negative_counts_are_refused(filled, nj, ni):
    zero3, zero = np.zeros((6, 3)), np.zeros(6)
    head = [filled.cluster, nj, ni, INDEX, X, V]
    assert capi.call("g6calc_firsthalf", *head, zero3, zero3, zero, 0.0, zero) == -11
    assert filled.force(50, X, V, INDEX).code == 0


@pytest.mark.parametrize("address", [-1, -2147483648], ids=lambda a: f"row13-{a}")
def test_a_negative_address_is_refused(filled, address):
    before = filled.force(50, X, V, INDEX)
    assert filled.put(address, 1, 1.0, (1, 0, 0)) == -13
    code, message = filled.error()
    assert code == -13
    assert str(address) in message
    assert filled.force(50, X, V, INDEX).bits() == before.bits()
    source = cloud(3)
    assert filled.put_cloud(source, [address, 60, 61]) == -13
    assert filled.force(62, ORIGIN, h2=np.inf).code == 0
    assert filled.neighbours(0)[1] == 52


def test_row18_lasthalf_without_firsthalf(filled):
    out = capi.Force.blank(6)
    filled.last(50, X, V, INDEX, out=out)
    assert out.code == -18
    assert filled.error()[0] == -18
    assert_nan(out)


@pytest.mark.parametrize(("nj", "ni"), [(50, 4), (49, 6), (51, 6), (0, 6), (50, 2)],
                         ids=lambda n: f"row20-{n}")  # fmt: skip
def test_lasthalf_with_other_counts_gives_nan(filled, nj, ni):
    filled.first(50, X, V, INDEX)
    found = filled.last(nj, X[:ni], V[:ni], INDEX[:ni])
    assert found.code == -20
    assert filled.error()[0] == -20
    assert_nan(found)
    assert filled.last(50, X, V, INDEX).code == 0


def test_row20_more_rows_than_firsthalf_had_leave_the_surplus_alone(filled):
    filled.first(50, X[:4], V[:4], INDEX[:4])
    found = filled.last(50, X, V, INDEX)
    assert found.code == -20
    assert_nan(found, slice(0, 4))
    assert (found.acc[4:] == capi.UNTOUCHED).all()
    assert (found.pot[4:] == capi.UNTOUCHED).all()


@pytest.mark.parametrize("pipe", [6, 7, 47, 10**6, 2147483647, -1], ids=lambda p: f"row25-{p}")
def test_the_list_of_a_pipe_that_was_not_used_is_refused(filled, pipe):
    filled.force(50, X, V, INDEX, h2=np.inf)
    assert filled.neighbours(pipe) == (-25, 0, [])
    assert filled.neighbours(5)[0] == 0


def test_row25_lists_before_any_force_call_are_refused(plain):
    code, length, _ = plain.neighbours(0)
    assert code < 0
    assert length == 0


def test_row18_overflow_of_lists_before_any_force_call_is_not_known(plain):
    assert capi.call("g6_read_neighbour_list", plain.cluster) == -18


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


@pytest.mark.parametrize("n", [-1, -2147483648])
def test_row11_a_negative_number_of_particles_is_refused(filled, n):
    assert capi.call("g6x_set_j_particles", filled.cluster, n, *[None] * 10) == -11
    x = np.full((1, 3), 777.0)
    assert capi.call("g6_get_predicted_j_particles", filled.cluster, n, x, x) == -11
    assert (x == 777).all()


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
                "g6x_hermite_predict_device": {4}, "g6x_hermite_correct_device": {5},
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
    if name.startswith(("g6x_add_", "g6x_from_", "g6x_hermite_")) and "device" not in name:
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


def test_row27_nj_of_two_thousand_million_counts_only_what_is_set(session):
    session.put_cloud(SOURCE)
    expected = session.force(50, X, V, INDEX)
    found = session.force(2147483647, X, V, INDEX, h2=np.inf)
    assert found.bits() == expected.bits()
    assert found.code == 0
    assert session.neighbours(0)[1] == 49
