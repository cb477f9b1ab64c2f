"""Times old programs as tables 4.3 and 4.4 of Bedorf's thesis (2007) do, over Plummer spheres.

    python benchmarks/thesis_programs.py [4.3] [treecode] [--name NAME] [--smallest N]
                                         [--largest N] [--backend cuda|cpu]

4.3           legacy_examples/kira_style.c from t = 0 to 0.25, accuracy a = 0.3, which is eta = a^2
              of Aarseth's rule; eps = 1/256 and 0; 16384 pipes, as kirin had
treecode      legacy_examples/treecode.c over a time unit with the defaults of Makino's treecode, as
              thesis.py has them, 16384 pipes; with jerk, and with GRAPE6_JERK=0. As there,
              the most bodies that share a list are what is fastest for each N

`wall` is the whole process: the start, reading the file, energies, which the host sums too up to
N = 16384. `seconds` are those of the steps: of kira_style what a run to t = 2^-20 does not take.
Both are those of the faster of two runs, from N = 65536 on of one.
"""

import re
import subprocess
import tempfile
import time

from harness import ROOT, compile_c, environment, run
from programs import times_of
from thesis import EPS, TREE_EPS, TREE_STEPS, TREE_THETA, sizes

from grape6py import plummer, write_snapshot

ACCURACY, PIPES, MANY = 0.3, 16384, 65536
SHARED = 1024, 2048, 8192, 16384, 32768  # most bodies that share a list


def taken(program, *words, **more):
    """What a program prints, and the seconds of its process."""
    began = time.perf_counter()
    done = subprocess.run([str(word) for word in (program, *words)], capture_output=True, text=True,
                          check=True, env=environment(**more))  # fmt: skip
    return time.perf_counter() - began, done.stdout


def faster(n, *words, **more):
    return min(taken(*words, **more) for _ in range(2 if n < MANY else 1))


def spheres(options, name, most):
    """The program, and files of spheres of N bodies."""
    with tempfile.TemporaryDirectory() as folder:
        program, file = compile_c(ROOT / "legacy_examples" / name, folder), f"{folder}/sphere.dat"
        for n in sizes(options, 256, most, factor=2):
            write_snapshot(file, *plummer(n, 1))
            yield n, program, file


def kira(options):
    more = {"GRAPE6_NPIPES": PIPES, "GRAPE6_BACKEND": options.backend}
    for n, program, file in spheres(options, "kira_style.c", 131072):
        for name, eps in (("1/256", EPS), ("0", 0.0)):
            words = file, "-e", eps, "-a", ACCURACY**2, "-t"
            start, _ = faster(n, program, *words, 2.0**-20, **more)
            wall, text = faster(n, program, *words, 0.25, **more)
            yield {"n": n, "eps": name, "accuracy": ACCURACY, "seconds": wall - start, "wall": wall,
                   "error": float(text.split()[-1])}  # fmt: skip


def treecode(options):
    for n, program, file in spheres(options, "treecode.c", 1 << 20):
        words = file, "-e", TREE_EPS, "-o", TREE_THETA, "-d", 1 / TREE_STEPS, "-w"
        more = {"GRAPE6_NPIPES": PIPES, "GRAPE6_BACKEND": options.backend}
        lists = [most for most in SHARED if n / 64 <= most <= max(n, SHARED[0])]

        def steps(most, jerk, end, n=n, words=(program, *words), more=more):
            wall, text = faster(n, *words, "-t", end, "-g", most, GRAPE6_JERK=jerk, **more)
            return times_of(text)[1] | {"wall": wall}, text

        most = min(lists, key=lambda m: steps(m, 1, 4 / TREE_STEPS)[0]["seconds"])
        for jerk in (1, 0):
            times, text = steps(most, jerk, 1)
            yield {"n": n, "jerk": jerk, "most": most, **times, "lists": lists_of(text),
                   "error": float(text.split()[-1])}  # fmt: skip


def lists_of(text):
    return int(re.search(r"lists (\d+)", text)[1])


if __name__ == "__main__":
    run(__doc__, {"4.3": kira, "treecode": treecode}, prefix="thesis-",
        gpu=lambda part, options: options.backend == "cuda",
        smallest={"type": int, "help": "N"},
        largest={"type": int, "default": 1 << 20, "help": "N"},
        backend={"choices": ["cuda", "cpu"], "default": "cuda"})  # fmt: skip
