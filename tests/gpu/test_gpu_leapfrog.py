"""``Leapfrog`` on a true card: pytest -m gpu. Skipped where there is none.

The rules are tested on a stand-in (test_leapfrog_on_card.py).
"""

import numpy as np
import pytest

from grape6py import Leapfrog, plummer
from grape6py.integrators.leapfrog_steps import Bodies, HostArrays, Rule
from test_hermite_use import same

cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu

N, EPS = 20000, 0.02
STEPS = [{"dt": 1 / 64}, {"dt_max": 1 / 32, "eta": 0.01}]


def make(xp=np, **options):
    return Leapfrog(*map(xp.asarray, plummer(N, 1)), **{"eps": EPS, "theta": 0.5} | options)


@pytest.mark.parametrize("options", STEPS, ids=str)
def test_bodies_move_as_on_the_host(options):
    device, host = make(cupy, **options), make(backend="cpu-tree", **options)
    start = device.energy().total
    for galaxy in (device, host):
        galaxy.evolve(0.25)
    assert isinstance(device.pos, cupy.ndarray)
    assert device.backend.startswith("cuda-tree")
    assert device.steps == pytest.approx(host.steps, rel=0.001)
    assert np.median(np.abs(device.pos.get() - host.pos)) < 1e-5
    assert device.energy().total == pytest.approx(host.energy().total, rel=1e-5)
    assert device.energy().total == pytest.approx(start, rel=1e-3)


@pytest.mark.parametrize("options", STEPS, ids=str)
def test_arrays_of_the_host_go_to_the_card_and_files_go_on(tmp_path, options):
    given, put, half = make(cupy, **options), make(**options), make(**options)
    assert isinstance(put.pos, np.ndarray)
    assert put.backend == given.backend
    half.evolve(0.11)
    half.save(tmp_path / "a.h5")
    again = Leapfrog.load(tmp_path / "a.h5")
    assert again.backend == given.backend
    for galaxy in (given, put, again):
        galaxy.evolve(0.2)
    assert same(given, put)
    assert same(given, again)


@pytest.mark.parametrize("options", STEPS, ids=str)
def test_the_direct_sum_stays_on_the_card(options):
    options = options | {"theta": None, "backend": "cuda"}
    device, host = make(cupy, **options), make(**options)
    start = device.energy().total
    for galaxy in (device, host):
        galaxy.evolve(0.125)
    assert isinstance(device.pos, cupy.ndarray)
    assert np.array_equal(device.pos.get(), host.pos)
    assert device.energy().total == pytest.approx(start, rel=1e-3)


def test_kernels_have_the_bits_of_the_host():
    card, host = make(cupy, dt=0.1)._forces.arrays, HostArrays()
    rng, rule = np.random.default_rng(2), Rule(0.001, 2.0**-20, 0.25)
    pos, vel, old, acc = rng.standard_normal((4, N, 3)) * 10.0 ** rng.uniform(-3, 3, (4, N, 1))
    dt = 2.0 ** rng.integers(-8, -2, N)
    rows = np.arange(0, N, 3, dtype=np.int32)
    found = []
    for place in (card, host):
        own = [place.put(array) for array in (pos, vel, old)]
        own = dict(zip(("pos", "vel", "acc"), own, strict=True))
        bodies = Bodies(0.375, 0, 0, place.put(dt), **own, t=place.put(0.375 - dt / 2),
                        dt=place.put(dt))  # fmt: skip
        at, shared = place.drift(bodies, 0.5), bodies._replace(t=None)
        new = place.arrive(bodies, 0.5, place.put(rows), at, place.put(acc[rows]), rule)
        arrays = [at, place.kick(bodies, 0.5, place.put(acc)), place.drift(shared, 0.3),
                  place.first_steps(place.put(acc), rule), *new[4:7], *new[8:10]]  # fmt: skip
        found.append([place.fetch(array) for array in arrays])
    for ours, theirs in zip(*found, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_escapers_leave_the_card():
    galaxy = make(cupy, dt=1 / 64, boundary=2.0)
    galaxy.evolve(0.5)
    assert galaxy.n < N
    assert len(galaxy.pos) == len(galaxy.mass) == galaxy.n
    assert np.linalg.norm(galaxy.pos.get(), axis=1).max() < 3
