"""How rows of arrays come from rank to rank: by MPI from the host, or from device to device.

GRAPE6_TRANSFERS says how those on GPUs do. "nccl": by NCCL, through CuPy. "mpi": by an MPI library
that reads the memory of devices (CUDA-aware). "host": over page-locked memory of the host, by any
MPI. By default by NCCL where each rank has a GPU of its own, and over the host elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from grape6py._arrays import transfer
from grape6py._arrays.kinds import AnyArray, CuPy, DeviceArray, Int64s, Untyped
from grape6py._arrays.modules import module_of
from grape6py.errors import ArgumentError, BackendError

if TYPE_CHECKING:
    from grape6py.ranks.ranks import Ranks

Carrier: TypeAlias = "ByMPI | ByNCCL"

KINDS = ("auto", "nccl", "mpi", "host")


def find(ranks: Ranks, device: int | None) -> Carrier:
    """What all ranks use, of which each is on a device or on none."""
    links: dict[tuple[str, bytes], Carrier] = ranks.link.carriers
    with ranks.agreement("a link") as agreement:
        wanted = os.environ.get("GRAPE6_TRANSFERS") or "auto"
        if wanted not in KINDS:
            raise ArgumentError(f"GRAPE6_TRANSFERS={wanted}: use one of {', '.join(KINDS)}")
        agreement.same_contents("GRAPE6_TRANSFERS", wanted)
        place, cannot = _place_of(device), None
        if device is not None and wanted in ("auto", "nccl"):
            cannot = _why_no_nccl()
        some_are_on_hosts = agreement.maximum(device is None)
        some_cannot = agreement.maximum(cannot is not None)
        is_new = agreement.maximum((wanted, place) not in links)
    if is_new.value:
        places = {each.tobytes() for each in ranks.gathered(np.frombuffer(place, np.uint8))}
        if device is None or some_are_on_hosts.value or wanted == "host":
            links[wanted, place] = ByMPI(ranks)
        elif wanted == "mpi":
            links[wanted, place] = ByMPI(ranks, between_devices=True)
        elif len(places) == ranks.size and not some_cannot.value:
            links[wanted, place] = ByNCCL(ranks, device)
        elif wanted == "nccl":
            why = cannot or "ranks share a GPU, or the CuPy of one has no NCCL"
            raise BackendError(f"GRAPE6_TRANSFERS=nccl: {why}; use host")
        else:
            links[wanted, place] = ByMPI(ranks)
    return links[wanted, place]


def _place_of(device: int | None) -> bytes:
    """Name of a device among those of all machines, of 96 bytes."""
    name = socket.gethostname()[:64]
    if device is not None:
        import cupy

        name += f" {cupy.cuda.Device(device).pci_bus_id}"
    return name.encode().ljust(96)


def _nccl() -> Untyped:
    """CuPy's module; an ImportError if there is none."""
    try:
        from cupy.cuda import nccl
    except ImportError:  # the library of the wheel nvidia-nccl-cu*, which is on nobody's path
        wheel = importlib.util.find_spec("nvidia.nccl")
        for folder in (wheel and wheel.submodule_search_locations) or ():
            with contextlib.suppress(OSError):
                ctypes.CDLL(os.path.join(folder, "lib", "libnccl.so.2"), ctypes.RTLD_GLOBAL)
        from cupy.cuda import nccl
    return nccl


def _why_no_nccl() -> str | None:
    """What stands in the way; None: nothing."""
    try:
        return None if _nccl().available else "this CuPy was built without NCCL"
    except ImportError as error:
        return f"CuPy finds no NCCL ({error}); pip install nvidia-nccl-cu13, or -cu12"


