"""Machine code of the kernels for GPUs, made and looked at without a GPU.

    PYTHONPATH=packaging python tests/support/disassembly.py  # the table of benchmarks/pages/gpu.md

NVRTC compiles and nvdisasm disassembles; both come from pip: the extra cuda-test."""

import functools
import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from grape6py.cuda import compiler
from nvrtc import compile_cubin, tool, version
from once import BUILD, made_once
from tools import run

TABLE_ARCHITECTURE = "sm_90"  # the H200's
# The kernels that the table tells about, and in which modes.
TABLE = [(mode, kernel)
         for kernel in "wide_jerk_near wide_jerk_near_soft wide_plain middle_jerk few_jerk".split()
         for mode in compiler.PRECISIONS
         if kernel != "wide_plain" or mode == "single"]  # fmt: skip
HEADER = ["kernel", "mode", "instructions", "in double precision", "limit, G pairs/s"]

# Multiprocessors and clock of the H200; what one of them can start in a cycle.
MULTIPROCESSORS, CLOCK, LANES, DOUBLE_LANES = 132, 1.98e9, 128, 64
_LABEL = re.compile(r"\s*(\.L_\w+):")
_CALLED = re.compile(r"\$\w+\$\w+:")
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?(\S[^;]*?)\s*;")
_BRANCH = re.compile(r"BRA\b.*`\((\.L_\w+)\)")
_DOUBLE = re.compile(r"D(?:ADD|MUL|FMA|SETP|MNMX|MMA)\b|\S*\.(?:F64|\w*64H)\b")


def nvdisasm():
    return tool("nvidia-cuda-nvdisasm", "nvdisasm")


def disassemble(cubin):
    """The text that nvdisasm gives."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernels.cubin"
        file.write_bytes(cubin)
        return run([nvdisasm(), "-c", file]).stdout


@dataclass
class Kernel:
    """The instructions of a kernel."""

    instructions: list  # without predicates
    loops: list  # slices: the innermost ones
    own: int  # how many of the instructions; those of what it calls follow

    @property
    def pair_loops(self):
        """Instructions of each innermost loop that takes roots: one for a pair."""
        bodies = [self.instructions[loop] for loop in self.loops if loop.stop <= self.own]
        return [body for body in bodies if roots(body)]

    @property
    def uses_stack(self):
        """Whether any instruction loads from local memory or stores there."""
        return bool(has(self.instructions, "LDL", "STL"))

    def per_pair(self):
        """Instructions per pair where no particle meets itself, and those in double precision."""
        # A loop that looks whether i and j are the same particle loads j's indices, or takes them
        # from another lane.
        plain = [body for body in self.pair_loops if not has(body, "LDG", "SHFL")]
        pairs = sum(map(roots, plain))
        return sum(map(len, plain)) / pairs, sum(len(in_double(body)) for body in plain) / pairs


def has(body, *names):
    """The instructions of these names."""
    return [word for word in body if re.split(r"[.\s]", word, maxsplit=1)[0] in names]


def roots(body):
    """How many reciprocal square roots are begun: one for each pair."""
    return sum(word.startswith("MUFU.RSQ") for word in body)


def in_double(body):
    """The instructions that work with double precision; a root's first guess is not counted."""
    return [word for word in body if _DOUBLE.match(word) and not word.startswith("MUFU.RSQ")]


def read_kernels(listing):
    """Kernels in a text of nvdisasm, by name."""
    kernels = {}
    for section in re.split(r"^//-+ (?=\.)", listing, flags=re.MULTILINE)[1:]:
        name = section.split(maxsplit=1)[0]
        if name.startswith(".text."):
            kernels[name.removeprefix(".text.")] = Kernel(**_code(section))
    return kernels


def _code(section):
    instructions, labels, branches, own = [], {}, [], None
    for line in section.splitlines():
        if _CALLED.match(line) and own is None:
            own = len(instructions)
        elif label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif instruction := _INSTRUCTION.match(line):
            if branch := _BRANCH.match(instruction[1]):
                branches.append((len(instructions), branch[1]))
            instructions.append(instruction[1])
    loops = [(labels[to], at + 1) for at, to in branches if labels.get(to, at + 1) <= at]
    inner = [
        slice(*a) for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)
    ]
    own = len(instructions) if own is None else own
    return {"instructions": instructions, "loops": inner, "own": own}


@functools.cache
def machine_code(mode, architecture, name=None):
    """The kernels of a mode, or one of them alone, by name. What has been compiled is kept."""
    alone = compiler.options_of(name, mode) if name else (*compiler.options(mode), compiler.FLUSH)
    of = version(), compiler.read(), (*alone, f"-arch={architecture}")
    place = BUILD / "machine_code" / hashlib.sha256(repr(of).encode()).hexdigest()[:16]
    place.parent.mkdir(parents=True, exist_ok=True)
    made_once(place, lambda path: path.write_text(disassemble(compile_cubin(*of[1:])[0])))
    return read_kernels(place.read_text())


def limit(instructions, in_double):
    """G pairs/s of an H200 that starts an instruction in every cycle."""
    cycles = max(instructions / LANES, in_double / DOUBLE_LANES)
    return MULTIPROCESSORS * CLOCK / cycles / 1e9


def table():
    """Rows of the table, as lines of Markdown."""
    lines = [HEADER, ["---"] * len(HEADER)]
    for mode, kernel in TABLE:
        counts = machine_code(mode, TABLE_ARCHITECTURE, kernel)[kernel].per_pair()
        lines.append([f"`{kernel}`", mode, *(f"{n:.1f}" for n in counts), f"{limit(*counts):.0f}"])
    return [f"| {' | '.join(line)} |" for line in lines]


if __name__ == "__main__":
    print("\n".join(table()))
