"""Fields, bodies without mass, events and changes where the bodies live on a device: the same as
with bodies on the host and forces of the device.
"""

import numpy as np
import pytest

import backends
from grape6py import Hermite, Leapfrog, fields, plummer
from grape6py._lib.library import ffi, lib
from grape6py.events import Encounter, Escape
from test_arrays_hermite import assert_equal, on_gpu, on_host

__all__ = ["on_host"]
pytestmark = pytest.mark.backends("cuda gpu")

GALAXY = fields.mwpotential2014(8000, 33.5)
ORBIT = [8000, 0, 0, 0, 33.5, 0]


def bodies(n=150):
    """A third of them has no mass."""
    mass, pos, vel = plummer(3000 if backends.has_gpu else n, seed=3)
    return np.where(np.arange(len(mass)) % 3 == 1, 0.0, mass), pos, vel


def same(device, host):
    """Sine, logarithm and power of the device may differ in the last bit."""
    if not backends.has_gpu:
        return assert_equal(device, host)
    for name in ("pos", "vel"):
        one, other = getattr(device, name), getattr(host, name)
        assert np.abs(one - other).max() < 1e-9 * np.abs(other).max()
    return None


def both(on_host, *arguments, **options):
    return [make(Hermite, *arguments, **options) for make in (on_gpu, on_host)]


def test_bodies_without_mass_are_no_sources(cupy, on_host):
    device, host = both(on_host, *bodies(), eps=0.02)
    for cluster in (device, host):
        cluster.evolve(0.1)
    assert_equal(device, host)
    assert device._blocks.acting == np.count_nonzero(device.mass)


@pytest.mark.parametrize("options", [
    {"field": fields.plummer(1, 1) + fields.miyamoto_nagai(1, 1, 0.2) + fields.logarithmic(1, 0.1)},
    {"field": fields.nfw(1, 1) + fields.power_law_cutoff(1, 1.8, 0.5), "passes": 2},
    {"field": fields.plummer(2, 1) + fields.rotation(0.3)},
    {"field": GALAXY, "orbit": ORBIT},
    {"field": lambda t, x, v: (-x, -v, (x * x).sum(axis=1) / 2)},
    {"field": lambda t, x, v: GALAXY(t, x, v), "orbit": ORBIT},
])  # fmt: skip
def test_a_field_is_that_of_the_host(cupy, on_host, options):
    device, host = both(on_host, *bodies(), eps=0.02, **options)
    for time in (0.05, 0.11):
        for cluster in (device, host):
            cluster.evolve(time)
        same(device, host)
        assert device.energy().total == pytest.approx(host.energy().total, rel=1e-9)
        # In a rotating frame the host takes it at corrected velocities.
        assert np.abs(device.acc - host.acc).max() < 1e-4 * np.abs(host.acc).max()


def test_arrays_of_the_device_go_into_a_field(cupy):
    field = GALAXY + fields.rotation(0.1) + fields.point_mass(3)
    pos, vel = np.random.default_rng(1).normal(size=(2, 40, 3))
    there = field(0.0, cupy.asarray(pos), cupy.asarray(vel))
    for one, other in zip(there, field(0.0, pos, vel), strict=True):
        assert np.abs(one.get() - other).max() <= 1e-13 * np.abs(other).max()


def test_what_is_watched_for_happens_at_the_same_times(cupy, on_host):
    device, host = both(on_host, *bodies(), eps=0.0)
    watched = [Encounter(0.05, "merge"), Escape(2.5)]
    for cluster in (device, host):
        cluster.evolve(0.15, events=watched)
    assert [event[:3] for event in device.events] == [event[:3] for event in host.events]
    assert {event.kind for event in device.events} == {"encounter", "escape"}
    assert_equal(device, host)


def test_changed_bodies_go_on_there(cupy, on_host):
    clusters = both(on_host, *bodies(), eps=0.02)
    for cluster in clusters:
        cluster.evolve(0.07)
        cluster.add([0.01, 0.0], np.ones((2, 3)), np.zeros((2, 3)))
        cluster.kick(1, vel=[1, 0, 0])  # without mass
        cluster.remove([3, 4])
        cluster.evolve(0.1)
    assert_equal(*clusters)
    assert clusters[0].energy_change == pytest.approx(clusters[1].energy_change, rel=1e-12)


def test_leapfrogs_of_the_device_have_fields(cupy):
    found = []
    for make in (cupy.asarray, np.asarray):
        arrays = map(make, plummer(300, seed=1))
        galaxy = Leapfrog(*arrays, eps=0.05, dt=1 / 64, field=GALAXY, orbit=ORBIT, backend="tree")
        galaxy.evolve(1 / 16)
        found.append((np.asarray(galaxy.particles().pos), galaxy.energy().total))
    assert np.abs(found[0][0] - found[1][0]).max() < 1e-5
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-4)


@pytest.mark.backends("cuda")
def test_wrong_fields_are_refused_by_the_library():
    def code(n=1, time=0.0, **changes):
        field = ffi.new("struct g6x_field *", {"terms": 1})
        field.term[0].kind, field.term[0].p = lib.G6X_FIELD_NFW, [1.0, 1.0, 1.0]
        for name, value in changes.items():
            if name in ("kind", "p"):
                setattr(field.term[0], name, value)
            else:
                setattr(field, name, value)
        x, v, acc = (ffi.new("double[1][3]", [[1.0, 2.0, 3.0]]) for _ in range(3))
        return lib.g6x_field_add(field, n, time, x, v, acc, ffi.NULL, ffi.NULL)

    assert code() == 0
    orbit = ffi.new("double[2][13]", [[0.0] * 13, [1.0] * 13])
    wrong = [{"terms": 9}, {"terms": -1}, {"kind": 77}, {"p": [1.0, -1.0, 1.0]}, {"n": -1},
             {"p": [np.nan, 1.0, 1.0]}, {"omega": np.inf}, {"nodes": 1}, {"time": np.nan},
             {"nodes": 2, "orbit": orbit, "omega": 1.0}, {"nodes": 2, "orbit": orbit, "time": 3.0},
             {"kind": lib.G6X_FIELD_PLUMMER, "p": [1.0, -1.0, 0.0]},
             {"kind": lib.G6X_FIELD_MIYAMOTO_NAGAI, "p": [1.0, 1.0, 0.0]},
             {"kind": lib.G6X_FIELD_LOGARITHMIC, "p": [1.0, 1.0, 0.0]},
             {"kind": lib.G6X_FIELD_CUTOFF, "p": [1.0, 2.0, 1.0]}]  # fmt: skip
    assert all(code(**changes) == lib.G6X_E_ARGUMENT for changes in wrong)
    assert lib.g6x_field_origin(ffi.NULL, 0.0, ffi.NULL) == lib.G6X_E_NULL
