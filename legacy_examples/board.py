"""A star cluster on the board, in Python: the Hermite scheme with block steps.

    python board.py [N [T]]

The board keeps each body as it was at its last step, predicts all of them to any time, and sums
their forces. The program moves the few that are due (Makino & Aarseth 1992, PASJ 44, 141). Steps
are powers of two: all bodies meet at multiples of the largest one, where the energy is printed.
"""

import sys

import numpy as np

from grape6py import Grape6, plummer

ETA, ETA_START, DT_MAX = 0.02, 0.0025, 1 / 8  # accuracy of steps and of the first; the largest step


def size(vectors):
    return np.sqrt((vectors**2).sum(axis=1))


def power_of_two(step):
    return np.exp2(np.floor(np.log2(np.minimum(step, DT_MAX))))


def main(n=1024, t_end=1.0):
    mass, pos, vel = plummer(n, seed=1)
    eps, now, t, steps, blocks = 4 / n, 0.0, np.zeros(n), 0, 0
    with Grape6() as board:
        board.set_particles(mass, pos, vel)
        acc, jerk, pot, *_ = board.forces(eps=eps)
        board.set_particles(mass, pos, vel, acc, jerk)
        dt = power_of_two(ETA_START * size(acc) / size(jerk))
        start = (mass * (size(vel) ** 2 + pot)).sum() / 2
        print(f"{board}\n       t    blocks     steps  energy error")
        while now < t_end or now % DT_MAX != 0:
            now = (t + dt).min()
            due = np.flatnonzero(t + dt == now)
            h, a, j = dt[due, None], acc[due], jerk[due]
            x = pos[due] + h * (vel[due] + h * (a / 2 + h * j / 6))
            v = vel[due] + h * (a + h * j / 2)
            a1, j1, *_ = board.forces(x, v, due, eps=eps, time=now)

            snap = (6 * (a1 - a) - h * (4 * j + 2 * j1)) / h**2  # at the start of the step
            crackle = (12 * (a - a1) + 6 * h * (j + j1)) / h**3
            x += h**4 * (snap / 24 + h * crackle / 120)
            v += h**3 * (snap / 6 + h * crackle / 24)
            board.set_particles(mass[due], x, v, a1, j1, time=now, address=due)
            pos[due], vel[due], acc[due], jerk[due], t[due] = x, v, a1, j1, now

            a, j, s, c = map(size, (a1, j1, snap + h * crackle, crackle))
            wanted = np.sqrt(ETA * (a * s + j**2) / (j * c + s**2))
            twice = 2 * dt[due]  # allowed where the grid of such steps has a point
            dt[due] = power_of_two(np.minimum(wanted, np.where(now % twice == 0, twice, dt[due])))
            steps, blocks = steps + len(due), blocks + 1
            if now % DT_MAX == 0:
                energy = (mass * (size(vel) ** 2 + board.forces(eps=eps).pot)).sum() / 2
                print(f"{now:8.3f}{blocks:10d}{steps:10d}{energy / start - 1:14.2e}")


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((int, float), sys.argv[1:], strict=False)))
