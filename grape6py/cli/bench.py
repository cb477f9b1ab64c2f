"""``grape6 bench direct``: pair interactions a second, through the C API.

``grape6 bench`` alone measures one case a mode, in a few seconds.

The j particles stay as they are and all arrays are made beforehand, so that what is
timed is first half + last half. A pair is one (i, j) term of acc, jerk and pot.

slot_share compares with the machine itself: the floating-point issue slots that the
kernel's pairs need, over the rate at which independent fused multiply-adds are issued in
the same run. Needed are, for 16 pairs in 512-bit vectors, 40 slots in mode grape (43 with
the nearest neighbour), 74 in double and 34 in single; correspondingly more of narrower
vectors. Where all slots can do an FMA, 1 is a kernel that wastes none; processors with
pipes of their own for additions (AMD's) can get above it.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from grape6py import _clock
from grape6py._arrays.kinds import Attributes
from grape6py.cli import numbers
from grape6py.models import plummer

SLOTS_PER_16_PAIRS = {"grape": 40, "double": 74, "single": 34}
SLOTS_FOR_NEAREST = 3
VECTOR_BITS = {"avx512": 512, "avx2": 256, "neon": 128, "base": 128}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the subcommand takes."""
    parser.description = "Without more words: the direct sum in each mode."
    kinds = parser.add_subparsers(metavar="[what]")
    raw = argparse.RawDescriptionHelpFormatter
    direct = kinds.add_parser(
        "direct", help="the direct sum", description=__doc__, formatter_class=raw
    )
    add = direct.add_argument
    add("--backend", default="auto", choices=["auto", "cpu"])
    add("--precision", "--mode", default="grape", choices=list(SLOTS_PER_16_PAIRS))
    add("--n", type=numbers.whole, default=16384, help="j particles (default 16384)")
    add("--ni", type=numbers.whole, help="i particles a call (default 4096, but at most n)")
    add("--nn", action="store_true", help="find nearest neighbours too")
    add("--threads", type=numbers.whole, help="threads (default: all this process may use)")
    add("--isa", default="best", choices=["best", *VECTOR_BITS], help="instruction set")
    add("--samples", type=numbers.whole, default=15, help="the median of which is given (15)")
    add("--seconds", type=numbers.not_negative, default=0.05,
        help="least length of a sample (0.05)")  # fmt: skip
    add("--json", action="store_true", help="print a JSON object")
    direct.set_defaults(run=run)
    parser.set_defaults(run=lambda _: _standard(direct))


def _standard(parser: argparse.ArgumentParser) -> int:
    """Measure and print one case a mode, and say what more there is."""
    for mode in SLOTS_PER_16_PAIRS:
        run(parser.parse_args(["--precision", mode, "--samples", "5"]))
    print(
        "More: grape6 bench direct --help (numbers of particles, threads, instruction sets,\n"
        "nearest neighbours, JSON). GPUs, trees, programs: folder benchmarks of the source tree."
    )
    return 0


def run(options: argparse.Namespace) -> int:
    """Measure and print."""
    result = direct(options)
    if options.json:
        print(json.dumps(result, indent=2))
        return 0
    nearest = " + nearest neighbour" if result["nn"] else ""
    print(
        f"{result['backend']} {result['isa']}, mode {result['mode']}{nearest}, "
        f"n {result['n']}, ni {result['ni']}, threads {result['threads']}: "
        f"{result['pairs_per_s'] / 1e9:.3f} G pairs/s of {result['clock']} time, "
        f"{result['slot_share']:.1%} of the FMA issue rate"
    )
    return 0


def direct(options: argparse.Namespace) -> Attributes:
    """Measure one case: what ``--json`` prints.

    Rates are medians over the samples; with one thread they are per second of the process's CPU
    time, else of wall time.
    """
    from grape6py._lib.cluster import empty_forces
    from grape6py._lib.declarations import ISAS, PRECISIONS
    from grape6py._lib.library import lib
    from grape6py.cli import machine
    from grape6py.forces.grape6 import Grape6

    ni = options.ni or min(options.n, 4096)
    model = plummer(options.n, seed=1)
    index = np.resize(np.arange(options.n, dtype=np.int32), ni)  # over again if there are fewer
    targets = index, model.pos[index], model.vel[index]
    given = {name: getattr(options, name) for name in ("precision", "threads", "isa")}
    with Grape6(backend="cpu", jerk=True, **given) as session:
        session.set_particles(*model)
        threads = session.threads
        sums = empty_forces(ni, options.nn)
        call = session._board.prepare(options.n, *targets, 0.0, np.full(ni, -1.0), sums)
        clock = time.process_time if threads == 1 else _clock.seconds
        call()
        repeats = 1
        while (taken := _seconds(call, clock, repeats)) < options.seconds:
            repeats = max(2 * repeats, int(repeats * options.seconds / max(taken, 1e-6)))
        backend, isa = session.backend.split()[:2]
        kernel = ISAS[isa], PRECISIONS[options.precision]
        pairs, fmas = [], []
        with ThreadPoolExecutor(threads) as pool:
            for _ in range(options.samples):
                pairs.append(ni * options.n * repeats / _seconds(call, clock, repeats))
                each = [pool.submit(lib.g6x_fma_rate, *kernel) for _ in range(threads)]
                fmas.append(sum(one.result() for one in each))

    rate, fma_rate = statistics.median(pairs), statistics.median(fmas)
    slots = SLOTS_PER_16_PAIRS[options.precision] + SLOTS_FOR_NEAREST * options.nn
    slots *= 512 / VECTOR_BITS[isa] / 16
    return {
        "pairs_per_s": rate,
        "slot_share": rate * slots / fma_rate,
        "n": options.n,
        "ni": ni,
        "nn": options.nn,
        "mode": options.precision,
        "backend": backend,
        "isa": isa,
        "threads": threads,
        "clock": "CPU" if threads == 1 else "wall",
        "samples": pairs,
        "repeats": repeats,
        "fma_vectors_per_s": fma_rate,
        "slots_per_pair": slots,
        "vector_bits": VECTOR_BITS[isa],
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine.describe(),
    }


def _seconds(call: Callable[[], None], clock: Callable[[], float], repeats: int) -> float:
    start = clock()
    for _ in range(repeats):
        call()
    return clock() - start
