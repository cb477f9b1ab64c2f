"""Times the octree on a card, measures its errors, and keeps both as JSON.

    python benchmarks/tree_gpu.py [--part table|cdf|stages|lattice|flat|plot|active|kirin|all]
                                  [--name NAME] [--commit COMMIT] [--out DIR] [--largest N]

Each part writes results/tree-PART-NAME.json, in well under two minutes on an H200. `tree_tables.py`
and `tree_figures.py` say what is made of them.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tree_kirin
import tree_models as models
from card_tree import EPS, PERCENTILES, Card, Model, measure, median_ms, summary
from cpu import HERE, commit
from gpu import about

from grape6py import Grape6
from grape6py.cuda.tree.job import GROUP
from grape6py.cuda.tree.octree import CardTree
from grape6py.cuda.tree.settings import Setting

M = 1 << 20


@dataclass
class Row:
    """Times in ms that the best peers take for some errors, the goal, and settings to reach it."""

    n: int
    median: float
    p99: float
    largest: float
    goal: float
    ryoanji: float
    bonsai: float
    settings: tuple  # of (theta, order; bound of a term's error as a share of the last acc)


ROWS = (
    Row(M, 1.1e-4, 4.0e-4, 5e-3, 5, 10.8, 11.0, ((0.53, 6),)),
    Row(M, 5.5e-4, 2.5e-3, 2e-2, 2.2, 5.2, 6.0, ((0.74, 6),)),
    Row(4 * M, 1.26e-4, 4.1e-4, 5e-3, 10, 37.3, 42.2, ((0.58, 6),)),
    Row(4 * M, 6.7e-4, 3.0e-3, 2e-2, 6, 17.2, 22.1, ((0.76, 5),)),
    Row(16 * M, 1.33e-4, 4.5e-4, 5e-3, 32, 168, 177, ((0.585, 6),)),
    Row(16 * M, 7.1e-4, 3.1e-3, 2e-2, 20, 73.9, 94.3, ((0.765, 5),)),
)
TABLE_MODELS = ((models.plummer, 11), (models.plummer, 12), (models.clustered, 13))
SCALING = (0.8, 5), (M, 4 * M, 16 * M, 64 * M)
STAGES = ((0.8, 5), (0.58, 6), (0.75, 0)), tuple(1 << k for k in range(14, 27, 2))
CDF_SIZES, CDF_ANGLES, CDF_ORDERS = (
    (1 << 15, 1 << 17, M),
    (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
    (5, 0),
)
LATTICE, LATTICE_ANGLES, LATTICE_ORDERS = 10**6, (0.1, *CDF_ANGLES), (5, 0)
FLAT, FLAT_SETTINGS = 10**8, ((0.35, 6), (0.38, 6), (0.45, 6), (0.6, 6))
PLOT_SIZES, PLOT_ANGLES = (M, 4 * M), (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PLOT_ORDERS = (4, 5, 6, 0)
ACTIVE_SIZES, ACTIVE_SETTING, ACTIVE_SHARE = (M, 4 * M, 16 * M, 64 * M), (0.75, 5), 0.01


def part_table(card, largest):
    """Time and memory against N; then every row on two Plummer spheres and a clustered model, whose
    longer lists other trees keep."""
    setting, sizes = SCALING
    for n in (n for n in sizes if n <= largest):
        model = Model(card, models.plummer, n, 14)
        yield {"what": "scaling"} | measure(model, setting, stages=True, memory=True, seconds=0.6)
    for make, seed in TABLE_MODELS:
        for n in sorted({row.n for row in ROWS if row.n <= largest}):
            model = Model(card, make, n, seed)
            for row in (row for row in ROWS if row.n == n):
                for setting in row.settings:
                    yield {"what": "row", "goal": asdict(row)} | measure(model, setting)


def part_cdf(card, largest):
    """Distributions of errors on 32768 targets, as in figures 4.8 and 4.9 of Bonsai's paper."""
    for n in (n for n in CDF_SIZES if n <= largest):
        model = Model(card, models.plummer, n, 21, targets=1 << 15)
        for order in CDF_ORDERS:
            for theta in CDF_ANGLES:
                yield measure(model, (theta, order), distribution=True, seconds=0.1)


def part_stages(card, largest):
    """Stage times against N, as in figure 4.6 of Bonsai's paper."""
    settings, sizes = STAGES
    for n in (n for n in sizes if n <= largest):
        model = Model(card, models.plummer, n, 31)
        for setting in settings:
            yield measure(model, setting, stages=True, memory=True)


def part_lattice(card, largest):
    """A cube lattice in order and shuffled, theta by theta, and the direct sum."""
    n = min(LATTICE, largest)
    ordered, shuffled = (
        Model(card, models.lattice, n, seed, targets=100_000) for seed in (None, 41)
    )
    yield direct(ordered)
    for order in LATTICE_ORDERS:
        for theta in LATTICE_ANGLES:
            for model in (ordered, shuffled):
                yield {"what": "tree"} | measure(model, (theta, order))


