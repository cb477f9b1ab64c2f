"""Waits for long calls of the library, so that Ctrl-C is heard at once."""

import threading

from grape6py._arrays.kinds import CData

LONG = 50_000  # particles and targets of a tree, from which on a call may take a while


def wait_for(call: CData, *arguments: object, size: int, undo: CData = None) -> int:
    """What ``call(*arguments)`` returns; it is made in a thread of its own if it may take long.

    Python hears of a signal when a call of C returns. Here the main thread waits, and goes on with
    the exception of Ctrl-C; the call goes on to its end, and its arrays live as long. Where no
    thread can be had, at the end of the process or of memory, the call is made at once.

    `call` is one of cffi, which raises nothing, `size` the number of particles and targets; `undo`
    is called with what the call returned if nobody waited for it.
    """
    if size < LONG or threading.current_thread() is not threading.main_thread():
        return int(call(*arguments))
    found: list[int] = []
    left: list[bool] = []
    lock = threading.Lock()

    def run() -> None:
        value = call(*arguments)
        with lock:
            found.append(value)
            if left and undo:
                undo(value)

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return int(call(*arguments))
    try:
        thread.join()
    except BaseException:
        with lock:
            left.append(True)
            if found and undo:
                undo(found[0])
        raise
    return found[0]
