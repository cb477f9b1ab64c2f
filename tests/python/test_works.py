"""What a star-cluster astronomer does in an afternoon: ten works, each as its user writes it.

Larger ones, with pictures, are docs/gallery/*.py."""

import os
import signal
import threading
from functools import partial

import numpy as np
import pytest
from astropy import units as u

from grape6py import (
    Hermite,
    Leapfrog,
    Units,
    fields,
    king,
    kroupa,
    open_run,
    plummer,
    read_snapshot,
    stars,
    with_binaries,
    write_snapshot,
)
from grape6py.events import Encounter, Escape

PARSECS = Units("Msun", "pc", time="Myr")


def test_a_king_model_with_kroupas_masses():
    masses = kroupa(500, seed=1)
    units = Units(f"{masses.sum()} Msun", "1 pc")
    model = stars(masses, partial(king, w0=6), 1, segregation=0.8, virial_ratio=0.5, units=units)
    cluster = Hermite(*model, units=PARSECS)
    assert np.isclose(cluster.mass.sum(), masses.sum() * u.Msun)
    assert 0.5 * u.pc < cluster.half_mass_radius() < 1 * u.pc
    assert cluster.mass_segregation(20).ratio > 1.3
    heavy = cluster.mass > 1 * u.Msun
    assert cluster.half_mass_radius(where=heavy) < cluster.half_mass_radius(where=~heavy)
    start = cluster.energy().total
    cluster.evolve(1 * u.Myr)
    assert abs(cluster.energy().total / start - 1) < 1e-3
    assert np.isclose(cluster.relaxation_time(coulomb=0.02), 24 * u.Myr, rtol=0.5)


def test_a_cluster_on_its_orbit_with_tails():
    galaxy = fields.mwpotential2014(units=PARSECS)
    today = [8, 0, 0] * u.kpc, [0, 180, 10] * u.km / u.s
    past = fields.orbit(galaxy, *today, -0.4 * u.Gyr, units=PARSECS)
    model = plummer(300, seed=1, units=Units("3000 Msun", "6 pc"))
    cluster = Hermite(*model, units=PARSECS, field=galaxy, orbit=past[1:], eps=1 * u.pc)
    cluster.evolve(0.4 * u.Gyr)
    assert np.allclose(cluster.origin[0], today[0], atol=1 * u.pc)
    bound = cluster.bound()
    assert 50 < bound.number < 250
    lost = (cluster.pos - cluster.density_centre(where=bound.is_bound))[~bound.is_bound]
    ahead = cluster.origin[1] / np.linalg.norm(cluster.origin[1])
    along, size = (lost * ahead).sum(axis=1), np.linalg.norm(lost, axis=1)
    assert np.median(abs(along) / size) > 0.9
    assert along.min() < -cluster.tidal_radius() < cluster.tidal_radius() < along.max()


def test_black_holes_sink_and_make_a_subsystem():
    mass, pos, vel = plummer(400, seed=2)
    mass = np.where(np.arange(400) < 20, 0.01, mass * 0.8 / 0.95)
    cluster = Hermite(mass, pos, vel)
    holes = mass == 0.01
    before = cluster.half_mass_radius(where=holes)
    cluster.evolve(20.0)
    assert cluster.half_mass_radius(where=holes) < 0.6 * before
    assert holes[cluster.binaries().first[0]]


def test_stars_round_a_central_mass():
    random = np.random.default_rng(1)
    hole = Hermite([4e6] * u.Msun, [[0, 0, 0]] * u.pc, [[0, 0, 0]] * u.km / u.s,
                   subsystems=False)  # fmt: skip
    hole.add(10 * u.Msun, a=np.geomspace(0.01, 0.1, 30) * u.pc, e=0.6, inc=random.random(30),
             Omega=6 * random.random(30), M=6 * random.random(30))  # fmt: skip
    before = hole.orbits()
    hole.evolve(2 * before.P[0])
    after = hole.orbits(primary=0)
    assert np.allclose(after.a, before.a, rtol=2e-2)
    assert np.allclose(after.e, before.e, atol=2e-2)
    assert not np.allclose(after.M, before.M, atol=0.5)


