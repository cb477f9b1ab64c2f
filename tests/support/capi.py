"""The C library as the tests see it: calls of include/g6lib.h through ctypes, a cluster with the
sequences that most tests need, fresh processes. Expected values: particles.py."""

import ctypes
import functools
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tools
from grape6py import paths

SUPPORT = Path(__file__).resolve().parent
TESTS = SUPPORT.parent
ROOT = TESTS.parent
HEADER = ROOT / "include" / "g6lib.h"
UNTOUCHED = 777.25  # what outputs hold before a call

# A test may have been told to use another library, and the process that it starts another device.
paths.LIBRARY = Path(os.environ.get("GRAPE6_TEST_LIBRARY", paths.LIBRARY))
if "GRAPE6_TEST_FAKE_GPU" in os.environ:
    import fake_device  # and all that it imports

    fake_device.install(os.environ["GRAPE6_TEST_FAKE_GPU"])


chosen_library, chosen_environment = None, {}  # of the backend of a test: backends.py


def library_path():
    named = os.environ.get("GRAPE6_TEST_LIBRARY")
    return chosen_library or (Path(named) if named else paths.LIBRARY)


def _declared(path):
    """A header without its comments, and {name: declarations of the arguments}."""
    text = re.sub(r"/\*.*?\*/|^#.*?$", " ", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    calls = re.findall(r"\bint\s+(\w+)\(((?:[^()]|\([^()]*\))*)\)\s*;", text)
    return text, {name: [] if body.strip() == "void" else body.split(",") for name, body in calls}


def header_arguments(path):
    """Names of the arguments of each call."""
    return {name: [re.findall(r"[A-Za-z]\w*", re.sub(r"\[\w*\]", "", p))[-1] for p in params]
            for name, params in _declared(path)[1].items()}  # fmt: skip


def read_header(path):
    """Signatures {name: letters} (i int, l long long, d double, p pointer) and enum constants."""
    text, calls = _declared(path)
    constants = {name: int(value) for name, value in re.findall(r"(G6X_\w+)\s*=\s*(-?\d+)", text)}
    letters = {name: ["p" if set(p) & set("*[") else p.split()[0][0] for p in params]
               for name, params in calls.items()}  # fmt: skip
    return {name: "".join(each) for name, each in letters.items()}, constants


SIGNATURES, CONSTANTS = read_header(HEADER)
CODES = {name.removeprefix("G6X_E_"): code for name, code in CONSTANTS.items() if "_E_" in name}
C_TYPES = {"i": ctypes.c_int, "l": ctypes.c_longlong, "d": ctypes.c_double, "p": ctypes.c_void_p}
MODES = {"grape": 0, "double": 1, "single": 2}
ISAS = {name.removeprefix("G6X_ISA_").lower(): number for name, number in CONSTANTS.items()
        if name.startswith("G6X_ISA_") and number > 0}  # fmt: skip
# Those that a library for this processor has kernels of.
OF_MACHINES = {"x86_64": ("base", "avx2", "avx512"), "aarch64": ("base", "neon")}
COMPILED = OF_MACHINES.get(os.uname().machine, ("base",))


@functools.cache
def _opened(path):
    return ctypes.CDLL(str(path))


def library():
    return _opened(library_path())


def pointer(value):
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        assert value.dtype.itemsize in (4, 8)
        return value.ctypes.data
    return value


@functools.cache
def function(library, name, letters):
    found = library[name]
    found.argtypes = [C_TYPES[letter] for letter in letters]
    found.restype = ctypes.c_int
    return found


def call(name, *args):
    """The by-value C form; numpy arrays, ctypes objects or None where pointers go."""
    letters = SIGNATURES[name]
    assert len(args) == len(letters), (name, letters)
    return function(library(), name, letters)(*[pointer(a) for a in args])


def by_pointer(name, *args, letters=None):
    """A Fortran form, name_ or name__: all arguments by address, None as a null pointer."""
    letters = SIGNATURES[name.rstrip("_")] if letters is None else letters
    cells = [pointer(a) if x == "p" or a is None else ctypes.byref(C_TYPES[x](a))
             for x, a in zip(letters, args, strict=True)]  # fmt: skip
    return function(library(), name, "p" * len(letters))(*cells)


@dataclass
class Force:
    """Outputs of a force call and the first code that was not 0."""

    acc: np.ndarray
    jerk: np.ndarray
    pot: np.ndarray
    nearest: np.ndarray
    code: int = 0

    @classmethod
    def blank(cls, ni):
        full = functools.partial(np.full, fill_value=UNTOUCHED)
        return cls(full((ni, 3)), full((ni, 3)), full(ni), np.full(ni, -777, np.int32))

    def bits(self):
        return self.acc.tobytes() + self.jerk.tobytes() + self.pot.tobytes()


class Session:
    """A cluster id, opened; `exact` sessions sum in double."""

    def __init__(self, cluster, precision="grape", isa=None, threads=None):
        self.cluster = cluster
        assert call("g6_open", cluster) == 0
        if chosen_environment.get("GRAPE6_BACKEND") == "auto":
            call("g6x_prepare", cluster, 0, 0)  # on the GPU from the start
        self.set_int("G6X_PRECISION", MODES[precision])
        if isa is not None and self.set_int("G6X_ISA", ISAS[isa], check=False) != 0:
            tools.skip(f"this machine lacks {isa}")
        if threads is not None:
            self.set_int("G6X_THREADS", threads)

    @classmethod
    def unopened(cls, cluster):
        session = object.__new__(cls)
        session.cluster = cluster
        return session

    def set_int(self, key, value, check=True):
        code = call("g6x_set_int", self.cluster, CONSTANTS[key], value)
        assert code == 0 or not check, (key, value, code)
        return code

    def get_int(self, key):
        value = ctypes.c_int(-777)
        assert call("g6x_get_int", self.cluster, CONSTANTS[key], ctypes.byref(value)) == 0
        return value.value

    def set_double(self, key, value):
        return call("g6x_set_double", self.cluster, CONSTANTS[key], value)

    def put(self, address, index, mass, x, v=(0, 0, 0), a2=(0, 0, 0), j6=(0, 0, 0), k18=(0, 0, 0),
            tj=0.0, dtj=0.125):  # fmt: skip
        vectors = [np.array(a, dtype=float) for a in (k18, j6, a2, v, x)]
        return call("g6_set_j_particle", self.cluster, address, index, tj, dtj, mass, *vectors)

    def put_cloud(self, cloud, addresses=None):
        """Writes a whole Cloud with one bulk call; the code."""
        if addresses is not None:
            addresses = np.ascontiguousarray(addresses, dtype=np.int32)
        return call("g6x_set_j_particles", self.cluster, len(cloud.mass), addresses, cloud.index,
                    cloud.t, None, cloud.mass, cloud.k18, cloud.j6, cloud.a2, cloud.v,
                    cloud.x)  # fmt: skip

    def set_ti(self, ti):
        return call("g6_set_ti", self.cluster, ti)

    def first(self, nj, x, v, index, eps2=0.0, h2=None, name="g6calc_firsthalf", more=()):
        """A first half, or one of another `name`, which may end in _all and take `more`."""
        ni = len(x)
        head = [] if name.endswith("_all") else [self.cluster]
        zero3, zero = np.zeros((ni, 3)), np.zeros(ni)
        h2 = np.broadcast_to(0.0 if h2 is None else h2, ni).astype(float)
        return call(name, *head, nj, ni, index, x, v, zero3, zero3, zero, eps2, h2, *more)

    def last(self, nj, x, v, index, eps2=0.0, out=None, nearest=True, name=None, more=()):
        """The last half with nearest neighbours or without, or one of another `name`."""
        ni = len(x)
        out = out or Force.blank(ni)
        name = name or ("g6calc_lasthalf2" if nearest else "g6calc_lasthalf")
        args = [] if name.endswith("_all") else [self.cluster]
        args += [nj, ni, index, x, v, eps2, np.zeros(ni), out.acc, out.jerk, out.pot]
        args += [out.nearest] if "lasthalf2" in name else []
        out.code = call(name, *args, *more)
        return out

    def force(self, nj, x, v=None, index=None, eps2=0.0, h2=None, block=None, nearest=True):
        """firsthalf + lasthalf2 (lasthalf if not nearest), `block` i particles a call."""
        x = np.array(x, dtype=float).reshape(-1, 3)
        v = np.zeros_like(x) if v is None else np.array(v, dtype=float).reshape(-1, 3)
        index = np.full(len(x), -1) if index is None else index
        index = np.array(index, dtype=np.int32).reshape(-1)
        h2 = np.broadcast_to(0.0 if h2 is None else h2, len(x))
        whole = Force.blank(len(x))
        for start in range(0, len(x), block or max(len(x), 1)):
            s = slice(start, start + (block or len(x)))
            code = self.first(nj, x[s], v[s], index[s], eps2, h2[s])
            part = Force(whole.acc[s], whole.jerk[s], whole.pot[s], whole.nearest[s])
            self.last(nj, x[s], v[s], index[s], eps2, part, nearest)
            whole.code = whole.code or code or part.code
        return whole

    def neighbours(self, pipe, limit=100000):
        """Code, length and the list of the i particle at this position."""
        length, found = ctypes.c_int(-777), np.full(max(limit, 1) + 3, -777, np.int32)
        code = call("g6_get_neighbour_list", self.cluster, pipe, limit, ctypes.byref(length), found)
        assert (found[max(limit, 0) :] == -777).all(), "written beyond maxlength"
        return code, length.value, found[: max(0, min(length.value, limit))].tolist()

    def neighbour_lists(self, ni, capacity=None):
        """Code, and where the lists of all i particles start, and these; by default they fit."""
        start = np.full(ni + 1, -777, np.int64)
        name = "g6x_get_neighbour_lists"
        if capacity is None:
            call(name, self.cluster, ni, 0, start, None)
            capacity = int(start[-1])
        found = np.full(capacity + 3, -777, np.int32)
        code = call(name, self.cluster, ni, capacity, start, found)
        assert (found[capacity:] == -777).all(), "written beyond the capacity"
        return code, start.tolist(), found[:capacity].tolist()

    def predicted(self, nj):
        x, v = np.full((2, nj, 3), UNTOUCHED)
        assert call("g6_get_predicted_j_particles", self.cluster, nj, x, v) == 0
        return x, v

    def scale(self, nj):
        exponents = np.full(3, -777, np.int32)
        assert call("g6x_get_scale", self.cluster, nj, exponents) == 0
        return exponents.tolist()

    def origin(self, nj):
        """Origin and drift."""
        found = np.full((2, 3), UNTOUCHED)
        assert call("g6x_get_origin", self.cluster, nj, *found) == 0
        return found

    def partial(self, ni, code=0):
        """Words of the partial sums of a first half."""
        words = np.full((ni, CONSTANTS["G6X_PARTIAL_WORDS"]), 777, np.int64)
        assert call("g6x_get_partial", self.cluster, ni, words) == code
        return words

    def error(self):
        return text("g6x_last_error", self.cluster)

    def close(self):
        return call("g6_close", self.cluster)


def text(name, *args, length=400):
    """Code and text of a g6x call that ends in (buffer, length)."""
    buffer = ctypes.create_string_buffer(length)
    code = call(name, *args, ctypes.addressof(buffer), length)
    return code, buffer.value.decode()


def clean_environment(env):
    base = {k: v for k, v in os.environ.items() if not re.match("GRAPE6_(?!TEST_)", k)}
    return {**base, **chosen_environment, "GRAPE6_TEST_LIBRARY": str(library_path()), **env}


PRELUDE = f"""
import sys
sys.path[:0] = {[*map(str, TESTS.iterdir()), str(ROOT)]!r}
import numpy as np
from capi import *
from particles import *
"""


def run_python(script, timeout=120, **env):
    """Runs a snippet, with this module's names, in a fresh process; checks its success."""
    command = [sys.executable, "-c", PRELUDE + script]
    return tools.run(command, env=clean_environment(env), timeout=timeout)


def start_python(script, timeout=120, **env):
    """The same without the check."""
    command = [sys.executable, "-c", PRELUDE + script]
    return tools.started(command, env=clean_environment(env), timeout=timeout)


def compile_c(name, linked=True, *flags):
    """tests/c/<name>.c as a program, linked to the library (or only to libdl)."""
    return _compiled(name, library_path() if linked else None, flags)


@functools.cache
def _compiled(name, library, flags):
    program = Path(tempfile.mkdtemp(prefix="grape6-test-")) / name
    libs = [library, f"-Wl,-rpath,{library.parent}"] if library else ["-ldl"]
    command = [tools.need("gcc"), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", *flags,
               f"-I{HEADER.parent}", TESTS / f"c/{name}.c", "-o", program, *libs, "-lm",
               "-pthread"]  # fmt: skip
    tools.run(command)
    return program


def run_c(name, *args, linked=True, timeout=60, **env):
    """Builds and runs a C program that must end with 0; returns what it printed."""
    env = clean_environment(env)
    return tools.run([compile_c(name, linked), *args], env=env, timeout=timeout)
