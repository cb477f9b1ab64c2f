"""AMUSE's ph4 and phiGRAPE, unedited, keep energy and positions as with their own sums on the CPU.

Their sources, their Python environment and their objects: amuse_environment.py. The workers with
this library are linked each time.

Each code runs on one rank and on two, each mode on one of these. Of phiGRAPE's workers only
`phigrape_worker_mpi` is parallel: AMUSE compiles those for a GPU or a GRAPE without MPI. It cannot
add or remove particles, so that AMUSE 2025 has it no more."""

import functools
import sys

import numpy as np
import pytest

import amuse_environment
import capi
import tools
from amuse_environment import ACTIVATED, place
from grape6py import models, read_snapshot, reference, write_snapshot
from legacy import DOUBLE, GRAPE
from tools import run

# Of each code: workers with this library, what make is given for these. That of ph4 has its own
# sums, too, and takes them if told to (use_gpu); phigrape_worker has its own alone.
WORKERS = {
    "ph4": (["ph4_worker_gpu"], ["SAPPORO_LIBS={} -lsapporo", "CUDA_LIBS=", "BOOSTLIBS="]),
    "phigrape": (["phigrape_worker_grape", "phigrape_worker_mpi"],
                 ["GRAPE6LIBS={} -lg6", "G6LIBS={} -lg6"]),
}  # fmt: skip
N, END, EPS = 256, 0.25, 4 / 256
pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """Links them."""
    amuse_environment.compiled_codes()
    prefix = tmp_path_factory.mktemp("prefix")
    run([sys.executable, "-m", "grape6py", "link", "--prefix", prefix])
    flags = f"-L{prefix}/lib -Wl,-rpath,{prefix}/lib"
    for code, (linked, variables) in WORKERS.items():
        folder = amuse_environment.folder(code)
        for name in linked:
            (folder / name).unlink(missing_ok=True)
        arguments = [*linked, *(text.format(flags) for text in variables)]
        run(["make", "-C", folder, *arguments], env=ACTIVATED)
        for name in linked:
            assert f"{prefix}/lib/libgrape6.so" in run([tools.need("ldd"), folder / name]).stdout


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
        run([amuse_environment.ENVIRONMENT / "bin/python", capi.TESTS / "clients/run_amuse.py",
             place(code), code, sums, ranks, "stars", END, "end"],
            cwd=runs, env=ACTIVATED | dict(environment), timeout=120)  # fmt: skip
        end = read_snapshot(runs / "end")
        return end.pos, energy(end) / energy(stars) - 1

    return integrate


# In phiGRAPE's own sums (AMUSE's g6lib.c) the jerk's share of a predicted velocity has dt^3 in
# place of dt^2, so positions differ in any mode.
@pytest.mark.parametrize(("code", "mode", "ranks", "apart"), [
    ("ph4", GRAPE, 2, 1e-7),
    ("ph4", (*DOUBLE, ("GRAPE6_CLIENT", "ph4")), 1, 1e-12),
    ("phigrape", GRAPE, 1, 1e-6),
    ("phigrape", (*DOUBLE, ("GRAPE6_CLIENT", "phigrape")), 2, 1e-6),
], ids=["ph4-grape", "ph4-double", "phigrape-grape", "phigrape-double"])  # fmt: skip
def test_positions_and_energy_are_those_of_its_own_sums(integrate, code, mode, ranks, apart):
    own_pos, own_error = integrate(code, "own", 1)
    pos, error = integrate(code, "linked", ranks, mode)
    assert 0 < np.linalg.norm(pos - own_pos, axis=1).max() < apart
    assert abs(error - own_error) < apart / 10
    assert abs(error) < 1e-7
