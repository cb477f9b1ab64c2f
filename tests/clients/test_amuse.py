"""AMUSE's ph4 and phiGRAPE, unedited, keep energy and positions as with their own sums on the CPU.

Their sources come from the package index. These, their Python environment and their objects stay in
build/, where the next run finds them; the workers with this library are linked each time.

Each code runs on one rank and on two. Of phiGRAPE's workers only `phigrape_worker_mpi` is parallel:
AMUSE compiles those for a GPU or a GRAPE without MPI. It cannot add or remove particles, so that
AMUSE 2025 has it no more.
"""

import functools
import os
import shutil
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import capi
import tools
from grape6py import models, read_snapshot, reference, write_snapshot
from legacy import DOUBLE, GRAPE, RANKS
from once import made_once
from variants import BUILD, run

VERSION = "2024.6.0"
CLIENTS = BUILD / f"amuse-{VERSION}"
ENVIRONMENT = CLIENTS / "environment"
ACTIVATED = {**os.environ, **RANKS, "VIRTUAL_ENV": str(ENVIRONMENT),
             "PATH": f"{ENVIRONMENT}/bin:{os.environ['PATH']}"}  # fmt: skip
PACKAGES = ["numpy<2", "h5py", "docutils", "setuptools<70", "setuptools_scm", "wheel"]
# Of each code: workers with its own sums, workers with this library, what make is given for these.
# That of ph4 has its own sums, too, and takes them if told to (use_gpu).
WORKERS = {
    "ph4": ([], ["ph4_worker_gpu"], ["SAPPORO_LIBS={} -lsapporo", "CUDA_LIBS=", "BOOSTLIBS="]),
    "phigrape": (["phigrape_worker"], ["phigrape_worker_grape", "phigrape_worker_mpi"],
                 ["GRAPE6LIBS={} -lg6", "G6LIBS={} -lg6"]),
}  # fmt: skip
N, END, EPS = 256, 0.25, 4 / 256


def place(code):
    """Where its source distribution is unpacked."""
    return CLIENTS / f"amuse_{code}-{VERSION}"


def pip(*arguments):
    """Runs pip for the clients' environment: its exit status and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", ENVIRONMENT / "bin/python", "--quiet",
         "--disable-pip-version-check", *arguments],
        env=ACTIVATED, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, done.stdout


def python_for_amuse():
    """AMUSE 2024.6 cannot be imported by Python 3.13."""
    if sys.version_info < (3, 13):
        return sys.executable
    for name in ("python3.12", "python3.11"):
        if path := shutil.which(name):
            return path
    return tools.skip("SKIP: python3.11 and python3.12 not found: AMUSE 2024.6 needs one of them")


def install(folder):
    """Makes the environment with AMUSE's framework in it, and unpacks the codes."""
    run([python_for_amuse(), "-m", "venv", "--clear", "--without-pip", folder])
    code, text = pip("install", *PACKAGES)
    if code != 0:
        tools.skip(f"SKIP: pip cannot install what AMUSE needs: {text.splitlines()[-1]}")
    source = ["--no-cache-dir", "--no-deps", "--no-build-isolation", "--no-binary", ":all:"]
    for arguments in (["install", *source, f"amuse-framework=={VERSION}"],
                      ["download", *source, "--dest", CLIENTS, f"amuse-ph4=={VERSION}",
                       f"amuse-phigrape=={VERSION}"]):  # fmt: skip
        code, text = pip(*arguments)
        assert code == 0, text
    for code in WORKERS:
        shutil.rmtree(place(code), ignore_errors=True)
        with tarfile.open(f"{place(code)}.tar.gz") as file:
            file.extractall(CLIENTS, filter="data")


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """Builds them."""
    for tool in "gcc g++ gfortran make mpicc mpicxx mpif90 mpirun".split():
        tools.need(tool)
    CLIENTS.mkdir(parents=True, exist_ok=True)
    made_once(ENVIRONMENT, install)
    prefix = tmp_path_factory.mktemp("prefix")
    run([sys.executable, "-m", "grape6py", "link", "--prefix", prefix])
    flags = f"-L{prefix}/lib -Wl,-rpath,{prefix}/lib"

    def make(code):
        own, linked, variables = WORKERS[code]
        folder = place(code) / "src/amuse/community" / code
        for name in linked:
            (folder / name).unlink(missing_ok=True)
        for arguments in (own, [*linked, *(text.format(flags) for text in variables)]):
            if arguments:
                run(["make", "-C", folder, *arguments], env=ACTIVATED)
        for name in own + linked:
            needed = run([tools.need("ldd"), folder / name]).stdout
            assert (f"{prefix}/lib/libgrape6.so" in needed) == (name in linked)

    with ThreadPoolExecutor() as pool:
        list(pool.map(make, WORKERS))


@pytest.fixture(scope="module")
def integrate(workers, tmp_path_factory):
    """Integrates a Plummer sphere: positions at the end, relative error of the energy."""
    runs = tmp_path_factory.mktemp("runs")
    stars = models.plummer(N, seed=6)
    write_snapshot(runs / "stars", *stars)

    def energy(particles):
        return float(reference.energy(*particles, eps2=EPS**2).total)

    @functools.cache
    def integrate(code, sums, ranks, environment=()):
        run([ENVIRONMENT / "bin/python", capi.TESTS / "clients/run_amuse.py",
             place(code), code, sums, ranks, "stars", END, "end"],
            cwd=runs, env=ACTIVATED | dict(environment), timeout=120)  # fmt: skip
        end = read_snapshot(runs / "end")
        return end.pos, energy(end) / energy(stars) - 1

    return integrate


# In phiGRAPE's own sums (AMUSE's g6lib.c) the jerk's share of a predicted velocity has dt^3 in
# place of dt^2, so positions differ in any mode.
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(("code", "mode", "apart"), [
    ("ph4", GRAPE, 1e-7),
    ("ph4", (*DOUBLE, ("GRAPE6_CLIENT", "ph4")), 1e-12),
    ("phigrape", GRAPE, 1e-6),
    ("phigrape", (*DOUBLE, ("GRAPE6_CLIENT", "phigrape")), 1e-6),
], ids=["ph4-grape", "ph4-double", "phigrape-grape", "phigrape-double"])  # fmt: skip
def test_positions_and_energy_are_those_of_its_own_sums(integrate, code, mode, apart, ranks):
    own_pos, own_error = integrate(code, "own", 1)
    pos, error = integrate(code, "linked", ranks, mode)
    assert 0 < np.linalg.norm(pos - own_pos, axis=1).max() < apart
    assert abs(error - own_error) < apart / 10
    assert abs(error) < 1e-7
