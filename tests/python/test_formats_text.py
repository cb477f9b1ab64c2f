"""Text files as people and programs write them are read, or one line says what to write."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from as_read import assert_bodies, bits, read
from grape6py import Grape6Error, Units, read_snapshot, write_snapshot
from grape6py.errors import SnapshotError
from hand_made import IDS, MASS, POS, VEL

ROWS = [[m, *p, *v] for m, p, v in zip(MASS, POS, VEL, strict=True)]
GALACTIC = Units("Msun", "pc", velocity="km/s")


def text(header, rows=ROWS, separator=" ", start=b""):
    lines = [header] * (header is not None)
    lines += [separator.join(map(str, row)) for row in rows]
    return start + ("\n".join(lines) + "\n").encode()


def before(cells):
    return [[cell, *row] for cell, row in zip(cells, ROWS, strict=True)]


BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize("data", [
    text(None, start=BOM), text("m x y z vx vy vz", start=BOM),
    text("# m,x,y,z,vx,vy,vz", start=BOM),
    text(",m,x,y,z,vx,vy,vz", before(range(3)), ","),  # pandas' to_csv, with its index
    text('"","m","x","y","z","vx","vy","vz"', before(['"1"', '"2"', '"3"']), ","),  # R's
    text("m,x,y,z,vx,vy,vz,", [[*row, ""] for row in ROWS], ","),
    text("type m x y z vx vy vz", before(["MS", "RG", "WD"])),
    text("when,m,x,y,z,vx,vy,vz", before(["2001-01-01", "", "nan"]), ","),
    text("phi m x y z vx vy vz", before(["-", "inf", "1e999"])),
    *(text(header, [[row[k] for k in order] for row in ROWS], separator)
      for header, separator, order in [
          ("# m x y z vx vy vz", " ", range(7)), ("#vz,vy,vx,z,y,x,m", ",", range(6, -1, -1)),
          ("mass\tpos_x\tpos_y\tpos_z\tvel_x\tvel_y\tvel_z", "\t", range(7)),
          ("vel.x vel.y vel.z m pos.x pos.y pos.z", " ", (4, 5, 6, 0, 1, 2, 3))]),
    text("Phi  M  X  Y  Z  VX  VY  VZ", before([1, 2, 3]), "  "),
    text("m x y z u v w"), text("# X,Y,Z,U,V,W,M", [row[1:] + row[:1] for row in ROWS], ","),
    text("u m x y z vx vy vz", before([1, 2, 3])),  # an energy
    text("m [] x [1] y [-] z [nbody] vx [N-body] vy vz (code units)"),
    text("#mass,x,y,z,vx,vy,vz\n#mass,length,length,length,length / time,length / time,"
         "length / time", separator=","),
], ids=lambda data: data.splitlines()[0].decode("utf-8", "replace"))  # fmt: skip
def test_text_of_other_programs_is_read(data):
    found = read(data)
    assert_bodies(found)
    assert found.ids is None
    assert found.units is None


@pytest.mark.parametrize(("header", "separator", "units"), [
    ("m [Msun] x [pc] y [pc] z [pc] vx [km/s] vy [km/s] vz [km/s]", " ", GALACTIC),
    ("#Mass_[Msun]\tx_[pc]\ty_[pc]\tz_[pc]\tvx_[km/s]\tvy_[km/s]\tvz_[km/s]", "\t", GALACTIC),
    ("m[msun],x(pc),y(pc),z(pc),vx [km s^-1],vy (km s-1),vz [km.s**-1]", ",", GALACTIC),
    ("#mass,x,y,z,vx,vy,vz\n#MSun,parsec,parsec,parsec,kms,kms,kms", ",", GALACTIC),  # AMUSE
    ("#mass,x,y,z,vx,vy,vz\n#kg,m,m,m,m / s,m / s,m / s", ",", Units("kg", "m", velocity="m/s")),
    ("# m [1e10 Msun] x [kpc] y [kpc] z [kpc] vx [km/s] vy [km/s] vz [km/s]", " ",
     Units("1e10 Msun", "kpc", velocity="km/s")),
])  # fmt: skip
def test_units_of_a_header_are_those_of_the_bodies(header, separator, units):
    found = read(text(header, separator=separator))
    assert_bodies(found)
    assert found.units == units


@pytest.mark.parametrize(("data", "complaint"), [
    (text(None, before(IDS)), "8 columns instead of 7 .*first line, as '# id m x y z vx vy vz'"),
    (text("# x y z vx vy vz mu", [row[1:] + row[:1] for row in ROWS]), "no column of m: write"),
    (text("id x y z vx vy vz", ROWS), "no column of m: write"),
    (text("m x y z vx vy w"), "not all of vx, vy and vz"),
    (text("m x y z v_x vel_y", [row[:6] for row in ROWS]), "not all of vx, vy and vz"),
    (text("m x y z x vy vz"), "two columns of x"), (text("# m mass x y z vx vy vz",
                                                          before(MASS)), "two columns of m"),
    (text("m [Msun] x [pc] y [pc] z [kpc] vx vy vz"), r"x \[pc\], y \[pc\], z \[kpc\]"),
    (text("m [Msun] x [pc] y [pc] z [pc] vx vy vz"), "no unit of velocity: give all"),
    (text("m x [pc] y [pc] z [pc] vx [km/s] vy [km/s] vz [km/s]"), "no unit of mass"),
    (text("m [Msum] x [pc] y [pc] z [pc] vx [km/s] vy [km/s] vz [km/s]"), "did you mean Msun"),
    (text("m x y z vx vy vz id", [[*row, 1.5] for row in ROWS]), ":2: id = 1.5 is no whole number"),
    (text("m x y z vx vy vz name", [[*row, "Sun"] for row in ROWS]), ":2: id = 'Sun'"),
    (text("m x y z vx vy vz id", [[*row, 2**64] for row in ROWS]), ":2: .*beyond 64 bits"),
    (text("m x y z vx vy vz id", [[*row, "9007199254740993.0"] for row in ROWS]), ":2: id ="),
    (b"", "it is empty"),
    (text("id m x y z vx vy vz", before([-1, 2**63, 1])), r"below zero, and some above 2\^63"),
], ids=lambda data: data[:40] if isinstance(data, str) else None)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_what_to_write(data, complaint):
    with pytest.raises(SnapshotError, match=complaint):
        read(data, format="text")


@pytest.mark.parametrize("word", ["(", "[", "_", ".", " (", "((]", "m,", "#"])
def test_a_header_of_many_characters_is_answered_at_once(word):
    with pytest.raises(SnapshotError):
        read(text("a" + 60000 // len(word) * word + " m x y z", [[1]]))
    with pytest.raises(SnapshotError):
        read(text("#m,x,y,z\n#" + 15000 // len(word) * word + ",km -1,m,m", [[1]]))


@pytest.mark.parametrize("ids", [
    [2**53 + 1, 2**53 + 3, 1], [2**63 - 1, -(2**63), 0], [2**64 - 1, 2**63, 5], [-1, -1, 7],
], ids=str)  # fmt: skip
@pytest.mark.parametrize("header", ["id,m,x,y,z,vx,vy,vz", "index,m,x,y,z,vx,vy,vz"])
def test_ids_of_64_bits_are_exact(ids, header):
    assert read(text(header, before(ids), ",")).ids.tolist() == ids
    words = [f"{n}" for n in ids]
    words[2] += ".0" if abs(ids[2]) < 10 else ""
    assert read(text(header, before(words), ",")).ids.tolist() == ids


def test_ids_of_many_pieces_of_a_file_are_exact():
    """Some pieces are read quickly, and one of them has an id that no double has."""
    n = 30000
    ids = np.arange(n)
    ids[n // 2] = 2**53 + 1
    file = io.BytesIO()
    write_snapshot(file, np.ones(n), np.random.default_rng(1).random((n, 3)), ids=ids, format="csv")
    assert len(file.getvalue()) > 2 << 20  # bytes of two pieces
    assert np.array_equal(read(file.getvalue()).ids, ids)


def test_of_several_columns_that_may_be_ids_the_surest_is_taken():
    rows = [[k, name, i, *row] for k, name, i, row in zip(range(3), "abc", IDS, ROWS, strict=True)]
    assert read(text("index name id m x y z vx vy vz", rows)).ids.tolist() == IDS


@pytest.mark.parametrize("word", ["1.5E1", "1.5D+01", "1.5q1", "+15.000", "15", "1.5+1", "1.5Q01"])
def test_exponents_of_fortran_are_read(word):
    assert read(f"1-100 2.5+100 .5-200 {word} 0 0 1D-300".encode()).vel.tolist() == [[0, 0, 1e-300]]
    assert read(f"1 2 {word} 4 5 6 7".encode()).pos.tolist() == [[2, 15, 4]]


FINITE = st.floats(allow_nan=False, allow_infinity=False)


def parsed(text):
    return read_snapshot(io.StringIO(text))


@pytest.mark.filterwarnings("ignore:.*below zero:grape6py.Grape6Warning")
@given(arrays(np.float64, st.tuples(st.integers(0, 5), st.just(7)), elements=FINITE))
def test_what_is_written_is_read_back_with_the_same_bits(table):
    mass, pos, vel = table[:, 0], table[:, 1:4], table[:, 4:]
    file = io.StringIO()
    write_snapshot(file, mass, pos, vel)
    file.seek(0)
    assert bits(read_snapshot(file)) == bits((mass, pos, vel))


def test_comments_and_blank_lines_are_skipped():
    found = parsed("# a comment\n\n  \t\n1 2 3 4 5 6 7 # the only body\n   # the end")
    assert_bodies(found, [1.0], [[2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0]])


@pytest.mark.parametrize(("line", "complaint"), [
    ("1 2 3", "3 columns instead of 7"),
    ("1", "1 column instead of 7"),
    ("1 2 3 4 5 6 7 8", "8 columns instead of 7"),
    ("1 2 nan 4 5 6 7", "y = 'nan' is not a finite number"),
    ("inf 2 3 4 5 6 7", "m = 'inf' is not a finite number"),
    ("1 2 3 4 5 6 ******", "vz = '******' is not a finite number"),
    ("1 2 3 4 5 1_0 7", "vy = '1_0' is not a finite number"),
    ("1 2 3 4 0x10 6 7", "vx = '0x10' is not a finite number"),
    ("1 2 3 \u0661 5 6 7", "z = '\u0661' is not a finite number"),
    ("1 1e400 3 4 5 6 7", "x = 1e400 is beyond double precision"),
])  # fmt: skip
def test_a_malformed_line_is_named_with_its_fault(tmp_path, line, complaint):
    path = tmp_path / "bad.txt"
    path.write_text(f"# three lines\n1 2 3 4 5 6 7\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_snapshot(path)
    assert str(caught.value).startswith(f"{path}:3: {complaint}")
    assert isinstance(caught.value, Grape6Error)


def test_every_malformed_line_is_named_up_to_twenty():
    with pytest.raises(ValueError, match="3 columns") as caught:
        parsed("1 2 3\n1 2 3 4 5 6 7\n1 2 3 4 5 6 x\n")
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["1", "3"]
    with pytest.raises(ValueError, match=r"and 5 more such lines") as caught:
        parsed("1 2 3\n" * 25)
    assert len(str(caught.value).splitlines()) == 21