class ByMPI:
    """From memory of the host; or, `between_devices`, from theirs, if the MPI library reads it.

    Called with rows, where those for each rank begin, the array for what comes, and where each
    rank's begin there.
    """

    def __init__(self, ranks: Ranks, between_devices: bool = False) -> None:
        self._ranks, self.between_devices = ranks, between_devices
        self._locked: dict[str, AnyArray] = {}  # page-locked memory of the host, kept

    def __call__(self, rows: DeviceArray, cuts: Int64s, found: DeviceArray, begin: Int64s) -> None:
        width = int(np.prod(rows.shape[1:], dtype=np.int64))
        kind = self._ranks.MPI._typedict[rows.dtype.char].Create_contiguous(max(width, 1)).Commit()

        def move(sent: AnyArray, came: AnyArray) -> None:
            sent_rows = [sent, np.diff(cuts), cuts[:-1], kind]
            self._ranks.comm.Alltoallv(sent_rows, [came, np.diff(begin), begin[:-1], kind])

        try:
            self._carry(move, rows, found)
        finally:
            kind.Free()

    def gather(self, part: DeviceArray, parts: DeviceArray, check: Callable[[], None]) -> None:
        """Bytes of all ranks, as many of each, after a `check` that none has failed."""

        def move(sent: AnyArray, came: AnyArray) -> None:
            check()
            self._ranks.comm.Allgather(sent, came)

        self._carry(move, part, parts)

    def _carry(
        self, move: Callable[[AnyArray, AnyArray], None], rows: DeviceArray, found: DeviceArray
    ) -> None:
        """Let MPI move rows to where they are found, or what stands for both on the host."""
        xp = module_of(rows)
        if xp is np:
            move(rows, found)
            return
        stream = xp.cuda.get_current_stream()
        stream.synchronize()  # of which MPI knows nothing
        if self.between_devices:
            move(rows, found)
            return
        staged, came = self._stage("sent", rows), self._stage("came", found)
        rows.get(out=staged)
        move(staged, came)
        found.set(came)
        stream.synchronize()  # before the memory is written again

    def _stage(self, which: str, like: DeviceArray) -> AnyArray:
        """Memory of the host for an array of a device."""
        if like.nbytes < transfer.LARGE:
            return np.empty(like.shape, like.dtype)
        if which not in self._locked or self._locked[which].nbytes < like.nbytes:
            from cupyx import empty_pinned

            self._locked.pop(which, None)
            self._locked[which] = empty_pinned(like.nbytes + like.nbytes // 4, np.uint8)
        memory: Untyped = self._locked[which][: like.nbytes]
        staged: AnyArray = memory.view(like.dtype).reshape(like.shape)
        return staged


class ByNCCL:
    """From device to device: point to point, all at once, on the current stream. As ByMPI."""

    between_devices = True

    def __init__(self, ranks: Ranks, device: int) -> None:
        import cupy

        self._cupy: CuPy = cupy
        self._nccl = _nccl()
        self._ranks, self._by_mpi = ranks, ByMPI(ranks)
        name = ranks.broadcast(self._nccl.get_unique_id() if ranks.rank == 0 else None)
        with cupy.cuda.Device(device):
            self._link: Untyped = self._nccl.NcclCommunicator(ranks.size, name, ranks.rank)

    def __call__(self, rows: DeviceArray, cuts: Int64s, found: DeviceArray, begin: Int64s) -> None:
        if isinstance(rows, np.ndarray):  # as numbers of neighbours are
            self._by_mpi(rows, cuts, found, begin)
            return
        nccl, stream = self._nccl, self._cupy.cuda.get_current_stream()
        width = rows.dtype.itemsize * int(np.prod(rows.shape[1:], dtype=np.int64))
        me = self._ranks.rank
        found[begin[me] : begin[me + 1]] = rows[cuts[me] : cuts[me + 1]]
        nccl.groupStart()
        try:
            for rank in range(self._ranks.size):
                moves = (rows, cuts, self._link.send), (found, begin, self._link.recv)
                for array, at, move in moves:
                    count = width * int(at[rank + 1] - at[rank])
                    if rank != me and count:
                        address = array.data.ptr + width * int(at[rank])
                        move(address, count, nccl.NCCL_CHAR, rank, stream.ptr)
        finally:
            nccl.groupEnd()

    def gather(self, part: DeviceArray, parts: DeviceArray, check: Callable[[], None]) -> None:
        """As ByMPI's."""
        at, to, stream = part.data.ptr, parts.data.ptr, self._cupy.cuda.get_current_stream()
        stream.synchronize()  # an error of what makes the part comes here
        check()
        self._link.allGather(at, to, part.nbytes, self._nccl.NCCL_CHAR, stream.ptr)
