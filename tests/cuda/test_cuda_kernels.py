"""The kernels for GPUs as machine code, without a GPU: they compile, keep what pairs
need in registers, and their pair loops have as many instructions as benchmarks/pages/gpu.md says.

What the kernels compute is tested on the CPU (the backend cuda) and on a GPU (the backend gpu).
"""

import re
from collections import Counter

import pytest

import capi
import disassembly
import nvrtc
from disassembly import TABLE, TABLE_ARCHITECTURE
from grape6py.cuda import compiler

pytestmark = pytest.mark.full
PAGE = capi.ROOT / "benchmarks/pages/gpu.md"
NAMES = re.findall(
    r"\bKERNEL\(\w+,\s*(?:\\\s*)?(\w+)\)", (capi.ROOT / "csrc/cuda/cuda.h").read_text()
)
SUMS = [name for name in NAMES if name.startswith(("few", "some", "middle", "wide"))]

# The source differs for architectures below 80 and from 90 on; where it is the same, one mode and
# one architecture stand for others.
BUILDS = [("grape", "sm_75"), ("single", "sm_80"),
          *((mode, TABLE_ARCHITECTURE) for mode in compiler.PRECISIONS)]  # fmt: skip
SINGLE = [build for build in BUILDS if build[0] != "double"]

# Kernels of sums may have a stack on TABLE_ARCHITECTURE, of so many bytes: they keep there what a
# call for close pairs may not spoil. No pair loop uses it, here or on other architectures.
STACK = 96
# Those that evaluate a field call a function, which takes vectors by address: so many bytes, for
# bodies in a field alone.
IN_A_FIELD, FIELD_STACK = ("hermite_correct", "fused_step"), 512

# What makes bits.
ARITHMETIC = re.compile(r"^(?:[FD](?:ADD|MUL|FMA)|MUFU|F2F|F2I|I2F)[\w.]*", re.MULTILINE)

LISTING = """
//--------------------- .text.one          --------------------------
.text.one:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   LDG.E R4, [R2.64] ;
.L_x_2:
        /*0020*/              @!P0 MUFU.RSQ R5, R4 ;
        /*0030*/                   LDL R6, [R1] ;
        /*0040*/                   F2F.F64.F32 R8, R5 ;
        /*0050*/              @!P1 DADD R8, R8, R10 ;
        /*0060*/               @P0 BRA `(.L_x_2) ;
        /*0070*/                   DFMA R8, R8, R10, R12 ;
        /*0080*/               @P1 BRA `(.L_x_1) ;
        /*0090*/               @P2 BRA `(.L_x_3) ;
.L_x_4:
        /*00a0*/                   MUFU.RSQ64H R5, R4 ;
        /*00b0*/                   LDG.E R4, [R2.64] ;
        /*00c0*/                   BRA `(.L_x_4) ;
.L_x_3:
        /*00d0*/                   EXIT ;
.L_x_5:
        /*00e0*/                   BRA `(.L_x_5);
//--------------------- .nv.shared.one     --------------------------
"""


@pytest.fixture(scope="module")
def compiled():
    try:
        made = disassembly.Compiled()
    except nvrtc.Missing as missing:
        pytest.skip(f"SKIP: {missing}")
    made.begin(BUILDS)
    yield made
    made.close()


@pytest.fixture(params=BUILDS, ids="-".join)
def kernels(compiled, request):
    return compiled[request.param]


def section():
    text = PAGE.read_text(encoding="utf-8")
    return re.search(r"^## Instructions per pair\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)[1]


def rows():
    lines = [line.strip("| ").split(" | ") for line in section().splitlines() if line[:1] == "|"]
    assert lines[0] == disassembly.HEADER
    return {(mode, kernel.strip("`")): [float(n) for n in numbers]
            for kernel, mode, *numbers in lines[2:]}  # fmt: skip


# ---- the tools -------------------------------------------------------------------------


def test_loops_are_found_in_a_listing():
    kernels = disassembly.read_kernels(LISTING)
    assert list(kernels) == ["one"]
    first, second = kernels["one"].pair_loops
    assert [word.split()[0] for word in first] == "MUFU.RSQ LDL F2F.F64.F32 DADD BRA".split()
    assert disassembly.in_double(first) == ["F2F.F64.F32 R8, R5", "DADD R8, R8, R10"]
    assert disassembly.has(first, "LDL", "STL") == ["LDL R6, [R1]"]
    assert [disassembly.roots(body) for body in (first, second)] == [1, 1]
    assert kernels["one"].per_pair() == (5, 2)


# ---- machine code ----------------------------------------------------------------------


def test_every_kernel_is_compiled(kernels):
    assert sorted(kernels) == sorted(NAMES)
    for kernel in kernels.values():
        assert len(kernel.instructions) > 10
        assert 0 < kernel.registers <= 255


@pytest.mark.parametrize("name", ["predict", "some_jerk", "wide_jerk_near", "hermite_correct"])
def test_a_kernel_compiled_alone_has_the_arithmetic_that_it_has_among_all(compiled, mode, name):
    """So the bits do not depend on which were compiled together."""
    options = (*compiler.options_of(name, mode), f"-arch={TABLE_ARCHITECTURE}")
    cubin, _ = nvrtc.compile_cubin(compiler.read(), options)
    alone = disassembly.read_kernels(disassembly.disassemble(cubin))
    assert list(alone) == [name]
    counts = [Counter(ARITHMETIC.findall("\n".join(kernel.instructions)))
              for kernel in (alone[name], compiled[mode, TABLE_ARCHITECTURE][name])]  # fmt: skip
    assert counts[0] == counts[1]
    assert sum(counts[0].values()) > 40


def test_pair_loops_stay_in_registers(kernels):
    for name in SUMS:
        assert kernels[name].pair_loops, name
        for body in kernels[name].pair_loops:
            assert not disassembly.has(body, "LDL", "STL"), name


@pytest.mark.parametrize("build", SINGLE, ids="-".join)
def test_pair_loops_leave_double_precision_alone(compiled, build):
    for name in SUMS:
        for body in compiled[build][name].pair_loops:
            assert not disassembly.in_double(body), name


def test_kernels_keep_all_in_registers_but_for_known_ones(compiled, mode):
    for name, kernel in compiled[mode, TABLE_ARCHITECTURE].items():
        allowed = STACK if name in SUMS else FIELD_STACK if name in IN_A_FIELD else 0
        assert kernel.stack <= allowed, name
        assert bool(allowed) or not (kernel.spilled or kernel.uses_stack), name


# ---- the table -------------------------------------------------------------------------


def test_the_table_has_all_rows():
    assert list(rows()) == TABLE


@pytest.mark.parametrize(("mode", "kernel"), TABLE)
def test_instructions_per_pair_are_those_of_the_table(compiled, mode, kernel):
    told = rows()[mode, kernel]
    counts = compiled[mode, TABLE_ARCHITECTURE][kernel].per_pair()
    assert told[:2] == pytest.approx(counts, rel=0.02)
    assert told[2] == pytest.approx(disassembly.limit(*counts), rel=0.02)
