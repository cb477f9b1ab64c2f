"""The merger of two galaxies of Bedorf, Gaburov & Portegies Zwart (2012), section 4.4.2.

    python benchmarks/merger.py [--name NAME] [--t-end 1000] [--backend tree] [--block]
                                [--theta 0.75 | --accuracy 1e-3]

240 002 bodies with steps of 1/64 and a softening of 0.1: wall time, the energy and the black
holes' distance against time, density profiles, and pictures of the stars. Writes
results/merger-SETTING-NAME.json, and curves and pictures as .npz beside it, now and then. With
--backend cuda forces are direct sums; with --block, too, in block steps of at most 1/16 by the
Hermite scheme, as phiGRAPE has them. A trial: --backend cpu-tree --bodies 400 --t-end 60.
"""

import itertools
import math
import time

import numpy as np
from harness import command_line, origin, write

from grape6py import Hermite, Leapfrog
from grape6py.models import galaxy_merger

STEP, EPS, SEED = 1 / 64, 0.1, 1
LONGEST = 1 / 16  # of block steps
LOOKS, EVERY = 16, 2  # looks at the black holes in a time unit; time units between energies
PASSAGES, DEEP = 3, 1.5  # pericentres wanted; how much farther the holes are before and after
PICTURES, WIDTH = (0, 20, 30, 40, 60, 90, 120, 1000), 30.0
PIXELS = np.linspace(-WIDTH, WIDTH, 241)  # their edges
STARS, HOLES = (0, 1, 4, 5), (3, 7)  # components
EDGES = np.geomspace(0.05, 50, 31)  # of the shells of a profile
KEEP = 20  # time units between writings


def densest(mass, pos, share=0.9, least=0.01):
    """Centre of mass in shrinking spheres, down to `least` of the bodies (Power et al. 2003)."""
    least = math.ceil(least * len(mass))
    while True:
        centre = np.average(pos, axis=0, weights=mass)
        if len(mass) <= least:
            return centre
        kept = max(least, int(share * len(mass)))
        inner = np.argpartition(((pos - centre) ** 2).sum(axis=1), kept - 1)[:kept]
        mass, pos = mass[inner], pos[inner]


def profile(mass, pos):
    """Density in shells about the densest point."""
    inside, _ = np.histogram(np.linalg.norm(pos - densest(mass, pos), axis=1), EDGES, weights=mass)
    return inside / (4 / 3 * np.pi * np.diff(EDGES**3))


def passages(times, distance):
    """Times and distances of the first pericentres: minima between distances DEEP times theirs.

    Lesser ones come of the holes' wandering in their galaxies.
    """
    found, falling, last = [], False, 0  # last: of the extremum that is looked for
    for k, d in enumerate(distance):
        if d < distance[last] if falling else d > distance[last]:
            last = k
        elif falling and d > DEEP * distance[last]:
            near = slice(last - 1, last + 2)  # there the distance's square goes as a parabola
            curve = np.polynomial.Polynomial.fit(times[near], np.square(distance[near]), 2)
            (when,) = curve.deriv().roots()
            found.append([float(when), math.sqrt(max(float(curve(when)), 0.0))])
            if len(found) == PASSAGES:
                break
            falling, last = False, k
        elif not falling and d < distance[last] / DEEP:
            falling, last = True, k
    return found


