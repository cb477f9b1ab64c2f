"""How a sum of the octree on a GPU is to be made, and what it has done."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from grape6py._lib.declarations import DEFINED
from grape6py._lib.tree_setting import Setting

# Times the usual length: lists of groups. Targets of longer ones are taken by eights, then one by
# one: that is done sooner, a warp being slow alone, and has fewer pairs where a group is wide; but
# lone targets have larger errors at the same theta.
LONGEST = 8, 8, 2
MANY = 32  # a group of so many may have a list that is too long
BY_BOUND = 0.4  # of lists, where a bound lets parts of wide groups have larger cells than the whole


def width_of(setting: Setting) -> float:
    """The opening angle whose lists are about as long, to an eighth of a factor of two."""
    if not setting.bound:
        return setting.theta
    order = setting.order
    usual, slope = (1e-2, 4.3) if order > 3 else (2e-2, 3.5) if order else (5e-3, 3.7)
    octaves = math.log2(setting.bound / usual) / slope
    return min(setting.theta, math.pow(2.0, round(8 * octaves) / 8))


def is_soft(setting: Setting, eps2: float, side: float, jerk: bool) -> bool:
    """Whether terms are soft, in a tree whose smallest cells have a side, but for a few."""
    of = "_OF_JERKS" if jerk and setting.order else "_BY_BOUND" if setting.bound else ""
    return math.sqrt(eps2) > DEFINED[f"TREE_SOFT_FROM{of}"] * side


@dataclass
class Counts:
    """What a sum has done: pairs, cells on targets, cells on groups; pairs left out; and the first
    target whose force does not fit a double, if there is one."""

    pairs: int
    points: int
    locals: int
    zero_distances: int
    too_large: int | None = None


@dataclass
class Capacities:
    """Entries of lists: local, point and leaf, enough for most groups of a setting.

    They grow where they are short, for later sums as well, and those that other threads make
    meanwhile: no digit of a force depends on them, but on `longest`, which stays as it is.
    """

    large: list[int]  # of level-2 and level-1 groups
    groups: list[int]
    longest: list[int]  # of a group, or a part of one, that is not taken in smaller parts

    @classmethod
    def of(cls, setting: Setting, few: bool = False, own: bool = False) -> Self:
        """For a setting, from the lists of Plummer spheres. Those of few groups may all be long;
        where particles have their own softening, fewer cells act on groups."""
        width = width_of(setting)
        theta = max(width, 0.2)
        leaves = int(64 / max(width, 0.05) ** 2) + 64
        near = [int(160 / theta**2.5) + 96, int(32 / theta**3) + 32, leaves]
        if setting.bound:
            near = [int(BY_BOUND * capacity) for capacity in near]
        if not setting.order or own:
            near = [
                near[0] if setting.order else 0,
                int(1200 / theta**2),
                leaves * (8 if own else 1),
            ]
        wide = int(800 / theta**2) + 64
        longest = [int(by * capacity) for by, capacity in zip(LONGEST, near, strict=True)]
        return cls([wide, 0, wide // 4 + 64], [*longest] if few else near, longest)

    def enlarge(self, need: Sequence[int]) -> None:
        """Lists of level-2 and level-1 groups, where they were too short."""
        self.large = longer(self.large, need)

    def lengthen(self, groups: int, long_groups: int, need: Sequence[int], most: int) -> None:
        """Groups' lists for sums to come: so that none is too long, if all lists have at most so
        many entries; else where many of them were too long."""
        lists = list(zip(self.groups, need, self.longest, strict=True))
        enough = [min(max(capacity, want), longest) for capacity, want, longest in lists]
        if groups * sum(enough) <= most:
            self.groups = enough
        elif long_groups > groups // MANY + MANY:
            self.groups = [
                min(2 * capacity, longest) if want > capacity else capacity
                for capacity, want, longest in lists
            ]


def longer(capacities: Sequence[int], need: Sequence[int]) -> list[int]:
    """Capacities that hold as much, and more where they did not."""
    return [
        capacity if want <= capacity else want * 5 // 4
        for capacity, want in zip(capacities, need, strict=True)
    ]
