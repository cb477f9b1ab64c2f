"""Built-in fields on a CUDA device: the kernel of field.cu."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from grape6py._lib import memory_space
from grape6py._lib.device_place import DevicePlace
from grape6py.cuda.job import Job, declared
from grape6py.cuda.tree import device_tree

if TYPE_CHECKING:
    from grape6py._arrays.kinds import CData, DeviceArray
    from grape6py.cuda.launcher import TreeLauncher
    from grape6py.fields.analytic import Field

_THREADS = 256


def on_device(
    field: Field, found: tuple[str, DeviceArray], given: Mapping[str, object]
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Acceleration, jerk and potential for arrays of a device, one of which was `found`."""
    cupy = memory_space.import_cupy(found[0])
    number = memory_space.take(cupy, *found).device.id
    with DevicePlace(None, cupy, number, "the field is on") as place:
        pos = place.floats("pos", given["pos"], (None, 3))
        vel = place.floats("vel", given["vel"], (len(pos), 3))
        place.check()
        out = cupy.zeros(pos.shape), cupy.zeros(pos.shape), cupy.zeros(len(pos))
        add(device_tree.gpu_of(number), field.c_struct(), None, pos, vel, *out)
        return out


def add(
    gpu: TreeLauncher,
    c: CData,
    origin: CData | None,
    pos: DeviceArray,
    vel: DeviceArray,
    acc: DeviceArray,
    jerk: DeviceArray,
    pot: DeviceArray,
) -> None:
    """Add a field to arrays on the current device; jerk and pot may be None.

    `origin` is double[4][3] of a frame that moves.
    """
    ffi, _ = declared("shared/field.h", "field.cu")
    job = Job(gpu, ffi, "field_job", n=len(pos))
    to = job.fields.field
    to.terms, to.omega = c.terms, c.omega
    for k in range(c.terms):
        to.term[k].kind = c.term[k].kind
        to.term[k].p = list(c.term[k].p)
    if origin is not None:
        to.moves, to.origin = 1, [list(row) for row in origin]
    job.set(x=pos, v=vel, acc=acc, jerk=jerk, pot=pot)
    if len(pos):
        job.launch("field_add_all", len(pos), _THREADS)
