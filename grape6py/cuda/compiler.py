"""CUDA for NVRTC: a file of kernels with our own headers pasted in where it includes them.

NVRTC finds no headers of an installed package by itself, and CuPy's cache goes by the text: what
is in it is what is compiled.
"""

import re
from pathlib import Path

KERNELS = Path(__file__).resolve().parent / "kernels"  # the build copies csrc/shared into it

# Contraction is written out, as in C. CuPy adds -ftz=true, which nothing can take back.
OPTIONS = ("-std=c++17", "--fmad=false")
PRECISIONS = ("grape", "double", "single")  # by G6X_GRAPE, G6X_DOUBLE, G6X_SINGLE

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"\n]+)".*$', re.MULTILINE)
_DEPTH = 16


def read(name="direct/direct.cu", depth=0):
    """The text of a file below KERNELS with all that it includes in quotes.

    Each file begins with a #line, so that the compiler names the true places.
    """
    path = KERNELS / name
    if not path.exists() or depth == _DEPTH:
        why = "includes itself" if path.exists() else "is missing"
        raise FileNotFoundError(f"{name} of grape6py {why}: install the package again")
    text = path.read_text(encoding="ascii")

    def paste(include):
        line = text.count("\n", 0, include.start()) + 2
        return f'{read(include[1], depth + 1)}\n#line {line} "{name}"'

    return f'#line 1 "{name}"\n' + _INCLUDE.sub(paste, text)


def options(precision):
    """Options of the compiler for a precision."""
    return (*OPTIONS, f"-DMODE={PRECISIONS.index(precision)}")
