"""Programs with the backend cpu-tree: old ones that know nothing of it, and Python's."""

from ctypes.util import find_library

import numpy as np
import pytest

import capi
from grape6py import Grape6, errors, plummer, write_snapshot
from legacy import energies, output_of
from particles import relative

N = 5000
TREE = (("GRAPE6_BACKEND", "cpu-tree"), ("GRAPE6_NPIPES", "16384"))
SETTINGS = """
import ctypes
code = call("g6_open", 0)
s = Session.unopened(0)
theta = ctypes.c_double()
call("g6x_get_double", 0, CONSTANTS["G6X_THETA"], ctypes.byref(theta))
if code: print(code, s.error()[1])
else: print(text("g6x_backend", 0)[1].split()[0], theta.value,
            s.get_int("G6X_TREE_METHOD"), s.get_int("G6X_TREE_ORDER"))
"""


def test_a_direct_code_in_c_keeps_the_energy(run, tmp_path):
    """Steps of all particles go through the tree; the error of its forces is not the steps'."""
    file = tmp_path / "plummer.dat"
    write_snapshot(file, *plummer(N, seed=5))
    text = output_of(run("hermite", file, "-t", "0.03125", "-e", "0.05", environment=TREE))
    direct = output_of(run("hermite", file, "-t", "0.03125", "-e", "0.05"))
    _, host, pot = energies(text).T
    assert np.abs(host / host[0] - 1).max() <= 2e-5
    assert np.abs(pot / host - 1).max() <= 1e-4
    assert host[0] == pytest.approx(energies(direct)[0, 1], rel=1e-12)
    assert text != direct


@pytest.mark.parametrize("backend", ["tree", "cpu-tree"])
def test_python_asks_for_a_tree_and_its_angle(backend):
    mass, pos, vel = plummer(N, seed=6)
    found = {}
    for theta in (None, 0.2, 0.0):
        with Grape6(backend=backend, theta=theta) as grape:
            assert grape.backend.startswith("cpu-tree ")
            grape.set_particles(mass, pos, vel)
            found[theta] = grape.forces(eps=0.01, nn=True)
    with Grape6(backend="cpu") as grape:
        grape.set_particles(mass, pos, vel)
        direct = grape.forces(eps=0.01, nn=True)
    assert (found[0.0].acc == direct.acc).all()
    error = {theta: np.median(relative(f.acc, direct.acc)) for theta, f in found.items()}
    assert error[0.2] < error[None] / 3 < 1e-4
    assert all((f.nearest == direct.nearest).all() for f in found.values())


def test_settings_come_from_the_environment_and_the_file(tmp_path):
    assert capi.run_python(SETTINGS, GRAPE6_BACKEND="tree").stdout.split()[1:] == ["0.5", "0", "5"]
    env = {"GRAPE6_BACKEND": "cpu-tree", "GRAPE6_THETA": "0.7", "GRAPE6_TREE_METHOD": "bh",
           "GRAPE6_TREE_ORDER": "3"}  # fmt: skip
    assert capi.run_python(SETTINGS, **env).stdout == "cpu-tree 0.7 1 3\n"
    path = tmp_path / "grape6.toml"
    path.write_text('backend = "tree"\ntheta = 0.25\ntree_method = "bh"\ntree_order = 4\n')
    assert capi.run_python(SETTINGS, GRAPE6_CONFIG=str(path)).stdout == "cpu-tree 0.25 1 4\n"


@pytest.mark.skipif(find_library("cuda") is not None, reason="a driver is here")
def test_a_tree_on_a_gpu_is_refused_where_there_is_none():
    found = capi.run_python(SETTINGS, GRAPE6_BACKEND="cuda-tree").stdout
    assert found.startswith("-3 no NVIDIA driver")
    with pytest.raises(errors.BackendError, match="no NVIDIA driver"):
        Grape6(backend="cuda-tree")
