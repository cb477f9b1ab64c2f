"""The clock. Time is measured by this call alone, and no result depends on it."""

import time


def seconds() -> float:
    """Seconds since some moment, which never go back."""
    return time.perf_counter()
