"""Bodies that go back in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grape6py._arrays.kinds import CData, Floats, Untyped
    from grape6py.integrators.blocks import Moment


class Backwards:
    """Blocks of bodies whose time decreases.

    Within, `mirrored` (Blocks or Leaps) moves them with velocities reversed in a time u = -t, which
    increases. What is not said here is the same in both.
    """

    sense = -1  # of the time

    def __init__(self, mirrored: Untyped, external: Untyped) -> None:
        self._mirrored, self.external = mirrored, external

    def __getattr__(self, name: str) -> Untyped:
        found = getattr(self._mirrored, name)
        is_time = name in ("epoch", "block_end", "clamped_time") and found is not None
        return 0.0 - found if is_time else found

    def latest(self) -> float:
        return 0.0 - float(self._mirrored.latest())

    def advance(self, target: float, stop: CData | None, *, most: int = 0) -> int | None:
        moved: int | None = self._mirrored.advance(-target, stop, most=most)
        return moved

    def at(self, time: float) -> Moment:
        moment: Moment = self._mirrored.at(-time)
        return moment._replace(vel=-moment.vel, jerk=-moment.jerk)

    def look(self, time: float, pot: bool = False) -> Untyped:
        """Of Leaps."""
        seen = self._mirrored.look(-time, pot)
        with self._mirrored.using():
            return seen._replace(vel=-seen.vel)

    def external_energy(self, time: float, mass: Floats, pos: Floats, vel: Floats) -> float:
        return float(self._mirrored.external_energy(-time, mass, pos, -vel))

    def mirrored(self, time: float) -> Untyped:
        """Those that go on forward from a time."""
        return self._mirrored.mirrored(-time, self.external)

    def on_host(self) -> Backwards:
        """Of Blocks, whose GPU has failed."""
        return Backwards(self._mirrored.on_host(), self.external)


def turned(blocks: Untyped, time: float) -> Untyped:
    """Blocks of the same bodies that go the other way from a time on."""
    if blocks.sense < 0:
        return blocks.mirrored(time)
    external = blocks.external
    mirror = None if external is None else external.mirrored()
    return Backwards(blocks.mirrored(time, mirror), external)
