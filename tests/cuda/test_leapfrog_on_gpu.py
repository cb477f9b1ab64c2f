"""``Leapfrog`` of a CUDA device's arrays: as with NumPy's, and everything stays on the device.

The device is the stand-in for a GPU, CuPy that of fake_arrays.py.
"""

import sys
import warnings

import numpy as np
import pytest

import backends
import fake_arrays
import nvrtc
from fake_gpu import relative
from grape6py import Leapfrog, errors, plummer, reference
from grape6py.cuda import compiler
from grape6py.integrators import gravity, leapfrog_arrays
from grape6py.integrators.leapfrog_device import KERNELS, DeviceArrays
from test_hermite_use import same

N, EPS = 20000 if backends.has_gpu else 300, 0.05
STEPS = [{"dt": 1 / 64}, {"dt_max": 1 / 8, "eta": 0.01}, {"dt": 1 / 64, "method": "bh"},
         {"dt_max": 1 / 8, "eta": 0.01, "boundary": 2.0}]  # fmt: skip
STATE = {"time": 0.375, "steps": 5, "blocks": 3}


def both(put, n=N, **options):
    bodies = plummer(n, 1)
    device = Leapfrog(*map(put, bodies), eps=EPS, theta=0.5, **options)
    return device, Leapfrog(*bodies, eps=EPS, theta=0.5, backend="cpu-tree", **options)


def test_the_accuracy_is_that_asked_for(put, tmp_path, monkeypatch):
    monkeypatch.setattr(gravity, "are_few", lambda *_, **__: False)
    mass, pos, vel = plummer(1500, seed=4)
    galaxy = Leapfrog(put(mass), put(pos), put(vel), eps=0.01, accuracy=1e-3, dt=1 / 64)
    galaxy.evolve(0.3)
    galaxy.save(tmp_path / "galaxy.h5")
    state = galaxy.state()
    exact = reference.direct_sum(mass, state["pos"], vel, eps2=1e-4).acc
    assert 1e-3 / 20 < np.median(relative(state["acc"], exact)) < 1.5e-3


@pytest.mark.parametrize("options", [{}, {"accuracy": 1e-2}], ids=str)
@pytest.mark.parametrize("n", [10, 2100])
def test_few_bodies_are_summed_directly(put, options, n):
    bodies = plummer(n, 7)
    galaxy = Leapfrog(*map(put, bodies), eps=EPS, dt=1 / 64, **options)
    galaxy.evolve(1 / 16)
    exact = reference.direct_sum(bodies[0], galaxy.state()["pos"], bodies[2], eps2=EPS**2).acc
    assert np.median(relative(galaxy.state()["acc"], exact)) < 2e-6


@pytest.mark.parametrize("options", STEPS, ids=str)
def test_bodies_move_as_on_the_host(put, options):
    """But for the rounding of forces, and cells that it opens."""
    device, host = both(put, **options)
    for galaxy in (device, host):
        galaxy.evolve(0.3)
    assert (device.n, device.blocks) == (host.n, host.blocks)
    assert device.steps == pytest.approx(host.steps, rel=0.01)
    assert isinstance(device.pos, fake_arrays.Array)
    for ours, theirs in zip(device.particles(), host.particles(), strict=True):
        assert np.median(np.abs(ours - theirs)) < 1e-6
        assert np.abs(ours - theirs).max() < 1e-3
    assert device.energy().total == pytest.approx(host.energy().total, rel=1e-4)
    assert np.allclose(device.momentum(), host.momentum(), atol=1e-4)
    assert np.allclose(device.lagrangian_radii(), host.lagrangian_radii(), atol=1e-3)
    assert np.median(np.abs(device.potential().memory - host.potential())) < 1e-5
    assert device.backend == "cuda-tree stand-in"
    assert device.precision == "single"


@pytest.mark.parametrize("options", [{"dt": 1 / 64}, {"dt_max": 1 / 8, "eta": 0.01},
                                     {"dt": 1 / 64, "accuracy": 1e-3}], ids=str)  # fmt: skip
