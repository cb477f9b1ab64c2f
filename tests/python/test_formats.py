"""Files that other codes write are read as those codes mean them; hand_made.py has the layouts.

Those in HDF5 are in test_formats_hdf5.py.
"""

import contextlib
import io

import numpy as np
import pytest

import hand_made
from as_read import assert_all, assert_bodies, read
from grape6py import Grape6Warning, Units, read_snapshot
from grape6py.errors import SnapshotError
from grape6py.files.formats import FORMATS
from hand_made import IDS, MASS, POS, TIME, VEL

CODES = ("<", ">")

# ---- NEMO ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", CODES)
@pytest.mark.parametrize("real", "fd")
@pytest.mark.parametrize("form", ["PhaseSpace", "Position"])
@pytest.mark.parametrize("keys", [None, "i", "l"])
def test_nemo_of_any_machine_and_form(order, real, form, keys):
    found = read(hand_made.nemo(order, real=real, form=form, keys=keys))
    assert_all(found, "nemo", ids=IDS if keys else None)
    assert found.units is None


@pytest.mark.parametrize("order", CODES)
def test_nemo_masses_of_an_earlier_snapshot_hold_for_a_later_one(order):
    data = hand_made.nemo_of_two(order)
    shifted = (np.array(POS) + 100).tolist()
    for which in (-1, 1):
        found = read(data, which)
        assert_bodies(found, pos=shifted)
        assert found.time == 2.5
    for which in (0, -2):
        assert_all(read(data, which), "nemo", ids=None)
    for which in (2, -3):  # what has energies alone is no snapshot of bodies
        with pytest.raises(SnapshotError, match=r"2 snapshots.*number"):
            read(data, which)


@pytest.mark.parametrize(("old", "new", "complaint"), [
    (b"i\0Nobj\0\3", b"i\0Nobj\0\4", "Nobj is 4"), (b"d\0Mass", b"i\0Mass", "Mass|item|ends?"),
    (b"PhaseSpace", b"PhaseSpice", "neither PhaseSpace nor Position"),
    (b"d\0Mass\0\3", b"d\0Mass\0\xff", "Mass|item|end"), (b"SnapShot", b"SnapShut", "0 snapshots"),
    (b"d\0Mass", b"q\0Mass", "unknown type"),
])  # fmt: skip
def test_nemo_that_contradicts_itself_is_refused(old, new, complaint):
    data = hand_made.nemo()
    assert old in data
    with pytest.raises(SnapshotError, match=complaint):
        read(data.replace(old, new))


# ---- Starlab ---------------------------------------------------------------------------


def test_starlab_places_are_summed_up_to_the_root():
    found = read(hand_made.dyn())
    assert found.format == "starlab"
    assert_bodies(found, *hand_made.DYN_BODIES)
    assert found.ids.tolist() == hand_made.DYN_IDS
    assert found.time == 0.5
    assert found.units is None  # scales of -1 are none


def test_starlab_scales_of_the_root_are_its_units():
    units = read(hand_made.dyn(scales=hand_made.SCALES)).units
    assert units.value("mass", "Msun") == pytest.approx(1e4, rel=1e-12)
    assert units.value("length", "Rsun") == pytest.approx(4e7, rel=1e-12)
    assert units.G == 1  # time_scale is that of Starlab's rounded constants
    # A year is 2 pi (AU^3 / G Msun)^(1/2), and 1 AU 215.03 Rsun.
    assert units.value("time", "Myr") == pytest.approx(
        1e-6 / (2 * np.pi) * (4e7 / 215.032) ** 1.5 / 1e4**0.5, rel=1e-4
    )


@pytest.mark.parametrize("scales", [(1, 1, 1), (1, 1, -1), (-1, -1, -1), (2, -1, 1), (-1, 2, 1)])
def test_starlab_scales_that_were_never_set_are_no_units(scales):
    names = ("mass_scale", "size_scale", "time_scale")
    lines = "".join(f"  {name}  =  {s}\n" for name, s in zip(names, scales, strict=True))
    assert read(hand_made.dyn(scales=lines)).units is None


def test_a_time_scale_of_starlab_that_contradicts_the_others_is_said():
    lines = hand_made.SCALES.replace("8.1", "2")
    with pytest.warns(Grape6Warning, match=r"time_scale, by which it is 0\.5 Myr, is left out"):
        assert read_snapshot(io.BytesIO(hand_made.dyn(scales=lines))).units.G == 1


