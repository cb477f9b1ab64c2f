"""Figures 4.1 to 4.3 of the thesis: what transfers cost, and how long a block step takes.

    python benchmarks/figures_4_1_to_4_3.py [--name NAME] [--largest N]

Block steps by N and block size through the C API: with the j particles of the block rewritten, and
the call alone; copies by themselves as `Grape6` does them for CuPy.
"""

import time

import numpy as np
from thesis import card_program, keep, options_of

SIZES = (1, 16, 64, 256, 1024, 4096, 16384)


def copies(n, takes=9):
    """Microseconds to write n j particles to the card, to send n targets, and to fetch forces."""
    import cupy

    pinned = cupy.cuda.alloc_pinned_memory(128 * n)
    host = np.frombuffer(pinned, np.uint8, 128 * n)
    card = cupy.empty(128 * n, np.uint8)
    found = {"what": "copies", "n": n}
    for name, size, there in (
        ("j_us", 128 * n, True),  # a particle
        ("i_us", 64 * n, True),  # a target
        ("forces_us", 72 * n, False),  # seven sums and the nearest neighbour
    ):
        taken = []
        for _ in range(takes):
            cupy.cuda.get_current_stream().synchronize()
            began = time.perf_counter()
            if there:
                card[:size].set(host[:size])
            else:
                card[:size].get(out=host[:size])
            cupy.cuda.get_current_stream().synchronize()
            taken.append(1e6 * (time.perf_counter() - began))
        found[name] = float(np.median(taken))
    return found


def main():
    options = options_of(__doc__)
    figures = []
    with card_program() as card:
        n = 1024
        while n <= options.largest:
            figures.append(copies(n))
            figures += [card("step", "grape", n, size) for size in SIZES if size <= n]
            n *= 16 if n < 65536 else 4
    keep("4.1-4.3", options, figures)


if __name__ == "__main__":
    main()