def test_hard_binaries_stay_and_soft_ones_go():
    cluster = Hermite(*with_binaries(plummer(150, seed=3), 0.3, seed=3, separation=(1e-5, 1)))
    start, before = cluster.energy().total, cluster.binaries()
    cluster.evolve(5.0)
    after = cluster.binaries()
    assert abs(cluster.energy().total / start - 1) < 1e-3
    hard = before.hardness > 10
    assert hard.sum() > 10
    kept = np.isin(before.first[hard], after.first)
    assert kept.mean() > 0.9
    soft = before.first[before.hardness < 0.1]
    assert np.isin(soft, after.first).mean() < 0.5 < kept.mean()


def test_a_planet_in_a_disk_of_planetesimals():
    star = Hermite([1.0] * u.Msun, [[0, 0, 0]] * u.AU, [[0, 0, 0]] * u.km / u.s)
    star.add(3 * u.jupiterMass, a=5.2 * u.AU)
    a = np.linspace(2, 5, 40) * u.AU
    star.add(a=a, f=np.arange(40.0))
    star.evolve(100 * u.yr, events=Escape(100 * u.AU))
    found = star.orbits(primary=0)
    inner = found.a < 3 * u.AU
    assert found.e[inner].max() < 0.05
    assert found.e[(found.ids > 1) & ~inner].max() > 0.1


def test_another_codes_file_is_continued(tmp_path):
    """Here a file of AMUSE, in SI; what goes on has its ids, time and units."""
    units = Units("kg", "m", time="s")
    model = plummer(100, seed=1, units=Units("1e3 Msun", "1 pc"))
    theirs = Hermite(*model, units=units).particles()
    write_snapshot(tmp_path / "theirs.amuse", theirs, ids=np.arange(100) * 7, units=units)
    written = read_snapshot(tmp_path / "theirs.amuse")
    assert written.units == units
    cluster = Hermite.of(written, eps=0.01 * u.pc)
    assert np.isclose(cluster.half_mass_radius(), 0.77 * u.pc, rtol=0.3)
    cluster.evolve(0.1 * u.Myr)
    cluster.save(tmp_path / "ours.h5")
    write_snapshot(tmp_path / "back.amuse", open_run(tmp_path / "ours.h5")[-1])
    again = read_snapshot(tmp_path / "back.amuse")
    assert np.allclose(again.pos * u.m, cluster.pos, atol=1e-9 * u.pc)


def test_ctrl_c_leaves_a_cluster_that_goes_on():
    cluster = Hermite(*plummer(600, seed=1), eps=0.001)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # else it may be ignored
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cluster.evolve(1e3)
    signal.signal(signal.SIGINT, before)
    timer.join()
    reached = cluster.time
    whole = Hermite(*plummer(600, seed=1), eps=0.001)
    for one in (cluster, whole):
        one.evolve(reached + 1 / 64)
    assert np.array_equal(cluster.pos, whole.pos)


def test_a_long_run_in_pieces(tmp_path):
    path, events = tmp_path / "run.h5", [Encounter(1e-4, "merge"), Escape(50.0)]
    cluster = Hermite(*plummer(100, seed=1))
    for t in range(1, 11):
        cluster.evolve(float(t), events=events)
        cluster.save(path)
        cluster = Hermite.load(path)
    run = open_run(path)
    assert np.array_equal(run.times, np.arange(1.0, 11))
    assert abs(run.history.error).max() < 1e-3
    assert len(run[-1]) < 100
    assert run.track([1, 2]).pos.shape == (10, 2, 3)
    assert run.at(4.5, "exact").time == 4.5


def test_profiles_are_those_of_numpy():
    galaxy = Leapfrog(*king(20_000, w0=5, seed=1), eps=0.01, dt=1 / 64)
    found = galaxy.profile(edges=[0, 0.2, 0.5, 1, 2], centre=[0, 0, 0])
    r = np.linalg.norm(galaxy.pos, axis=1)
    outward = (galaxy.pos * galaxy.vel).sum(axis=1) / r
    for k, (low, high) in enumerate(zip(found.edges, found.edges[1:], strict=False)):
        shell = (r >= low) & (r < high)
        volume = 4 / 3 * np.pi * (high**3 - low**3)
        assert np.isclose(found.density[k], shell.sum() / 20_000 / volume)
        assert np.isclose(found.radial[k], outward[shell].std(), rtol=1e-2)
        total = (galaxy.vel[shell] ** 2).sum(axis=1).mean()
        assert np.isclose(found.dispersion[k], np.sqrt(total / 3), rtol=1e-2)
