"""Which row of the table of errors (docs/errors.md) an exception of CuPy belongs to."""

import functools
import os
import re

from grape6py._lib.codes import codes

TWO_WHEELS = (
    "two CuPy packages are installed: pip uninstall both, then pip install 'grape6py[cuda13]' "
    "(or cuda12)"
)

# In names of folders that pip makes: cupy, cupy_cuda12x, cupy_rocm_7_0, amd_cupy.
_WHEEL = re.compile(r"((amd_)?cupy(_(cuda|rocm)\w*)?)-[^-]+\.(dist|egg)-info", re.IGNORECASE)

_OUT_OF_MEMORY = {2}
# After these every call of CUDA in the process fails.
_STICKY = {4, 201, 214, 220, 226, *range(700, 704), 709, 710, *range(714, 722), 999}
# By numbers that the driver and the runtime share.
_BY_STATUS = (
    (_OUT_OF_MEMORY, "DEVICE_MEMORY", "the device is out of memory: {words}"),
    ({100, 101}, "NO_DEVICE", "CUDA sees no device: {words}"),
    (_STICKY, "DEVICE_LOST", "the device failed: {words}"),
    ({35, 36, 803, 804}, "RUNTIME",
     "the NVIDIA driver is older than CUDA {cuda}: {older}update the driver"),
    ({209, 218, 222, 223}, "RUNTIME",
     "this driver or device cannot run what CUDA {cuda} compiles: {words}"),
)  # fmt: skip


@functools.cache
def two_wheels(folder: str) -> bool:
    """Whether several packages have put a CuPy in the folder where it lies, each over the other."""
    try:
        found = [_WHEEL.fullmatch(name) for name in os.listdir(folder)]
    except OSError:
        return False
    return len({match[1].lower() for match in found if match}) > 1


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status", None)
    return status if isinstance(status, int) else None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory, and nothing else, is what lacks."""
    return isinstance(error, MemoryError) or _status(error) in _OUT_OF_MEMORY


def explain(error: BaseException, cuda: int) -> tuple[int, str] | None:
    """Code and text of an exception, or None if it is none of CuPy's.

    What to install depends on `cuda`, the major version of CUDA that CuPy was built for.
    """
    status, words = _status(error), " ".join(str(error).split())
    extra = f"pip install 'grape6py[cuda{cuda}]'"
    older = "pip install 'grape6py[cuda12]', or " if cuda > 12 else ""
    for numbers, name, text in _BY_STATUS:
        if status in numbers:
            return codes()[name], text.format(words=words, cuda=cuda, older=older)
    runtime = codes()["RUNTIME"]
    if "CompileException" in type(error).__name__:
        if re.search(r"(cannot|could not) open source file", words):
            return runtime, f"CUDA's headers are missing: {extra}"
        lines = [line for line in str(error).splitlines() if "error" in line] or [words]
        return runtime, f"the kernels do not compile: {lines[0]}"
    if re.search(r"nvrtc", words, re.IGNORECASE):
        return runtime, f"CUDA's run-time compiler (NVRTC) is missing: {extra} ({words})"
    if re.search(r"CUDA (root|path|headers|include)", words, re.IGNORECASE):
        return runtime, f"CUDA's headers are missing: {extra} ({words})"
    return None
