"""What a file of bodies lacks is never made up: masses and velocities are given, or it is refused.

Masses of other names are read.
"""

import io

import numpy as np
import pytest

import hand_made
from as_read import assert_bodies, read
from grape6py import read_snapshot
from grape6py.cli import main
from grape6py.errors import ArgumentError, SnapshotError
from hand_made import MASS, VEL

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


def dyn_without(line):
    text = hand_made.dyn()
    assert line in text
    return text.replace(line, b"")


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
    data = dyn_without(line)
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


def test_the_commands_take_masses_and_velocities(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, missing in (("a.hdf5", "Masses"), ("b.hdf5", "Velocities")):
        with open(name, "wb") as file:
            file.write(gadget_without(missing))
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
