"""All bodies of an integration of several ranks, on the first one: for what is made of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grape6py._arrays.ids import shown
from grape6py.models import Particles

if TYPE_CHECKING:
    from grape6py._arrays.kinds import AnyArray
    from grape6py.integrators.base import Integration


def all_bodies(cluster: Integration) -> tuple[Particles, AnyArray]:
    """Masses, positions and velocities at its time, and ids; all ranks call it.

    On the others than the first there are none, if each rank has its own bodies.
    """
    particles, ids, owners = cluster.particles(), cluster._own_ids(), cluster._owners
    with owners.agreement("a look at all ranks' bodies"):
        return Particles._make(map(owners.to_first, particles)), shown(owners.to_first(ids))
