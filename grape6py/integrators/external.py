"""The field from outside that an integration is in, and the frame in which its bodies are.

A built-in field (:class:`grape6py.fields.Field`) is evaluated where the bodies are moved, inside
the library or on the device. A function of the caller's is called when the sums of a block are
complete.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from grape6py._arrays import kinds, validate
from grape6py._lib.library import ffi
from grape6py.errors import ArgumentError, NotFiniteError
from grape6py.fields import analytic

if TYPE_CHECKING:
    from grape6py._arrays.kinds import ArrayModule, Attributes, CData, DeviceArray, Floats, Untyped
    from grape6py.integrators.orbit_frame import OrbitFrame

AnyField: TypeAlias = "analytic.Field | Callable[[float, Untyped, Untyped], Untyped]"


class External:
    """A field for bodies of an integration with a gravitational constant G.

    `origin` is position and velocity at time 0 of the frame's origin, if that moves.

    Attributes
    ----------
    c : struct g6x_field *
        What the library adds by itself; NULL if the field is a function.
    function : callable or None
    frame : OrbitFrame or None
    is_calling : bool
        Whether the function is being called.
    """

    _sense = 1.0  # of the time in which bodies move, in that of the function

    def __init__(self, field: AnyField, G: float, origin: Floats | None) -> None:
        self.field, self._G = field, G
        self.function: Callable[[float, Untyped, Untyped], Untyped] | None = None
        self.c, rotates = ffi.NULL, False
        if isinstance(field, analytic.Field):
            self.c = field.with_gravity(G).c_struct()
            rotates = field.omega != 0
        else:
            self.function = field
        self.is_calling = False  # the function
        self.orbit_frame: OrbitFrame | None = None
        if origin is not None:
            from grape6py.integrators.orbit_frame import OrbitFrame

            if rotates:
                raise ArgumentError("coordinates rotate or move on an orbit: give one of the two")
            self.orbit_frame = OrbitFrame(self, *origin)

    def alone(self) -> External:
        """The field in coordinates at rest."""
        return External(self.field, self._G, None)

    def mirrored(self) -> External:
        """The field for bodies with velocities reversed, whose time u = -t runs the other way."""
        if self.orbit_frame is not None:
            raise ArgumentError(
                "bodies on an orbit= go forward alone: fields.orbit finds where it was, and bodies "
                "in coordinates at rest go back"
            )
        field = self.field
        if isinstance(field, analytic.Field):
            field = analytic.Field(field.terms, -field.omega)
        made = External(field, self._G, None)
        made._sense = -self._sense
        return made

    def set_epoch(self, time: float) -> None:
        """Let the library count from a time."""
        if self.c != ffi.NULL:
            self.c.epoch = time

    def reach(self, now: float, until: float = -math.inf, at_least: float = 0.0) -> float:
        """Make the orbit known from a time on, for as long `at_least`, up to the time returned."""
        if self.orbit_frame is None:
            return math.inf
        reached = self.orbit_frame.reach(now, until, at_least)
        if self.c != ffi.NULL:
            self.orbit_frame.point(self.c)
        return reached

    def origin(self, time: float) -> CData:
        """double[4][3]: position, velocity, acceleration and jerk of the frame's origin."""
        frame: Untyped = self.orbit_frame
        frame.reach(time)
        return frame.at(time)

    def add(
        self,
        time: float,
        pos: DeviceArray,
        vel: DeviceArray,
        acc: DeviceArray,
        jerk: DeviceArray | None,
        xp: ArrayModule = np,
    ) -> None:
        """Add the field to arrays of NumPy, or of CuPy (`xp`) on the current device."""
        if self.function is None and xp is np:
            self._add_on_host(time, pos, vel, acc, jerk, None)
        elif self.function is None:
            from grape6py.cuda.tree import device_tree
            from grape6py.fields import device

            origin = None if self.orbit_frame is None else self.origin(time)
            device.add(device_tree.gpu_of(pos.device.id), self.c, origin, pos, vel, acc, jerk, None)
        else:
            found, origin = self._called(time, pos, vel, xp)
            for to, values, k in ((acc, found[0], 2), (jerk, found[1], 3)):
                if to is not None:
                    less = 0.0 if origin is None else xp.asarray(origin[k])
                    to[...] = to + (values - less)

    def _add_on_host(self, time: float, pos: Floats, vel: Floats, *sums: Floats | None) -> None:
        """Add a field of the library: see analytic.add_on_host."""
        self.reach(time)
        epoch, self.c.epoch = self.c.epoch, 0.0
        try:
            analytic.add_on_host(self.c, time, pos, vel, *sums)
        finally:
            self.c.epoch = epoch

    def _called(
        self, time: float, pos: DeviceArray, vel: DeviceArray, xp: ArrayModule
    ) -> tuple[list[DeviceArray], Floats | None]:
        """What the function gives, checked; and the frame's origin."""
        origin = None
        if self.orbit_frame is not None:
            origin = np.array([list(row) for row in self.origin(time)])
            pos, vel = pos + xp.asarray(origin[0]), vel + xp.asarray(origin[1])
        else:
            pos, vel = pos.copy(), self._sense * vel
        function: Untyped = self.function
        self.is_calling = True
        try:
            found = function(self._sense * time, pos, vel)
        finally:
            self.is_calling = False
        n, shapes = len(pos), {"acc": (3,), "jerk": (3,), "pot": ()}
        if not isinstance(found, tuple | list) or len(found) != len(shapes):
            raise ArgumentError(
                f"the field {_name(function)} gave {type(found).__name__}, not the three arrays "
                "acc, jerk, pot (fields.from_acceleration finds the jerk)"
            )
        arrays = []
        for (name, shape), values in zip(shapes.items(), found, strict=True):
            array = xp.ascontiguousarray(xp.asarray(values), dtype=np.float64)
            if array.shape != (n, *shape):
                raise ArgumentError(
                    f"the field {_name(function)} gave {name} of shape {array.shape}, not "
                    f"{(n, *shape)}, at time {time}"
                )
            arrays.append(-array if name == "jerk" and self._sense < 0 else array)
            good = xp.isfinite(array)
            if not good.all():
                row = int(xp.argmin(good.reshape(n, -1).all(axis=1)))
                raise NotFiniteError(
                    f"the field {_name(function)} gave {name} = {array[row]} at time {time} for a "
                    f"body at {pos[row]}"
                )
        return arrays, origin

    def potential(self, time: float, pos: Floats, vel: Floats) -> Floats:
        """Energy by mass of bodies in the field.

        With a frame that moves, above that of its origin, and with the part of the kinetic energy
        that is due to the frame's velocity: so the sum over all bodies is conserved.
        """
        if self.function is None:
            pot = np.zeros(len(pos))
            self._add_on_host(time, pos, vel, None, None, pot)
        else:
            (_, _, pot), origin = self._called(time, pos, vel, np)
            if origin is not None:
                centre = np.zeros((1, 3))
                pot = pot - self._called(time, centre, centre, np)[0][2][0]
        if self.orbit_frame is not None:
            velocity = np.array(list(self.origin(time)[1]))
            pot = pot + (vel * velocity).sum(axis=1)
        return np.asarray(pot)

    def values(self, time: float, pos: Floats, vel: Floats) -> tuple[Floats, Floats, Floats]:
        """The field at places in coordinates at rest: acc, jerk, pot."""
        acc, jerk = np.zeros_like(pos), np.zeros_like(pos)
        self.add(time, pos, vel, acc, jerk)
        return acc, jerk, self.potential(time, pos, vel)


