"""A device for tests: memory from NumPy, driver and kernels from a C library (tests/c/card.c)."""

import ctypes

import numpy as np

DRIVER = """push_context pop_context launch copy_in copy_out fill wait query record follow
    error_text""".split()


def open_device(card, usable, choice):
    """One of the devices that the library with this path stands in for, as many as are named."""
    count = len(usable.split(","))
    return Device(card, choice % count, count)


def explain(error):
    """Nothing goes wrong here that is not a Python exception."""
    return None


class Device:
    """See device.Device, whose shape this is."""

    multiprocessors, capability, shared_bytes = 4, 90, 232448
    context = event = 1
    streams = (1, 1, 1, 1)
    name = "stand-in for a graphics card"

    def __init__(self, card, number=0, usable=1):
        self.number, self.usable = number, usable
        self._card = ctypes.CDLL(card)
        self.driver = [self._address(f"card_{name}") for name in DRIVER]
        self._memory = {}

    def _address(self, name):
        return ctypes.cast(getattr(self._card, name), ctypes.c_void_p).value

    def kernels(self, precision, names):
        """Addresses of the kernels of a precision."""
        return [self._address(f"{name}_{precision}") for name in names]

    def allocate(self, pinned, size):
        """Address of zeroed memory."""
        memory = np.zeros(max(size, 1), np.uint8)
        self._memory[memory.ctypes.data] = memory
        return memory.ctypes.data

    def release(self, address):
        """Forget memory."""
        del self._memory[address]

    def close(self, lost):
        """Forget all of it."""
        self._memory.clear()
