"""Random call sequences against a model of the contract (tests/c/fuzz*.c), on all cores.

As a program, `make fuzz`: builds the library with sanitizers and runs many sequences,

    python tests/support/fuzzing.py [sequences [seed]]

prints how it goes on, and ends with 1 and the calls of the first sequence that went wrong. Before
that, libFuzzer tries the two readers of snapshots for a minute each."""

import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import capi
import tools
from variants import Variants

SEED = 20261121
PARTS = [
    capi.TESTS / "c" / f"fuzz_{part}.c"
    for part in "model scale board particles rows forces lists block tree walks".split()
]
CHUNK = 5000  # sequences that a process runs


def program(variants):
    return variants["address"].program("fuzz", *PARTS)


def run(fuzz, seed, sequences, progress=lambda done: None):
    """Runs sequences 0 .. sequences - 1 of a seed, a process on each core; None, or what one that
    went wrong printed."""
    env, done = capi.clean_environment({"GRAPE6_LOG": "none"}), 0

    def chunk(first):
        command = [fuzz, seed, first, min(CHUNK, sequences - first)]
        return tools.started(command, env=env, errors="replace")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for job in as_completed(pool.submit(chunk, n) for n in range(0, sequences, CHUNK)):
            ended = job.result()
            if ended.returncode or ended.stdout or ended.stderr:
                pool.shutdown(cancel_futures=True)
                return f"exit {ended.returncode}\n{ended.stdout}{ended.stderr}"
            done += CHUNK
            progress(done)
    return None


# ---- snapshots: libFuzzer -------------------------------------------------------------
def snapshot_corpus(folder):
    """A folder with a few small snapshots, valid and not quite."""
    corpus = folder / "corpus"
    corpus.mkdir()
    texts = ["1 0 0 0 0 0 0\n2.5e-1 1 2 3 -.5 +.25 4.\n",
             "# comment\n\n 1.5D-3 1.0-103 2+10 3q1 4Q-2 5e+07 6 # end\r\n",
             "1 2 3 4 5 6\n1 2 3 4 5 6 7 8\nnan inf 0x10 1_0 1e999 * 7"]  # fmt: skip
    for n, text in enumerate(texts):
        (corpus / str(n)).write_text(text, encoding="ascii")
    return corpus


def snapshot_program(folder):
    """libFuzzer on the C reader of the example programs."""
    out = folder / "fuzz_snapshot"
    command = ["clang", "-O1", "-g", "-fsanitize=fuzzer,address,undefined",
               "-fno-sanitize-recover=all", f"-I{capi.ROOT / 'legacy_examples'}",
               "-DFUZZ", capi.TESTS / "c" / "snapshot_bytes.c", "-o", out, "-lm"]  # fmt: skip
    tools.run(command)
    return out


def run_snapshots(seconds, seed):
    """The C reader for so long; what went wrong, or None. For the others: fuzz_formats.py."""
    with tempfile.TemporaryDirectory(prefix="grape6-fuzz-") as name:
        folder = Path(name)
        options = [f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={folder}/"]
        command = [snapshot_program(folder), *options, snapshot_corpus(folder)]
        done = tools.started(command, errors="replace")
    if done.returncode:
        return done.stderr[-5000:]
    print(f"snapshots: {done.stderr.strip().splitlines()[-1]}", flush=True)
    return None


# ---- make fuzz ------------------------------------------------------------------------
def main(sequences=10_000_000, seed=SEED):
    start = shown = time.monotonic()

    def progress(done):
        nonlocal shown
        now = time.monotonic()
        if now - shown >= 10 or done >= sequences:
            shown, rate = now, done / (now - start)
            left = (sequences - done) / rate / 60
            print(f"{done} sequences, {rate:.0f} a second, {left:.1f} minutes left", flush=True)

    print(f"seed {seed}, {sequences} sequences, {os.cpu_count()} processes", flush=True)
    with tempfile.TemporaryDirectory(prefix="grape6-fuzz-") as folder:
        fuzz = program(Variants(Path(folder)))
        wrong = run_snapshots(60, seed)
        start = time.monotonic()
        wrong = wrong or run(fuzz, seed, sequences, progress)
    print(wrong or f"all well after {(time.monotonic() - start) / 60:.1f} minutes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
