"""Energy errors of kira's rule of steps, in NumPy and double precision: beside tables 4.5 and 4.6.

    python benchmarks/kira_rule.py [rule] [--name NAME]

Steps of starlab's kira (hdyn_ev.C) for bodies that are not in close pairs: Aarseth's criterion with
eta = a^2, of derivatives at the start of the step; halved at most once and doubled at most once a
step, up to the length of the run; the first ones are a |acc| / |jerk| / 16, at most 1/16. Over the
spheres and times of thesis.py, whose errors and steps stand beside.
"""

import numpy as np
from harness import run
from thesis import EPS, integrated

from grape6py import plummer

T_END, FIRST, FIRST_LIMIT = 0.25, 1 / 16, 1 / 16
CASES = ((256, 9), (512, 9), (1024, 9))  # N, spheres


def forces(at, vel, of, x, v, m, eps2):
    """Acceleration and jerk of the bodies `of`, which are at `at` and have the velocities `vel`."""
    dx, dv = x - at[:, None], v - vel[:, None]
    r2 = (dx**2).sum(-1) + eps2
    r2[np.arange(len(of)), of] = np.inf
    weight = m / r2**1.5
    along = 3 * (dx * dv).sum(-1) / r2
    jerks = weight[..., None] * (dv - along[..., None] * dx)
    return (weight[..., None] * dx).sum(1), jerks.sum(1)


def energy(x, v, m, eps2):
    r2 = ((x - x[:, None]) ** 2).sum(-1) + eps2
    np.fill_diagonal(r2, np.inf)
    return 0.5 * (m * (v**2).sum(1)).sum() - 0.5 * (m * m[:, None] / np.sqrt(r2)).sum()


def length(vector):
    return np.sqrt((vector * vector).sum(-1))


def integrate(model, eps, accuracy):
    """Error of the energy, and steps, of a run to T_END with block steps of the Hermite scheme."""
    (m, x, v), eps2, steps = model, eps * eps, 0
    everybody = np.arange(len(m))
    a, j = forces(x, v, everybody, x, v, m, eps2)
    dt = np.minimum(FIRST * accuracy * length(a) / length(j), FIRST_LIMIT)
    dt, t, start = 2.0 ** np.floor(np.log2(dt)), np.zeros(len(m)), energy(x, v, m, eps2)
    while (now := (t + dt).min()) <= T_END:
        s = (now - t)[:, None]
        at, vel = x + s * (v + s * (a / 2 + s * j / 6)), v + s * (a + s * j / 2)
        b = everybody[t + dt == now]
        h, a0, j0 = dt[b, None], a[b], j[b]
        a1, j1 = forces(at[b], vel[b], b, at, vel, m, eps2)
        a2 = (6 * (a1 - a0) - h * (4 * j0 + 2 * j1)) / h**2
        a3 = (12 * (a0 - a1) + 6 * h * (j0 + j1)) / h**3
        x[b] = at[b] + h**4 * (a2 / 24 + h * a3 / 120)
        v[b] = vel[b] + h**3 * (a2 / 6 + h * a3 / 24)
        above = length(a1) * length(a2) + length(j1) ** 2
        wanted = accuracy * np.sqrt(above / (length(j1) * length(a3) + length(a2) ** 2))
        old = dt[b]
        longer = (wanted >= 2 * old) & (now % (2 * old) == 0) & (2 * old <= T_END)
        dt[b] = np.where(wanted < old, old / 2, np.where(longer, 2 * old, old))
        a[b], j[b], t[b], steps = a1, j1, now, steps + len(b)
    return abs(energy(x, v, m, eps2) / start - 1), steps


def rule(options):
    for n, spheres in CASES:
        for name, eps in (("1/256", EPS), ("0", 0.0)):
            for accuracy in (0.1, 0.2, 0.3):
                for seed in range(1, 1 + spheres):
                    error, steps = integrate(plummer(n, seed), eps, accuracy)
                    how = {"eps": eps, "eta": accuracy**2, "dt_max": 1 / 8}
                    here = integrated(plummer(n, seed), "cpu", how)
                    yield {"n": n, "eps": name, "accuracy": accuracy, "seed": seed, "error": error,
                           "steps": steps, "error_here": here["error"],
                           "steps_here": here["steps"]}  # fmt: skip


if __name__ == "__main__":
    run(__doc__, {"rule": rule}, prefix="kira-")
