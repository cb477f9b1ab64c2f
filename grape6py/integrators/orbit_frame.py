"""Coordinates that move along an orbit in a field from outside.

Positions then stay small, and so do their rounding errors. The frame does not rotate. Its origin is
a body without mass, whose path the Hermite scheme finds; every few steps are a node, between which
the origin moves on the polynomial of degree 7 that has positions, velocities, accelerations and
jerks of both (csrc/core/field_time.c). Bodies feel the field less the acceleration of just that
path, so that an error of the path would not be one of theirs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from grape6py._arrays import validate
from grape6py._lib.cluster import Board
from grape6py._lib.declarations import BACKENDS, PRECISIONS
from grape6py._lib.library import check, ffi, lib
from grape6py.errors import ArgumentError
from grape6py.integrators.blocks import SMALLEST, Blocks, power_of_two
from grape6py.integrators.hermite_arrays import Setup

if TYPE_CHECKING:
    from grape6py._arrays.kinds import CData, Floats
    from grape6py.integrators.external import External

_ETA = 2.0**-18  # steps are a 512th of the time in which the field turns the velocity
_BLOCKS = 8  # between two nodes
_AHEAD = 64  # nodes that are made at once
_COLUMNS = 14  # of a node: time, 4 x 3 derivatives, and the next step


class OrbitFrame:
    """The path of the origin from a place and a velocity at time 0.

    Attributes
    ----------
    start : ndarray, shape (2, 3)
        Those.
    """

    def __init__(self, of: External, pos: Floats, vel: Floats) -> None:
        self.start = np.array([pos, vel])
        self._external = of
        self._nodes: Floats | None = None
        self._orbit: Floats | None = None  # what the library reads

    def _begin(self, node: Floats | None) -> None:
        """Begin at the start, or at a node."""
        field = self._external.alone()
        board = Board({"precision": PRECISIONS["double"], "threads": 1}, BACKENDS["cpu"])
        pos, vel = self.start[:1], self.start[1:]
        turning = float(turning_times(field, pos, vel)[0])
        longest = power_of_two(turning if math.isfinite(turning) else 1.0)
        rule = _ETA, longest * SMALLEST, longest
        self._blocks = Blocks(Setup(board, "double", np.zeros(1), rule, 2, external=field))
        if node is None:
            self._blocks.put({"pos": pos, "vel": vel})
            self._blocks.start(math.sqrt(_ETA))
        else:
            rows = node[1:13].reshape(4, 1, 3)
            state = dict(zip(("pos", "vel", "acc", "jerk"), rows, strict=True))
            self._blocks.put(state | {"t": node[:1], "dt": node[13:]})
        self._nodes = self._node()[None]

    def _node(self) -> Floats:
        s = self._blocks.state()
        parts = [s["t"], *(s[name][0] for name in ("pos", "vel", "acc", "jerk")), s["dt"]]
        return np.concatenate(parts)

    def reach(self, now: float, until: float = -math.inf, at_least: float = 0.0) -> float:
        """Have nodes from `now` on, to the time returned: `until` if that is not far, and
        `at_least` so much later than now."""
        if self._nodes is None:
            self._begin(None)
        assert self._nodes is not None
        nodes = self._nodes
        until = max(now + at_least, min(until, now + _AHEAD * _BLOCKS * float(nodes[-1, 13])))
        if nodes[-1, 0] <= until or len(nodes) < 2:  # a node more: the same two for all calls
            kept = max(int(np.searchsorted(nodes[:, 0], now, "right")) - 1, 0)
            rows, blocks = [*nodes[kept:]], self._blocks
            try:
                while rows[-1][0] <= until or len(rows) < _AHEAD:
                    # advance may return earlier, or be interrupted: nodes go by blocks alone.
                    most = _BLOCKS - blocks.blocks % _BLOCKS
                    if blocks.advance(math.inf, None, most=most) is None:
                        raise ArgumentError(f"the orbit of the frame ends at time {rows[-1][0]}")
                    if blocks.blocks % _BLOCKS == 0 and blocks.latest() > rows[-1][0]:
                        rows.append(self._node())
            finally:
                self._nodes = np.array(rows)
                self._orbit = np.ascontiguousarray(self._nodes[:, :13])
        return float(self._nodes[-1, 0])

    def point(self, struct: CData) -> None:
        """Let a struct g6x_field have the nodes, which this object keeps."""
        orbit = self._orbit
        assert orbit is not None
        struct.nodes = len(orbit)
        struct.orbit = ffi.cast("const double (*)[13]", ffi.from_buffer(orbit))

    def at(self, time: float) -> CData:
        """double[4][3]: position, velocity, acceleration and jerk of the origin."""
        struct, found = ffi.new("struct g6x_field *"), ffi.new("double[4][3]")
        self.point(struct)
        check(lib.g6x_field_origin(struct, time, found))
        return found

    def node_at(self, time: float) -> Floats:
        """The node before a time, from which :meth:`go_on` has the same path; shape (14,)."""
        self.reach(time)
        nodes = self._nodes
        assert nodes is not None
        found: Floats = nodes[max(int(np.searchsorted(nodes[:, 0], time, "right")) - 1, 0)].copy()
        return found

    def go_on(self, node: Floats) -> None:
        """Take the path from what :meth:`node_at` gave."""
        self._begin(validate.floats("orbit", node, (_COLUMNS,)))
        self._orbit = None


def turning_times(field: External, pos: Floats, vel: Floats) -> Floats:
    """Times in which a field turns velocities, or changes itself on the way, at time 0; of bodies
    at rest the time of their fall. Infinite where it does nothing."""
    acc, jerk = np.zeros_like(pos), np.zeros_like(pos)
    field.add(0.0, pos, vel, acc, jerk)
    v, a, j = (np.sqrt((array * array).sum(axis=1)) for array in (vel, acc, jerk))
    with np.errstate(divide="ignore", invalid="ignore"):
        time = np.fmin(np.where(v > 0, v / a, np.inf), np.where(a > 0, a / j, np.inf))
    rows = np.flatnonzero(np.isinf(time) & (a > 0))
    if len(rows):
        fall = np.zeros((len(rows), 3))
        field.add(0.0, pos[rows], acc[rows], np.zeros_like(fall), fall)
        with np.errstate(divide="ignore"):
            time[rows] = np.sqrt(a[rows] / np.sqrt((fall * fall).sum(axis=1)))
    return np.asarray(time)
