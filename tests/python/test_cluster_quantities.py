"""Quantities of cluster papers against their definitions, written out with NumPy alone."""

import itertools

import numpy as np
import pytest
from astropy import units as u
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from grape6py import Hermite, Leapfrog, Units, diagnostics, fields, kroupa, plummer, tidal_radius
from grape6py.errors import ArgumentError


def bodies(n, seed=0, heavy=1.0, scale=1.0, shift=0.0, massless=False):
    mass, pos, vel = (a.copy() for a in plummer(max(n, 2), seed=seed))
    mass[0] *= heavy
    if massless:
        mass[1::3] = 0
    return mass[:n], scale * pos[:n] + shift, vel[:n] / scale**0.5


def density(mass, pos, k=6):
    apart = np.linalg.norm(pos[:, None] - pos, axis=2)
    order = np.argsort(apart, axis=1)[:, 1 : k + 1]
    return mass[order[:, :-1]].sum(1) / apart[np.arange(len(pos)), order[:, -1]] ** 3


def potential(mass, pos, eps):
    apart = np.sqrt(((pos[:, None] - pos) ** 2).sum(2) + eps**2)
    np.fill_diagonal(apart, np.inf)
    return -(mass / apart).sum(1)


@settings(max_examples=30, deadline=None)
@given(n=st.sampled_from([8, 40, 300]), heavy=st.sampled_from([1.0, 1e6]),
       scale=st.sampled_from([1e-6, 1.0, 1e9]), shift=st.sampled_from([0.0, 100.0]),
       eps=st.sampled_from([0.0, 0.3]), massless=st.booleans(), seed=st.integers(0, 20),
       subset=st.sampled_from([None, "mask", "rows"]))  # fmt: skip
