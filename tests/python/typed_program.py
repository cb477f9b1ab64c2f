"""A user's program with every name of ``grape6py.__all__``: test_types.py checks and runs it."""

import sys
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import grape6py
from grape6py import Forces, Grape6, Hermite, Leapfrog, Particles, Tree, archive, models, plummer


def all_models() -> list[Particles]:
    disk: models.Labelled = grape6py.galaxy(50, 10, 40, seed=1)
    both = grape6py.merger(plummer(20, seed=1), grape6py.king(20, 6.0, seed=2), 1.0, 10.0)
    large = grape6py.galaxy_merger(n_halo=40, n_stars=20, seed=1)
    stars = disk.particles.mass[disk.component == models.Component.DISK]
    print(f"{len(stars)} stars, King's core {models.king_profile(6.0).core_radius:.2f}")
    spheres = [grape6py.two_body(0.5), grape6py.uniform(20, seed=1), grape6py.fractal(20, seed=1)]
    spheres += [grape6py.eff(20, 3.0, seed=1), grape6py.hernquist(20, seed=1)]
    return [disk.particles, both.particles, large.particles, *spheres, cluster_of_stars()]


def cluster_of_stars() -> Particles:
    masses = [grape6py.kroupa(20, 1), grape6py.salpeter(20, 1), grape6py.maschberger(20, 1)]
    single = grape6py.stars(np.concatenate(masses), plummer, seed=1, segregation=0.5)
    model = grape6py.with_binaries(single, 0.5, 1, separation=(1e-6, 1e-5), eccentricity=0.3)
    found: grape6py.bound_pairs.Binaries = grape6py.binaries(*model)
    radius = grape6py.tidal_radius(point_mass, 1.0, [100.0, 0, 0], [0, 1.0, 0])
    print(found.first[0], found.hardness[0], found.eccentricity.max(), radius)
    return model


Array = NDArray[np.float64]


def point_mass(time: float, pos: Array, vel: Array) -> tuple[Array, None, None]:
    return -1e4 * pos / np.linalg.norm(pos, axis=1)[:, None] ** 3, None, None


def errors_of_sum(cluster: Particles) -> NDArray[np.float64]:
    with Grape6(backend="cpu", precision="double", threads=1) as grape:
        session: grape6py.Grape6 = grape
        session.set_particles(*cluster, time=0.0)
        found: Forces = session.forces(eps=0.01, nn=True, h=0.5)
        if found.jerk is not None and found.neighbours is not None and found.nearest is not None:
            lists: list[NDArray[np.int32]] = list(found.neighbours)
            print(found.jerk.shape, len(lists), int(found.nearest[0]), grape.index[0], grape.n)
        acc, pot = grape.walks([0, 1], [[0.0, 0.0, 0.0]], [0, 1], cluster.pos, cluster.mass, [0])
        print(acc + found.acc[:1], pot.sum())
        rows: NDArray[np.int64] = grape.partial(cluster.pos[:3], eps=0.01)
        scale: grape6py.partial.Scale = grape.scale
        grape.scale = scale._replace(length=scale.length)
        parts: Forces = grape6py.partial.forces(grape6py.partial.merged([rows]))
        print(parts.acc[0])
    exact = grape6py.reference.direct_sum(*cluster, eps2=1e-4, h2=0.25)
    return found.acc - exact.acc.astype(np.float64)


def sum_of_tree(cluster: Particles) -> float:
    with Tree(cluster.pos, cluster.mass, threads=1) as octree:
        forces: grape6py.tree.TreeForces = octree.forces(eps=0.01, accuracy=1e-3)
        near: grape6py.tree.Nearest = octree.nearest(3)
        rows: list[NDArray[np.int32]] = octree.neighbours(0.5)
        print(len(octree), len(rows[0]), octree.neighbours(0.5, csr=True).start[-1])
        return float(forces.pot.sum() + near.distance[0, 0] + near.index[0, 0])


def integrate(cluster: Particles, folder: Path) -> None:
    run: grape6py.hermite.Hermite = Hermite(*cluster, eps=0.01, dt_max=1 / 16, backend="cpu")
    run.evolve(0.25, lambda now: print(now.time), every=0.125)
    run.save(folder / "run.h5")
    run.evolve(0.5, progress=False)
    archive.save(folder / "run.h5", run)
    grape6py.picture.draw_file(folder / "run.png", folder / "run.h5")
    grape6py.movie.draw(folder / "run.gif", folder / "run.h5", fps=10, plane="xz")
    about, records = archive.history(folder / "run.h5")
    saved: grape6py.Run = grape6py.open_run(folder / "run.h5")
    print(
        saved[-1].pos[0], saved[::2].track([1]).vel.shape, saved.history.error, saved.at(0.3).time
    )
    print(about["eps"], records[-1]["error"], archive.restore(folder / "run.h5").ids[0])
    inside = grape6py.fields.nfw(1.0, 2.0) + grape6py.fields.rotation(0.1)
    watched: list[grape6py.events.AnyEvent] = [grape6py.events.Encounter(1e-9, "merge")]
    watched.append(grape6py.events.Escape(1e6))
    tidal = Hermite(*cluster, eps=0.01, field=inside, backend="cpu")
    same_mass = grape6py.StellarUpdate(cluster.mass, next=1.0)
    ended: grape6py.events.Event | None = tidal.evolve(
        0.05, events=watched, stars=lambda _: same_mass
    )
    print(ended, inside(0.0, cluster.pos, cluster.vel).pot.sum(), tidal.copy().energy_change)
    print(grape6py.accelerations(cluster.mass, cluster.pos, eps=0.1).shape)
    galaxy = Leapfrog(*cluster, eps=0.05, dt=1 / 64, backend="cpu-tree", theta=0.5)
    galaxy.evolve(1 / 32)
    energy: grape6py.diagnostics.Energy = galaxy.energy()
    radii = grape6py.diagnostics.lagrangian_radii(*cluster[:2], fractions=(0.1, 0.5))
    same: grape6py.leapfrog.Leapfrog = galaxy
    print(energy.total, radii[0], same.state()["acc"][0])


def main(folder: Path) -> None:
    warnings.simplefilter("error", grape6py.Grape6Warning)
    cluster = plummer(64, seed=1)
    grape6py.write_snapshot(folder / "start.dat", cluster, comment="64 bodies")
    print(grape6py.read_snapshot(folder / "start.dat").pos[0] - cluster.pos[0])
    units: grape6py.units.Units = grape6py.Units("1e4 Msun", "2 pc")
    grape6py.write_snapshot(folder / "start.dyn", cluster, time=0.5, units=units)
    again: grape6py.Snapshot = grape6py.read_snapshot(folder / "start.dyn")
    print(again.time, again.units, grape6py.quantities.is_quantity(again.mass), units.G)
    print([grape6py.formats.by_name("a.nemo").title, again.in_units(units).format])
    shipped = grape6py.snapshot.read_snapshot(grape6py.paths.SNAPSHOT)
    print(len(shipped.mass), [len(model.mass) for model in all_models()])
    print(abs(errors_of_sum(cluster)).max(), sum_of_tree(cluster))
    integrate(cluster, folder)
    try:
        Grape6(backend="abacus")
    except grape6py.errors.ArgumentError as error:
        print(error, error.code, isinstance(error, grape6py.Grape6Error))


main(Path(sys.argv[1]))
