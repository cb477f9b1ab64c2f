"""Files that other codes write are read as those codes mean them; hand_made.py has the layouts.

Those in HDF5 are in test_formats_hdf5.py."""

import io
from itertools import product

import numpy as np
import pytest

import hand_made
from as_read import assert_all, assert_bodies, bits, read
from grape6py import Grape6Warning, read_snapshot
from grape6py.cli import main
from grape6py.errors import ArgumentError, SnapshotError
from hand_made import IDS, MASS, POS, VEL

CODES = ("<", ">")
NBODY = dict(
    zip(("mass", "pos", "vel"), (rows[:5] for rows in hand_made.NBODY), strict=True),
    ids=[1, 2, 3, 4, 5],  # without the centres of mass of pairs
)
DYN = dict(zip(("mass", "pos", "vel"), hand_made.DYN_BODIES, strict=True), ids=hand_made.DYN_IDS)
FOURFOLD = {"mass": MASS * 4, "pos": POS * 4, "vel": VEL * 4, "ids": IDS * 4}
BONSAI = [3 * 10**18 + 5, 7, 2 * 10**18 + 1]
FRACTION = "  real_system_time  =  12.5\n  system_time  =  12 {}8000000000000000\n"
LABELLED = ["HEAD,POS ,ID  ,VEL ,MASS", "HEAD,POS ,VEL ,ID  ,U   ,MASS"]
HEADER_MASSES = [((kind, 0.5), (2, 0.25), (5, 0.125)) for kind in (1, 0)]
SCALES = [(1, 1, 1), (1, 1, -1), (-1, -1, -1), (2, -1, 1), (-1, 2, 1)]


def scales(*numbers):
    names = "mass_scale", "size_scale", "time_scale"
    return "".join(f"  {n}  =  {x}\n" for n, x in zip(names, numbers, strict=True))


# The bytes, the format, and what is found besides the bodies of hand_made. None has units.
READ = [
    *((hand_made.nemo(order, real=real, form=form, keys=keys), "nemo", {"ids": keys and IDS})
      for order, real, form, keys in product(CODES, "fd", ["PhaseSpace", "Position"],
                                             [None, "i", "l"])),
    (hand_made.dyn(), "starlab", {"time": 0.5} | DYN),  # places are summed up to the root
    *((hand_made.dyn(time=FRACTION.format(x)), "starlab", {"time": 12.5} | DYN)
      for x in ("0x", "")),  # as kira writes it where Starlab was built with xreal
    *((hand_made.dyn(scales=scales(*some)), "starlab", {"time": 0.5} | DYN) for some in SCALES),
    *((hand_made.tipsy(order, header), "tipsy", {"ids": None})
      for order in CODES for header in (28, 32)),
    (hand_made.bonsai(), "tipsy", {"ids": BONSAI}),  # in place of softening and potential
    *((hand_made.bonsai(**more), "tipsy", {"ids": None}) for more in (
        {"version": 0}, {"order": ">"}, {"gas": 1}, {"ids": [5, 7, 8]},
        {"ids": [2**62, 2**62, 1]}, {"ids": [2**63 + 1, 7, 8]})),  # that may not be of bonsai
    *((hand_made.gadget(order, labels, real, integer), f"gadget{'2' * labels}", {})
      for order, labels, real, integer in product(CODES, (False, True), "fd", "IQ")),
    *((hand_made.gadget(bodies=bodies), "gadget", {}) for bodies in HEADER_MASSES),
    *((hand_made.gadget(labels=True, labelled_order=blocks.split(",")), "gadget2", {})
      for blocks in LABELLED),
    *((hand_made.nbody6(layout, order, nk=nk, rbar=0.0, vstar=0.0), "nbody6", NBODY)
      for layout, order, nk in product(["nbody6", "nbody6++", "nbody4"], CODES, (20, 30))),
    *((make(columns), "petar", {}) for columns in (19, 20, 24, 34)
      for make in (hand_made.petar_text, hand_made.petar_binary)),
    # Makefile.in: with an external potential PeTar writes the frame in the header and pot_ext
    # before n_nb. 48 bytes more of a header are two columns more of three bodies.
    *((make(columns, external=True, copies=copies), "petar", FOURFOLD if copies == 4 else {})
      for columns in (20, 24, 34) for make, copies in (
          (hand_made.petar_text, 4), (hand_made.petar_binary, 4), (hand_made.petar_binary, 1))),
    *((hand_made.lines(separator).replace(b"\n", end), "text", {"time": None, "ids": None})
      for separator in [" ", ",", ";", "\t", " , ", "  \t "]
      for end in [b"\n", b"\r\n", b"\n\n# a remark\n"]),
    (hand_made.lines().rstrip(), "text", {"time": None, "ids": None}),
]  # fmt: skip


