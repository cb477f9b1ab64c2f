"""Whatever a run's files say of it is read: after a load, and when files are written to again."""

import astropy.units as u
import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, archive, events, fields, plummer
from grape6py._io import run_index

POINT = {"field": fields.point_mass(1e4), "orbit": [50, 0, 0, 0, 10, 0]}
UNITS = {"eps": 0.02 * u.pc}
CASES = {
    "plain": (Hermite, {}),
    "constant step": (Hermite, {"dt": 2**-7, "passes": 2, "precision": "double"}),
    "field": (Hermite, {"field": fields.plummer(10.0, 5.0), "eta": 0.01, "G": 0.5}),
    "orbit": (Hermite, POINT),
    "units": (Hermite, UNITS),
    "leapfrog": (Leapfrog, {"dt": 2**-7, "theta": 0.6, "boundary": 1.5, "method": "bh"}),
    "its accuracy": (Leapfrog, {"dt_max": 2**-6, "eta": 0.02, "accuracy": 1e-4, "order": 4}),
    "its orbit": (Leapfrog, {"dt": 2**-7, "backend": "cpu", **POINT}),
}  # fmt: skip


def begun(case, n=60):
    kind, options = CASES[case]
    mass, pos, vel = plummer(n, seed=1)
    if case == "units":
        mass, pos, vel = mass * 100 * u.Msun, pos * u.pc, vel * 0.6 * u.km / u.s
    if kind is Leapfrog:
        options = {"backend": "cpu-tree"} | options
    return kind(mass, pos, vel, **({"eps": 0.02} | options))


def moved(cluster, steps=3):
    """Brings it to some times, with changes and events on the way."""
    unit = u.Myr if hasattr(cluster.time, "unit") else 1
    for k in range(1, steps + 1):
        if k == 2:
            cluster.remove(cluster.ids[:4])
        near = [] if unit == u.Myr else [events.Escape(2.0, "remove"), events.EnergyError(0.5)]
        cluster.evolve(k * unit / 16, events=near)
        yield cluster


@pytest.mark.parametrize("case", CASES)
def test_the_history_of_a_file_is_that_of_the_conserved_energy(case, here):
    """With the work of fields, and without what changes have added."""
    cluster, true = begun(case), []
    archive.save("a.h5", cluster)
    bare = archive.in_units.bare(cluster)
    initial = bare.energy().total
    for _ in moved(cluster):
        conserved = bare.energy().total - bare.energy_change
        true.append((conserved - initial) / abs(initial))
        cluster.save("a.h5")
    found = [record["error"] for record in archive.history("a.h5")[1]]
    assert found == pytest.approx([0, *true], abs=1e-15)
    assert max(map(abs, found)) < (0.5 if "leapfrog" in case else 1e-3)
    (one, *_, last), now = run_index.find("a.h5").outputs, archive.describe(bare)
    assert {k: v for k, v in last.numbers.items() if k != "radii" and (v or k in now)} == {
        k: v for k, v in now.items() if k != "radii"
    }
    assert np.array_equal(last.numbers["radii"], now["radii"])
