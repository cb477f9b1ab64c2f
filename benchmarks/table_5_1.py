"""Table 5.1 of the thesis: several machines then, several GPUs of one machine now.

    python benchmarks/table_5_1.py [--name NAME] [--largest N] [--rounds 3]

Calls with ni = N and block steps through the C API with GRAPE6_DEVICES = 0; 0,1; ... and their
ratio to one device in the same rounds.
"""

import statistics

from thesis import card_program, keep, options_of

CALLS = [
    ("force", "grape", 1, 1, 65536), ("force", "grape", 1, 1, 262144),
    ("force", "grape", 1, 1, 524288), ("force", "grape", 1, 1, 1048576),
    ("step", "grape", 65536, 64), ("step", "grape", 65536, 1024), ("step", "grape", 262144, 1024),
    ("step", "grape", 1048576, 64), ("step", "grape", 1048576, 256),
    ("step", "grape", 1048576, 1024), ("step", "grape", 1048576, 16384),
]  # fmt: skip


def seconds(figure):
    return figure.get("seconds") or 1e-6 * figure["us"]


def main():
    options = options_of(__doc__, rounds={"type": int, "default": 3})
    import cupy

    devices = cupy.cuda.runtime.getDeviceCount()
    counts = [count for count in (1, 2, 4, 8) if count <= devices]
    figures = []
    with card_program() as card:
        for call in CALLS:
            if max(word for word in call if isinstance(word, int)) > options.largest:
                continue
            rounds = 1 if call[0] == "force" and call[-1] > 600_000 else options.rounds
            taken = {count: [] for count in counts}
            for _ in range(rounds):
                for count in counts:
                    named = ",".join(map(str, range(count)))
                    taken[count].append(seconds(card(*call, GRAPE6_DEVICES=named)))
            middle = {count: statistics.median(times) for count, times in taken.items()}
            figures.append({
                "command": "card " + " ".join(map(str, call)),
                "seconds": middle,
                "times_one": {count: middle[1] / middle[count] for count in counts},
            })  # fmt: skip
            print(figures[-1], flush=True)
            keep("5.1", options, figures)


if __name__ == "__main__":
    main()
