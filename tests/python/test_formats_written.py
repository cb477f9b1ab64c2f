"""What is written is read back: the same bodies, and all that a format says it keeps."""

import io
import warnings

import numpy as np
import pytest

import hand_made
from grape6py import Grape6Warning, Units, plummer, read_snapshot, write_snapshot
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.files.formats import FORMATS

NAMES = list(FORMATS)
SINGLE = [name for name in NAMES if FORMATS[name].digits == "single"]
KEEP_IDS = [name for name in NAMES if "ids" in FORMATS[name].keeps.split()]
TEXTS = ["text", "csv", "starlab", "petar"]
OF_G_ONE = ["nbody6", "starlab"]
TIME = 0.375
HENON = Units("5e4 Msun", "1.2 pc")  # G = 1
GALACTIC = Units("Msun", "kpc", velocity="km/s")
N = 10**4


@pytest.fixture(scope="module")
def model():
    return plummer(N, seed=1)


@pytest.fixture(scope="module")
def ids():
    return np.random.default_rng(1).permutation(3 * N)[:N]


def ending(name):
    return FORMATS[name].endings[0]


def written(*content, **options):
    file = io.BytesIO()
    write_snapshot(file, *content, **options)
    return file.getvalue()


def three(name, **options):
    """A few bodies in a format, without warnings."""
    return written(hand_made.MASS, hand_made.POS, hand_made.VEL, format=name, **options)


def bits(particles):
    return [array.tobytes() for array in particles]


def assert_same_units(found, units, rel):
    for kind in ("mass", "length", "time"):
        assert found.in_cgs(kind) == pytest.approx(units.in_cgs(kind), rel=rel)


# ---- round trips -----------------------------------------------------------------------


@pytest.mark.parametrize(("name", "units"), [
    pytest.param(name, units, id=f"{name}-{units.G:g}") for name in NAMES
    for units in (HENON, GALACTIC) if name not in OF_G_ONE or units.G == 1
])  # fmt: skip
def test_ten_thousand_bodies_come_back_with_all_that_the_format_keeps(
    tmp_path, model, ids, name, units
):
    path = tmp_path / f"cluster{ending(name)}"
    keeps = FORMATS[name].keeps.split()
    lost = [what for what in ("time", "ids", "units") if what not in keeps]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        write_snapshot(path, model, time=TIME, ids=ids, units=units)
    if lost:
        (warning,) = said
        assert warning.category is Grape6Warning
        message = str(warning.message)
        assert message.startswith(str(path))
        assert all(what in message.replace(str(path), "") for what in lost)
        assert not any(what in message.replace(str(path), "") for what in keeps)
        assert warning.filename == __file__
    else:
        assert said == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_snapshot(path)
    assert found.format.removesuffix("2") == name.removesuffix("2")
    if FORMATS[name].digits == "double":
        assert bits(found) == bits(model)
    else:
        for array, original in zip(found, model, strict=True):
            assert np.abs(array / original - 1).max() <= 1e-7
    assert found.time == (TIME if "time" in keeps else None)
    assert np.array_equal(found.ids, ids) if "ids" in keeps else found.ids is None
    if "units" in keeps:
        assert_same_units(found.units, units, 1e-6 if name == "nbody6" else 1e-12)
    else:
        assert found.units is None


@pytest.mark.parametrize("name", NAMES)
def test_bodies_alone_are_written_without_a_warning(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_snapshot(io.BytesIO(three(name)), format=name)
    assert found.mass.tolist() == hand_made.MASS
    assert found.pos.tolist() == hand_made.POS
    assert found.vel.tolist() == hand_made.VEL
    assert found.units is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 6, 8, 12, 24])
