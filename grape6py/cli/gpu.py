"""Which GPU would be used, or why none, and what to install. Nothing is started."""

import ctypes
import importlib.util
import os
from pathlib import Path

from grape6py import paths
from grape6py._arrays.kinds import Attributes
from grape6py.cuda import errors as cuda_errors


def describe() -> Attributes:
    """Dictionary for JSON: `gpu` and `mps`, lines to read, and `devices`, names of those used.

    `mps` is only there with a GPU.
    """
    names, cuda, why = _names()
    why = why or _missing(cuda)
    line = ", ".join(names)
    if why:
        line = f"{line}: not used, {why}" if line else f"none: {why}"
    return {"gpu": line} | ({"mps": mps()} if names else {}) | {"devices": names}


def mps() -> str:
    """Whether NVIDIA's multi-process service runs, with which processes share a GPU at once."""
    folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps")
    try:
        daemon = int((folder / "nvidia-cuda-mps-control.pid").read_text())
        os.kill(daemon, 0)
    except PermissionError:  # of another user
        return f"runs ({folder})"
    except (OSError, ValueError):
        return "does not run: processes that share a GPU take turns (docs/parallel.md)"
    return f"runs ({folder})"


def _names() -> tuple[list[str], int, str | None]:
    """Names of the devices of GRAPE6_DEVICES, major version of CUDA, and why there are none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return [], 0, "no NVIDIA driver (libcuda.so.1) on this machine"
    count, version, name = ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(256)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return [], 0, "the NVIDIA driver sees no device"
    driver.cuDriverGetVersion(ctypes.byref(version))
    names = []
    for number in range(count.value):
        driver.cuDeviceGetName(name, 256, number)
        names.append(name.value.decode("utf-8", "replace"))
    words = os.environ.get("GRAPE6_DEVICES", "")
    if words in ("", "all"):
        words = ",".join(map(str, range(count.value)))
    try:
        usable = [names[int(word)] for word in words.split(",") if int(word) >= 0]
    except (ValueError, IndexError):
        return [], 0, f"GRAPE6_DEVICES={words}, but the devices are 0 to {count.value - 1}"
    return usable, version.value // 1000, None


def _missing(cuda: int) -> str | None:
    if not list(paths.PREFIX.glob("_bridge*.so")):
        return "grape6py was built without cffi or Python.h (python3-dev): build it again with them"
    if importlib.util.find_spec("cupy") is None:
        return f"CuPy is missing: pip install 'grape6py[cuda{13 if cuda >= 13 else 12}]'"
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()  # loads the compiler
    except Exception as error:  # whatever CuPy raises
        known = cuda_errors.explain(error, cuda)
        return known[1] if known else f"CuPy cannot be used: {error}"
    return None
