"""``Leapfrog`` of a CUDA device's arrays: as with NumPy's, and everything stays on the device.

The device is the stand-in for a GPU, CuPy that of fake_arrays.py."""

import sys

import numpy as np
import pytest

import backends
import fake_arrays
import nvrtc
from grape6py import Leapfrog, errors, fields, plummer
from grape6py.cuda import compiler
from grape6py.cuda.tree import kernels
from integrations import same

N, EPS = 20000 if backends.has_gpu else 200, 0.05
FRAME = {"field": fields.mwpotential2014(8000, 33.5), "orbit": [8000, 0, 0, 0, 33.5, 0]}
STEPS = [{"dt": 1 / 64}, {"dt_max": 1 / 8, "eta": 0.01}, {"dt": 1 / 64, "method": "bh"} | FRAME,
         {"dt_max": 1 / 8, "eta": 0.01, "boundary": 2.0}]  # fmt: skip


def both(put, of_device=(), **options):
    bodies, options = plummer(N, 1), {"eps": EPS} | options
    if "accuracy" not in options:
        options["theta"] = 0.5
    device = Leapfrog(*map(put, bodies), **options, **dict(of_device))
    return device, Leapfrog(*bodies, backend="cpu-tree", **options)


def assert_near(device, host, median, most):
    assert isinstance(device.pos, fake_arrays.Array)
    assert device.backend == "cuda-tree stand-in"
    for ours, theirs in zip(device.particles(), host.particles(), strict=True):
        assert np.median(np.abs(ours - theirs)) < median
        assert np.abs(ours - theirs).max() < most


@pytest.mark.parametrize("options", STEPS, ids=str)
def test_bodies_move_as_on_the_host(put, options):
    """But for the rounding of forces, and cells that it opens."""
    device, host = both(put, **options)
    for galaxy in (device, host):
        for t in (0.3,) if "orbit" in options else (0.4, 0.2, 0.3):  # and back
            galaxy.evolve(t)
    assert (device.n, device.blocks) == (host.n, host.blocks)
    assert device.steps == pytest.approx(host.steps, rel=0.01)
    assert_near(device, host, 1e-6, 1e-3)
    assert device.energy().total == pytest.approx(host.energy().total, rel=1e-4)
    assert np.allclose(device.momentum(), host.momentum(), atol=1e-4)
    assert np.allclose(device.lagrangian_radii(), host.lagrangian_radii(), atol=1e-3)
    assert np.median(np.abs(device.potential().memory - host.potential())) < 1e-5
    assert device.precision == "single"


@pytest.mark.parametrize("options", [{"dt": 1 / 64, "accuracy": 1e-3}, STEPS[1]], ids=str)
def test_bodies_of_ranks_move_on_the_device(put, monkeypatch, options):
    mpi = pytest.importorskip("mpi4py.MPI", reason="SKIP: mpi4py")
    monkeypatch.setenv("GRAPE6_TRANSFERS", "host")  # the stand-in has no NCCL
    device, host = both(put, **options, boundary=4.0, of_device={"comm": mpi.COMM_SELF})
    for galaxy in (device, host):
        galaxy.evolve(0.3)
    assert device.n == host.n < N
    assert_near(device, host, 1e-4, np.inf)


@pytest.mark.parametrize("architecture", ["sm_90", pytest.param("sm_75", marks=pytest.mark.full)])
@pytest.mark.parametrize("name", kernels.usual(5))
def test_kernels_of_trees_and_steps_compile_alone(name, architecture):
    options = (*compiler.options_of(name, compiler.precision_of(name)), f"-arch={architecture}")
    try:
        cubin, log = nvrtc.compile_cubin(compiler.text_of(name), options)
    except nvrtc.Missing as missing:
        pytest.skip(f"SKIP: {missing}")
    assert name.encode() in cubin
    assert "warning" not in log.replace("warning : Value of threads per SM", "")  # of an old one


@pytest.mark.parametrize("options", [*STEPS[:2], STEPS[3]], ids=str)
def test_a_file_goes_on_with_the_same_bits(put, cupy, tmp_path, options):
    """From NumPy's arrays: how the bodies came to the device does not matter. Nothing comes to the
    host until one looks, at copies."""
    half, whole = (both(put, **options)[0] for _ in range(2))
    copies = cupy.copies
    half.evolve(0.21)
    assert cupy.copies == copies or "boundary" in options
    for array in (half.mass, half.pos, half.vel, half.potential()):
        array.memory[:] = 77
    half.save(tmp_path / "a.h5")
    state = half.state()
    assert all(isinstance(array, np.ndarray) for array in state.values())
    again = both(put, **options)[0]
    again._blocks.put(half.particles().mass, state)
    again._blocks.set_counters(half.steps, half.blocks)
    again._time = half.time
    for galaxy in (half, whole, again):
        galaxy.evolve(0.4)
    assert same(whole, again)
    assert same(whole, half)


