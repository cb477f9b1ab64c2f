"""Names of other packages' docs: what works, and errors that say what it is called here."""

import numpy as np
import pytest
from astropy import units as u

import grape6py as g6
from grape6py import Hermite, Leapfrog, Units, events, fields, plummer
from grape6py.errors import ArgumentError

CLUSTER = Hermite(plummer(10, seed=1), eps=0.01)
ATTRIBUTES = {
    "t": "time", "N": "n", "x": "pos", "v": "vel", "m": "mass", "integrate": "evolve",
    "evolve_model": "evolve", "add_particle": "add", "remove_particles": "remove", "E": "energy",
    "position": "pos", "velocity": "vel", "masses": "mass", "rh": "half_mass_radius",
    "write": "save",
    "com": "centre_of_mass", "stop_model": "close", "jacobi_radius": "tidal_radius",
    "calculate_orbits": "orbits",
    "time_steps": "step_sizes", "get_binaries": "binaries", "trh": "relaxation_time",
}  # fmt: skip
MODULES = {
    (g6, "Simulation"): "Hermite", (g6, "new_plummer_model"): "plummer", (g6, "King"): "king",
    (g6, "load"): "read_snapshot", (g6, "new_kroupa_mass_distribution"): "kroupa",
    (events, "Collision"): "Encounter", (fields, "MWPotential2014"): "mwpotential2014",
    (fields, "Orbit"): "orbit", (g6, "EFF"): "eff", (fields, "NFWPotential"): "nfw",
    (fields, "KeplerPotential"): "point_mass",
}  # fmt: skip
ARGUMENTS = [
    (g6.king, {"W0": 6}, "w0"), (Hermite, {"potential": None}, "field"),
    (Hermite, {"softening": 0.1}, "eps"), (Hermite, {"time_step": 0.1}, "dt"),
    (Leapfrog, {"opening_angle": 0.5}, "theta"), (g6.plummer, {"N": 10}, "n"),
    (g6.two_body, {"a": 1.0, "e": 0.5}, "semi_major_axis"), (g6.Tree, {"nthreads": 1}, "threads"),
]  # fmt: skip


def test_other_names_are_told_by_those_here():
    of_cluster = {(CLUSTER, name): ours for name, ours in ATTRIBUTES.items()}
    for (where, name), ours in (of_cluster | MODULES).items():
        with pytest.raises(AttributeError, match=rf"no attribute .*{name}.*did you mean {ours}\?"):
            getattr(where, name)
    for call, options, ours in ARGUMENTS:
        with pytest.raises(TypeError, match=rf"did you mean {ours}\?"):
            call(10, **options)


def test_what_costs_a_line_works(tmp_path):
    particles, mask = plummer(1e2, seed=3), np.arange(100) < 60
    cluster = Hermite(particles, dt=0.1)
    assert np.array_equal(cluster[0].pos, particles.pos[0])
    assert cluster[mask].mass.shape == (60,)
    assert cluster[-3:].vel.tolist() == particles.vel[-3:].tolist()
    cluster.remove(mask)
    assert cluster.ids.tolist() == [*range(60, 100)]
    with pytest.raises(ArgumentError, match="mask of 100 for 40"):
        cluster.remove(mask)
    with pytest.raises(TypeError, match=r"vel is missing: it is Hermite\(mass, pos, vel\)"):
        Hermite([1.0], [[0, 0, 0]])
    path, units = tmp_path / "some.hdf5", Units("Msun", "pc", velocity="km/s")
    g6.write_snapshot(path, particles, ids=np.arange(100) + 7, units=units)
    snapshot = g6.read_snapshot(path)
    assert len(snapshot) == 100
    for kind in Hermite, Leapfrog:
        with kind(snapshot, dt=0.01) as again:
            assert (again.ids[0], again.units) == (7, units)
            assert again.G.value == pytest.approx(units.G)
    in_parsecs = plummer(20, seed=1, units=units)
    assert Hermite(in_parsecs, dt=0.01 * u.Myr).units == Hermite(*in_parsecs, dt=0.01 * u.Myr).units


def test_units_are_units_and_so_are_times_on_the_clock():
    assert Units(u.Msun, u.pc, velocity=u.km / u.s) == Units("Msun", "pc", velocity="km/s")
    for third in "km/s", u.km / u.s, 1 * u.km / u.s:
        assert Units("Msun", u.pc, third) == Units("Msun", "pc", velocity="km/s")
    assert Units("Msun", "AU", "yr") == Units("Msun", "AU", time="yr")
    with pytest.raises(ArgumentError, match=r"partial\(king, w0=6\)"):
        g6.stars([1.0, 2.0], "king")
    assert abs(Units(mass=u.kg, length=u.m, time=u.s).G / 6.6743e-11 - 1) < 1e-12
    assert events.WallTime(2 * u.min).seconds == 120
    with pytest.raises(ArgumentError, match="not a text, unit or quantity"):
        Units(1.0, u.pc)