def test_few_bodies_come_back_as_well(tmp_path, name, n):
    path = tmp_path / f"few{ending(name)}"
    few = [array[:n] for array in plummer(24, seed=2)]
    write_snapshot(path, *few)
    found = read_snapshot(path)
    assert found.mass.shape == (n,)
    assert found.pos.shape == found.vel.shape == (n, 3)
    assert np.allclose(found.pos, few[1], rtol=1e-7, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_many_bodies_cross_the_pieces_in_which_files_are_written(name):
    n = (1 << 16) + 77
    rng = np.random.default_rng(3)
    mass, pos, vel = rng.random(n), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    ids = 1 + rng.permutation(n)
    given = {"ids": ids} if name in KEEP_IDS else {}
    found = read_snapshot(io.BytesIO(written(mass, pos, vel, format=name, **given)), format=name)
    rtol = 0 if FORMATS[name].digits == "double" else 1e-7
    for array, original in zip(found, (mass, pos, vel), strict=True):
        assert np.allclose(array, original, rtol=rtol, atol=0)
    assert found.ids is None or np.array_equal(found.ids, ids)


@pytest.mark.parametrize("name", [n for n in NAMES if FORMATS[n].digits == "double"])
def test_extreme_numbers_keep_their_bits(name):
    odd = [5e-324, -5e-324, -0.0, 1.7976931348623157e308, 2.2250738585072014e-308, 1 / 3, 0.1]
    mass = np.array(odd)
    pos = np.column_stack([odd, odd[::-1], np.roll(odd, 2)])
    found = read_snapshot(io.BytesIO(written(mass, pos, -pos, format=name)), format=name)
    if name == "starlab":  # where positions are summed up, and -0 + 0 is 0
        assert [array.tolist() for array in found] == [x.tolist() for x in (mass, pos, -pos)]
    else:
        assert bits(found) == bits((mass, pos, -pos))


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_goes_on_with_its_time_ids_and_units(tmp_path, name):
    first, second = tmp_path / "first", tmp_path / "second"
    write_snapshot(first, hand_made.MASS, hand_made.POS, time=2.5, ids=[4, 9, 6], units=HENON,
                   format="gadget-hdf5")  # fmt: skip
    found = read_snapshot(first)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Grape6Warning)
        write_snapshot(second, found, format=name)
    again, keeps = read_snapshot(second, format=name), FORMATS[name].keeps.split()
    assert again.time == (2.5 if "time" in keeps else None)
    assert (again.ids is None) == ("ids" not in keeps)
    assert again.ids is None or again.ids.tolist() == [4, 9, 6]
    assert (again.units is None) == ("units" not in keeps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Grape6Warning)
        write_snapshot(second, found, time=8.0, ids=[1, 2, 3], format=name)
    other = read_snapshot(second, format=name)
    assert other.time == (8.0 if "time" in keeps else None)
    assert other.ids is None or other.ids.tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", KEEP_IDS)
@pytest.mark.parametrize("some", [
    [0, 1, 2], [2**31 - 1, 5, 1], [2**31, 5, 1], [2**32 - 1, 5, 1], [2**32, 5, 1], [2**53, 5, 1],
    [2**53 + 1, 5, 1], [2**63 - 1, 5, 1], [2**63, 5, 1], [2**64 - 1, 5, 1], [-1, 5, 1],
    [-(2**31) - 1, 5, 1], [-(2**63), 5, 1],
], ids=str)  # fmt: skip
def test_ids_come_back_or_are_named_as_lost(name, some):
    given = np.array(some, np.uint64 if max(some) >= 2**63 else np.int64)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        data = three(name, ids=given)
    found = read_snapshot(io.BytesIO(data), format=name)
    if said:
        assert f"no place for ids from {min(some)} to {max(some)}" in str(said[0].message)
        assert found.ids.tolist() == [1, 2, 3]
    else:
        assert found.ids.tolist() == some
    least, largest = FORMATS[name].ids
    assert bool(said) == (min(some) < least or max(some) > largest)


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_numbers_too_large_for_single_precision_are_refused(tmp_path, name, which):
    path = tmp_path / f"old{ending(name)}"
    path.write_bytes(b"old")
    content = [np.array(x) for x in (hand_made.MASS, hand_made.POS, hand_made.VEL)]
    content[which][-1] = 1e39
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ArgumentError, match=r"single|large|beyond"):
            write_snapshot(path, *content)
    assert path.read_bytes() == b"old"


def test_a_time_too_large_for_single_precision_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ArgumentError):
            three("nbody6", time=1e39)


@pytest.mark.parametrize("name", OF_G_ONE)
def test_a_format_of_g_one_has_units_of_it_alone(tmp_path, name):
    path = tmp_path / f"a{ending(name)}"
    with pytest.raises(ArgumentError, match=r"G = 1.*--units 'Msun kpc'"):
        write_snapshot(path, hand_made.MASS, hand_made.POS, units=GALACTIC)
    assert not path.exists()