def part_flat(card, largest):
    """Very many particles without thickness."""
    for make, seed in ((models.sheet, 51), (models.disk, 52)):
        model = Model(card, make, min(FLAT, largest), seed)
        for setting in FLAT_SETTINGS:
            yield measure(model, setting, stages=True, memory=setting == FLAT_SETTINGS[-1])
        del model
        card.xp.get_default_memory_pool().free_all_blocks()


def part_plot(card, largest):
    """Time against error."""
    rate = None
    for n in (n for n in PLOT_SIZES if n <= largest):
        model = Model(card, models.plummer, n, 61)
        yield (figure := direct(model, rate))
        rate = rate or n * n / figure["ms"]
        for order in PLOT_ORDERS:
            for theta in PLOT_ANGLES:
                yield {"what": "tree"} | measure(model, (theta, order), seconds=0.1)


def part_active(card, largest):
    """Steps of few: a hundredth of the groups are targets, drawn at random or the densest."""
    for n in (n for n in ACTIVE_SIZES if n <= largest):
        model = Model(card, models.plummer, n, 71)
        yield (figure := active(model))
        print(json.dumps(figure), flush=True)


def active(model):
    card, setting = model.card, Setting(*ACTIVE_SETTING, EPS * EPS)
    tree = CardTree(card, model.pos, model.mass)
    groups = tree.order[: model.n // GROUP * GROUP].reshape(-1, GROUP)
    count = int(ACTIVE_SHARE * len(groups))
    spread = card.xp.linalg.norm(card.xp.ptp(model.pos[groups], axis=1), axis=1)
    chosen = {
        "random": np.random.default_rng(model.seed).choice(len(groups), count, False),
        "densest": card.take(card.xp.argsort(spread)[:count]),
    }
    figure = {
        "n": model.n, "theta": setting.theta, "order": setting.order, "active": count * GROUP,
        "build": median_ms(card, lambda: CardTree(card, model.pos, model.mass)),
        "walk": median_ms(card, lambda: tree.forces(setting)),
    }  # fmt: skip
    for name, which in chosen.items():
        rows = card.xp.sort(groups[card.put(which)].ravel()).astype(np.int32)
        at = model.pos[rows]
        ms = median_ms(card, lambda at=at, rows=rows: tree.forces(setting, at, rows))
        figure[name] = {"ms": ms, "share_of_walk": ms / figure["walk"]}
    return figure


def part_kirin(card, largest):
    """A Plummer sphere over one time unit, positions kept on the card."""
    for n in (n for n in tree_kirin.SIZES if n <= largest):
        figure = tree_kirin.on_card(card, n)
        print(json.dumps(figure), flush=True)
        yield figure


def direct(model, pairs_per_ms=None):
    """The fastest direct sum, mode single without jerk; estimated if pairs a millisecond are given,
    since it takes a time that goes with N^2."""
    figure = {"what": "direct", "model": model.name, "n": model.n}
    if pairs_per_ms:
        figure |= {"ms": model.n**2 / pairs_per_ms, "estimated": True}
    else:
        with Grape6(backend=model.card.backend, precision="single", jerk=False) as board:
            board.set_particles(model.mass, model.pos)
            board.forces(eps=EPS)
            model.card.wait()
            began = time.perf_counter()
            acc = board.forces(eps=EPS).acc
            model.card.wait()
        figure |= {"ms": 1e3 * (time.perf_counter() - began), "estimated": False,
                   "error": summary(model.relative_errors(acc))}  # fmt: skip
    print(json.dumps(figure), flush=True)
    return figure


PARTS = {
    name.removeprefix("part_"): part
    for name, part in globals().items() if name.startswith("part_")
}  # fmt: skip


def measure_part(name, card, options, machine):
    """Measure a part; its JSON has what there is so far, should it be cut short."""
    path = Path(options.out, f"tree-{name}-{options.name}.json")
    result = {"machine": machine, "commit": options.commit, "eps": EPS, "figures": []}
    if name == "cdf":
        result["percentiles"] = PERCENTILES
    began = time.perf_counter()
    for figure in PARTS[name](card, options.largest):
        result["figures"].append(figure)
        result["seconds"] = round(time.perf_counter() - began, 1)
        path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{path}: {result['seconds']} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="card", help="of the machine, in the file's name")
    parser.add_argument("--part", default="all", choices=[*PARTS, "all"])
    parser.add_argument("--commit", default=commit())
    parser.add_argument("--out", default=str(HERE / "results"))
    parser.add_argument("--largest", type=int, default=10**9, help="N")
    options = parser.parse_args()
    card, machine = Card(), about()
    for name in PARTS if options.part == "all" else [options.part]:
        measure_part(name, card, options, machine)


if __name__ == "__main__":
    main()
