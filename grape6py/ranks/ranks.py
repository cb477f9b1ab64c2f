"""The ranks of a communicator, which all make the same calls, and end together."""

import contextlib
import itertools
import math
import zlib
from collections.abc import Iterator, Sequence
from types import ModuleType

import numpy as np

from grape6py._arrays.kinds import AnyArray, DeviceArray, Floats, Int64s, Untyped
from grape6py._arrays.modules import module_of, on_host
from grape6py.errors import ArgumentError, MissingPackageError, RankError
from grape6py.ranks import carriers, endings
from grape6py.ranks.agreement import NUMBERS, Agreement
from grape6py.ranks.domains import Moves

_END = "the end of the program"


def mpi() -> ModuleType:
    """mpi4py's module; a MissingPackageError if it is not installed."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise MissingPackageError(
            f"comm= needs mpi4py and an MPI library (pip install grape6py[mpi]): {error}"
        ) from error
    return MPI


def _known(error: BaseException) -> BaseException:
    """An error that all ranks know."""
    error._is_known = True  # type: ignore[attr-defined]
    return error


def _is_known(error: BaseException) -> bool:
    return getattr(error, "_is_known", False)


class Ranks:
    """A communicator of mpi4py's, for calls that all of its ranks make in the same order.

    Attributes
    ----------
    rank, size : int
        Of this process, and how many there are.
    comm, MPI
        A duplicate of the communicator, and mpi4py's module.
    """

    def __init__(self, comm: Untyped) -> None:
        self.MPI: Untyped = mpi()
        if not isinstance(comm, self.MPI.Intracomm):
            raise ArgumentError(f"comm = {comm!r} is no communicator of mpi4py, as MPI.COMM_WORLD")
        self.link = endings.link_of(self, comm)
        self.comm, self._calls = self.link.comm, self.link.calls
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._carrier: carriers.Carrier = carriers.ByMPI(self)
        self._shares_errors = False
        self._checks: dict[tuple[str, ...], tuple[Floats, Floats]] = {}

    @contextlib.contextmanager
    def agreement(self, call: str) -> Iterator[Agreement]:
        """Context of what each rank does on its own, before all go on together.

        If it fails on one rank it fails on all: there with its own error, on the others with a
        RankError that tells it; sys.exit and Ctrl-C are errors, too. If the ranks are in different
        calls, or have different values of what must be the same, all have an ArgumentError; if one
        has ended its program, the others a RankError. Agreements may be within agreements.
        """
        agreement, is_outermost = Agreement(), not self._calls
        with endings.late_interrupts(self.link) if is_outermost else contextlib.nullcontext():
            self._check_link()
            self._calls.append(call)
            try:
                if is_outermost:
                    self.check()  # that all are there
                yield agreement
                self.link.raise_pending()
            except BaseException as error:
                self._send_error(agreement, error)
                raise
            else:
                self._agree(agreement, None)
            finally:
                self._calls.pop()

    def _send_error(self, agreement: Agreement, error: BaseException) -> None:
        """Let all ranks know of an error, if that is possible, and necessary."""
        if isinstance(error, self.MPI.Exception):
            self.link.tear(endings.shown(error))
        if self.link.over is None and not _is_known(error):
            self._agree(agreement, error)

    def _check_link(self) -> None:
        if self.link.over is not None:
            raise _known(RankError(self.link.over))

    def leave(self, why: str) -> None:
        """Be at the end of the program, until all ranks are, or know of it."""
        self._calls[:] = [_END + why]
        while self.link.over is None:
            with contextlib.suppress(RankError):
                self._agree(Agreement(), None)
                return

    @contextlib.contextmanager
    def sharing_errors(self) -> Iterator[None]:
        """Context of calls on all ranks, in which an error of one ends the others' next agreement.

        Within another one it does nothing.
        """
        if self._shares_errors:
            yield
            return
        self._shares_errors = True
        try:
            yield
        except BaseException as error:
            self._send_error(Agreement(), error)
            raise
        finally:
            self._shares_errors = False

    def check(self, *call: str) -> None:
        """As an agreement on nothing, in a tenth of the time."""
        self._check_link()
        self.link.raise_pending()
        self._calls.extend(call)
        try:
            calls = tuple(self._calls)
            if calls not in self._checks:
                sent = self._sent(Agreement(), None)
                self._checks[calls] = sent, np.empty_like(sent)
            sent, got = self._checks[calls]
            self.comm.Allreduce(sent, got, self.MPI.MAX)
            if got.tobytes() != sent.tobytes():
                self._judge(got, Agreement(), None)
        finally:
            del self._calls[len(self._calls) - len(call) :]

    @property
    def _call(self) -> str:
        """What is under way."""
        return " in ".join(reversed(self._calls))

    def _sent(self, agreement: Agreement, error: BaseException | None) -> Floats:
        """What a rank sends the others in an agreement, of the same length wherever it is."""
        failed = -float(self.rank) if error is not None else -float(self.size)
        call = _END if self._call.startswith(_END) else self._call  # whatever has ended it
        same = np.concatenate([[zlib.crc32(call.encode())], agreement.equal_numbers()])
        return np.concatenate([[failed], same, -same, agreement.extremes()])

    def _agree(self, agreement: Agreement, error: BaseException | None) -> None:
        """One maximum over all ranks."""
        self._judge(self.largest(self._sent(agreement, error)), agreement, error)

    def _judge(self, got: Floats, agreement: Agreement, error: BaseException | None) -> None:
        """What all have sent."""
        first, size = int(-got[0]), 1 + NUMBERS
        if first < self.size:
            text = None if error is None else endings.shown(error)
            text = self.broadcast(text, first)
            if error is None:
                raise _known(RankError(f"on rank {first} of {self.size}: {text}"))
            _known(error)
            return
        _, most, least, maxima = np.split(got, np.cumsum([1, size, size]))
        agreement.take(maxima)
        is_equal = most == -least
        if not is_equal[0]:
            for rank, its in enumerate(self.from_each(self._call)):
                if its.startswith(_END):
                    why = its.removeprefix(_END)
                    self.link.over = f"rank {rank} of {self.size} has ended its program{why}"
                    self._check_link()
            different = f"the ranks make different calls: {self._call} on rank {self.rank}"
            raise _known(ArgumentError(different))
        if complaint := agreement.complaint(is_equal[1:]):
            raise _known(ArgumentError(f"{complaint} {self.rank}"))

    def counts(self, n: int) -> Int64s:
        """A number of each rank."""
        found = np.empty(self.size, np.int64)
        self.comm.Allgather(np.array([n], np.int64), found)
        return found

    def numbered(self, n: int) -> tuple[int, int]:
        """Number of the first of this rank's n rows among those of all, and how many these are."""
        counts = self.counts(n)
        return int(counts[: self.rank].sum()), int(counts.sum())

    def broadcast(self, value: Untyped, rank: int = 0) -> Untyped:
        """What that rank has."""
        return self.comm.bcast(value, root=rank)

    def from_each(self, value: Untyped) -> list[Untyped]:
        """What each rank has."""
        return list(self.comm.allgather(value))

    def summed(self, array: AnyArray) -> AnyArray:
        """The sums over the ranks, element by element."""
        found = np.empty_like(array)
        self.comm.Allreduce(array, found, self.MPI.SUM)
        return found

    def largest(self, array: AnyArray) -> AnyArray:
        """The maxima over the ranks, element by element."""
        found = np.empty_like(array)
        self.comm.Allreduce(array, found, self.MPI.MAX)
        return found

    def total(self, values: Floats | Sequence[float]) -> float:
        """The sum of all ranks' values: math.fsum, which rounds once.

        So it has the same bits, whichever rank has which values.
        """
        parts: list[float] = []  # whose exact sum is that of this rank's values
        with self.agreement("a sum"):
            own = np.asarray(values).tolist()
            while rest := math.fsum(itertools.chain(own, (-part for part in parts))):
                parts.append(rest)
                if not math.isfinite(rest):
                    break
        return math.fsum(itertools.chain.from_iterable(self.from_each(parts)))

    def rows(self, n: int) -> slice:
        """This rank's share of n rows that are the same on all."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def gathered(self, rows: DeviceArray, counts: Int64s | None = None) -> list[DeviceArray]:
        """The rows of each rank, so many if that is known; on its device, if they are CuPy's."""
        xp = module_of(rows)
        if xp is not np and self._carrier.between_devices:
            to_all = xp.concatenate([rows] * self.size)
            got, begin = self.exchanged(to_all, np.arange(self.size + 1) * len(rows))
            return [got[a:b] for a, b in itertools.pairwise(begin)]
        if xp is not np:  # as ranks without a device do
            return [xp.asarray(theirs) for theirs in self.gathered(on_host(rows))]
        counts = self.counts(len(rows)) if counts is None else counts
        width = int(np.prod(rows.shape[1:], dtype=np.int64))
        found = np.empty((int(counts.sum()), *rows.shape[1:]), rows.dtype)
        self.comm.Allgatherv(np.ascontiguousarray(rows), [found, width * counts])
        return np.split(found, np.cumsum(counts)[:-1])

    def to_first(self, array: AnyArray) -> AnyArray:
        """The rows of all ranks on the first one, one rank's behind the other's; else none."""
        found: AnyArray = self.exchanged(array, np.array([0] + [len(array)] * self.size))[0]
        return found

    def looked_up(self, rows: AnyArray, number: Int64s) -> AnyArray:
        """The rows of some numbers, which count through the rows of all ranks."""
        first = np.concatenate([[0], np.cumsum(self.counts(len(rows)))])
        way = Moves(self, np.searchsorted(first, number, side="right") - 1)
        found: AnyArray = way.back(rows[way.there(number) - first[self.rank]])
        return found

    def swapped(self, numbers: Int64s) -> Int64s:
        """Number r goes to rank r; what came."""
        found = np.empty(self.size, np.int64)
        self.comm.Alltoall(np.ascontiguousarray(numbers), found)
        return found

    def exchanged(self, rows: DeviceArray, cuts: Int64s) -> tuple[DeviceArray, Int64s]:
        """Rows ``cuts[r]:cuts[r + 1]`` go to rank r; what came, and where each rank's begin.

        Rows may be CuPy's on the device of this rank (:meth:`connect`); what came is there, too.
        """
        begin = np.concatenate([[0], np.cumsum(self.swapped(np.diff(cuts)))])
        with self.agreement("an exchange"):
            xp = module_of(rows)
            rows = xp.ascontiguousarray(rows)
            found = xp.empty((int(begin[-1]), *rows.shape[1:]), rows.dtype)
        self._carrier(rows, cuts, found, begin)
        return found, begin

    def gather(self, part: DeviceArray, parts: DeviceArray, call: str) -> None:
        """The parts of all ranks, of one size, one behind the other in `parts`.

        What can fail on a rank comes first, and then a :meth:`check`.
        """
        self._carrier.gather(part, parts, lambda: self.check(call))

    def connect(self, device: int | None) -> None:
        """Say on which device, if on any, this rank's arrays may be."""
        self._carrier = carriers.find(self, device)
