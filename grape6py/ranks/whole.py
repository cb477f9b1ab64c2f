"""All bodies of an integration of several ranks, on the first one, for its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from grape6py.models import Particles

if TYPE_CHECKING:
    from grape6py._arrays.kinds import AnyArray, Floats, State
    from grape6py.diagnostics import Energy
    from grape6py.integrators.base import Integration


class Whole:
    """What files have of an integration, with the names that this has in :class:`Leapfrog`.

    All ranks make it; on the others than the first there are no bodies, if each has its own.
    """

    def __init__(self, cluster: Integration) -> None:
        parts = cluster._parts
        with cluster._together("a look at all ranks' bodies"):
            self.time, self.steps, self.blocks = cluster.time, cluster.steps, cluster.blocks
            self.settings, self.run_id = cluster.settings, cluster.run_id
            self.backend, self.precision = cluster.backend, cluster.precision
            self.energy_change, self.n = cluster.energy_change, cluster.n
            self._energy, self._radii = cluster.energy(), cluster.lagrangian_radii()

            def whole(rows: AnyArray) -> AnyArray:
                return rows if parts is None else parts.to_first(rows)

            self.ids = whole(cluster.ids)
            self._particles = Particles._make(map(whole, cluster.particles()))
            self._state = {
                name: whole(array) if name in cluster.STATE else array
                for name, array in cluster.state().items()
            }

    def energy(self) -> Energy:
        return self._energy

    def lagrangian_radii(self) -> Floats:
        return self._radii

    def particles(self) -> Particles:
        return self._particles

    def state(self) -> State:
        return self._state

    def _whole(self) -> Self:
        return self
