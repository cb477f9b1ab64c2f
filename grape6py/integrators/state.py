"""What a state of an integration has besides its arrays by body, and the integrators by name."""

import importlib

import numpy as np

from grape6py._arrays import ids as numbers
from grape6py._arrays import validate
from grape6py._arrays.kinds import AnyArray, Untyped

KINDS = "hermite", "leapfrog"  # as files name them: modules here, and their classes


def integrator(name: str) -> Untyped:
    """The class of integrations that is called so in files. Hermite need not know Leapfrog."""
    module = importlib.import_module(f"grape6py.integrators.{KINDS[KINDS.index(name)]}")
    return getattr(module, name.capitalize())


# Of a state, besides the arrays by body: shapes of what may be there.
EXTRA: dict[str, tuple[int | None, ...]] = {
    "epoch": (),  # from which t counts
    "energy_change": (),
    "initial_energy": (),  # of an EnergyError
    "last_id": (),  # the largest that a body had, as uint64
    "watched_until": (None,),  # pairs that are close, and who has left: Watch.as_arrays
    "watched_ids": (None, 2),  # uint64
    "escape": (4,),  # radius and centre of the sphere that bodies escape from
    "eps": (None,),  # of a Leapfrog whose bodies have their own
    "frame": (14,),  # a node of the orbit of the frame: OrbitFrame.node_at
    "work": (None,),  # of the field in that frame: hermite_arrays.WORK
    "power": (None,),
    "rate": (None,),
    "work_done": (),
    "subsystems": (None,),  # g6x_subsystems_get
    "stars_due": (),  # when stars change next: stellar.py
    "radius": (None,),  # of the stars
}


def extra_of(name: str, values: Untyped) -> AnyArray:
    """An array of EXTRA, checked."""
    if name == "last_id":
        return numbers.of(name, [int(values)])[0]  # type: ignore[no-any-return]
    if name == "stars_due":  # may be infinite
        return np.array(float(values))
    if name == "watched_ids":
        return numbers.of(name, np.ravel(values)).reshape(-1, 2)
    if EXTRA[name] == ():
        return np.array(validate.number(name, values))
    return validate.floats(name, values, EXTRA[name])