@pytest.mark.parametrize("name", NAMES)
def test_writing_is_the_same_to_a_path_and_to_a_file(tmp_path, name):
    path = tmp_path / f"a{ending(name)}"
    write_snapshot(path, hand_made.MASS, hand_made.POS, hand_made.VEL)
    with open(tmp_path / "b", "w+b") as file:
        write_snapshot(file, hand_made.MASS, hand_made.POS, hand_made.VEL, format=name)
        assert not file.closed
    if "hdf5" in FORMATS[name].title.lower():  # which may have dates in it
        assert bits(read_snapshot(tmp_path / "b")) == bits(read_snapshot(path))
    else:
        assert (tmp_path / "b").read_bytes() == path.read_bytes() == three(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_opened_as_text_takes_text(name):
    file = io.StringIO()
    if name in TEXTS:
        write_snapshot(file, hand_made.MASS, hand_made.POS, format=name)
        assert file.getvalue().encode() == written(hand_made.MASS, hand_made.POS, format=name)
        file.seek(0)
        assert read_snapshot(file).pos.tolist() == hand_made.POS
    else:
        with pytest.raises(ArgumentError, match="binary mode"):
            write_snapshot(file, hand_made.MASS, hand_made.POS, format=name)
        assert file.getvalue() == ""


@pytest.mark.parametrize("name", NAMES)
def test_a_comment_never_spoils_a_file(name):
    comment = "two lines,\nwith µ and\r(Particle\n)Log # 0x92"
    found = read_snapshot(io.BytesIO(three(name, comment=comment)), format=name)
    assert found.pos.tolist() == hand_made.POS
    assert read_snapshot(io.BytesIO(three(name, comment=comment))).pos.tolist() == hand_made.POS


@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_content_is_refused_before_a_file_is_touched(tmp_path, name):
    path = tmp_path / f"a{ending(name)}"
    path.write_bytes(b"old")
    for more in ({"ids": [1, 2]}, {"ids": [1.5, 2, 3]}, {"time": np.nan}, {"time": "now"},
                 {"ids": [[1, 2, 3]]}, {"vel": [[np.inf] * 3] * 3}):  # fmt: skip
        with pytest.raises(ArgumentError):
            write_snapshot(path, hand_made.MASS, hand_made.POS, **more)
    assert path.read_bytes() == b"old"


# ---- which format ----------------------------------------------------------------------


OF_OTHERS = """snapshot a.txt a.csv a.h5 a.hdf5 a.nemo a.tipsy a.gadget a.conf3 conf.3_12 OUT3 a.dyn
    data.5 a.amuse a.bin a.gz""".split()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("text", "csv")])
@pytest.mark.parametrize("file_name", OF_OTHERS)
def test_contents_say_the_format_whatever_the_name(tmp_path, name, file_name):
    path = tmp_path / file_name
    path.write_bytes(three(name))
    found = read_snapshot(path)
    assert found.format.removesuffix("2") == name.removesuffix("2")
    assert found.pos.tolist() == hand_made.POS


@pytest.mark.parametrize("file_name", OF_OTHERS)
def test_text_is_read_as_text_whatever_its_name(tmp_path, file_name):
    path = tmp_path / file_name
    path.write_bytes(three("text"))
    assert read_snapshot(path).pos.tolist() == hand_made.POS


def test_a_gadget_file_says_of_which_of_the_two_formats_it_is():
    assert read_snapshot(io.BytesIO(three("gadget"))).format == "gadget"
    assert read_snapshot(io.BytesIO(three("gadget2"))).format == "gadget2"


@pytest.mark.parametrize("name", NAMES)
def test_each_ending_and_pattern_writes_its_format(tmp_path, name):
    patterns = {"nbody6": ["conf.3", "conf.3_0.5", "CONF.3", "out3", "OUT3"], "petar": ["data.17"],
                "text": ["cluster", "dat.10", "fort.10"]}  # fmt: skip
    names = [f"a{end}" for end in FORMATS[name].endings] + patterns.get(name, [])
    for file_name in [*names, *(f"a{end}".upper() for end in FORMATS[name].endings)]:
        path = tmp_path / file_name
        write_snapshot(path, hand_made.MASS, hand_made.POS)
        assert read_snapshot(path).format.removesuffix("2") == name.removesuffix("2"), file_name
        path.unlink()


