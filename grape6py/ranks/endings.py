"""What ends a rank while others wait for it: Ctrl-C, the end of its program, a broken exchange.

Ranks speak over a duplicate of the caller's communicator, so that a program's own messages are
never taken for theirs. At the end of its program each rank takes part in one more agreement: if the
others are still in a call, they learn there that it has gone. What has broken off between two
agreements cannot be told any more: at the end of the program it ends all ranks, as mpi4py.run does.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grape6py._arrays.kinds import Untyped
    from grape6py.ranks.ranks import Ranks

_LONG = 60  # s, after which a rank says that it waits for the others' first call

_key: int | None = None  # under which communicators have their links
_known: dict[str, Ranks] = {}  # one of each link, by a name that all ranks know


@dataclass
class Link:
    """The duplicate of a communicator, which all Ranks of that have in common."""

    comm: Untyped
    carriers: dict[Untyped, Untyped] = field(default_factory=dict)  # of carriers.find
    calls: list[str] = field(default_factory=list)  # under way, one within the other
    over: str | None = None  # why the ranks cannot make calls any more
    is_torn: bool = False  # whether this rank has left a call in which others may wait for it
    pending: KeyboardInterrupt | None = None  # raised here, and told to all, in the next step

    def tear(self, why: str) -> None:
        self.over, self.is_torn = f"this rank has left a call of all ranks: {why}", True

    def raise_pending(self) -> None:
        error, self.pending = self.pending, None
        if error is not None:
            raise error


@contextlib.contextmanager
def late_interrupts(link: Link) -> Iterator[None]:
    """Context of a call, in which the first Ctrl-C waits for the next step, and a second does not.

    In between, the others may be where they could not learn of it.
    """
    previous: Untyped = signal.getsignal(signal.SIGINT)

    def receive(number: int, frame: Untyped) -> None:
        try:
            previous(number, frame)
        except KeyboardInterrupt as error:
            if link.pending is not None:
                link.tear(shown(error))
                raise
            link.pending = error

    if callable(previous) and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, receive)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is receive:
            signal.signal(signal.SIGINT, previous)
        link.raise_pending()


def shown(error: BaseException) -> str:
    """Kind and text of an exception."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def link_of(ranks: Ranks, comm: Untyped) -> Link:
    """That of a communicator, or of its duplicate; all ranks make the first call together."""
    global _key
    if _key is None:
        _key = ranks.MPI.Comm.Create_keyval()
        atexit.register(_leave_all, os.getpid())
    link: Link | None = comm.Get_attr(_key)
    if link is None:
        # Who has been given no comm= does not come, nor says so.
        line = (
            f"grape6: rank {comm.Get_rank()} of {comm.Get_size()} waits for others: all ranks make "
            "a call with comm=, and none of them gives comm=None"
        )
        timer = threading.Timer(_LONG, print, [line], {"file": sys.stderr, "flush": True})
        timer.daemon = True
        timer.start()
        try:
            link = Link(comm.Dup())
        finally:
            timer.cancel()
        link.comm.Set_attr(_key, link)
        comm.Set_attr(_key, link)
        _known[link.comm.bcast(uuid.uuid4().hex)] = ranks
    return link


def _leave_all(pid: int) -> None:
    """End with the other ranks; in an order that is the same on all."""
    error = getattr(sys, "last_value", None)
    for name in sorted(_known) if os.getpid() == pid else []:
        ranks = _known[name]
        if ranks.MPI.Is_finalized():
            return
        if ranks.link.is_torn:
            print(f"grape6: {ranks.link.over}; all are ended", file=sys.stderr, flush=True)
            ranks.link.comm.Abort(1)
        ranks.leave("" if error is None else f" ({shown(error)})")
