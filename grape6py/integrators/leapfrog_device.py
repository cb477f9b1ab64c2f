"""A leapfrog integration's arrays on a CUDA device, and the order of its kernels (leapfrog.cu)."""

import contextlib
from collections.abc import Iterator

import numpy as np

from grape6py._arrays.kinds import AnyArray, CuPy, DeviceArray, Untyped
from grape6py._lib.device_place import DevicePlace
from grape6py.cuda.job import Job, declared
from grape6py.cuda.tree import device_tree
from grape6py.cuda.tree.kernels import LEAPFROG
from grape6py.integrators.leapfrog_arrays import Bodies, Rule


class DeviceArrays:
    """CuPy's arrays on a device; see :class:`~.leapfrog_arrays.HostArrays`, whose shape this is.

    Its `gpu` launches kernels there; `name` is the device's.
    """

    def __init__(self, cupy: CuPy, device: int) -> None:
        self.xp, self._number, self._device = cupy, device, cupy.cuda.Device(device)
        self.name = cupy.cuda.runtime.getDeviceProperties(device)["name"].decode()
        with self.using():
            self.gpu = device_tree.gpu_of(device)
            self.gpu.prepare(LEAPFROG)

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Context in which arrays are made and used; its exceptions are ours."""
        with self._device, device_tree.explained(self.xp):
            yield

    def place(self) -> DevicePlace:
        return DevicePlace(None, self.xp, self._number, "the bodies are on")

    def put(self, host: AnyArray) -> DeviceArray:
        return self.xp.asarray(np.ascontiguousarray(host))

    def fetch(self, array: DeviceArray) -> AnyArray:
        with self.using():
            host: AnyArray = self.xp.asnumpy(array)
            return host

    def drift(self, bodies: Bodies, to: float) -> DeviceArray:
        at = self.xp.empty(bodies.pos.shape)
        self._move("leapfrog_drift", bodies, to, at=at)
        return at

    def kick(self, bodies: Bodies, to: float, acc: DeviceArray) -> DeviceArray:
        new_v = self.xp.empty(bodies.vel.shape)
        self._move("leapfrog_kick", bodies, to, acc=acc, new_v=new_v)
        return new_v

    def _move(self, name: str, bodies: Bodies, to: float, **arrays: DeviceArray) -> None:
        where = {"step" if bodies.t is None else "time": to}
        state = {"x": bodies.pos, "v": bodies.vel, "a": bodies.acc, "t": bodies.t}
        self._start(name, len(bodies.mass), n=len(bodies.mass), **where, **state, **arrays)

    def first_steps(self, acc: DeviceArray, rule: Rule, eps: DeviceArray) -> DeviceArray:
        dt = self.xp.empty(len(acc))
        given = {"acc": acc, "dt": dt, "eps": eps} | rule._asdict()
        self._start("leapfrog_begin", len(acc), n=len(acc), **given)
        return dt

    def end_step(
        self,
        bodies: Bodies,
        time: float,
        rows: DeviceArray,
        at: DeviceArray,
        acc: DeviceArray,
        rule: Rule,
    ) -> Bodies:
        names = {"pos": "new_x", "vel": "new_v", "acc": "new_a", "t": "new_t", "dt": "dt"}
        new = {name: getattr(bodies, name).copy() for name in names}
        arrays = {names[name]: array for name, array in new.items()}
        arrays |= {"v": bodies.vel, "a": bodies.acc, "at": at, "acc": acc, "rows": rows}
        arrays["eps"] = bodies.eps
        count = len(rows)
        self._start("leapfrog_end_step", count, count=count, time=time, **arrays, **rule._asdict())
        return bodies._replace(time=time, **new)

    def numbers(self, which: DeviceArray) -> DeviceArray:
        return self.xp.flatnonzero(which).astype(np.int32)

    def _start(self, name: str, threads: int, **given: Untyped) -> None:
        """Start a kernel; numbers and arrays of its job are given by name."""
        arrays = {n: v for n, v in given.items() if v is None or isinstance(v, self.xp.ndarray)}
        numbers = {n: v for n, v in given.items() if n not in arrays}
        job = Job(self.gpu, declared("leapfrog.cu")[0], "leapfrog_job", **numbers)
        job.set(**arrays)
        if threads:
            job.launch(name, threads, 256)