@pytest.mark.parametrize(("data", "name", "more"), READ,
                         ids=[f"{row[1]}{k}" for k, row in enumerate(READ)])  # fmt: skip
def test_files_of_other_codes_are_read_as_these_mean_them(data, name, more):
    for given in [{}, {"format": name}]:
        found = read(data, **given)
        assert_all(found, name, **more)
        assert found.units is None
    if name.startswith("gadget"):
        assert_all(read(data, format="gadget"), "gadget", **more)


def faulty_dyn(old, new):
    """The last of some words is another; and the line that is named."""
    before, _, after = hand_made.dyn().decode().rpartition(old)
    return (before + new + after).encode(), rf"line {before.count(chr(10)) + 1}\b"


NEMO, PETAR = hand_made.nemo(), hand_made.petar_text()
NUMBER = r"not a finite number|column"
REFUSED = [
    *((NEMO.replace(old, new), words) for old, new, words in [
        (b"i\0Nobj\0\3", b"i\0Nobj\0\4", "Nobj is 4"),
        (b"d\0Mass", b"i\0Mass", "Mass|item|ends?"), (b"SnapShot", b"SnapShut", "0 snapshots"),
        (b"PhaseSpace", b"PhaseSpice", "neither PhaseSpace nor Position"),
        (b"d\0Mass\0\3", b"d\0Mass\0\xff", "Mass|item|end"),
        (b"d\0Mass", b"q\0Mass", "unknown type"),
    ]),
    (hand_made.nemo(mass=False), "no Mass"),
    *(faulty_dyn(*change) for change in [
        ("m  =  0.125", "m  =  nan"), ("r  =  2 0 0", "r  =  2 0"), ("i = 2", "i = two")]),
    *((hand_made.nbody6(pairs=pairs), "pairs") for pairs in (-1, 0.5, 3, np.nan, np.inf)),
    *((data, r"names \d particles, and has \d") for data in (
        PETAR[: PETAR.rindex(b"\n", 0, -1) + 1], PETAR.replace(b"3 3 ", b"3 4 ", 1))),
    (b"0 3 0.0\n#" + b" 1" * 20 + b"\n", None),  # PeTar that has only a comment
    # Commas are no decimal points.
    *((before + line, NUMBER) for before in (b"", b"1 2 3 4 5 6 7\n") for line in [
        b"1,5 0 0 0 0 0 0", b"1,5 0,5 0,25 0 0 0 0", b"0 0 0 0 0 1,5", b"1, 2, 3, 4, 5, 6 7",
        b"1,,2,3,4,5,6"]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "complaint"), REFUSED)
def test_what_contradicts_itself_is_refused(data, complaint):
    with pytest.raises(SnapshotError, match=complaint):
        read(data)


def test_starlab_scales_of_the_root_are_its_units():
    units = read(hand_made.dyn(scales=hand_made.SCALES)).units
    assert units.value("mass", "Msun") == pytest.approx(1e4, rel=1e-12)
    assert units.value("length", "Rsun") == pytest.approx(4e7, rel=1e-12)
    assert units.G == 1  # time_scale is that of Starlab's rounded constants
    # A year is 2 pi (AU^3 / G Msun)^(1/2), and 1 AU 215.03 Rsun.
    assert units.value("time", "Myr") == pytest.approx(
        1e-6 / (2 * np.pi) * (4e7 / 215.032) ** 1.5 / 1e4**0.5, rel=1e-4
    )
    lines = hand_made.SCALES.replace("8.1", "2")
    with pytest.warns(Grape6Warning, match=r"time_scale, by which it is 0\.5 Myr, is left out"):
        assert read_snapshot(io.BytesIO(hand_made.dyn(scales=lines))).units.G == 1


@pytest.mark.parametrize("layout", ["nbody6", "nbody6++", "nbody4"])
def test_nbody6_has_units_of_g_one_from_its_length_and_velocity(layout):
    units = read(hand_made.nbody6(layout, rbar=2.0, vstar=1.5)).units
    assert pytest.approx(1) == units.G
    assert units.value("length", "pc") == pytest.approx(2, rel=1e-6)
    assert units.value("velocity", "km/s") == pytest.approx(1.5, rel=1e-6)
    assert units.value("mass", "Msun") == pytest.approx(1.5**2 * 2 / 4.30091e-3, rel=1e-5)


