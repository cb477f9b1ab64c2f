"""Sums of trees, host's or device's: how they are made, on what, and what they give."""

import dataclasses
from typing import NamedTuple, Self

from grape6py._arrays import validate
from grape6py._arrays.kinds import Attributes, DeviceArray, Untyped
from grape6py._lib.declarations import DEFINED, constants
from grape6py.errors import ArgumentError

WIDEST, WIDEST_BY_BOUND = DEFINED["TREE_WIDEST"], DEFINED["TREE_WIDEST_BY_BOUND"]  # theta
LEAST_ERROR, _LARGEST_ERROR = DEFINED["TREE_LEAST_ERROR"], DEFINED["TREE_LARGEST_ERROR"]
_METHODS = {"fmm": "fmm", "bh": "bh"}
SOFTENINGS = {"plummer": False, "spline": True}  # whether it is compact
_ORDERS = constants.TREE_LEAST_ORDER, constants.TREE_LARGEST_ORDER


@dataclasses.dataclass(frozen=True)
class Setting:
    """How far cells stand for their particles: see csrc/shared/tree_opening.h."""

    theta: float = 0.0  # 0: an accuracy is given
    order: int = constants.TREE_USUAL_ORDER  # of expansions; 0 for Barnes and Hut's walk
    eps2: float = 0.0
    bound: float = 0.0  # of the error of a term as a share of the last acceleration; 0 for none
    accuracy: float = 0.0
    momentum: bool = False  # forces on the particles themselves add up to zero
    spline: bool = False  # softening is compact

    @classmethod
    def of(cls, walk: Attributes, **more: Untyped) -> Self:
        """With what :func:`checked` gave."""
        order = walk["order"] if walk["method"] == "fmm" else 0
        theta, accuracy = walk.get("theta", 0.0), walk.get("accuracy", 0.0)
        return cls(theta=theta, accuracy=accuracy, order=order, **more)

    @property
    def method(self) -> int:
        """The method of g6lib.h."""
        kind = constants.G6X_TREE_FMM if self.order else constants.G6X_TREE_BARNES_HUT
        more = {constants.G6X_TREE_MOMENTUM: self.momentum, constants.G6X_TREE_SPLINE: self.spline}
        return int(kind + sum(flag for flag, is_set in more.items() if is_set))

    def replaced(self, **other: Untyped) -> Self:
        """The same with some other values."""
        return dataclasses.replace(self, **other)

    def pair_by_pair(self, **other: Untyped) -> Self:
        """The same, in which no cell stands for its particles."""
        return self.replaced(theta=DEFINED["TREE_PAIR_BY_PAIR"], bound=0.0, accuracy=0.0, **other)


class Targets(NamedTuple):
    """Of a sum or search, contiguous and checked; without `pos`, the tree's own particles."""

    pos: DeviceArray = None
    vel: DeviceArray = None
    number: DeviceArray = None  # of the particle that each is, or -1
    last_acc: DeviceArray = None


class Found(NamedTuple):
    """Forces on targets, and what there is to say of them."""

    acc: DeviceArray
    pot: DeviceArray
    jerk: DeviceArray = None
    warning: str | None = None
    done: tuple[int, int, int] = (0, 0, 0)  # pairs, cells on targets and cells on groups


def checked(
    method: str, theta: float | None = None, accuracy: float | None = None, order: int | None = None
) -> Attributes:
    """Arguments of sums checked, by name: an opening angle or, without one, an accuracy."""
    if theta is None:
        accuracy = validate.positive("accuracy", 1e-3 if accuracy is None else accuracy)
        if accuracy < LEAST_ERROR:
            raise ArgumentError(
                f"accuracy = {accuracy}: pairs are summed in single precision, {LEAST_ERROR} "
                "is the best that can be asked for; Grape6 sums directly"
            )
        if accuracy > _LARGEST_ERROR:
            raise ArgumentError(f"accuracy = {accuracy} is above {_LARGEST_ERROR}")
    elif (theta := validate.positive("theta", theta)) > WIDEST:
        raise ArgumentError(f"theta = {theta} is above {WIDEST}")
    opening = {"accuracy": accuracy} if theta is None else {"theta": theta}
    method = validate.choice("method", method, _METHODS)
    order = constants.TREE_USUAL_ORDER if order is None else validate.integer("order", order)
    if method == "fmm" and not _ORDERS[0] <= order <= _ORDERS[1]:
        raise ArgumentError(f"order = {order} is not from {_ORDERS[0]} to {_ORDERS[1]}")
    return {"method": method} | opening | {"order": order}