def test_arrays_that_are_still_being_written_are_waited_for(put, cupy):
    given, hows = plummer(N, 1), ("dlpack", "both", "interface")
    late = [fake_arrays.Late(cupy, *pair) for pair in zip(given, hows, strict=True)]
    assert same(*(Leapfrog(*bodies, dt=1 / 64, eps=EPS) for bodies in (late, map(put, given))))


def test_wrong_arguments_are_refused_as_on_the_host(put, cupy):
    mass, pos, vel = plummer(10, 1)
    bad = vel.copy()
    bad[3, 1] = np.nan
    good = {"mass": put(mass), "pos": put(pos), "vel": put(vel), "dt": 0.1}
    for wrong, error, text in [
        ({"vel": put(bad)}, errors.NotFiniteError, r"vel\[3\] is not finite"),
        ({"pos": put(pos[:9])}, errors.ArgumentError, "pos has shape"),
        ({"backend": "cpu-tree"}, errors.ArgumentError, "computes on the CPU"),
        ({"vel": cupy.on(1, vel)}, errors.ArgumentError, "vel lies on CUDA device 1, but the bod"),
        ({"eps": 1e200}, errors.ArgumentError, r"eps\^2 = inf"),
    ]:
        with pytest.raises(error, match=text):
            Leapfrog(**good | wrong)
    mixed = Leapfrog(put(mass), pos, vel, dt=0.1, eps=EPS)
    assert isinstance(mixed.vel, fake_arrays.Array)


# ---- leapfrogs of a session: bits of bodies on the host with forces of the device ----------------
SESSION_BODIES = plummer(20000 if backends.has_gpu else 200, 1)


@pytest.mark.backends("cuda gpu")
@pytest.mark.parametrize(
    "options",
    [{"dt": 1 / 64}, {"dt_max": 1 / 32, "eta": 0.01}, {"dt": 1 / 64, "boundary": 2.0},
     {"dt": 1 / 64, "precision": "grape"}], ids=str)  # fmt: skip
def test_leapfrogs_of_the_direct_sum_have_the_bits_of_the_host(cupy, monkeypatch, options):
    options = {"eps": EPS, "backend": "cuda", "precision": "double"} | options
    given = Leapfrog(*(cupy.asarray(array) for array in SESSION_BODIES), **options)
    put = Leapfrog(*SESSION_BODIES, **options)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cupy", None)
        host = Leapfrog(*SESSION_BODIES, **options)
    start = host.energy().total
    for galaxy in (given, put, host):
        galaxy.evolve(0.3)
        for name, array in galaxy.state().items():
            assert array.tobytes() == given.state()[name].tobytes(), name
        assert galaxy.energy() == given.energy()
        assert (galaxy.n, galaxy.steps, galaxy.blocks) == (given.n, given.steps, given.blocks)
    assert isinstance(given.pos, cupy.ndarray)
    assert isinstance(put.pos, np.ndarray)
    assert host._blocks._arrays.xp is np
    assert "boundary" in options or host.energy().total == pytest.approx(start, rel=1e-3)


@pytest.mark.backends("cuda")
def test_leapfrogs_of_trees_go_to_the_gpu_by_themselves_if_there_is_cupy(cupy, monkeypatch):
    options = {"dt": 1 / 64, "eps": EPS, "theta": 0.7}
    given, *puts = (
        Leapfrog(*map(to, SESSION_BODIES), **options, backend=backend)
        for to, backend in ((cupy.asarray, "tree"), (np.asarray, "tree"), (np.asarray, "cuda-tree"))
    )
    given.evolve(0.1)
    for put in puts:
        put.evolve(0.1)
        assert put._forces.device is not None
        assert np.array_equal(put.pos, given.pos.get())
        assert put.backend == given.backend
    monkeypatch.setitem(sys.modules, "cupy", None)
    on_host = Leapfrog(*SESSION_BODIES, **options, backend="tree")
    assert on_host._forces.device is None
    assert on_host.backend.startswith("cpu-tree")