LATER = hand_made.dyn(time="  system_time  =  1.25\n").replace(b"10 0 0", b"0 0 0")
SHIFTED = {"pos": (np.array(POS) + 100).tolist(), "time": 2.5, "ids": None}
ALL_SEVEN = dict(zip(("mass", "pos", "vel"), hand_made.NBODY, strict=True), ids=hand_made.NAMES)
SEVERAL = {
    "nemo": (hand_made.nemo_of_two(), {"ids": None}, SHIFTED),  # the masses are of the first one
    "nemo of Sun": (hand_made.nemo_of_two(">"), {"ids": None}, SHIFTED),
    "starlab": (hand_made.dyn() + LATER, {"time": 0.5} | DYN, DYN | {
        "time": 1.25, "pos": [[x - 10, y, z] for x, y, z in DYN["pos"]]}),
    **{f"nbody6 {layout}": (
        hand_made.nbody6(layout) + hand_made.nbody6(layout, time=2.75, pairs=0),
        NBODY, ALL_SEVEN | {"time": 2.75}) for layout in ("nbody6", "nbody6++", "nbody4")},
}  # fmt: skip


@pytest.mark.parametrize("case", SEVERAL)
def test_snapshots_follow_each_other(case):
    data, first, last = SEVERAL[case]
    name = case.split()[0]
    for which, more in ((-1, last), (1, last), (0, first), (-2, first)):
        assert_all(read(data, which), name, **more)
    for which in (2, -3):
        with pytest.raises(SnapshotError, match=r"2 snapshots.*number"):
            read(data, which)
    complaint = "ends?|end at|incomplete"
    cut = io.BytesIO(data[:-20])
    for which in (-1, 0):
        with pytest.warns(Grape6Warning, match=f"({complaint}).*1 of them.*number 0 is read"):
            assert_all(read_snapshot(cut, which), name, **first)
    for which in (-2, 1):
        with pytest.raises(SnapshotError, match=complaint):
            read(data[:-20], which)


@pytest.mark.parametrize("word", ["9" * 10**6, "0." + "3" * 10**6 + "x", "1" + " " * 10**6 + "1,"],
                         ids=["digits", "decimals", "blanks"])  # fmt: skip
def test_a_line_of_a_million_characters_is_answered_at_once(word):
    with pytest.raises(SnapshotError) as caught:  # a time that grows with its square is hours
        read(f"0 0 0 0 0 0 {word}\n".encode())
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("make", [
    hand_made.nemo, hand_made.dyn, hand_made.gadget_hdf5, hand_made.petar_binary, hand_made.lines,
])  # fmt: skip
def test_a_file_is_read_from_any_source_and_has_one_snapshot(tmp_path, make):
    data, path = make(), tmp_path / "a"
    path.write_bytes(data)
    with open(path, "rb") as file:
        found = [read(data), read_snapshot(path), read_snapshot(str(path)), read_snapshot(file)]
        assert not file.closed
    found += [read(data, format=found[0].format), read(data, 0)]
    for other in found[1:]:
        assert bits(other) == bits(found[0])
        assert other.time == found[0].time
    for which in (1, -2):
        with pytest.raises(SnapshotError, match=rf"has 1 \w+, and not number {which}"):
            read(data, which)


ZERO = np.zeros((3, 3))


def without(*names, prefix="data/0000000001/attributes/"):
    def change(file):
        for name in names:
            del file[prefix + name]

    return change


def gadget_without(name, kind=4):
    return hand_made.gadget_hdf5(change=without(name, prefix=f"PartType{kind}/"))


def nemo_without(tag):
    data = hand_made.nemo(form="Position")
    item = hand_made.nemo_item("<", "d", tag, *(
        (MASS, [3]) if tag == "Mass" else (hand_made.flat(VEL), [3, 3])))  # fmt: skip
    assert item in data
    return data.replace(item, b"")


