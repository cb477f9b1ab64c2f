"""Where an integration stands: times to stop at on the way, and the bar that shows it."""

import math
from collections.abc import Callable, Iterator

import tqdm


def next_multiple(now: float, every: float, origin: float = 0.0) -> float:
    """The first multiple of `every`, counted from `origin`, after `now`."""
    k = math.floor((now - origin) / every) + 1
    while origin + k * every <= now:
        k += 1
    return origin + k * every


def multiples(now: float, end: float, every: float) -> Iterator[float]:
    """Multiples of `every` after `now` and before `end`, then `end`.

    A multiple that rounding alone has put before `end` is that.
    """
    while (time := next_multiple(now, every)) < end - 4 * math.ulp(end):
        yield time
        now = time
    yield end


class Bar:
    """Context whose value is called with the time reached; a progress bar if requested."""

    def __init__(self, now: float, end: float, requested: bool) -> None:
        self._bar, self._now = None, now
        if requested:
            self._bar = tqdm.tqdm(
                total=end - now,
                disable=None,  # unless stderr is a terminal
                leave=False,
                bar_format="{percentage:3.0f} %|{bar}| {elapsed}, {remaining} left",
            )

    def __enter__(self) -> Callable[[float], None]:
        return self._reached

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _reached(self, time: float) -> None:
        if self._bar is not None:
            self._bar.update(time - self._now)
            self._now = time