def test_bodies_of_ranks_move_on_the_device(put, monkeypatch, options):
    mpi = pytest.importorskip("mpi4py.MPI", reason="SKIP: mpi4py")
    monkeypatch.setenv("GRAPE6_TRANSFERS", "host")  # the stand-in has no NCCL
    bodies = plummer(N, 1)
    device = Leapfrog(*map(put, bodies), eps=EPS, **options, boundary=4.0, comm=mpi.COMM_SELF)
    host = Leapfrog(*bodies, eps=EPS, backend="cpu-tree", **options, boundary=4.0)
    for galaxy in (device, host):
        galaxy.evolve(0.3)
    assert device.n == host.n < N
    assert isinstance(device.pos, fake_arrays.Array)
    for ours, theirs in zip(device.particles(), host.particles(), strict=True):
        assert np.median(np.abs(ours - theirs)) < 1e-4
    assert device.energy().total == pytest.approx(host.energy().total, rel=1e-3)
    assert isinstance(device.jerk, fake_arrays.Array)
    assert device.backend == "cuda-tree stand-in"


@pytest.fixture
def arrays(cupy):
    return DeviceArrays(cupy, 0)


def bodies_of(arrays, shared):
    rng = np.random.default_rng(5)
    mass, pos, vel = plummer(N, 2)
    acc = rng.standard_normal((N, 3)) * 10.0 ** rng.uniform(-3, 3, (N, 1))
    dt = 2.0 ** rng.integers(-8, -2, N)
    t = STATE["time"] - dt / 2
    own = {} if shared else {"t": arrays.put(t), "dt": arrays.put(dt)}
    return leapfrog_arrays.Bodies(**STATE, **own, mass=arrays.put(mass), pos=arrays.put(pos),
                        vel=arrays.put(vel), acc=arrays.put(acc))  # fmt: skip


@pytest.mark.backends("cuda gpu")
def test_kernels_have_the_bits_of_the_host(arrays):
    host, rule = leapfrog_arrays.HostArrays(), leapfrog_arrays.Rule(0.001, 2.0**-20, 0.25)
    acc = np.random.default_rng(6).standard_normal((N, 3)) * 10.0 ** np.linspace(-3, 3, N)[:, None]
    rows = np.arange(0, N, 3, dtype=np.int32)
    found = []
    for place in (arrays, host):
        shared, block = (bodies_of(place, kind) for kind in (True, False))
        given = place.put(acc)
        at = place.drift(block, 0.5)
        new = place.end_step(block, 0.5, place.put(rows), at, place.put(acc[rows]), rule)
        found.append([
            place.drift(shared, 0.3), place.kick(shared, 0.3, given), at,
            place.kick(block, 0.5, given), place.first_steps(given, rule),
            new.t, new.dt, new.pos, new.vel, new.acc, block.dt, block.vel,
        ])  # fmt: skip
        assert new.time == 0.5
    for ours, theirs in zip(*found, strict=True):
        assert ours.tobytes() == theirs.tobytes()
    before, after = found[1][-2], found[1][6]
    ratio = after / before
    assert {0.5, 1.0, 2.0} <= set(np.unique(ratio))
    assert (ratio[1::3] == 1).all()


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_kernels_compile_for_cards(architecture):
    options = (*compiler.options("double"), f"-arch={architecture}")
    try:
        cubin, log = nvrtc.compile_cubin(compiler.read("leapfrog.cu"), options)
    except nvrtc.Missing as missing:
        pytest.skip(f"SKIP: {missing}")
    assert all(name.encode() in cubin for name in KERNELS)
    assert "warning" not in log


@pytest.mark.parametrize("options", STEPS[:2], ids=str)
def test_nothing_comes_to_the_host_until_one_looks(put, cupy, options):
    galaxy, _ = both(put, **options)
    copies = cupy.copies
    galaxy.evolve(0.25)
    assert isinstance(galaxy.pos, fake_arrays.Array)
    assert cupy.copies == copies
    galaxy.energy()
    assert cupy.copies > copies


@pytest.mark.parametrize("options", [*STEPS[:2], STEPS[3]], ids=str)
def test_a_file_goes_on_with_the_same_bits(put, cupy, tmp_path, options):
    """From NumPy's arrays: how the bodies came to the device does not matter."""
    half, whole = (both(put, **options)[0] for _ in range(2))
    half.evolve(0.21)
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