LABELS = ["HEAD", "POS ", "VEL ", "ID  ", "MASS"]
# The file, what is missing by its name, masses and velocities in which 9 and 0 are those given.
NO_MASSES = {
    "gadget-hdf5": (gadget_without("Masses"), "PartType4/Masses", [0.5, 0.25, 9]),
    "gadget-hdf5 of gas": (gadget_without("Masses", 0), "PartType0/Masses", [9, 0.25, 0.125]),
    "gadget2": (
        hand_made.gadget(labels=True, labelled_order=LABELS[:4]), "block MASS", [9, 0.25, 9]),
    "amuse": (hand_made.amuse(change=without("mass")), r"mass \(in kg\)", [9, 9, 9]),
    "amuse without units": (
        hand_made.amuse(change=without("mass"), texts=hand_made.amuse_texts("generic")),
        "attribute mass:", [9, 9, 9]),
    "nemo": (nemo_without("Mass"), "Mass", [9, 9, 9]),
}  # fmt: skip
NO_VELOCITIES = {
    "gadget-hdf5": (gadget_without("Velocities"), "PartType4/Velocities", [*VEL[:2], [0] * 3]),
    "gadget2": (
        hand_made.gadget(labels=True, labelled_order=[LABELS[k] for k in (0, 1, 3, 4)]),
        "block VEL", ZERO),
    "amuse": (hand_made.amuse(change=without("vx", "vy", "vz")), "vx, vy, vz", ZERO),
    "nemo": (nemo_without("Velocity"), "Velocity", ZERO),
    "text": (b"# m x y z\n.5 1 2 3\n.25 -4 5.5 6\n.125 7 8 -9.25\n", "vx, vy and vz", ZERO),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_MASSES)
def test_masses_that_are_absent_are_given_or_the_file_is_refused(name):
    data, missing, expected = NO_MASSES[name]
    with pytest.raises(SnapshotError, match=f"{missing}.*--mass"):
        read(data, velocities="zero")
    assert_bodies(read(data, mass=9), mass=expected)


@pytest.mark.parametrize("name", NO_VELOCITIES)
def test_velocities_that_are_absent_are_zero_if_asked_for(name):
    data, missing, expected = NO_VELOCITIES[name]
    with pytest.raises(SnapshotError, match=f"{missing}.*--velocities zero"):
        read(data, mass=9)
    assert_bodies(read(data, velocities="zero"), vel=np.array(expected).tolist())
    with pytest.raises(SnapshotError, match="no vy"):  # a part of them is none
        read(hand_made.amuse(change=without("vy")), velocities="zero")


@pytest.mark.parametrize(("line", "option"), [
    (b"  m  =  0.125\n", {"mass": 0.125}), (b"  v  =  0 16 0\n", {"velocities": "zero"}),
    (b"  r  =  2 0 0\n", None),
])  # fmt: skip
def test_a_star_of_starlab_says_its_mass_place_and_velocity(line, option):
    assert line in hand_made.dyn()
    data = hand_made.dyn().replace(line, b"")
    with pytest.raises(SnapshotError, match="particle 2"):
        read(data)
    if option is not None:
        mass, pos, vel = hand_made.DYN_BODIES
        rest = [[0.0, 1.0, 2.0]]  # that of the nodes it is in
        assert_bodies(read(data, **option), mass, pos, vel if "mass" in option else vel[:2] + rest)


@pytest.mark.parametrize(("old", "new"), [
    ("Masses", "Mass"), ("Masses", "DynamicalMasses"), ("Masses", "SubgridMasses"),
    ("Velocities", "Velocity"),
])  # fmt: skip
def test_other_names_are_read(old, new):
    """Of EAGLE, and of SWIFT's black holes, which act by their dynamical mass."""

    def change(file):
        group = file["PartType4"]
        group.move(old, new)
        if new == "DynamicalMasses":
            group["SubgridMasses"] = [77.0]

    assert_bodies(read(hand_made.gadget_hdf5(change=change)))


@pytest.mark.parametrize("wrong", [
    {"mass": -1.0}, {"mass": np.nan}, {"mass": "heavy"}, {"velocities": "none"},
    {"velocities": 0.0},
])  # fmt: skip
def test_what_is_given_for_it_is_checked(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        read_snapshot(io.BytesIO(hand_made.gadget()), **wrong)


def test_the_commands_take_masses_and_velocities(here, capsys):
    for name, missing in (("a.hdf5", "Masses"), ("b.hdf5", "Velocities")):
        (here / name).write_bytes(gadget_without(missing))
    assert main(["convert", "a.hdf5", "a.csv"]) == 1
    assert main(["run", "b.hdf5", "--t-end", "0.01"]) == 1
    said = capsys.readouterr().err
    assert "--mass" in said
    assert "--velocities zero" in said
    assert main(["convert", "a.hdf5", "a.csv", "--mass", "0.125"]) == 0
    assert_bodies(read_snapshot("a.csv"))
    short = ["--t-end", "0.001", "--velocities", "zero", "--out", "c.nemo", "--eps", "1"]
    assert main(["run", "b.hdf5", *short]) == 0
    assert len(read_snapshot("c.nemo").mass) == 3
    for words in (["plummer", "--mass", "1"], ["c.h5", "--restart", "--velocities", "zero"]):
        with pytest.raises(SystemExit):
            main(["run", *words])
