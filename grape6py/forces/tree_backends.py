"""Where a :class:`~grape6py.forces.tree.Tree` is: on the host, on a GPU, or on many ranks."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from grape6py._arrays import validate
from grape6py._arrays.kinds import Untyped
from grape6py._lib import codes
from grape6py._lib.declarations import ISAS
from grape6py._lib.library import lib
from grape6py._lib.memory_space import first_on_device, import_cupy, take
from grape6py._lib.tree import HostTree
from grape6py.errors import ArgumentError, BackendError
from grape6py.forces.grape6 import Grape6

if TYPE_CHECKING:
    from grape6py.cuda.tree.device_tree import DeviceTree
    from grape6py.ranks.ranks import Ranks
    from grape6py.ranks.tree import SharedTree

_MANY = 1 << 14  # particles, from which on a GPU is far sooner done than 16 cores
_BACKENDS = {"auto": "auto", "cpu": "cpu", "cuda": "cuda"}
_BACKENDS |= {"cpu-tree": "cpu", "cuda-tree": "cuda", "tree": "auto"}


def options_of(threads: int | None, isa: str | None) -> dict[int, int]:
    """Of the library's tree, checked."""
    options: dict[int, int] = {}
    if threads is not None:
        options[lib.G6X_THREADS] = validate.integer("threads", threads)
    if isa is not None:
        options[lib.G6X_ISA] = validate.choice("isa", isa, ISAS)
    return options


def shared(
    ranks: Ranks, given: Mapping[str, Untyped], backend: str, options: dict[int, int]
) -> SharedTree:
    """The tree of all ranks' particles, of which these are one's, still to be built."""
    from grape6py.ranks.tree import SharedTree

    with ranks.agreement("Tree()") as agreement:  # which are of one kind on all
        most = agreement.maximum(validate.length(given["pos"]))
    return SharedTree(ranks, find(given, backend, options, int(most.value)), options)


def find(
    given: Mapping[str, Untyped], backend: str, options: dict[int, int], n: int
) -> HostTree | DeviceTree:
    """The tree of n particles that these arguments want, still to be built."""
    kind = validate.choice("backend", backend, _BACKENDS)
    found = first_on_device(given)
    if kind == "cpu" and found is not None:
        raise ArgumentError(
            f"{found[0]} lies on a CUDA device, but {backend} computes on the CPU: give NumPy's "
            "arrays, or another backend"
        )
    if found is None:
        if kind == "auto" and (options or n < _MANY):
            kind = "cpu"
        environment = os.environ.get("GRAPE6_BACKEND"), os.environ.get("GRAPE6_DEVICES")
        device = None if kind == "cpu" else _device_of(kind, *environment, os.getpid())
        if device is None:
            return HostTree(options)
        cupy = import_cupy("pos")
    else:
        cupy = import_cupy(found[0])
        device = take(cupy, *found).device.id
    from grape6py.cuda.tree.device_tree import DeviceTree

    return DeviceTree(cupy, device, of_host=found is None)


@functools.cache  # by all that it may depend on: to look takes longer than many a sum
def _device_of(kind: str, *_: object) -> int | None:
    """The number of the device that sessions compute on; None: auto finds none."""
    try:
        with Grape6(backend="auto") as session:
            if kind == "auto" and session.backend.startswith("cpu"):
                return None
        with Grape6(backend="cuda") as session:
            import cupy  # noqa: F401  # which trees need

            return session._board.option("DEVICE")
    except (BackendError, ImportError) as error:
        if kind == "auto":
            return None
        if isinstance(error, BackendError):
            raise
        text = f"a tree on a GPU needs CuPy, which cannot be imported: {error}"
        raise codes.from_code("RUNTIME", text) from error
