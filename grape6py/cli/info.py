"""``grape6 info``: what is installed, and what a program linked with it will use.

``grape6 info FILE``: what is in a file of bodies, or in a run.
"""

import argparse
import ctypes
import importlib.util
import json
import math
import os
import sys
import warnings
from pathlib import Path

from grape6py import open_run, paths, snapshot
from grape6py._arrays.kinds import Attributes, CData
from grape6py.cuda import errors as cuda_errors
from grape6py.errors import Grape6Warning, printable
from grape6py.files import formats


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the subcommand takes."""
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="a file of bodies, or a run of grape6")
    add("--which", type=int, metavar="K", help="which snapshot of FILE, if it has several (-1)")
    add("--set", metavar="NAME", help="a set of particles of FILE, or 'all'")
    add("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Print it. Fails if the library is missing or cannot open a session."""
    if options.file is not None:
        return _show_file(options)
    if options.which is not None or options.set is not None:
        options.parser.error("--which and --set are of a file: give its name")
    about = _collect()
    if options.json:
        print(json.dumps(about, indent=2))
        return 0
    del about["devices"]  # they are in the line on the GPU
    about["auto"] = about["auto"] and "the CPU up to N = " + ", ".join(
        f"{n} in calls of {ni} i particles" for ni, n in about["auto"].items()
    )
    about["isas"] = " ".join(about["isas"])
    variables = " ".join(f"{name}={text}" for name, text in about["environment"].items())
    about["environment"] = variables or "no GRAPE6_* is set"
    about = {name: value for name, value in about.items() if value is not None}
    for name, value in about.items():
        print(f"{name + ':':13s} {value}")
    return 0


def _collect() -> Attributes:
    # Here and not on top: these open the library, and the other commands must be
    # able to say that it is missing.
    from grape6py._lib.library import lib
    from grape6py.cli import machine
    from grape6py.forces.grape6 import Grape6

    about = machine.describe() | {"path": str(paths.LIBRARY)}
    with Grape6() as session:
        about |= {name: getattr(session, name) for name in ("backend", "precision", "threads")}
    about["auto"] = _choices(lib) if about["backend"].startswith("auto") else None
    about["npipes"] = lib.g6_npipes()
    about["isas"] = [isa for isa, here in machine.isas().items() if here]
    about |= _gpu()
    variables = sorted(os.environ.items())
    about["environment"] = {name: text for name, text in variables if name[:7] == "GRAPE6_"}
    return about


def _choices(lib: CData) -> dict[str, int]:
    """Up to how many particles the backend auto takes the CPU, by i particles a call."""
    from grape6py._lib.library import ffi

    text = ffi.new("char[]", 256)

    def takes_cpu(ni: int, nj: int) -> bool:
        return bool(lib.g6x_choice(min(ni, nj), nj, text, 256) == lib.G6X_BACKEND_CPU)

    sizes = [2**k for k in range(6, 23)]
    most = {ni: max((n for n in sizes if takes_cpu(ni, n)), default=0) for ni in (1, 48, 2**22)}
    return {"1" if ni == 1 else "48" if ni == 48 else "all": n for ni, n in most.items()}


def _gpu() -> Attributes:
    """Which GPU would be used, or why none, and what to install. Nothing is started.

    For JSON: `gpu` and `mps`, lines to read, and `devices`, names of those used; `mps` is only
    there with a GPU.
    """
    names, cuda, why = _names()
    why = why or _missing(cuda)
    line = ", ".join(names)
    if why:
        line = f"{line}: not used, {why}" if line else f"none: {why}"
    return {"gpu": line} | ({"mps": _mps()} if names else {}) | {"devices": names}


def _mps() -> str:
    """Whether NVIDIA's multi-process service runs, with which processes share a GPU at once."""
    folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps")
    try:
        os.kill(int((folder / "nvidia-cuda-mps-control.pid").read_text()), 0)
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


def _show_file(options: argparse.Namespace) -> int:
    """Print what is in a file of bodies, or in a run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Grape6Warning)
        about = _about_file(options)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"grape6: {message}", file=sys.stderr)
    if options.json:
        print(json.dumps(about, indent=2))
        return 0
    about["sets"] = [f"{name} {n}" for name, n in about["sets"]]
    about["ids"] = about["ids"] and "{} to {}".format(*about["ids"])
    width = max(map(len, about)) + 3
    for name, value in about.items():
        print(printable(f"{name + ':':{width}s}{_text(value)}"))
    return 0


def _text(value: object) -> object:
    if isinstance(value, dict):
        value = [f"{key} {word}" for key, word in value.items()]
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return "-" if value in (None, "") else value


def _about_file(options: argparse.Namespace) -> Attributes:
    found, ids = snapshot.read_snapshot(options.file, options.which, set=options.set), None
    number = (-1 if options.which is None else options.which) % found.moments
    if found.ids is not None and len(found.ids):
        ids = [int(found.ids.min()), int(found.ids.max())]
    return {
        "file": options.file,
        "format": "run" if found.is_of_a_run else found.format,
        "title": "a run of grape6" if found.is_of_a_run else formats.FORMATS[found.format].title,
        "moments": found.moments,
        "number": number,
        "time": found.time,
        "sets": found.sets,
        "bodies": len(found.mass),
        "units": None if found.units is None else str(found.units),
        "ids": ids,
    } | (_about_run(options.file, number) if found.is_of_a_run else {})


def _about_run(path: str, number: int) -> Attributes:
    run = open_run(path)
    records, about = run.records(), {"integrator": "hermite"} | run.about
    here = records[number]
    return {
        "times": [records[0]["time"], records[-1]["time"]],
        **{k: v if math.isfinite(v) else None for k, v in here.items() if isinstance(v, float)},
        "steps": here["steps"],
        **{name: about.get(name) for name in ("name", "integrator", "precision", "backend")},
        "settings": run.settings,
        "changes": run.changes,
        "run": run.id,
        "missing": run.missing(),
        "writing": run.is_being_written(),
    }
