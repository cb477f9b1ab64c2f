"""Table 4.1 of the thesis: all pairs, ni = N, through the C API.

    python benchmarks/table_4_1.py [--name NAME] [--largest N]

G pairs a second, Gflop/s at 60 operations a pair, and pairs a joule where the driver tells the
power, in mode grape with jerk and nearest neighbour. Copies are included.
"""

from thesis import FLOPS_PER_PAIR, busy_watts, card_program, keep, options_of, watts

ENOUGH_FOR_WATTS = 32768  # smaller calls do not keep the card at work


def main():
    options = options_of(__doc__)
    figures, n = [], 256
    with card_program() as card:
        while n <= options.largest:
            with watts() as seen:
                figure = card("force", "grape", 1, 1, n)
            figure["gflops"] = figure["gpairs_per_s"] * FLOPS_PER_PAIR
            power = busy_watts(seen) if n >= ENOUGH_FOR_WATTS else None
            if power:
                figure |= {"watts": power, "gpairs_per_joule": figure["gpairs_per_s"] / power}
            figures.append(figure)
            n *= 2
    keep("4.1", options, figures)


if __name__ == "__main__":
    main()