def test_starlab_snapshots_follow_each_other():
    later = hand_made.dyn(time="  system_time  =  1.25\n").replace(b"10 0 0", b"0 0 0")
    data = hand_made.dyn() + later
    assert read(data, 0).time == 0.5
    found = read(data)
    assert found.time == 1.25
    assert found.pos[:, 0].tolist() == [-1.0, -1.0, 2.0]
    with pytest.raises(SnapshotError, match="2 snapshots"):
        read(data, 2)


@pytest.mark.parametrize("time", [
    "  real_system_time  =  12.5\n  system_time  =  12 0x8000000000000000\n",
    "  real_system_time  =  12.5\n  system_time  =  12 8000000000000000\n",
], ids=["with-0x", "without"])  # fmt: skip
def test_starlab_time_of_extended_precision_is_understood(time):
    """As kira writes it where Starlab was built with xreal: whole part, and fraction / 2^64."""
    assert read(hand_made.dyn(time=time)).time == 12.5


@pytest.mark.parametrize(("old", "new"), [
    ("m  =  0.125", "m  =  nan"), ("r  =  2 0 0", "r  =  2 0"), ("i = 2", "i = two"),
])  # fmt: skip
def test_starlab_faults_are_named_by_their_line(old, new):
    text = hand_made.dyn().decode()
    before, found, after = text.rpartition(old)
    assert found
    with pytest.raises(SnapshotError, match=f"line {before.count(chr(10)) + 1}"):
        read((before + new + after).encode())


# ---- Tipsy -----------------------------------------------------------------------------


@pytest.mark.parametrize("order", CODES)
@pytest.mark.parametrize("header", [28, 32])
def test_tipsy_of_any_machine_with_gas_dark_and_star_particles(order, header):
    found = read(hand_made.tipsy(order, header))
    assert_all(found, "tipsy", ids=None)
    assert found.units is None


def test_tipsy_of_bonsai_has_ids_in_place_of_softening_and_potential():
    ids = [3 * 10**18 + 5, 7, 2 * 10**18 + 1]
    found = read(hand_made.bonsai())
    assert_all(found, "tipsy", ids=ids)


@pytest.mark.parametrize("more", [
    {"version": 0}, {"order": ">"}, {"gas": 1}, {"ids": [5, 7, 8]}, {"ids": [2**62, 2**62, 1]},
    {"ids": [2**63 + 1, 7, 8]},
], ids=str)  # fmt: skip
def test_tipsy_that_may_not_be_of_bonsai_has_no_ids(more):
    assert_all(read(hand_made.bonsai(**more)), "tipsy", ids=None)


# ---- Gadget, binary --------------------------------------------------------------------


@pytest.mark.parametrize("order", CODES)
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("real", "fd")
@pytest.mark.parametrize("integer", "IQ")
def test_gadget_of_any_machine_with_masses_of_the_header_and_of_their_block(
    order, labels, real, integer
):
    data = hand_made.gadget(order, labels, real, integer)
    found = read(data)
    assert found.format.startswith("gadget")
    assert_all(found, found.format)
    for name in ("gadget", "gadget2"):
        assert_all(read(data, format=name), name)


def test_gadget_needs_no_block_of_masses_if_the_header_has_all():
    found = read(hand_made.gadget(bodies=((1, 0.5), (2, 0.25), (5, 0.125))))
    assert_all(found, found.format)
    gas = read(hand_made.gadget(bodies=((0, 0.5), (2, 0.25), (5, 0.125))))  # energies behind ids
    assert_all(gas, gas.format)


@pytest.mark.parametrize("blocks", ["HEAD,POS ,ID  ,VEL ,MASS", "HEAD,POS ,VEL ,ID  ,U   ,MASS"])
def test_gadget_blocks_with_labels_stand_in_any_order(blocks):
    found = read(hand_made.gadget(labels=True, labelled_order=blocks.split(",")))
    assert_all(found, found.format)


def test_gadget_ids_of_eight_bytes_are_whole():
    large = [2**53 + 1, 2**63 + 5, 3]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hand_made, "IDS", large)
        found = read(hand_made.gadget(integer="Q"))
    assert found.ids.tolist() == large


@pytest.mark.parametrize("labels", [False, True])
def test_gadget_in_two_files_is_one_snapshot(tmp_path, labels):
    for k, of in enumerate([(0, 1), (2,)]):
        data = hand_made.gadget(labels=labels, of=of, files=2)
        (tmp_path / f"snap_003.{k}").write_bytes(data)
    for k in (0, 1):
        found = read_snapshot(tmp_path / f"snap_003.{k}")
        assert_all(found, found.format)
    (tmp_path / "snap_003.1").unlink()
    with pytest.raises(SnapshotError, match=r"snap_003\.0.*snap_003\.1 is not there"):
        read_snapshot(tmp_path / "snap_003.0")
    (tmp_path / "elsewhere").write_bytes(data)
    with pytest.raises(SnapshotError, match=r"elsewhere.*2 files"):
        read_snapshot(tmp_path / "elsewhere")


