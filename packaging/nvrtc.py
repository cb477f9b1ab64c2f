"""NVRTC, CUDA's run-time compiler, from the package of pip: no GPU and no CuPy is needed."""

import ctypes
import importlib.metadata
import re


class Missing(Exception):
    """A tool that is not there."""


def tool(package, name):
    """Path of a file that a package from pip has."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if re.fullmatch(name, file.name):
            return str(file.locate())
    raise Missing(f"{package} not found: pip install '.[cuda-test]'")


def library():
    """Its functions."""
    return ctypes.CDLL(tool("nvidia-cuda-nvrtc", r"libnvrtc\.so\.\d+"))


def version():
    """For example (13, 5)."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def compile_cubin(text, options):
    """Machine code of a text that compiler.read gives, and what the compiler says about it."""
    nvrtc = library()
    program = ctypes.c_void_p()
    words = [option.encode() for option in options]
    array = (ctypes.c_char_p * len(words))(*words)
    made = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), b"direct/direct.cu", 0, None, None
    )
    if made:
        raise RuntimeError(f"nvrtcCreateProgram: error {made}")
    failed = nvrtc.nvrtcCompileProgram(program, len(words), array)
    log = _taken(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
    if failed:
        raise RuntimeError(f"{' '.join(options)}: error {failed}\n{log}")
    cubin = _taken(nvrtc, program, "CUBIN")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin, log


def _taken(nvrtc, program, what):
    size = ctypes.c_size_t()
    failed = nvrtc[f"nvrtcGet{what}Size"](program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    if failed or nvrtc[f"nvrtcGet{what}"](program, buffer):
        raise RuntimeError(f"nvrtcGet{what} failed")
    return buffer.raw
