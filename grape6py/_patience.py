"""Waits for long calls of the library, so that Ctrl-C is heard at once."""

import threading

LONG = 50_000  # particles and targets of a tree, from which on a call may take a while


def wait_for(call, *arguments, size):
    """What ``call(*arguments)`` returns; it is made in a thread of its own if it may take long.

    Python hears of a signal when a call of C returns. Here the main thread waits, and goes on with
    the exception of Ctrl-C; the call goes on to its end, and its arrays live as long.

    Parameters
    ----------
    call : callable
        Of cffi, which raises nothing.
    size : int
        Particles and targets.
    """
    if size < LONG or threading.current_thread() is not threading.main_thread():
        return call(*arguments)
    found = []
    thread = threading.Thread(target=lambda: found.append(call(*arguments)), daemon=True)
    thread.start()
    thread.join()
    return found[0]
