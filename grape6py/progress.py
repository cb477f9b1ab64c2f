"""Where an integration stands: times to stop at on the way, and the bar that shows it."""

import contextlib
import math
from collections.abc import Callable, Iterator

from tqdm.auto import tqdm


def next_multiple(now: float, every: float, origin: float = 0.0) -> float:
    """The first multiple of `every`, counted from `origin`, after `now`."""
    k = math.floor((now - origin) / every) + 1
    while origin + k * every <= now:
        k += 1
    return origin + k * every


def multiples(now: float, end: float, every: float) -> Iterator[float]:
    """Multiples of `every` after `now` and before `end`, then `end`; on the way back before `now`.

    A multiple that rounding alone has put before `end` is that.
    """
    sense = 1 if end >= now else -1
    while (time := next_multiple(sense * now, every)) < sense * end - 4 * math.ulp(end):
        now = sense * time
        yield now
    yield end


@contextlib.contextmanager
def bar(now: float, end: float, requested: bool) -> Iterator[Callable[[float], None]]:
    """Context whose value is called with the time reached; a progress bar if requested."""
    if not requested:
        yield lambda _: None
        return
    with tqdm(
        total=abs(end - now),
        disable=None,  # unless stderr is a terminal, or this a notebook
        leave=False,
        bar_format="{percentage:3.0f} %|{bar}| {elapsed}, {remaining} left",
    ) as shown:
        yield lambda time: shown.update(abs(time - now) - shown.n)
