"""An end of the program, or a full disk, at the n-th call that changes files or a folder."""

import errno
import os


class Killed(BaseException):
    """From now on nothing is done any more."""


class Ending:
    """Stands for `os`: the n-th call that changes names fails, and for Killed all that follow.

    A write that is Killed has half of its bytes; what gets its name is on the disk."""

    def __init__(self, error, left):
        self.error, self.left, self.failed, self.unsynced = error, left, None, set()

    def __getattr__(self, name):
        if name not in ("write", "fsync", "link", "replace", "rename", "unlink", "mkdir"):
            return getattr(os, name)

        def call(*arguments, **more):
            self.left -= 1
            self.failed = name if self.left == 0 else self.failed
            if self.left == 0 or (self.left < 0 and self.error is Killed):
                if name == "write" and self.left == 0:
                    os.write(arguments[0], arguments[1][: len(arguments[1]) // 2])
                raise self.error(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if name == "write":
                self.unsynced.add(arguments[0])
            elif name == "fsync":
                self.unsynced.discard(arguments[0])
            assert name != "replace" or not self.unsynced
            return getattr(os, name)(*arguments, **more)

        return call
