"""The programs in legacy_examples/: fixtures that build and run them, readers of what they print.

Fixtures: `build`, `run`, `stars`, `distance`; conftest.py hands them to the tests."""

import functools
import importlib.util
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import capi
import tools
from once import kept
from particles import relative

EXAMPLES = capi.ROOT / "legacy_examples"
SNAPSHOT = EXAMPLES / "data" / "plummer1024.dat"
EPS = 4 / 1024
# Environments of the modes.
AUTO, GRAPE, DOUBLE = (), (("GRAPE6_PRECISION", "grape"),), (("GRAPE6_PRECISION", "double"),)
# Median and largest errors of acc and pot: four times those of 16384 bodies, a sixteenth of the
# pairs averages.
FORCE_ERRORS = {GRAPE: ((4e-8, 1e-6), (1.6e-8, 1.6e-7)),
                AUTO: ((4e-8, 1e-6), (1.6e-8, 1.6e-7)),
                DOUBLE: ((6e-15, 4e-14), (4e-15, 4e-14))}  # fmt: skip
ENERGY_ERROR = 1e-6  # of a Hermite code at eta = 0.02 over a time unit
NUMBER = r"\s*([-+]?\d\S*)"
# Environment of ranks on a few cores that other tests use, too.
RANKS = {
    "GRAPE6_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}  # fmt: skip
COMPILERS = {"hermite_f77": "gfortran", "ph4_style": "g++", "mpi_hermite": "mpif90"}
STRICT = ["CXXFLAGS=-O2 -Wall -Wextra -Wconversion -Werror",
          "MPIFFLAGS=-O2 -std=f2008 -Wall -Wextra -Wno-compare-reals -Werror"]  # fmt: skip
PARTS = "".join(  # of the time, as treecode tells them
    rf"\s+{part}{NUMBER}" for part in ("seconds", "tree", "walks", "forces", "exchange")
)


def grape6_command():
    """How make is to call grape6: the package that the other tests find, or this tree."""
    spec = importlib.util.find_spec("grape6py")
    place = Path(spec.origin).parent.parent if spec and spec.origin else capi.ROOT
    return f"env PYTHONPATH='{place}' '{sys.executable}' -m grape6py"


def grape6_config(*names):
    command = f"{grape6_command()} config {' '.join(names)}"
    return tools.run(["sh", "-c", command]).stdout.split()


def make(build, *variables):
    """Asks `grape6 config` once, and not for each program."""
    cflags, libs = (" ".join(grape6_config(name)) for name in ("--cflags", "--libs"))
    given = [f"GRAPE6_CFLAGS={cflags}", f"GRAPE6_LIBS={libs}", f"GRAPE6={grape6_command()}"]
    command = ["make", "-C", EXAMPLES, f"BUILD={build}", *given, *variables]
    return tools.run(command, timeout=300)


@pytest.fixture(scope="session")
def build():
    """Folder with the programs that this machine can build."""
    sources = [path for path in EXAMPLES.glob("*") if path.is_file()]
    sources += [*(capi.ROOT / "include").glob("*"), capi.library_path()]
    return kept("legacy_tested", sources, lambda folder: make(folder, *STRICT))


@pytest.fixture(scope="session")
def run(build, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    @functools.cache
    def once(name, arguments, environment):
        if name in COMPILERS:
            tools.need(COMPILERS[name])
        command = [build / name, *arguments]
        return tools.started(command, env=dict(environment), cwd=elsewhere, timeout=300)

    return lambda name, *arguments, environment=(): once(name, arguments, environment)


@functools.cache
def of_ranks():
    """RANKS, and what has ranks that wait use no core."""
    source, library = capi.TESTS / "c/idle_ranks.c", "libidle.so"

    def make(folder):
        folder.mkdir(exist_ok=True)
        command = [tools.need("cc"), "-shared", "-fPIC", source, "-o", folder / library]
        tools.run(command, timeout=60)

    path = kept("idle_ranks", [source], make) / library
    if " " in str(path):  # which would be two
        return RANKS
    return RANKS | {"LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {path}".strip()}


def mpirun(ranks, program, *arguments, environment=()):
    """Starts a program on some ranks, one thread each, in its own folder."""
    launcher = tools.need("mpirun")
    env = {"PATH": os.environ["PATH"], "HOME": str(program.parent), "TMPDIR": "/tmp"}
    env |= of_ranks() | dict(environment)
    command = [launcher, "-n", ranks, program, *arguments]
    return tools.started(command, env=env, cwd=program.parent, timeout=120)


@pytest.fixture(scope="session")
def stars():
    """The shipped snapshot: masses, positions, velocities."""
    table = np.loadtxt(SNAPSHOT)
    return table[:, 0], table[:, 1:4], table[:, 4:7]


@pytest.fixture(scope="session")
def distance(stars):
    """Distances of all pairs, infinite on the diagonal."""
    _, pos, _ = stars
    r = np.sqrt(((pos[:, None] - pos[None]) ** 2).sum(axis=2))
    np.fill_diagonal(r, np.inf)
    return r


def output_of(process):
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return process.stdout


def numbers(pattern, text):
    """Tuples of the numbers where NUMBER's groups stand in the pattern."""
    found = re.findall(pattern, text)
    assert found, f"{pattern!r} is not in\n{text}"
    return [tuple(map(float, f)) if isinstance(f, tuple) else float(f) for f in found]


def energies(text):
    """(time, host's energy, energy by the library's potential) of each output."""
    pattern = rf"time{NUMBER}\s+energy \(host\){NUMBER}\s+energy \(pot\){NUMBER}"
    return np.array(numbers(pattern, text))


def assert_energy_is_kept(text, limit=ENERGY_ERROR, pot_limit=1e-7):
    """Over one time unit: by the program's own account, on the host, and by the potential."""
    assert max(numbers(rf"relative energy error(?: by pot)?{NUMBER}", text)) <= limit
    times, host, pot = energies(text).T
    assert list(times) == [0, 0.25, 0.5, 0.75, 1]
    assert np.abs(host / host[0] - 1).max() <= limit
    assert np.abs(pot / host - 1).max() <= pot_limit


def density_centre(mass, pos, distance):
    """And radius: Casertano & Hut 1985, ApJ 298, 80, equations II.1 to II.4, six neighbours."""
    near = np.argsort(distance, axis=1)[:, :6]
    sixth = np.take_along_axis(distance, near, axis=1)[:, 5]
    weight = mass[near[:, :5]].sum(axis=1) / sixth**3
    centre = weight @ pos / weight.sum()
    return *centre, weight @ np.linalg.norm(pos - centre, axis=1) / weight.sum()


def forces(text):
    table = np.array(numbers(rf"force{NUMBER}{NUMBER}{NUMBER}{NUMBER}{NUMBER}", text))
    assert (table[:, 0] == np.arange(1, len(table) + 1)).all()
    return table[:, 1:4], table[:, 4]


def force_errors(text, exact):
    acc, pot = forces(text)
    return relative(acc, exact.acc[: len(acc)]), relative(pot, exact.pot[: len(pot)])


def assert_forces(text, exact, mode):
    for error, (median, largest) in zip(force_errors(text, exact), FORCE_ERRORS[mode], strict=True):
        assert len(error) == len(exact.pot)
        assert np.median(error) <= median
        assert error.max() <= largest


def odd_bodies():
    """Mass and pos: a fifth of the bodies in one place, others in another, many without mass."""
    pos = np.vstack([np.zeros((200, 3)), np.random.default_rng(3).standard_normal((300, 3))])
    mass = np.where(np.arange(500) % 3 == 0, 0, 1 / 500)
    pos[:20, 0] = -7
    mass[:20] = 0
    return mass, pos