def test_centre_radii_times_and_members(n, heavy, scale, shift, eps, massless, seed, subset):
    mass, pos, vel = bodies(n, seed, heavy, scale, shift * scale, massless)
    vel[: n // 4] *= 5  # escapers
    eps = eps * scale
    mask = np.arange(n) % 5 > 0 if subset else np.ones(n, bool)
    where = {None: None, "mask": mask, "rows": np.flatnonzero(mask)}[subset]
    m, x, v = mass[mask], pos[mask], vel[mask]
    rho = density(m, x) if len(m) > 6 else m
    if np.any(rho):
        centre = rho @ x / rho.sum()
        found = diagnostics.density_centre(mass, pos, where=where)
        assert np.allclose(found, centre, rtol=1e-9, atol=1e-9 * scale)
        core = rho @ np.linalg.norm(x - centre, axis=1) / rho.sum()
        assert diagnostics.core_radius(mass, pos, where=where) == pytest.approx(core, rel=1e-8)
        r = np.linalg.norm(x - centre, axis=1)
        order = np.argsort(r)
        half = r[order][np.searchsorted(np.cumsum(m[order]), m.sum() / 2 * (1 - 1e-13))]
        assert diagnostics.half_mass_radius(mass, pos, where=where) == pytest.approx(half, rel=1e-8)
        if 0.11 * (acting := np.count_nonzero(m)) > 1:
            slow = 0.138 * np.sqrt(acting**2 * half**3 / m.sum()) / np.log(0.11 * acting)
            found = diagnostics.relaxation_time(mass, pos, where=where)
            assert found == pytest.approx(slow, rel=1e-8)
    held = np.ones(len(m), bool)
    while m[held].sum() > 0:
        relative = v[held] - m[held] @ v[held] / m[held].sum()
        energy = (relative**2).sum(1) / 2 + potential(m[held], x[held], eps)
        if (energy < 0).all():
            break
        held[held] = energy < 0
    held &= m[held].sum() > 0
    found = diagnostics.bound(mass, pos, vel, eps, where=where)
    assert (found.is_bound != held).mean() <= 0.02  # energies near zero, by the tree's errors
    assert found.mass == pytest.approx(m[found.is_bound].sum(), rel=1e-13)
    assert found.number == found.is_bound.sum()
    if m[held].sum() > 0:
        some = np.flatnonzero(mask)[held]
        w = v[held] - m[held] @ v[held] / m[held].sum()
        total = m[held] @ ((w**2).sum(1) + potential(m[held], x[held], eps)) / 2
        if total < 0:
            crossing = m[held].sum() ** 2.5 / (-2 * total) ** 1.5
            found = diagnostics.crossing_time(mass, pos, vel, eps, where=some)
            assert found == pytest.approx(crossing, rel=1e-4)


@pytest.mark.parametrize("along", [None, "x", "y", "z"])
@pytest.mark.parametrize("seed", [1, 2])
def test_profiles_are_those_written_out(along, seed):
    mass, pos, vel = bodies(400, seed, heavy=30.0)
    vel += np.cross([0.0, 0.0, 1.0], pos) + np.eye(3)[0]  # rotation, and motion as a whole
    edges, centre = [0.1, 0.5, 0.9, 2.0, 1e9], [0.1, 0.0, -0.1]
    found = diagnostics.profile(mass, pos, vel, edges=edges, centre=centre, along=along)
    x, v = pos - centre, vel - mass @ vel / mass.sum()
    if along:
        sight = np.eye(3)["xyz".index(along)]
        x = x - np.outer(x @ sight, sight)
    r = np.linalg.norm(x, axis=1)
    out = x / r[:, None]
    axis = sight if along else np.array([0.0, 0.0, 1.0])
    phi = np.cross(axis, out)
    phi /= np.linalg.norm(phi, axis=1)[:, None]
    third = np.tile(axis, (400, 1)) if along else np.cross(phi, out)
    for k, (a, b) in enumerate(itertools.pairwise(edges)):
        here = (r > a) & (r <= b)
        w = mass[here] / mass[here].sum()
        s = [(v[here] * unit[here]).sum(1) for unit in (out, phi, third)]
        s = [np.sqrt(w @ (one - w @ one) ** 2) for one in s]
        volume = np.pi * (b**2 - a**2) if along else 4 / 3 * np.pi * (b**3 - a**3)
        across = s[1] if along else np.sqrt((s[1] ** 2 + s[2] ** 2) / 2)
        every = s[2] if along else np.sqrt(sum(one**2 for one in s) / 3)
        row = (w @ r[here], here.sum(), mass[here].sum(), mass[here].sum() / volume, every, s[0],
               across, 1 - across**2 / s[0] ** 2)  # fmt: skip
        there = [column[k] for column in found[1:] if column is not None]
        assert there == pytest.approx(row, rel=1e-9)
    assert diagnostics.profile(mass, pos, vel, 8, along=along).number.tolist() == [50] * 8
    with pytest.raises(ArgumentError, match="ascend"):
        diagnostics.profile(mass, pos, vel, edges=[1.0, 0.5])


@pytest.mark.parametrize("along", [None, "y"])
def test_segregation_is_by_spanning_trees(along):
    mass, (_, pos, _) = kroupa(300, seed=3), bodies(300)
    pos[np.argsort(-mass)[:12]] *= 0.2
    places = pos if along is None else pos[:, [0, 2]]

    def length(rows):
        apart = np.linalg.norm(places[rows][:, None] - places[rows], axis=2)
        return minimum_spanning_tree(apart).sum()

    draw = np.random.default_rng(5)
    random = np.array([length(draw.choice(300, 12, replace=False)) for _ in range(50)])
    least = length(np.argsort(-mass, kind="stable")[:12])
    found = diagnostics.mass_segregation(mass, pos, 12, samples=50, seed=5, along=along)
    assert found.ratio == pytest.approx(random.mean() / least, rel=1e-10)
    assert found.error == pytest.approx(random.std(ddof=1) / least, rel=1e-10)
    everyone = diagnostics.mass_segregation(mass, pos, 300, samples=2)
    assert everyone == pytest.approx((1.0, 0.0), abs=1e-12)
    with pytest.raises(ArgumentError, match="number = 301"):
        diagnostics.mass_segregation(mass, pos, 301)


def test_mass_functions_count_every_body():
    mass = np.append(kroupa(1000, seed=1), 0.0)
    found = diagnostics.mass_function(mass, 7)
    assert found.number.sum() == 1000
    assert (found.per_mass * np.diff(found.edges)).sum() == pytest.approx(1000)
    found = diagnostics.mass_function(mass, masses=[0.1, 0.5, 1.0])
    inside = [((mass > a) & (mass <= b)).sum() for a, b in ((0.1, 0.5), (0.5, 1.0))]
    assert found.number.tolist() == inside
    with pytest.raises(ArgumentError, match="no body has a mass"):
        diagnostics.mass_function([0.0, 0.0])


METHODS = {"density_centre": (0, 1), "core_radius": (0, 1), "half_mass_radius": (0, 1),
           "kinetic_energy": (0, 2), "center_of_mass": (0, 1)}  # fmt: skip


@pytest.mark.parametrize("kind", [Hermite, Leapfrog])
def test_integrators_have_them_in_their_units(kind):
    units = Units("Msun", "pc", velocity="km/s")
    mass, pos, vel = bodies(100)
    scaled = 1e3 * mass, 2.0 * pos, np.sqrt(units.G * 1e3 / 2) * vel
    with kind(*scaled, eps=0.01, dt=0.01, units=units) as cluster:
        for name, arrays in METHODS.items():
            expected = getattr(diagnostics, name)(*(scaled[k] for k in arrays))
            assert getattr(cluster, name)().value == pytest.approx(expected, abs=1e-12)
        assert cluster.relaxation_time().unit == u.Myr
        crossing = diagnostics.crossing_time(*scaled, 0.01, G=units.G) * (u.pc / (u.km / u.s))
        assert cluster.crossing_time().to_value(u.Myr) == pytest.approx(crossing.to_value(u.Myr))
        held = cluster.bound()
        assert (held.mass.to_value(u.Msun), held.number) == (pytest.approx(1e3), 100)
        profile = cluster.profile(edges=[0, 1, 2] * u.pc, along="z")
        assert profile.surface_density.unit.is_equivalent(u.Msun / u.pc**2)
        assert cluster.mass_function(masses=[0, 20] * u.Msun).per_mass.unit == 1 / u.Msun
        assert cluster.mass_segregation(10).ratio > 0
        cluster.move_to_com()
        assert np.abs(cluster.center_of_mass().to_value(u.pc)).max() < 1e-12
        assert cluster.total_energy() == cluster.energy().total


@pytest.mark.parametrize("orbit", [False, True])
def test_a_cluster_in_a_field_has_a_tidal_radius(orbit):
    field, speed = fields.point_mass(1e4), np.sqrt(1e4 / 30)
    mass, pos, vel = bodies(200, 4)
    place, motion = np.array([30.0, 0, 0]), np.array([0, speed, 0])
    if orbit:
        cluster = Hermite(mass, pos, vel, dt=0.01, field=field, orbit=(place, motion))
    else:
        cluster = Hermite(mass, pos + place, vel + motion, dt=0.01, field=field)
    radius = cluster.tidal_radius()
    inside = np.linalg.norm(cluster.pos - cluster.density_centre(), axis=1) <= radius
    whole = tidal_radius(field, mass[inside].sum(), place, motion)
    assert radius == pytest.approx(whole, rel=0.05)  # the density centre is not quite the middle
    with pytest.raises(ArgumentError, match="no field"):
        Hermite(mass, pos, vel, dt=0.01).tidal_radius()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_bodies_have_what_there_is(n):
    mass, pos, vel = bodies(n)
    assert diagnostics.bound(mass, pos, 0 * vel).number == (2 if n == 2 else 0)
    assert len(diagnostics.profile(mass, pos, vel, 3).number) == 3
    assert np.isnan(diagnostics.core_radius(mass, pos)) == (n == 0)
    for find in diagnostics.relaxation_time, diagnostics.mass_segregation:
        with pytest.raises(ArgumentError):
            find(mass, pos)
    for wrong in (np.ones(n + 1, bool), [n], [[0]]):
        with pytest.raises(ArgumentError, match="where"):
            diagnostics.momentum(mass, vel, where=wrong)
