"""``grape6 run`` in a field, with events, and with lists of binaries."""

import json

import h5py
import numpy as np
import pytest

from grape6py import Hermite, archive, fields, plummer, write_snapshot
from runs import assert_same_end, last_group, outputs, run

GALAXY = ["--field", "mwpotential2014,radius=8000,speed=33.5", "--orbit", "8000,0,0,0,33.5,0"]
QUICK = ["--n", 100, "--backend", "cpu"]


def test_a_run_in_a_field_is_that_of_python_and_restarts_with_its_bits(here):
    assert run("plummer", *QUICK, *GALAXY, "--t-end", 0.5, "--out", "a.h5") == 0
    cluster = Hermite(*plummer(100, 1), eps=4 / 100, backend="cpu",
                      field=fields.mwpotential2014(8000, 33.5),
                      orbit=[8000, 0, 0, 0, 33.5, 0])  # fmt: skip
    cluster.evolve(0.5)
    assert np.array_equal(last_group("a.h5")[1]["pos"], cluster.pos)
    assert run("plummer", *QUICK, *GALAXY, "--t-end", 0.3, "--out", "b.h5") == 0
    assert run("b.h5", "--restart", "--t-end", 0.5) == 0
    assert_same_end("a.h5", "b.h5")


def test_several_fields_add_up(here, capsys):
    words = ["--field", "nfw,mass=2,scale=3", "--field", "point_mass,mass=1", "--G", 2]
    assert run("plummer", *QUICK, *words, "--t-end", 0.1, "--json") == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert fields.Field.from_text(settings["field"]) == fields.nfw(2, 3) + fields.point_mass(1)
    assert settings["G"] == 2
    assert run("plummer", *QUICK, "--escape", "tidal") == 1
    assert "needs a field" in capsys.readouterr().err


def two_that_meet():
    write_snapshot("two.dat", [0.5, 0.5], [[-1, 0, 0], [1, 0, 0]], [[1, 0, 0], [-1, 0, 0]])


def test_an_encounter_stops_a_run_which_goes_on_later(here, capsys):
    two_that_meet()
    assert run("two.dat", "--t-end", 2, "--encounter", 0.5, "--out", "a.h5") == 3
    out, err = capsys.readouterr()
    assert "encounter at time 0.6" in out
    assert "bodies 0 and 1" in err
    assert "grape6 run a.h5 --restart --t-end 2" in err
    pos = last_group("a.h5")[1]["pos"]
    assert np.linalg.norm(pos[0] - pos[1]) == pytest.approx(0.5, rel=1e-6)
    assert run("a.h5", "--restart", "--t-end", 0.7, "--encounter", 0.5) == 0


def test_bodies_merge_and_escape_with_their_energy(here, capsys):
    two_that_meet()
    words = ["--encounter", 0.5, "--on-encounter", "merge", "--t-end", 1, "--json"]
    assert run("two.dat", *words, "--out", "a.h5") == 0
    report = json.loads(capsys.readouterr().out)
    assert [event["kind"] for event in report["events"]] == ["encounter"]
    assert abs(report["history"][-1]["error"]) < 1e-6
    assert archive.read_particles("a.h5").mass.tolist() == [1.0]
    assert run("plummer", *QUICK, "--escape", 2, "--t-end", 0.5, "--out", "b.h5") == 0
    assert len(last_group("b.h5")[1]["mass"]) < 100
    assert run("b.h5", "--restart", "--t-end", 0.6) == 0


def test_binaries_are_listed_and_kept(here, capsys):
    write_snapshot("pair.dat", [0.5, 0.5, 0.1], [[-0.5, 0, 0], [0.5, 0, 0], [9, 0, 0]],
                   [[0, -0.5, 0], [0, 0.5, 0], [0, 0.1, 0]])  # fmt: skip
    assert run("pair.dat", "--t-end", 0.1, "--list-binaries", "--out", "a.h5") == 0
    assert "binary of 0 and 1: a = 1" in capsys.readouterr().out
    with h5py.File("a.h5") as file:
        found = file[outputs("a.h5")[-1]]["binaries"]
        assert found["semi_major_axis"][0] == pytest.approx(1, rel=1e-4)
        assert (found["first"][0], found["second"][0]) == (0, 1)
