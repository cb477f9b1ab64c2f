"""Errors of every mode and instruction set against the oracle, all rows, and keeps them as JSON.

    python benchmarks/accuracy.py [--n 16384] [--seeds 5] [--name NAME]

The model is plummer(n) cut at 0.999 of the mass, eps = 0. A figure is the median over the seeds of
the median, and of the maximum, of the relative error over the particles; the bias is the mean
relative error along the force. The oracle sums in long double (80 ns a pair on two cores).
"""

import argparse
import json
import platform
from pathlib import Path

import numpy as np
from cpu import commit, machine

from grape6py import Grape6, models, reference
from grape6py.errors import Grape6Error

HERE = Path(__file__).resolve().parent
ISAS = ("base", "avx2", "avx512")


def relative(found, true):
    found, true = np.atleast_2d(found.T).T, np.atleast_2d(true.T).T
    return np.sqrt(((found - true) ** 2).sum(1) / (true**2).sum(1)).astype(float)


def bias(found, true):
    return float(((found * true).sum(1) / (true**2).sum(1)).mean() - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=16384)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--name", default=platform.node())
    options = parser.parse_args()
    errors = {}
    for seed in range(1, options.seeds + 1):
        model = models.plummer(options.n, seed, mass_fraction=0.999)
        true = reference.direct_sum(*model, extended=True)
        for isa in ISAS:
            for mode in ("grape", "double", "single"):
                try:
                    with Grape6(precision=mode, isa=isa) as board:
                        board.set_particles(*model)
                        found = board.forces()
                except Grape6Error as missing:
                    print(f"{isa}: {missing}")
                    continue
                for name in ("acc", "jerk", "pot"):
                    e = relative(getattr(found, name), getattr(true, name))
                    errors.setdefault((mode, isa, name), []).append((np.median(e), e.max()))
                errors.setdefault((mode, isa, "bias"), []).append((bias(found.acc, true.acc), 0.0))
        print(f"seed {seed} done", flush=True)
    figures = []
    for (mode, isa, name), values in errors.items():
        median, largest = np.median(values, axis=0)
        figures.append({"mode": mode, "isa": isa, "what": name, "median": float(median),
                        "largest": float(largest)})  # fmt: skip
        print(f"{mode:7} {isa:7} {name:5} {median:9.2e} {largest:9.2e}")
    result = {"machine": machine(), "commit": commit(), "n": options.n, "seeds": options.seeds,
              "figures": figures}  # fmt: skip
    path = HERE / "results" / f"accuracy-{options.name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
