"""How a sum of the octree on a GPU is to be made, and what it has done."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

# Times the usual length: lists of groups. Targets of longer ones are taken by eights, then one by
# one: that is done sooner, a warp being slow alone, and has fewer pairs where a group is wide; but
# lone targets have larger errors at the same theta.
LONGEST = 8, 8, 2
MANY = 32  # a group of so many may have a list that is too long
BY_BOUND = 0.4  # of lists, where a bound lets parts of wide groups have larger cells than the whole


# As in shared/tree_opening.h: theta, where a bound says how far cells stand for their particles;
# the share of the mean that a last acceleration is, at least.
WIDEST, LEAST_ACC = 1.4, 2.0**-20


def bound_of(order: int, accuracy: float) -> float:
    """The bound that gives an accuracy: tree_bound_of of shared/tree_opening.h."""
    factor = min(1.3 * math.pow(accuracy / 1e-3, 0.45), 4.0)
    return {2: 0.4, 0: 0.6, 3: 0.6}.get(order, 1.0) * factor * accuracy


def usual_theta(order: int, bound: float) -> float:
    """The opening angle whose lists are about as long as a bound's, to an eighth of a factor of
    two."""
    if order > 3:
        octaves = math.log2(bound / 1e-2) / 4.3
    elif order:
        octaves = math.log2(bound / 2e-2) / 3.5
    else:
        octaves = math.log2(bound / 5e-3) / 3.7
    return math.pow(2.0, round(8 * octaves) / 8)


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
class Setting:
    """How far cells stand for their particles: see shared/tree_opening.h."""

    theta: float
    order: int = 5  # of expansions, 2 to 6; 0 for Barnes and Hut's walk
    eps2: float = 0.0
    bound: float = 0.0  # of the error of a term as a share of the last acceleration; 0 for none

    @property
    def width(self) -> float:
        """The opening angle whose lists are about as long."""
        return min(self.theta, usual_theta(self.order, self.bound)) if self.bound else self.theta


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
    def of(cls, setting: Setting, few: bool = False) -> Self:
        """For a setting, from the lists of Plummer spheres. Those of few groups may all be long."""
        theta = max(setting.width, 0.2)
        leaves = int(64 / max(setting.width, 0.05) ** 2) + 64
        near = [int(160 / theta**2.5) + 96, int(32 / theta**3) + 32, leaves]
        if setting.bound:
            near = [int(BY_BOUND * capacity) for capacity in near]
        if not setting.order:
            near = [0, int(1200 / theta**2), leaves]
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
