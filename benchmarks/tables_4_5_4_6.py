"""Tables 4.5 and 4.6, figures 4.7 and 4.8 of the thesis: energy error and time of block-step
Hermite over 0.25 time units against the accuracy parameter, with softening 1/256 and without.

    python benchmarks/tables_4_5_4_6.py [--name NAME] [--largest N] [--seeds 3]

The accuracy is kira's, whose square is Aarseth's eta. Energies are sums in mode double.
"""

import time

from thesis import keep, options_of

from grape6py import Hermite, plummer

ACCURACIES = (0.05, 0.1, 0.2, 0.4)
SOFTENINGS = {"1/256": 1 / 256, "0": 0.0}


def one(n, seed, eps, accuracy, precision):
    with Hermite(*plummer(n, seed), eps=eps, eta=accuracy**2, precision=precision) as cluster:
        start = cluster.energy().total
        began = time.perf_counter()
        cluster.evolve(0.25)
        seconds = time.perf_counter() - began
        error = abs(cluster.energy().total / start - 1)
        return {"seed": seed, "error": error, "seconds": seconds, "steps": cluster.steps,
                "backend": cluster.backend}  # fmt: skip


def main():
    options = options_of(
        __doc__,
        seeds={"type": int, "default": 3},
        precision={"default": "grape"},
        smallest={"type": int, "default": 256, "help": "N"},
    )
    figures, n = [], options.smallest
    while n <= min(options.largest, 65536):
        for name, eps in SOFTENINGS.items():
            for accuracy in ACCURACIES:
                for seed in range(1, options.seeds + 1):
                    figure = {"n": n, "eps": name, "accuracy": accuracy}
                    figures.append(figure | one(n, seed, eps, accuracy, options.precision))
                    print(figures[-1], flush=True)
        n *= 4
    keep("4.5-4.6", options, figures)


if __name__ == "__main__":
    main()
