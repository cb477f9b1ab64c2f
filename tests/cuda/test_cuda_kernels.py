"""The kernels for GPUs as machine code, without a GPU: they compile, keep what pairs
need in registers, and their pair loops have as many instructions as benchmarks/pages/gpu.md says.

What the kernels compute is tested on the CPU (the backend cuda) and on a GPU (the backend gpu)."""

import re
from collections import Counter

import pytest

import capi
import disassembly
import nvrtc
from disassembly import TABLE, TABLE_ARCHITECTURE

pytestmark = pytest.mark.full
PAGE = capi.ROOT / "benchmarks/pages/gpu.md"
HEADER = (capi.ROOT / "csrc/cuda/cuda.h").read_text()
NAMES = re.findall(r"\bKERNEL\(\w+,\s*(?:\\\s*)?(\w+)\)", HEADER)
SUMS = [name for name in NAMES if name.startswith(("few", "some", "middle", "wide"))]

# One mode stands for others, but for kernels of the table; the source differs below 80.
WHOLE = ("grape", TABLE_ARCHITECTURE)
ALONE = [(mode, TABLE_ARCHITECTURE, name) for mode, name in TABLE if mode != "grape"]
ALONE += [("grape", "sm_75", name) for name in ("predict", "few_jerk", "wide_jerk_near")]

# These may use a stack on TABLE_ARCHITECTURE: sums keep there what a call for close pairs may not
# spoil, outside of pair loops; fields are functions that take addresses of vectors.
MAY_USE_STACK = (*SUMS, "hermite_correct", "fused_step")

# What makes bits.
ARITHMETIC = re.compile(r"^(?:[FD](?:ADD|MUL|FMA)|MUFU|F2F|F2I|I2F)[\w.]*", re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def _tools():
    try:
        nvrtc.library()
        disassembly.nvdisasm()
    except nvrtc.Missing as missing:
        pytest.skip(f"SKIP: {missing}")


def rows():
    text = re.search(r"^## Instructions per pair\n(.*?)^## ", PAGE.read_text(encoding="utf-8"),
                     re.MULTILINE | re.DOTALL)[1]  # fmt: skip
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:1] == "|"]
    assert lines[0] == disassembly.HEADER
    return {(mode, kernel.strip("`")): [float(n) for n in numbers]
            for kernel, mode, *numbers in lines[2:]}  # fmt: skip


@pytest.mark.parametrize("build", [WHOLE, *ALONE], ids="-".join)
def test_kernels_compile_and_keep_what_pairs_need_in_registers(build):
    kernels = disassembly.machine_code(*build)
    assert sorted(kernels) == sorted([build[2]] if build != WHOLE else NAMES)
    for name, kernel in kernels.items():
        assert len(kernel.instructions) > 10, name
        assert bool(kernel.pair_loops) or name not in SUMS, name
        for body in kernel.pair_loops if name in SUMS else ():
            assert not disassembly.has(body, "LDL", "STL"), name
            assert build[0] == "double" or not disassembly.in_double(body), name
        if build[1] == TABLE_ARCHITECTURE and name not in MAY_USE_STACK:
            assert not kernel.uses_stack, name


@pytest.mark.parametrize("name", ["predict", "some_jerk"])
def test_a_kernel_compiled_alone_has_the_arithmetic_that_it_has_among_all(name):
    """So the bits do not depend on which were compiled together."""
    counts = [Counter(ARITHMETIC.findall("\n".join(kernels[name].instructions)))
              for kernels in (disassembly.machine_code(*WHOLE),
                              disassembly.machine_code(*WHOLE, name))]  # fmt: skip
    assert counts[0] == counts[1]
    assert sum(counts[0].values()) > 40


def test_instructions_per_pair_are_those_of_the_table():
    told = rows()
    assert list(told) == TABLE
    for mode, kernel in TABLE:
        build = WHOLE if mode == "grape" else (mode, TABLE_ARCHITECTURE, kernel)
        counts = disassembly.machine_code(*build)[kernel].per_pair()
        right = *counts, disassembly.limit(*counts)
        assert told[mode, kernel] == pytest.approx(right, rel=0.02), (mode, kernel)
