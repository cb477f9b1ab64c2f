"""What is written is read back: the same bodies, and all that a format says it keeps."""

import io
import re
import struct
import warnings

import numpy as np
import pytest

import hand_made
from as_read import bits
from grape6py import Grape6Warning, Units, plummer, read_snapshot, write_snapshot
from grape6py.errors import ArgumentError, SnapshotError
from grape6py.files.formats import FORMATS, bodies, nemo, source, table, tipsy

NAMES = list(FORMATS)
SINGLE = ["gadget", "gadget2", "nbody6", "tipsy"]  # precision, in which they are written
KEEP_IDS = [name for name in NAMES if "ids" in FORMATS[name].keeps.split()]
TEXTS = ["text", "csv", "starlab", "petar"]
OF_G_ONE = ["nbody6", "starlab"]
TIME = 0.375
HENON = Units("5e4 Msun", "1.2 pc")  # G = 1
GALACTIC = Units("Msun", "kpc", velocity="km/s")
MODEL = plummer(500, seed=1)
NUMBERS = 1 + np.random.default_rng(1).permutation(1500)[:500]


def ending(name):
    return FORMATS[name].endings[0]


def written(*content, **options):
    file = io.BytesIO()
    write_snapshot(file, *content, **options)
    return file.getvalue()


def three(name, **options):
    return written(hand_made.MASS, hand_made.POS, hand_made.VEL, format=name, **options)


@pytest.mark.parametrize(("name", "units"), [
    pytest.param(name, units, id=f"{name}-{units.G:g}") for name in NAMES
    for units in (HENON, GALACTIC) if name not in OF_G_ONE or units.G == 1
])  # fmt: skip
def test_bodies_come_back_with_all_that_the_format_keeps(tmp_path, name, units):
    path = tmp_path / f"cluster{ending(name)}"
    keeps = FORMATS[name].keeps.split()
    lost = [what for what in ("time", "ids", "units") if what not in keeps]
    with warnings.catch_warnings(record=True, action="always") as said:
        write_snapshot(path, MODEL, time=TIME, ids=NUMBERS, units=units)
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
    with warnings.catch_warnings(action="error"):
        found = read_snapshot(path)
    assert found.format.removesuffix("2") == name.removesuffix("2")
    if name not in SINGLE:
        assert bits(found) == bits(MODEL)
    else:
        for array, original in zip(found, MODEL, strict=True):
            assert np.abs(array / original - 1).max() <= 1e-7
    assert found.time == (TIME if "time" in keeps else None)
    assert np.array_equal(found.ids, NUMBERS) if "ids" in keeps else found.ids is None
    if "units" in keeps:
        rel = 1e-6 if name == "nbody6" else 1e-12
        for kind in ("mass", "length", "time"):
            assert found.units.in_cgs(kind) == pytest.approx(units.in_cgs(kind), rel=rel)
    else:
        assert found.units is None


@pytest.mark.parametrize("name", NAMES)
def test_few_bodies_are_written_alike_to_paths_and_files_without_a_warning(tmp_path, name):
    path, other = tmp_path / f"few{ending(name)}", tmp_path / "other"
    for n in (0, 1, 2, 3, 7):
        few = [array[:n] for array in plummer(24, seed=2)]
        with warnings.catch_warnings(action="error"):
            write_snapshot(path, *few)
            with open(other, "w+b") as file:
                write_snapshot(file, *few, format=name)
                assert not file.closed
            found, again = read_snapshot(path), read_snapshot(other, format=name)
        if "hdf5" not in FORMATS[name].title.lower():  # which may have dates in it
            assert other.read_bytes() == path.read_bytes() == written(*few, format=name)
        assert bits(again) == bits(found)
        assert found.units is None
        assert found.mass.shape == (n,)
        assert found.pos.shape == found.vel.shape == (n, 3)
        for array, original in zip(found, few, strict=True):
            assert np.allclose(array, original, rtol=1e-7, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_many_bodies_cross_the_pieces_in_which_files_are_written(name, monkeypatch):
    for module in bodies, nemo, source, table, tipsy:
        monkeypatch.setattr(module, "_PIECE", 1 << 9)
    n = (1 << 12) + 77
    rng = np.random.default_rng(3)
    mass, pos, vel = rng.random(n), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    ids = 1 + rng.permutation(n)
    given = {"ids": ids} if name in KEEP_IDS else {}
    found = read_snapshot(io.BytesIO(written(mass, pos, vel, format=name, **given)), format=name)
    rtol = 1e-7 if name in SINGLE else 0
    for array, original in zip(found, (mass, pos, vel), strict=True):
        assert np.allclose(array, original, rtol=rtol, atol=0)
    assert found.ids is None or np.array_equal(found.ids, ids)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in SINGLE])
def test_extreme_numbers_keep_their_bits(name):
    odd = [5e-324, -5e-324, -0.0, 1.7976931348623157e308, 2.2250738585072014e-308, 1 / 3, 0.1]
    mass = np.array(odd)
    pos = np.column_stack([odd, odd[::-1], np.roll(odd, 2)])
    found = read_snapshot(io.BytesIO(written(mass, pos, -pos, format=name)), format=name)
    if name == "starlab":  # where positions are summed up, and -0 + 0 is 0
        assert [array.tolist() for array in found] == [x.tolist() for x in (mass, pos, -pos)]
    else:
        assert bits(found) == bits((mass, pos, -pos))


