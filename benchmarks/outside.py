"""What fields, frames, events and bodies without mass cost a Hermite integration.

    python benchmarks/outside.py [--name NAME] [--commit COMMIT] [--out DIR] [--backend cuda]
                                 [--bodies 1024 16384] [--rounds 5] [--dt 0.015625]

A Plummer sphere with eps = 4/N, eta = 0.02 over part of a time unit, plain and with each of these,
in turn, by block steps or (--dt) one step for all; medians, and the median of the ratios to the
plain run of the same round. Writes results/outside-NAME.json.
"""

import statistics
import time

import numpy as np
from harness import run

from grape6py import Hermite, fields, plummer
from grape6py.events import Encounter, Escape

GALAXY = fields.mwpotential2014(8000, 33.5)
ORBIT = [8000, 0, 0, 0, 33.5, 0]
FAR = 1e6  # nobody escapes


def half_massless(mass):
    return np.where(np.arange(len(mass)) % 2, 2 * mass, 0.0)


CASES = {
    "plain": ({}, None, ()),
    "point mass": ({"field": fields.point_mass(1e-3)}, None, ()),
    "mwpotential2014, frame on an orbit": ({"field": GALAXY, "orbit": ORBIT}, None, ()),
    "function": ({"field": lambda t, x, v: (-1e-9 * x, -1e-9 * v, 0 * x[:, 0])}, None, ()),
    "encounters and escapes": ({}, None, (Encounter(1e-9), Escape(FAR))),
    "half of the bodies massless": ({}, half_massless, ()),
}


def seconds(n, until, options, change, events, steps, backend):
    """Wall time, and steps."""
    mass, pos, vel = plummer(n, seed=1)
    mass = mass if change is None else change(mass)
    cluster = Hermite(mass, pos, vel, eps=4 / n, backend=backend, **steps, **options)
    cluster.evolve(1 / 64)
    before, began = cluster.steps, time.perf_counter()
    cluster.evolve(1 / 64 + until, events=events)
    return time.perf_counter() - began, cluster.steps - before


def outside(options):
    for n in options.bodies:
        until, steps = options.until, {"dt": options.dt} if options.dt else {"dt_max": 1 / 64}
        found = {name: [] for name in CASES}
        for turn in range(options.rounds + 1):
            for name, case in CASES.items():
                measured = seconds(n, until, *case, steps, options.backend)
                if turn:
                    found[name].append(measured)
        plain = [t for t, _ in found["plain"]]
        for name, rows in found.items():
            per_step = [t / s for t, s in rows]
            base = [t / s for t, s in found["plain"]]
            yield {
                "n": n, "case": name, "until": until,
                "seconds": statistics.median(t for t, _ in rows), "steps": rows[0][1],
                "ratio": statistics.median(a / b for (a, _), b in zip(rows, plain, strict=True)),
                "ratio per step": statistics.median(
                    a / b for a, b in zip(per_step, base, strict=True)),
            }  # fmt: skip


if __name__ == "__main__":
    run(__doc__, {"outside": outside},
        gpu=lambda part, options: options.backend == "cuda",
        about=lambda options: {"backend": options.backend, "dt": options.dt},
        backend={"default": "auto"},
        bodies={"type": int, "nargs": "+", "default": [1024, 16384]},
        rounds={"type": int, "default": 5},
        dt={"type": float},
        until={"type": float, "default": 1 / 16})  # fmt: skip
