"""``Leapfrog``: the scheme, energy, momentum, reversal, block steps, boundary, files."""

import numpy as np
import pytest

import capi
from grape6py import Leapfrog, plummer, reference
from grape6py.errors import ArgumentError
from integrations import assert_same, error_of, evolve
from particles import relative

EPS = 0.05
DIRECT = {"backend": "cpu", "precision": "double"}


def sphere(n=1000, seed=1, **options):
    return Leapfrog(*plummer(n, seed), **{"eps": EPS, "backend": "cpu-tree"} | options)


def test_it_is_velocity_verlet_of_the_forces():
    """x + v h + a h^2 / 2, v + (a0 + a1) h / 2, with the oracle's forces."""
    (mass, pos, vel), h = plummer(50, 3), 1 / 100
    galaxy = Leapfrog(mass, pos, vel, dt=h, eps=EPS, **DIRECT)
    galaxy.evolve(5 * h)
    acc = reference.direct_sum(mass, pos, eps2=EPS**2).acc
    for _ in range(5):
        pos = pos + vel * h + acc * h**2 / 2
        before, acc = acc, reference.direct_sum(mass, pos, eps2=EPS**2).acc
        vel = vel + (before + acc) * h / 2
    assert np.abs(galaxy.pos - pos).max() < 1e-13
    assert np.abs(galaxy.vel - vel).max() < 1e-13
    assert galaxy.time == 5 * h
    assert (galaxy.steps, galaxy.blocks) == (250, 5)


@pytest.mark.parametrize("method", ["fmm", "bh"])
def test_a_sphere_keeps_its_energy(method):
    assert error_of(sphere(theta=0.5, method=method, dt=1 / 64), 0.5, 1.0, 1.5, 2.0) < 3e-4


@pytest.mark.parametrize("options", [{"theta": 0.7}, {"theta": 0.7, "method": "bh"}, DIRECT],
                         ids=str)  # fmt: skip
def test_shared_steps_can_be_reversed_and_keep_the_momenta(options):
    galaxy = sphere(300, dt=1 / 64, **options)
    pos, vel = galaxy.pos, galaxy.vel
    start, turning = galaxy.momentum(), galaxy.angular_momentum()
    galaxy.evolve(1.0)
    assert np.abs(galaxy.pos - pos).max() > 0.3
    is_exact = options is DIRECT
    if "method" not in options:
        assert np.abs(galaxy.momentum() - start).max() < 1e-14
        assert np.abs(galaxy.angular_momentum() - turning).max() < (1e-14 if is_exact else 1e-4)
    back = Leapfrog(galaxy.mass, galaxy.pos, -galaxy.vel, dt=1 / 64, eps=EPS,
                    **{"backend": "cpu-tree"} | options)  # fmt: skip
    back.evolve(1.0)
    # Rounding may open another cell; the direct sum has none to open.
    limit = 1e-10 if is_exact else 1e-4
    assert np.abs(back.pos - pos).max() < limit
    assert np.abs(back.vel + vel).max() < limit


@pytest.mark.parametrize(("method", "step"), [
    ("bh", {"dt": 1 / 64}), ("fmm", {"dt_max": 1 / 32, "eta": 0.01}),
])  # fmt: skip
@pytest.mark.slow
def test_an_accuracy_is_kept_on_the_way_and_over_a_restart(tmp_path, step, method):
    mass, pos, vel = plummer(4200, seed=8)  # more than are summed directly
    pos[:, 2] *= 0.01
    galaxy = Leapfrog(mass, pos, vel, eps=0.01, accuracy=1e-3, method=method, **step)
    galaxy.evolve(0.1)
    galaxy.save(tmp_path / "galaxy.h5")
    again = Leapfrog.load(tmp_path / "galaxy.h5")
    evolve((galaxy, again), 0.2)
    assert_same(galaxy, again)
    assert again.settings["accuracy"] == 1e-3
    state = galaxy.state()
    if "dt" in step:
        exact = reference.direct_sum(mass, state["pos"], vel, eps2=1e-4).acc
        assert 1e-3 / 20 < np.median(relative(state["acc"], exact)) < 1.5e-3


def test_block_steps_are_shared_ones_where_all_want_the_largest():
    shared, block = sphere(dt=1 / 64), sphere(dt_max=1 / 64, eta=100.0)
    evolve((shared, block), 0.5)
    assert_same(shared, block, ("pos", "vel", "acc"))