@pytest.mark.parametrize("labels", [False, True])
def test_gadget_of_an_expanding_universe_warns(labels):
    data = hand_made.gadget(labels=labels, cosmology=(0.3, 2.0))
    with pytest.warns(Grape6Warning, match="comoving"):
        read_snapshot(io.BytesIO(data))


# ---- NBODY6 ----------------------------------------------------------------------------


def assert_nbody6(found, time=TIME):
    mass, pos, vel = (column[:5] for column in hand_made.NBODY)
    assert found.format == "nbody6"
    assert_bodies(found, mass, pos, vel)
    assert found.ids.tolist() == [1, 2, 3, 4, 5]
    assert found.time == time


@pytest.mark.parametrize("order", CODES)
@pytest.mark.parametrize("layout", ["nbody6", "nbody6++", "nbody4"])
@pytest.mark.parametrize("nk", [20, 30])
def test_nbody6_of_each_code_without_the_centres_of_mass_of_its_pairs(order, layout, nk):
    assert_nbody6(read(hand_made.nbody6(layout, order, nk=nk)))


@pytest.mark.parametrize("layout", ["nbody6", "nbody6++", "nbody4"])
def test_nbody6_has_units_of_g_one_from_its_length_and_velocity(layout):
    units = read(hand_made.nbody6(layout, rbar=2.0, vstar=1.5)).units
    assert pytest.approx(1) == units.G
    assert units.value("length", "pc") == pytest.approx(2, rel=1e-6)
    assert units.value("velocity", "km/s") == pytest.approx(1.5, rel=1e-6)
    assert units.value("mass", "Msun") == pytest.approx(1.5**2 * 2 / 4.30091e-3, rel=1e-5)
    assert read(hand_made.nbody6(layout, rbar=0.0, vstar=0.0)).units is None


@pytest.mark.parametrize("layout", ["nbody6", "nbody6++", "nbody4"])
def test_nbody6_snapshots_follow_each_other(layout):
    data = hand_made.nbody6(layout) + hand_made.nbody6(layout, time=2.75, pairs=0)
    assert_nbody6(read(data, 0))
    found = read(data)
    assert found.time == 2.75
    assert len(found.mass) == 7
    assert found.ids.tolist() == hand_made.NAMES
    with pytest.raises(SnapshotError, match="2 snapshots"):
        read(data, -3)


@pytest.mark.parametrize("pairs", [-1, 0.5, 3, np.nan, np.inf])
def test_nbody6_with_an_impossible_number_of_pairs_is_refused(pairs):
    with pytest.raises(SnapshotError, match="pairs"):
        read(hand_made.nbody6(pairs=pairs))


# ---- PeTar -----------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [19, 20, 24, 34])
@pytest.mark.parametrize("make", [hand_made.petar_text, hand_made.petar_binary])
def test_petar_with_and_without_stellar_evolution(make, columns):
    found = read(make(columns))
    assert_all(found, "petar")
    assert found.units is None


@pytest.mark.parametrize("columns", [20, 24, 34])
@pytest.mark.parametrize("make", [hand_made.petar_text, hand_made.petar_binary])
def test_petar_with_an_external_potential_keeps_its_ids(make, columns):
    """Makefile.in: such a PeTar writes the frame in the header and pot_ext before n_nb."""
    found = read(make(columns, external=True, copies=4))
    assert_bodies(found, MASS * 4, POS * 4, VEL * 4)
    assert found.time == TIME
    assert found.ids.tolist() == IDS * 4


@pytest.mark.parametrize("columns", [20, 24, 34])
def test_petar_of_three_bodies_in_an_external_potential_is_no_riddle(columns):
    """48 bytes more of a header are two columns more of three bodies, if any columns will do."""
    assert_bodies(read(hand_made.petar_binary(columns, external=True)))


def test_petar_with_fewer_or_more_particles_than_it_names_is_refused():
    text = hand_made.petar_text().decode()
    for other in (text[: text.rindex("\n", 0, -1) + 1], text.replace("3 3 ", "3 4 ", 1)):
        with pytest.raises(SnapshotError, match=r"names \d particles, and has \d"):
            read(other.encode())


def test_petar_that_has_only_a_comment_is_refused():
    with pytest.raises(SnapshotError):
        read(b"0 3 0.0\n#" + b" 1" * 20 + b"\n")


