"""CUDA for NVRTC: a file of kernels with our own headers pasted in where it includes them.

NVRTC finds no headers of an installed package by itself, and a cache goes by the text: it is all
that is compiled.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Sequence
from pathlib import Path

from grape6py.cuda import cache

TYPE_CHECKING = False  # typing is not imported: that would lengthen the start
if TYPE_CHECKING:
    from grape6py._arrays.kinds import CuPy

KERNELS = Path(__file__).resolve().parent / "kernels"  # the build copies csrc/shared into it
DIRECT = "direct/direct.cu"
# Files of other kernels, and their precision, by the first word of a name.
OTHERS = {
    "tree": ("tree/tree.cu", "single"),
    "subtree": ("tree/tree.cu", "single"),
    "leapfrog": ("leapfrog.cu", "double"),
    "field": ("field.cu", "double"),
}

# Contraction is written out, as in C. CuPy adds FLUSH, which nothing can take back.
OPTIONS = ("-std=c++17", "--fmad=false")
FLUSH = "-ftz=true"
PRECISIONS = ("grape", "double", "single")  # by G6X_GRAPE, G6X_DOUBLE, G6X_SINGLE

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)".*$', re.MULTILINE)
_ORDER = re.compile(r"^tree_.*_(\d)(_soft)?(_own)?$")  # of expansions, in a tree kernel's name
_DEPTH = 16


class CompileException(Exception):
    """What the compiler says about a text that it does not take; CuPy has one of that name, too."""


def read(name: str = DIRECT, depth: int = 0) -> str:
    """The text of a file below KERNELS with all that it includes in quotes.

    Each file begins with a #line, so that the compiler names the true places.
    """
    path = KERNELS / name
    if not path.exists() or depth == _DEPTH:
        why = "includes itself" if path.exists() else "is missing"
        raise FileNotFoundError(f"{name} of grape6py {why}: install the package again")
    text = path.read_text(encoding="ascii")

    def paste(include: re.Match[str]) -> str:
        line = text.count("\n", 0, include.start()) + 2
        return f'{read(include[1], depth + 1)}\n#line {line} "{name}"'

    return f'#line 1 "{name}"\n' + _INCLUDE.sub(paste, text)


@functools.cache
def text_of(kernel: str = "") -> str:
    """The text of a kernel and of those that share its file; by default of direct sums."""
    return read(_file_of(kernel))


def _file_of(kernel: str) -> str:
    return OTHERS.get(kernel.partition("_")[0], (DIRECT, ""))[0]


def precision_of(kernel: str) -> str:
    """That of a kernel of other things than direct sums."""
    return OTHERS[kernel.partition("_")[0]][1]


def options(precision: str) -> tuple[str, ...]:
    """Options of the compiler for a precision."""
    return (*OPTIONS, f"-DMODE={PRECISIONS.index(precision)}")


def options_of(kernel: str, precision: str) -> tuple[str, ...]:
    """The same for one kernel alone (kernels/base.cuh)."""
    order = _ORDER.search(kernel)
    kinds = enumerate(("SOFT", "OWN"), 2)
    of_order = [f"-DTREE_ORDER={order[1]}"] if order else []
    of_order += [f"-DTREE_{name}={int(bool(order[k]))}" for k, name in kinds if order]
    return (*options(precision), FLUSH, *of_order, "-DONLY", f"-DONLY_{kernel}=0,1")


def target(capability: int, supported: Sequence[int]) -> tuple[str, bool]:
    """The compiler's option for a device, and whether it then gives machine code.

    `supported` are the architectures that it knows. Machine code runs on later devices of the same
    major version; for others the driver compiles what is made for an older one (PTX).
    """
    older = [number for number in supported if number <= capability]
    best = max(older or supported)
    is_code = bool(older) and best // 10 == capability // 10
    return f"-arch={'sm' if is_code else 'compute'}_{best}", is_code


_first = threading.Lock()


def _nvrtc() -> CuPy:
    """CuPy's binding, whose first call imports CuPy, for which there must be a cache."""
    with _first, cache.for_import():
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getSupportedArchs()
    return nvrtc


def compile_kernel(kernel: str, precision: str, capability: int) -> bytes:
    """Machine code (or PTX) of a kernel, by the NVRTC that CuPy finds."""
    nvrtc = _nvrtc()
    architecture, is_code = target(capability, nvrtc.getSupportedArchs())
    program = nvrtc.createProgram(text_of(kernel), _file_of(kernel), (), ())
    try:
        nvrtc.compileProgram(program, (*options_of(kernel, precision), architecture))
        code: bytes = nvrtc.getCUBIN(program) if is_code else nvrtc.getPTX(program)
        return code
    except nvrtc.NVRTCError as error:
        raise CompileException(nvrtc.getProgramLog(program)) from error
    finally:
        nvrtc.destroyProgram(program)