@pytest.mark.slow
def test_block_steps_keep_the_energy_in_fewer_steps():
    few, many = sphere(dt_max=1 / 8, eta=0.01), sphere(dt=1 / 64)
    assert error_of(few, 0.25, 0.5, 0.75, 1.0) < 5e-4
    many.evolve(1.0)
    assert few.steps < 0.8 * many.steps


def test_steps_are_what_the_criterion_wants():
    """Powers of two not above sqrt(2 eta eps / |a|), which begin at their own multiples."""
    galaxy = sphere(dt_max=1.0, eta=0.01, **DIRECT)
    for _ in range(2):
        state, step = galaxy.state(), galaxy.step_sizes
        wanted = np.sqrt(2 * 0.01 * EPS / np.linalg.norm(state["acc"], axis=1))
        assert (step <= wanted).all()
        assert (np.log2(step) % 1 == 0).all()
        assert (state["t"] % step == 0).all()
        assert len(np.unique(step)) > 3
        could_be_longer = (2 * step <= wanted) & (state["t"] % (2 * step) == 0)
        assert galaxy.time > 0 or not could_be_longer.any()
        galaxy.evolve(0.6)


STEPS = [{"dt": 1 / 100}, {"dt_max": 1 / 8, "eta": 0.01}, {"dt": 1 / 64, "boundary": 2.0},
         {"dt": 1 / 64, "method": "bh", "theta": 0.7},
         {"dt_max": 1 / 8, "eta": 0.01, **DIRECT}]  # fmt: skip


@pytest.mark.parametrize("options", STEPS, ids=str)
def test_looking_and_interrupting_change_nothing(options):
    whole, looked = sphere(300, **options), sphere(300, **options)
    forces, left = looked._forces.forces, [5]

    def interrupted(*arguments):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return forces(*arguments)

    looked._forces.forces = interrupted
    for time in np.linspace(0, 0.5, 9):
        try:
            looked.evolve(time)
            looked.energy()
        except KeyboardInterrupt:
            left[0] = 7
            looked.evolve(max(time, looked.time))
    whole.evolve(0.5)
    assert_same(whole, looked)
    assert whole.energy() == looked.energy()


@pytest.mark.parametrize("step", [{"dt": 1 / 50}, {"dt_max": 1 / 64, "eta": 0.01}], ids=str)
def test_who_crosses_the_boundary_is_taken_out(step):
    mass, pos, vel = plummer(500, 1)
    vel[7] = [30.0, 0, 0]
    open_ = Leapfrog(mass, pos, vel, eps=EPS, boundary=50.0, backend="cpu-tree", **step)
    assert open_.n == 500
    open_.evolve(4.0)
    assert open_.n == 499
    assert len(open_.mass) == len(open_.pos) == len(open_.potential()) == 499
    assert 7 not in open_.ids
    steps = open_.steps
    open_.evolve(4.1)
    assert open_.steps >= steps + 499


def test_the_last_body_may_leave():
    alone = Leapfrog([1.0], [[1.0, 0, 0]], [[1.0, 0, 0]], dt=0.5, boundary=3.0, backend="cpu-tree")
    alone.evolve(100.0)
    assert (alone.n, alone.time) == (0, 100.0)
    assert alone.pos.shape == (0, 3)


def test_a_file_of_a_tree_needs_a_tree(tmp_path):
    for path, backend, other in (("a.h5", "cpu-tree", "cpu"), ("b.h5", "cpu", "cpu-tree")):
        sphere(50, dt=0.1, backend=backend).save(tmp_path / path)
        with pytest.raises(ArgumentError, match="these bodies were integrated with"):
            Leapfrog.load(tmp_path / path, backend=other)


@pytest.mark.slow
def test_auto_is_what_the_environment_says():
    """Here a tree, for a restart too."""
    capi.run_python("""
from grape6py import Leapfrog, plummer
galaxy = Leapfrog(*plummer(50, 1), dt=0.1, eps=0.1, backend="auto", theta=0.5)
assert galaxy.backend.split()[0] == "cpu-tree"
restore = galaxy.settings, galaxy.mass, galaxy.state()
assert Leapfrog.restored(*restore, time=0.0).backend == galaxy.backend
""", GRAPE6_BACKEND="cpu-tree")  # fmt: skip


def test_times_that_are_not_exact_are_refused():
    galaxy = sphere(10, dt=0.1)
    galaxy.evolve(1.0)
    for time in (1e17, -1e17):
        with pytest.raises(ArgumentError, match="not exact"):
            galaxy.evolve(time)
