"""Copies of large arrays between the host and a CUDA device, through page-locked memory.

The driver copies pageable memory by one thread, at a fraction of what the bus takes. Here several
threads copy it to page-locked memory, piece by piece, and the device reads it from there. Results
are made in page-locked memory, which CuPy keeps for the next ones: new pages would take longer than
the copy.
"""

import os
import threading

import numpy as np

from grape6py._arrays.kinds import AnyArray, CuPy, DeviceArray

LARGE = 1 << 20  # bytes; smaller copies gain nothing
MOST_LOCKED = 1 << 28  # bytes of a result; larger ones would keep too much from the system
MOST_THREADS = 8


def to_device(cupy: CuPy, host: AnyArray) -> tuple[DeviceArray, AnyArray | None]:
    """A copy on the current device, and memory to keep until the current stream has made it."""
    if host.nbytes < LARGE or host.nbytes > MOST_LOCKED:
        return cupy.asarray(host), None
    from cupyx import empty_pinned

    array, locked = cupy.empty(host.shape, host.dtype), empty_pinned(host.shape, host.dtype)
    source, staged = host.reshape(-1), locked.reshape(-1)
    count = min(MOST_THREADS, len(os.sched_getaffinity(0)))
    ends = [k * len(source) // count for k in range(count + 1)]
    pieces = [slice(*ends[k : k + 2]) for k in range(count)]
    threads = [threading.Thread(target=np.copyto, args=(staged[p], source[p])) for p in pieces]
    for thread in threads:
        thread.start()
    for piece, thread in zip(pieces, threads, strict=True):
        thread.join()
        array.reshape(-1)[piece].set(staged[piece])
    return array, locked


def to_host(cupy: CuPy, array: DeviceArray) -> AnyArray:
    """A copy on the host, once the current stream has made the array."""
    if array.nbytes < LARGE or array.nbytes > MOST_LOCKED:
        host: AnyArray = cupy.asnumpy(array)
        return host
    from cupyx import empty_pinned

    locked: AnyArray = empty_pinned(array.shape, array.dtype)
    array.get(out=locked)
    return locked