# ---- text ------------------------------------------------------------------------------


def in_columns(names, separator=" ", start=""):
    """A header and rows of what is named, and of numbers of no meaning."""
    columns = dict(
        zip(
            ["m", "x", "y", "z", "vx", "vy", "vz", "id"],
            np.transpose([[m, *p, *v, i] for m, p, v, i in zip(MASS, POS, VEL, IDS, strict=True)]),
            strict=True,
        )
    )
    known = [columns.get(name, np.arange(3.0) - 77) for name in names.values()]
    rows = [separator.join(f"{x:.17g}" for x in row) for row in np.transpose(known)]
    return "\n".join([start + separator.join(names), *rows, ""]).encode()  # fmt: skip


@pytest.mark.parametrize(("names", "separator", "start"), [
    ("m x y z vx vy vz id", " ", "# "), ("id mass x y z vx vy vz", ",", ""),
    ("mass pos_x pos_y pos_z vel_x vel_y vel_z id", "\t", ""),
    ("vz vy vx z y x m id density", ",", "#"),
    ("index m pos.x pos.y pos.z vel.x vel.y vel.z", ";", "# "),
    ("Name M X Y Z VX VY VZ phi", "  ", ""),
])  # fmt: skip
def test_text_columns_stand_in_the_order_of_the_header(names, separator, start):
    known = {"mass": "m", "index": "id", "name": "id"}
    plain = {
        word: known.get(word.lower(), word.lower())
        .replace("pos_", "").replace("pos.", "").replace("vel_", "v").replace("vel.", "v")
        for word in names.split()
    }  # fmt: skip
    found = read(in_columns(plain, separator, start))
    assert_all(found, "text", time=None)


def test_csv_of_amuse_is_read_by_its_header():
    rows = [[m, *v, *p] for m, p, v in zip(MASS, POS, VEL, strict=True)]
    lines = [",".join(map(str, row)) for row in rows]
    text = "\n".join(["#mass,vx,vy,vz,x,y,z", "#kg,m / s,m / s,m / s,m,m,m", *lines, ""])
    assert_bodies(read(text.encode()))
    assert_bodies(read(text.encode(), format="csv"))


@pytest.mark.parametrize("separator", [" ", ",", ";", "\t", " , ", "  \t "])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n# a remark\n"])
def test_text_of_seven_columns_with_any_separator_and_end(separator, end):
    data = hand_made.lines(separator).replace(b"\n", end)
    assert_all(read(data), "text", time=None, ids=None)
    assert_bodies(read(data.rstrip()))


@pytest.mark.parametrize("text", [
    "1,5 0 0 0 0 0 0", "1,5 0,5 0,25 0 0 0 0", "0 0 0 0 0 1,5", "1, 2, 3, 4, 5, 6 7",
    "1,,2,3,4,5,6",
])  # fmt: skip
def test_commas_are_no_decimal_points(text):
    for lines in (text, "1 2 3 4 5 6 7\n" + text):
        with pytest.raises(SnapshotError, match=r"not a finite number|column"):
            read(lines.encode())


@pytest.mark.parametrize("write", ["{:.17E}", "{:+.3f}", "{:.10e}", "{:d}"])
@pytest.mark.parametrize("letter", "edDQ")
def test_text_with_exponents_of_fortran(write, letter):
    rows = [[int(8 * m), *(int(4 * x) for x in p + v)] for m, p, v in
            zip(MASS, POS, VEL, strict=True)]  # fmt: skip
    numbers = "d" in write
    words = [[write.format(x if numbers else float(x)) for x in row] for row in rows]
    text = "\n".join(" ".join(words).replace("e", letter).replace("E", letter) for words in words)
    found = read(text.encode())
    assert np.column_stack(found).tolist() == rows


def test_text_with_three_digits_of_exponent_needs_no_letter():
    assert read(b"1-100 2.5+100 .5-200 0 0 0 1D-300").mass[0] == 1e-100
    assert np.column_stack(read(b"1-100 2.5+100 .5-200 0 0 0 1D-300")).tolist() == [
        [1e-100, 2.5e100, 0.5e-200, 0, 0, 0, 1e-300]
    ]


@pytest.mark.parametrize("word", ["9" * 10**6, "0." + "3" * 10**6 + "x", "1" + " " * 10**6 + "1,"],
                         ids=["digits", "decimals", "blanks"])  # fmt: skip
def test_a_line_of_a_million_characters_is_answered_at_once(word):
    with pytest.raises(SnapshotError) as caught:  # a time that grows with its square is hours
        read(f"0 0 0 0 0 0 {word}\n".encode())
    assert len(str(caught.value)) < 200