class Witness:
    """What is seen of galaxies on their way."""

    def __init__(self, galaxies, component):
        self.galaxies = galaxies
        self.holes = [int(np.flatnonzero(component == which)[0]) for which in HOLES]
        self.stars = np.isin(component, STARS)
        self.times, self.distance, self.errors, self.momenta = [], [], [], []
        self.seen = {}  # pictures and profiles
        self.start = galaxies.energy().total
        self.turning = galaxies.angular_momentum()
        self.look_at_all()

    def look_at_holes(self):
        pos, (one, other) = self.galaxies.pos, self.holes
        self.times.append(self.galaxies.time)
        self.distance.append(math.hypot(*(pos[one] - pos[other]).tolist()))

    def look_at_all(self, last=False):
        now = self.galaxies.time
        self.errors.append([now, self.galaxies.energy().total / self.start - 1])
        mass, _, vel = self.galaxies.particles()
        moving = np.linalg.norm(mass @ vel) / (mass @ np.linalg.norm(vel, axis=1))
        turned = np.linalg.norm(self.galaxies.angular_momentum() - self.turning)
        self.momenta.append([now, moving, turned / np.linalg.norm(self.turning)])
        if now in PICTURES or last:
            mass, pos, _ = self.galaxies.particles()
            counts, *_ = np.histogram2d(*pos[self.stars, :2].T, bins=[PIXELS, PIXELS])
            self.seen[f"stars {now:g}"] = counts.astype(np.uint16)  # seen along z
            self.seen[f"density {now:g}"] = profile(mass, pos)

    def figure(self):
        galaxies = self.galaxies
        return {
            "bodies": galaxies.n, "time": galaxies.time, "steps": galaxies.blocks,
            "backend": galaxies.backend, "settings": galaxies.settings,
            "largest_error": max(abs(error) for _, error in self.errors),
            "momentum": max(moving for _, moving, _ in self.momenta),
            "angular_momentum": max(turned for *_, turned in self.momenta),
            "pericentres": passages(self.times, self.distance),
        }  # fmt: skip

    def curves(self):
        return self.seen | {
            "errors": self.errors, "momenta": self.momenta,
            "times": self.times, "distance": self.distance,
            "radii": np.sqrt(EDGES[1:] * EDGES[:-1]),
        }  # fmt: skip


def run(witness, t_end, keep):
    """Integrate, with seconds of that alone, and of looks at all bodies, for `keep`."""
    galaxies = witness.galaxies
    galaxies.evolve(LONGEST)  # compiles what is not compiled yet
    seconds = looking = 0.0
    apart = True
    for start, end in itertools.pairwise([*range(0, t_end, EVERY), t_end]):
        began = time.perf_counter()
        looks = (end - start) * LOOKS if apart else 1
        for look in range(1, looks + 1):
            galaxies.evolve(start + (end - start) * look / looks)
            witness.look_at_holes()  # which waits for a GPU, too
        ended = time.perf_counter()
        seconds += ended - began
        witness.look_at_all(end == t_end)
        apart = len(passages(witness.times, witness.distance)) < PASSAGES
        looking += time.perf_counter() - ended
        if end % KEEP == 0 or end == t_end:
            keep({"seconds": seconds, "looking": looking})


def main():
    options = command_line(
        __doc__,
        t_end={"type": int, "default": 1000},
        backend={"default": "tree"},
        theta={"type": float, "default": 0.75},
        accuracy={"type": float, "help": "in place of theta"},
        bodies={"type": int, "help": "of a trial: stars of a galaxy"},
        block={"action": "store_true", "help": "block steps of direct sums"},
    )
    few = {"n_halo": 5 * options.bodies, "n_stars": options.bodies} if options.bodies else {}
    particles, component = galaxy_merger(seed=SEED, **few)
    tree = "tree" in options.backend
    opening = "accuracy" if options.accuracy else "theta"
    how = {opening: getattr(options, opening)} if tree else {"precision": "single"}
    if options.backend in ("tree", "cuda-tree", "cuda"):
        import cupy

        particles = map(cupy.asarray, particles)  # so that looks fetch only what they look at
    if options.block:
        galaxies = Hermite(*particles, eps=EPS, dt_max=LONGEST, backend=options.backend)
    else:
        galaxies = Leapfrog(*particles, dt=STEP, eps=EPS, backend=options.backend, **how)
    witness = Witness(galaxies, component)
    result = origin(options, galaxies.backend.startswith("cuda"))
    setting = f"{opening}{how[opening]:g}" if tree else "block" if options.block else "direct"
    path = options.out / f"merger-{setting}-{options.name}.json"

    def keep(clock):
        curves = path.with_suffix(".npz")
        figure = witness.figure() | clock | {"curves": curves.name}
        figure["ms_a_step"] = 1e3 * clock["seconds"] / figure["steps"]
        np.savez_compressed(curves, **witness.curves())
        write(path, result | {"figures": [figure]})
        print(figure, flush=True)

    run(witness, options.t_end, keep)


if __name__ == "__main__":
    main()
