"""Table 4.4 of Bedorf's thesis (2007): a Plummer sphere over one time unit by treecode.

Leapfrog with the constant step of legacy_examples/treecode.c and the softening of the thesis's
other runs. The energies at both ends are direct sums, whose time does not count.
"""

import time

import numpy as np

from grape6py import Grape6, Tree, plummer
from grape6py.cuda.tree.octree import CardTree
from grape6py.cuda.tree.settings import Setting

SIZES = tuple(4**k for k in range(4, 11))
EPS, STEP, STEPS = 1 / 256, 1 / 512, 512
THETA, ORDER = 0.75, 5


def leapfrog(acceleration, pos, vel, steps=STEPS):
    """Kick, drift, kick, in place; seconds that it takes once everything is compiled."""
    acceleration(pos)
    began = time.perf_counter()
    acc = acceleration(pos)
    for _ in range(steps):
        vel += 0.5 * STEP * acc
        pos += STEP * vel
        acc = acceleration(pos)
        vel += 0.5 * STEP * acc
    float(vel[0, 0])  # waits for a card
    return time.perf_counter() - began


def run(n, mass, pos, vel, acceleration, potential):
    def energy():
        return float(0.5 * (mass * ((vel**2).sum(axis=1) + potential(pos))).sum())

    start = energy()
    seconds = leapfrog(acceleration, pos, vel)
    return {"n": n, "seconds": seconds, "error": abs(energy() / start - 1), "eps": EPS,
            "step": STEP, "steps": STEPS, "theta": THETA, "order": ORDER}  # fmt: skip


def on_card(card, n, seed=1):
    """Positions stay in the card's memory."""
    mass, pos, vel = map(card.xp.asarray, plummer(n, seed))
    everybody = card.xp.arange(n, dtype=np.int32)

    def acceleration(at):
        return CardTree(card, at, mass).forces(Setting(THETA, ORDER, EPS * EPS))[0]

    def potential(at):
        return card.exact(at, mass, everybody, EPS)[:, 3]

    return {"what": "card"} | run(n, mass, pos, vel, acceleration, potential)


def on_cpu(n, threads, seed=1):
    """The same by the tree on the CPU."""
    mass, pos, vel = plummer(n, seed)

    def acceleration(at):
        with Tree(at, mass, threads=threads) as tree:
            return tree.forces(eps=EPS, theta=THETA, order=ORDER).acc

    def potential(at):
        with Grape6(backend="cpu", jerk=False) as board:
            board.set_particles(mass, at)
            return board.forces(eps=EPS).pot

    return {"what": "cpu", "threads": threads} | run(n, mass, pos, vel, acceleration, potential)