# ---- several snapshots ----

CUT = {
    "nemo": (hand_made.nemo_of_two(), "ends?|end at"),
    "starlab": (hand_made.dyn(scales="") * 2, "incomplete"),
    "nbody6": (hand_made.nbody6() * 2, "end at"),
}


@pytest.mark.parametrize("name", CUT)
def test_of_a_file_that_is_cut_the_snapshots_before_are_read_with_a_warning(name):
    data, complaint = CUT[name]
    found = read(data, 0)
    assert found.moments == 2
    cut = io.BytesIO(data[:-20])
    for which in (-1, 0):
        with pytest.warns(Grape6Warning, match=f"({complaint}).*1 of them.*number 0 is read"):
            first = read_snapshot(cut, which)
        assert [x.tobytes() for x in first] == [x.tobytes() for x in found]
    for which in (-2, 1):
        with pytest.raises(SnapshotError, match=complaint):
            read(data[:-20], which)


def test_nemo_without_masses_says_so():
    with pytest.raises(SnapshotError, match="no Mass"):
        read(hand_made.nemo(mass=False))


# ---- whatever the format ---------------------------------------------------------------

MAKERS = {
    "nemo": hand_made.nemo, "starlab": hand_made.dyn, "tipsy": hand_made.tipsy,
    "gadget": hand_made.gadget, "gadget2": lambda: hand_made.gadget(labels=True),
    "gadget-hdf5": hand_made.gadget_hdf5, "nbody6": hand_made.nbody6,
    "petar": hand_made.petar_text, "amuse": hand_made.amuse, "text": hand_made.lines,
    "csv": lambda: hand_made.lines(","),
}  # fmt: skip
HAND_MADE = {name: make() for name, make in MAKERS.items()}


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_file_is_read_from_any_source(tmp_path, name):
    (tmp_path / "a").write_bytes(HAND_MADE[name])
    found = [
        read(HAND_MADE[name]),
        read_snapshot(tmp_path / "a"),
        read_snapshot(str(tmp_path / "a")),
    ]
    with open(tmp_path / "a", "rb") as file:
        found.append(read_snapshot(file))
        assert not file.closed
    found.append(read(HAND_MADE[name], format=name))
    for other in found[1:]:
        assert [x.tobytes() for x in other] == [x.tobytes() for x in found[0]]
        assert other.time == found[0].time


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_snapshot_that_a_file_has_not_is_refused(name):
    for which in (-1, 0):
        assert len(read(HAND_MADE[name], which).mass) >= 3
    for which in (1, -2):
        with pytest.raises(SnapshotError, match=rf"has 1 \w+, and not number {which}"):
            read(HAND_MADE[name], which)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_no_bytes_is_no_file_of_no_bodies(tmp_path, name):
    path = tmp_path / f"a{FORMATS[name].endings[0]}"
    path.touch()
    for named in (None, name):
        with pytest.raises(SnapshotError, match=rf"{path}: it is empty"):
            read_snapshot(path, format=named)


@pytest.mark.parametrize("name", HAND_MADE)
def test_masses_below_zero_are_said(name, monkeypatch):
    monkeypatch.setattr(hand_made, "MASS", [-0.5, 0.25, 0.125])
    monkeypatch.setattr(hand_made, "NBODY", ([-0.5] * 7, *hand_made.NBODY[1:]))
    monkeypatch.setattr(hand_made, "DYN", hand_made.DYN.replace("m  =  0.5", "m  =  -0.5"))
    with pytest.warns(Grape6Warning, match=r"below zero; of body 0 it is -0\.5"):
        read_snapshot(io.BytesIO(MAKERS[name]()))


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_number_that_is_none_is_named_with_the_file(tmp_path, name):
    """What is no number in one body, in the format's own way of writing it."""
    bad, path = np.nan, tmp_path / "odd"
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(hand_made, "POS", [[1.0, 2.0, 3.0], [-4.0, bad, 6.0], [7.0, 8.0, 9.0]])
        patch.setattr(hand_made, "NBODY", (hand_made.NBODY[0], [[bad] * 3] * 7, hand_made.NBODY[2]))
        patch.setattr(hand_made, "DYN", hand_made.DYN.replace("0 4 0", "0 nan 0"))
        made = MAKERS[name]()
    path.write_bytes(made)
    with pytest.raises(SnapshotError, match=str(path)):
        read_snapshot(path)


def test_units_of_a_file_are_units():
    assert isinstance(read(hand_made.nbody6()).units, Units)