def _name(function: Untyped) -> str:
    """A function's name; what an object says of itself, if that names no address."""
    name = getattr(function, "__qualname__", None) or repr(function)
    return type(function).__qualname__ if " at 0x" in name else name


def make(
    field: AnyField | None, orbit: kinds.Numbers | None, G: float, settings: Attributes
) -> External | None:
    """The field of an integration, from its arguments; adds what files say of it to `settings`."""
    if field is None and orbit is not None:
        raise ArgumentError("orbit is that of the frame in a field: give the field too")
    if field is None:
        return None
    if not callable(field):
        raise ArgumentError(
            f"field = {field!r} is neither one of grape6py.fields nor a function (t, pos, vel)"
        )
    origin = None
    if orbit is not None:
        values = validate.reals("orbit", orbit)
        if values.size != 6:
            raise ArgumentError("orbit is position and velocity of the frame: six numbers")
        origin = validate.floats("orbit", values.reshape(2, 3), (2, 3))
    external = External(field, G, origin)
    settings["field"] = field.text if isinstance(field, analytic.Field) else _name(field)
    if external.orbit_frame is not None:
        settings["orbit"] = json.dumps(external.orbit_frame.start.tolist())
    return external


def from_settings(settings: Mapping[str, Untyped], field: AnyField | None) -> External | None:
    """The field that settings name; a function has to be given again."""
    if "field" not in settings:
        if field is not None:
            raise ArgumentError("field: this integration was begun without one")
        return None
    text = str(settings["field"])
    built_in, origin = parsed(settings)
    if built_in is not None:
        if field is not None and field != built_in:
            raise ArgumentError(f"field: this integration was begun in {built_in!r}")
        field = built_in
    elif field is None:
        raise ArgumentError(
            f"this integration was begun in the field {text}, a function, which no file has: give "
            "it as field="
        )
    elif _name(field) != text:
        raise ArgumentError(f"field is {_name(field)}, but this integration was begun in {text}")
    return External(field, float(settings.get("G", 1.0)), origin)


def parsed(settings: Mapping[str, Untyped]) -> tuple[analytic.Field | None, Floats | None]:
    """The field of grape6py.fields and the orbit that the texts of settings name, if they do."""
    text, orbit = str(settings.get("field", "")), settings.get("orbit")
    return (
        analytic.Field.from_text(text) if text.startswith("[") else None,
        None if orbit is None else validate.floats("orbit", json.loads(str(orbit)), (2, 3)),
    )
