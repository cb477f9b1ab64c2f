"""The merger of two galaxies of Bedorf, Gaburov & Portegies Zwart (2012), section 4.4.2.

    python benchmarks/merger.py [--name NAME] [--commit COMMIT] [--out DIR] [--t-end 1000]
                                [--backend tree --theta 0.75]

240 002 bodies with steps of 1/64 and a softening of 0.1: energy and the black holes' distance
against time, wall time, density of the remnant, and pictures of the stars. Writes
results/merger-SETTING-NAME.json, and for a tree pictures as merger-SETTING-NAME.npz, of which
merger_figures.py makes those of the page. With --backend cuda forces are direct sums, to compare
the distance with.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from cpu import HERE, commit
from gpu import about

from grape6py import Leapfrog
from grape6py.models import galaxy_merger

STEP, EPS, SEED = 1 / 64, 0.1, 1
LOOK, ENERGIES = 1 / 4, 5.0  # time between looks at the black holes, and at the energy
PICTURES, WIDTH, PIXELS = (0, 20, 40, 60, 80, 120, 200, 1000), 40.0, 160
STARS, HOLES = (0, 1, 4, 5), (3, 7)  # components


def picture(pos):
    """Counts of bodies, seen along z."""
    edges = np.linspace(-WIDTH, WIDTH, PIXELS + 1)
    return np.histogram2d(pos[:, 0], pos[:, 1], bins=[edges, edges])[0].astype(np.uint16)


def profile(mass, pos, centre):
    """Density in shells about a point: radii and densities."""
    radius = np.linalg.norm(pos - centre, axis=1)
    edges = np.geomspace(0.05, 50, 31)
    inside, _ = np.histogram(radius, edges, weights=mass)
    return np.sqrt(edges[1:] * edges[:-1]), inside / (4 / 3 * np.pi * np.diff(edges**3))


def passages(times, distance):
    """Times and distances of the pericentres."""
    d = np.array(distance)
    at = np.flatnonzero((d[1:-1] < d[:-2]) & (d[1:-1] <= d[2:])) + 1
    return [[times[k], distance[k]] for k in at]


def run(particles, component, options):
    settings = {"backend": options.backend}
    if "tree" in options.backend:
        settings |= {"theta": options.theta, "order": options.order}
    else:
        settings["precision"] = "single"
    galaxies = Leapfrog(*particles, dt=STEP, eps=EPS, **settings)
    stars = np.flatnonzero(np.isin(component, STARS))
    holes = [int(np.flatnonzero(component == which)[0]) for which in HOLES]
    first = galaxies.energy().total
    times, distance, energy, pictures = [], [], [], {}
    galaxies.evolve(STEP)  # compiles what is not compiled yet
    began, aside = time.perf_counter(), 0.0
    for k in range(1, round(options.t_end / LOOK) + 1):
        galaxies.evolve(k * LOOK)
        looked = time.perf_counter()
        pos = galaxies.pos
        times.append(k * LOOK)
        distance.append(float(np.linalg.norm(pos[holes[0]] - pos[holes[1]])))
        if k % round(ENERGIES / LOOK) == 0:
            energy.append([k * LOOK, galaxies.energy().total / first - 1])
        if k * LOOK in PICTURES:
            pictures[str(k * LOOK)] = picture(pos[stars])
        aside += time.perf_counter() - looked
    seconds = time.perf_counter() - began
    radii, density = profile(galaxies.mass, galaxies.pos, galaxies.pos[holes[0]])
    steps = round(options.t_end / STEP)
    figure = {
        "bodies": len(component), "steps": steps, "seconds": seconds - aside, "looking": aside,
        "ms_a_step": 1e3 * (seconds - aside) / steps, "settings": settings,
        "largest_error": max((abs(error) for _, error in energy), default=None), "energy": energy,
        "times": times, "distance": distance, "pericentres": passages(times, distance),
        "radii": radii.tolist(), "density": density.tolist(),
    }  # fmt: skip
    return figure, pictures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="here")
    parser.add_argument("--commit", default=None)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--t-end", type=float, default=1000.0)
    parser.add_argument("--backend", default="tree")
    parser.add_argument("--theta", type=float, default=0.75)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--bodies", type=int, default=None, help="of a trial: stars of a galaxy")
    options = parser.parse_args()
    few = {"n_halo": 5 * options.bodies, "n_stars": options.bodies} if options.bodies else {}
    particles, component = galaxy_merger(seed=SEED, **few)
    figure, pictures = run(particles, component, options)
    setting = f"theta{options.theta:g}" if "tree" in options.backend else "direct"
    path = options.out / f"merger-{setting}-{options.name}.json"
    result = {"machine": about(), "commit": options.commit or commit(), "figures": [figure]}
    path.write_text(json.dumps(result, indent=1) + "\n")
    if pictures:
        np.savez_compressed(path.with_suffix(".npz"), **pictures)
    print({k: v for k, v in figure.items() if not isinstance(v, list)}, figure["pericentres"][:6])


if __name__ == "__main__":
    main()
