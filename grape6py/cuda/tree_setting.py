"""How a sum of the octree on a card is to be made, and what it has done."""

from dataclasses import dataclass

FEW_TARGETS = 1 << 19  # whose lists may be long, since they take little memory


@dataclass
class Counts:
    """What a sum has done: pairs, cells on targets, cells on groups; and pairs left out."""

    pairs: int
    points: int
    locals: int
    coincidences: int


@dataclass
class Setting:
    """How far cells stand for their particles: see tree_open.h.

    Attributes
    ----------
    theta : float
    order : int
        Of expansions, 2 to 6; 0 for Barnes and Hut's walk.
    eps2 : float
    bound : float
        Of the error of a term as a share of the last acceleration; 0 for none.
    """

    theta: float
    order: int = 5
    eps2: float = 0.0
    bound: float = 0.0


@dataclass
class Rooms:
    """Entries of lists: local, point and leaf, enough for most groups of a setting.

    They grow where they are short, but only for the sum at hand: which groups are summed in parts,
    and so last digits of forces, must not depend on what was summed before.

    Attributes
    ----------
    large, groups, parts : list of int
        Of hypers and supers, groups, parts of groups.
    """

    large: list
    groups: list
    parts: list

    @classmethod
    def of(cls, setting, targets):
        """For a setting, from the lists of Plummer spheres; twice as long where targets are few."""
        theta = max(setting.theta, 0.2)
        leaves = int(64 / theta**2) + 64
        near = [int(160 / theta**2.5) + 96, int(32 / theta**3) + 32, leaves]
        if not setting.order:
            near = [0, int(1200 / theta**2), leaves]
        if targets < FEW_TARGETS:
            near = [2 * room for room in near]
        wide = int(800 / theta**2) + 64
        return cls([wide, 0, wide // 4 + 64], near, [2 * room for room in near])


def longer(rooms, need):
    return [max(room, wanted * 5 // 4) for room, wanted in zip(rooms, need, strict=True)]