@pytest.mark.parametrize("name", KEEP_IDS)
@pytest.mark.parametrize("some", [
    [0, 1, 2], [2**31 - 1, 5, 1], [2**31, 5, 1], [2**32 - 1, 5, 1], [2**32, 5, 1], [2**53, 5, 1],
    [2**53 + 1, 5, 1], [2**63 - 1, 5, 1], [2**63, 5, 1], [2**64 - 1, 5, 1], [-1, 5, 1],
    [-(2**31) - 1, 5, 1], [-(2**63), 5, 1],
], ids=str)  # fmt: skip
def test_ids_come_back_or_are_named_as_lost(name, some):
    given = np.array(some, np.uint64 if max(some) >= 2**63 else np.int64)
    with warnings.catch_warnings(record=True, action="always") as said:
        data = three(name, ids=given)
    found = read_snapshot(io.BytesIO(data), format=name)
    if said:
        assert f"no place for ids from {min(some)} to {max(some)}" in str(said[0].message)
        assert found.ids.tolist() == [1, 2, 3]
    else:
        assert found.ids.tolist() == some
    least, largest = FORMATS[name].ids
    assert bool(said) == (min(some) < least or max(some) > largest)


@pytest.mark.parametrize("name", NAMES)
def test_masses_below_zero_are_said_and_what_is_no_number_is_neither_written_nor_read(name):
    content = {"mass": [-0.5, 0.25, 0.125], "pos": hand_made.POS, "vel": hand_made.VEL}
    data = written(**content, format=name)
    with pytest.warns(Grape6Warning, match=r"1 masses are below zero; of body 0 it is -0\.5"):
        assert read_snapshot(io.BytesIO(data), format=name).mass.tolist() == content["mass"]
    for what in content:
        wrong = np.array(content[what])
        wrong[1] = np.nan
        with pytest.raises(ArgumentError, match=r"of body 1 is (\[ *)?nan"):
            written(**content | {what: wrong}, format=name)
    for form in ("<d", ">d", "<f", ">f") if name not in TEXTS else ():
        data = data.replace(struct.pack(form, 0.25), struct.pack(form, np.nan))
    if name in TEXTS:
        data = re.sub(rb"(0\.25|2\.50*[eE]-0*1)\b", b"nan", data)
    with pytest.raises(SnapshotError, match=r"nan|finite"):
        read_snapshot(io.BytesIO(data), format=name)


CONTENT = {"mass": hand_made.MASS, "pos": hand_made.POS, "vel": hand_made.VEL}
NO_CONTENT = [
    {"ids": [1, 2]}, {"ids": [1.5, 2, 3]}, {"time": np.nan}, {"time": "now"}, {"ids": [[1, 2, 3]]},
    {"vel": [[np.inf] * 3] * 3}, {"vel": np.ones((2, 3))}, {"pos": np.ones((3, 2))},
    {"pos": np.ones((1, 3))}, {"pos": [[1, np.nan, 3]] * 3}, {"mass": [1, 2, np.inf]},
]  # fmt: skip
FULL = np.full((3, 3), 1e39)
TOO_LARGE = {"mass": [1, 2, 1e39]}, {"pos": FULL}, {"vel": -FULL}


@pytest.mark.parametrize("name", NAMES)
def test_what_a_format_cannot_hold_is_refused_before_a_file_is_touched(tmp_path, name):
    path = tmp_path / f"a{ending(name)}"
    path.write_bytes(b"old")
    wrong = [(None, more) for more in NO_CONTENT]
    wrong += [("single|large|beyond", more) for more in TOO_LARGE if name in SINGLE]
    wrong += [("single|large|beyond", {"time": 1e39})] * (name == "nbody6")
    wrong += [("G = 1.*--units 'Msun kpc'", {"units": GALACTIC})] * (name in OF_G_ONE)
    for words, more in wrong:
        with warnings.catch_warnings(action="error"), pytest.raises(ArgumentError, match=words):
            write_snapshot(path, **CONTENT | more)
    assert path.read_bytes() == b"old"


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


OF_OTHERS = """snapshot a.txt a.csv a.h5 a.hdf5 a.nemo a.tipsy a.gadget a.conf3 conf.3_12 OUT3 a.dyn
    data.5 a.amuse a.bin a.gz""".split()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "csv"])
def test_contents_say_the_format_whatever_the_name(tmp_path, name):
    data = three(name, comment="two lines,\nwith µ and\r(Particle\n)Log # 0x92")  # spoils none
    for file_name in OF_OTHERS:
        (tmp_path / file_name).write_bytes(data)
        found = read_snapshot(tmp_path / file_name)
        assert found.pos.tolist() == hand_made.POS
        assert found.format == name or name == "text"


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


@pytest.mark.parametrize("name", NAMES)
def test_a_file_cut_short_or_of_another_format_or_of_none_is_refused_by_its_name(tmp_path, name):
    path, odd = tmp_path / f"cut{ending(name)}", tmp_path / "odd.bin"
    data = written(*plummer(100, seed=1), format=name)
    places = 0, len(data) // 10, len(data) // 3, len(data) // 2, len(data) - 40
    if name in ("text", "csv"):  # in the middle of a line
        places = 0, data.rindex(b"\n", 0, -1) + 30
    for place in places:
        for given, options in ((path, {}), (odd, {}), (odd, {"format": name})):
            given.write_bytes(data[:place])
            with pytest.raises(SnapshotError, match=str(given)):
                read_snapshot(given, **options)
    rng = np.random.default_rng(5)
    wrong = [rng.bytes(size) for size in (1, 3, 4, 7, 8, 20, 28, 100, 1000, 5000)]
    wrong += [
        three(other) for other in NAMES
        if other.removesuffix("2") != name.removesuffix("2") and {name, other} != {"text", "csv"}
    ]  # fmt: skip
    for data in wrong:
        odd.write_bytes(data)
        with pytest.raises(SnapshotError, match=str(odd)):
            read_snapshot(odd, format=name)
