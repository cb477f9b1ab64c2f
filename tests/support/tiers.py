"""Which cases of a test are run when: `--tier` of pytest, one for each target of the Makefile.

quick   make test-quick, of some folders: the first case of each test, without those marked `full`
        or `slow`
test    make test: of each test as many cases as show every pair of its parameters' values
rest    make test-all: the other cases, and all of those marked `full`
all     a plain pytest: every case"""

from collections import defaultdict
from itertools import combinations

TIERS = "quick", "test", "rest", "all"


def parameters(item):
    """Names and values that a case has, of parametrize and of fixtures; callspec.indices counts the
    cases where parametrize has given a value."""
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return tuple((name, id(value)) for name, value in given.items())


def _backend(item):
    return item.callspec.params.get("on_backend", "cpu") if hasattr(item, "callspec") else "cpu"


def pairs(item):
    """What a case shows: each pair of values, or the value of its only parameter."""
    own = parameters(item)
    return set(combinations(own, min(2, len(own))))


def pairwise(cases):
    """The first case, then always the one that shows most new pairs, until none is left."""
    shown = [(case, pairs(case)) for case in cases]
    chosen = [shown[0][0]]
    left = set().union(*(own for _, own in shown)) - shown[0][1]
    while left:
        case, own = max(shown, key=lambda pair: len(pair[1] & left))
        chosen.append(case)
        left -= own
    return chosen


def select(items, tier):
    """The cases of a tier, in the order of all."""
    if tier == "all":
        return items
    tests = defaultdict(list)
    for item in items:
        tests[item.path, item.nodeid.partition("[")[0]].append(item)
    chosen = set()
    for every in tests.values():
        cases = [case for case in every if not case.get_closest_marker("full")]
        if not cases:
            continue
        if tier != "quick":
            chosen.update(pairwise(cases))
        elif _backend(cases[0]) == "cpu" and not cases[0].get_closest_marker("slow"):
            chosen.add(cases[0])
    return [item for item in items if (item in chosen) != (tier == "rest")]