@pytest.mark.parametrize("content", [
    b"\x1f\x8b" + bytes(range(256)), bytes(300), b"PK\3\4" + bytes(range(200)),
    b"\x89PNG\r\n\x1a\n" + bytes(100), bytes(range(256)) * 40, b"\x93NUMPY\1\0v\0" + bytes(200),
    b"SIMPLE  =                    T" + b" " * 50 + b"\0\1\2", b"\x7fELF" + bytes(60),
    b"\0", b"\xff\0",
], ids=["gz", "zeros", "zip", "png", "range", "npy", "fits", "elf", "zero", "two"])  # fmt: skip
def test_a_file_of_no_format_is_refused_with_those_that_there_are(tmp_path, content):
    path = tmp_path / "stars.bin"
    path.write_bytes(content)
    with pytest.raises(SnapshotError) as caught:
        read_snapshot(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    for format_ in FORMATS.values():
        assert format_.title in message
        assert all(end in message for end in format_.endings)


@pytest.mark.parametrize("file_name", ["a.txtt", "a.png", "a.h55", "a.nemo.bak", "a.", "a.~1~"])
def test_an_unknown_ending_is_refused_with_those_that_there_are(tmp_path, file_name):
    path = tmp_path / file_name
    with pytest.raises(ArgumentError) as caught:
        write_snapshot(path, hand_made.MASS, hand_made.POS)
    assert str(path) in str(caught.value)
    for format_ in FORMATS.values():
        assert all(end in str(caught.value) for end in format_.endings)
    assert not path.exists()


@pytest.mark.parametrize(("name", "meant"), [
    ("nemoo", "nemo"), ("gadget-hdf", "gadget-hdf5"), ("Tipsy", "tipsy"), ("petr", "petar"),
])  # fmt: skip
def test_who_misspells_a_format_is_told_which_there_are(tmp_path, name, meant):
    for call in (
        lambda: write_snapshot(tmp_path / "a", [1.0], [[0, 0, 0]], format=name),
        lambda: read_snapshot(io.BytesIO(b"1 0 0 0 0 0 0"), format=name),
    ):
        with pytest.raises(ArgumentError, match=f"did you mean {meant}\\?") as caught:
            call()
        assert all(known in str(caught.value) for known in NAMES)


# ---- damage ----------------------------------------------------------------------------


def shortened(name, data):
    """Beginnings of a file, none of which is whole."""
    places = {len(data) // 10, len(data) // 3, len(data) // 2, len(data) - 40}
    if name in ("text", "csv"):  # in the middle of a line
        return [data[: data.rindex(b"\n", 0, -1) + 30]]
    return [data[:place] for place in sorted(places)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("named_so", [True, False])
def test_a_file_cut_short_is_refused_by_its_name(tmp_path, name, named_so):
    path = tmp_path / (f"cut{ending(name)}" if named_so else "cut.bin")
    bodies = plummer(100, seed=1)
    for data in shortened(name, written(*bodies, format=name)):
        path.write_bytes(data)
        for options in ({}, {"format": name}):
            with pytest.raises(SnapshotError, match=str(path)):
                read_snapshot(path, **options)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("text", "csv")])
def test_an_empty_file_is_refused_by_its_name(tmp_path, name):
    path = tmp_path / f"empty{ending(name)}"
    path.write_bytes(b"")
    for options in ({}, {"format": name}):
        with pytest.raises(SnapshotError, match=str(path)):
            read_snapshot(path, **options)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_of_another_format_than_said_is_refused_by_its_name(tmp_path, name):
    path = tmp_path / "other"
    for other in NAMES:
        if other.removesuffix("2") == name.removesuffix("2") or {name, other} == {"text", "csv"}:
            continue
        path.write_bytes(three(other))
        with pytest.raises(SnapshotError, match=str(path)):
            read_snapshot(path, format=name)


@pytest.mark.parametrize("name", NAMES)
def test_random_bytes_said_to_be_of_a_format_are_refused(tmp_path, name):
    path = tmp_path / "noise"
    rng = np.random.default_rng(5)
    for size in (1, 3, 4, 7, 8, 20, 28, 100, 1000, 5000):
        path.write_bytes(rng.bytes(size))
        with pytest.raises(SnapshotError, match=str(path)):
            read_snapshot(path, format=name)