@pytest.mark.parametrize("how", ["dlpack", "both", "interface"])
def test_arrays_that_are_still_being_written_are_waited_for(put, cupy, how):
    bodies = plummer(N, 1)
    late = [fake_arrays.Late(cupy, array, how) for array in bodies]
    galaxies = [Leapfrog(*given, dt=1 / 64, eps=EPS) for given in (late, map(put, bodies))]
    for galaxy in galaxies:
        galaxy.evolve(0.05)
    assert same(*galaxies)


def test_what_is_given_out_are_copies(put):
    galaxy, whole = (both(put, dt=1 / 64)[0] for _ in range(2))
    for array in (galaxy.mass, galaxy.pos, galaxy.vel, galaxy.potential()):
        array.memory[:] = 77
    for each in (galaxy, whole):
        each.evolve(0.125)
    assert same(galaxy, whole)


def test_bodies_at_one_place_leave_one_warning(put):
    mass, pos, vel = plummer(64, 1)
    pos[1], vel[1] = pos[0], vel[0]
    with pytest.warns(errors.Grape6Warning, match="at one place"):
        galaxy = Leapfrog(*map(put, (mass, pos, vel)), dt=1 / 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        galaxy.evolve(1 / 16)


def test_the_last_body_may_leave(put):
    one = np.array([[1.0, 0, 0]])
    alone = Leapfrog(put(np.ones(1)), put(one), put(one), dt=0.5, boundary=3.0)
    alone.evolve(100.0)
    assert (alone.n, alone.time) == (0, 100.0)
    assert alone.energy().total == 0


def test_wrong_arguments_are_refused_as_on_the_host(put, cupy):
    mass, pos, vel = plummer(10, 1)
    bad = vel.copy()
    bad[3, 1] = np.nan
    with pytest.raises(errors.NotFiniteError, match=r"vel\[3\] is not finite"):
        Leapfrog(put(mass), put(pos), put(bad), dt=0.1)
    with pytest.raises(errors.ArgumentError, match="pos has shape"):
        Leapfrog(put(mass), put(pos[:9]), put(vel), dt=0.1)
    with pytest.raises(errors.ArgumentError, match="computes on the CPU"):
        Leapfrog(put(mass), put(pos), put(vel), dt=0.1, backend="cpu-tree")
    with pytest.raises(errors.ArgumentError, match="vel lies on CUDA device 1, but the bodies are"):
        Leapfrog(put(mass), put(pos), cupy.on(1, vel), dt=0.1)
    with pytest.raises(errors.ArgumentError, match=r"eps\^2 = inf"):
        Leapfrog(put(mass), put(pos), put(vel), dt=0.1, eps=1e200)
    mixed = Leapfrog(put(mass), pos, vel, dt=0.1, eps=EPS)
    assert isinstance(mixed.vel, fake_arrays.Array)


def test_a_closed_object_goes_no_farther(put):
    with both(put, dt=1 / 64)[0] as galaxy:
        galaxy.evolve(1 / 16)
    with pytest.raises(errors.NotOpenError, match="closed"):
        galaxy.evolve(1.0)
    assert galaxy.time == 1 / 16


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
@pytest.mark.parametrize("backend", ["tree", "cuda-tree"])
def test_leapfrogs_of_trees_go_to_the_gpu_by_themselves(cupy, backend):
    options = {"dt": 1 / 64, "eps": EPS, "backend": backend, "theta": 0.7}
    given, put = (Leapfrog(*map(to, SESSION_BODIES), **options)
                  for to in (cupy.asarray, np.asarray))  # fmt: skip
    for galaxy in (given, put):
        assert galaxy._forces.device is not None
        galaxy.evolve(0.1)
    assert isinstance(put.pos, np.ndarray)
    assert np.array_equal(put.pos, given.pos.get())
    assert put.backend == given.backend


@pytest.mark.backends("cuda")
def test_leapfrogs_of_trees_stay_on_the_host_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    galaxy = Leapfrog(*SESSION_BODIES, dt=1 / 64, eps=EPS, backend="tree")
    assert galaxy._forces.device is None
    assert galaxy.backend.startswith("cpu-tree")
