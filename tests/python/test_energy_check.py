"""An integration that loses its energy warns once, with what to do, and others do not."""

import re
import warnings

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, fields, plummer, two_body, write_snapshot
from grape6py.errors import AccuracyWarning, Grape6Warning
from grape6py.events import EnergyError
from runs import run

BODIES = plummer(64, seed=1)
ORBIT = two_body(0.99999, apocentre=True)  # 2 pi to the next apocentre


def warned(cluster, *times):
    """The words of the warnings of looks at the energy at some times."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cluster.energy()
        for time in times:
            cluster.evolve(time)
            cluster.energy()
    assert {(w.category, w.filename) for w in caught} <= {(AccuracyWarning, __file__)}
    assert issubclass(AccuracyWarning, Grape6Warning)
    return [str(w.message) for w in caught]


def test_an_orbit_that_loses_its_energy_warns_once():
    (words,) = warned(Hermite(*ORBIT), 1.0, 5.0, 6.0, 7.0)
    # The digit is that of the machine's seed of 1/sqrt.
    assert re.sub(r"-1\.\de", "-1.5e", words) == (
        "at time 5 the relative energy error is -1.5e-01: take a smaller eta than 0.02 or a larger "
        "softening length than eps = 0"
    )


def test_looking_often_hides_nothing():
    """No single block changes the energy as much as the whole encounter does."""
    (words,) = warned(Hermite(*ORBIT), *np.linspace(3.1, 3.2, 400), 5.0)
    assert "take a smaller eta" in words


SOFTER = "a larger softening length than eps = 0.05"
WRONG = [
    (Hermite, {"dt": 0.25}, f"a smaller dt than 0.25 or {SOFTER}"),
    (Hermite, {"eta": 4.0, "precision": "single"},
     f"a smaller eta than 4, {SOFTER} or another precision than single"),
    (Leapfrog, {"dt": 0.5, "theta": 0.7},
     f"a smaller dt than 0.5, a smaller theta than 0.7 or {SOFTER}"),
    (Leapfrog, {"dt_max": 1.0, "eta": 9.0, "backend": "cpu"}, f"a smaller eta than 9 or {SOFTER}"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "remedy"), WRONG, ids=str)
def test_the_warning_names_what_the_integration_has(kind, options, remedy):
    (words,) = warned(kind(*BODIES, eps=0.05, **options), 4.0, 8.0)
    assert words.endswith(f": take {remedy}")


@pytest.mark.parametrize(("kind", "options"), [
    (Hermite, {}), (Hermite, {"precision": "single"}), (Leapfrog, {"dt": 1 / 64}),
    (Leapfrog, {"dt_max": 1 / 32, "eta": 0.001}),
], ids=str)  # fmt: skip
def test_a_good_integration_warns_of_nothing(kind, options):
    assert warned(kind(*BODIES, eps=0.05, **options), 0.5, 1.0, 2.0) == []


def test_energy_that_leaves_with_bodies_is_no_error():
    mass, pos, vel = BODIES
    flung = vel.copy()
    flung[:8] *= 6  # they leave with much of the energy
    options = {"eps": 0.05, "boundary": 3.0}
    galaxy = Leapfrog(mass, pos, flung, dt=1 / 256, **options)
    start = galaxy.energy().total
    assert warned(galaxy, *np.arange(0.5, 4.1, 0.5)) == []
    assert galaxy.n < 64
    assert abs(galaxy.energy().total / start - 1) > 0.1
    (words,) = warned(Leapfrog(mass, pos, flung, dt=1 / 2, **options), *np.arange(0.5, 12.1, 0.5))
    assert "a smaller dt" in words


def test_an_orbit_of_energy_zero_is_measured_by_its_parts():
    mass, pos, vel = two_body(0.0)
    parabola = mass, pos, vel * np.sqrt(2)
    cluster = Hermite(*parabola)
    assert abs(cluster.energy().total) < 1e-16
    assert warned(cluster, 1.0, 10.0, 20.0) == []
    assert len(warned(Hermite(*parabola, dt=1.0), 4.0)) == 1


def test_the_command_line_prints_one_line_and_says_which_error_it_is(here, capsys):
    rows = np.column_stack(ORBIT)
    (here / "orbit.dat").write_text("\n".join(" ".join(map(repr, row)) for row in rows.tolist()))
    assert run("orbit.dat", "--t-end", 6, "--dt-out", 1, "--out", "a.h5") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("grape6: at time 4 the relative energy error is ")
    assert "take a smaller eta than 0.02" in line
    write_snapshot("ring.txt", *ring())
    words = "ring.txt --integrator leapfrog --dt 0.001 --eps 0.05 --t-end 0.5".split()
    assert run(*words) == 0
    assert "of the specific energies of bodies without mass" in capsys.readouterr().out


def ring(n=40, drift=0.0):
    angle = np.linspace(0, 6, n)
    pos = np.c_[np.cos(angle), np.sin(angle), 0 * angle]
    vel = np.sqrt(0.2) * pos[:, [1, 0, 2]] * [-1, 1, 0]
    mass = np.append(1.0, np.zeros(n))
    return mass, np.vstack([[0, 0, 0], pos]), np.add(np.vstack([[0, 0, 0], vel]), [drift, 0, 0])


LIGHT = {
    "about a star": (ring(), {}),
    "about a star that moves": (ring(drift=3.0), {}),
    "in a field": ([array[1:] for array in ring()], {"field": fields.plummer(1.0, 0.05)}),
}


@pytest.mark.parametrize("kind", [Leapfrog, Hermite])
@pytest.mark.parametrize("case", LIGHT)
def test_bodies_without_mass_are_judged_by_their_specific_energies(case, kind):
    bodies, options = LIGHT[case]
    good = kind(*bodies, eps=0.05, **options, dt=2**-10)
    assert warned(good, 1.0, 3.0) == []
    assert 0 < good._specific_error() < 1e-3
    bad = kind(*bodies, eps=0.05, **options, dt=1 / 8)
    (words,) = warned(bad, 1.0, 3.0)
    assert "take a smaller dt than 0.125" in words
    stopped = kind(*bodies, eps=0.05, **options, dt=1 / 8)
    assert stopped.evolve(4.0, events=EnergyError(1e-2)).kind == "energy"


def test_who_comes_goes_or_is_kicked_is_no_error():
    cluster = Leapfrog(*ring(), eps=0.05, dt=2**-10)
    cluster.energy()
    cluster.evolve(0.25)
    cluster.kick([1, 2], vel=[0.1, 0, 0])
    cluster.remove([3, 5])
    assert warned(cluster, 0.5) == []
