"""Integrations of several ranks of MPI: what all of them do together, and how they stop."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, ClassVar

from grape6py._arrays.closed import Closed
from grape6py.ranks import ranks

if TYPE_CHECKING:
    from grape6py._arrays.kinds import CData, Untyped


class OnRanks(Closed):
    """Bodies of several ranks; see :class:`~.base.Integration`. Without ranks it does nothing.

    All ranks have all bodies, or, with SHARES_BODIES, each has its own, and `_parts` are the ranks.
    A call that all make is a step of the ranks, or a turn: it fails on all if it fails on one.
    """

    SHARES_BODIES: ClassVar[bool] = False
    _ranks: ranks.Ranks | None = None
    _parts: ranks.Ranks | None = None
    _turn: threading.RLock  # of a thread that moves the bodies or looks at them
    _asked_to_stop: bool  # on this rank
    _stopping: CData  # an int, read by the library, too
    time: Untyped

    def _take_ranks(self, comm: Untyped) -> None:
        """Be one of the ranks of a communicator, if there is one."""
        self._ranks = ranks.ranks_of(comm)
        self._parts = self._ranks if self.SHARES_BODIES else None

    def _together(self, call: str) -> AbstractContextManager[ranks.Together]:
        """A step of the ranks."""
        return ranks.together(self._ranks, call)

    @contextmanager
    def _turn_together(self, call: str) -> Iterator[None]:
        """A step that is this thread's turn."""
        with self._turn, self._together(call):
            yield

    def stop(self) -> None:
        """Let :meth:`evolve` return after the block under way; for callbacks and signals.

        A long block may be given up in its midst: it is then made anew by the next one.

        Called at another time, it lets the next one return before its first block. With `comm` it
        is enough if one rank calls it.
        """
        self._asked_to_stop = True
        if self._ranks is None:
            self._stopping[0] = 1

    def _is_stopping(self) -> bool:
        """Whether to stop: on all ranks at once, if one of them has been asked to."""
        if self._ranks is not None:
            with self._together("a block") as said:
                said.same("the time of the bodies", self.time)
                said.most[0] = self._asked_to_stop
            self._stopping[0] |= int(said.most[0])
        return bool(self._stopping[0])
