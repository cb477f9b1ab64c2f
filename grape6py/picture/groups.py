"""What bodies are distinguished by: the components of galaxies, with their colours and names."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from grape6py._arrays.kinds import Bools, Int8s
from grape6py.files.runs.moments import Moment
from grape6py.models import Component

SKY = "#0a0f1e"
BODIES = "#cfe4ff"
# Of the first and the second galaxy: a family of colours each, for disk and bulge.
_STARS = (("#4c9dff", "#c4ecff"), ("#ff8a3d", "#ffe29a"))
_DARK_MATTER = "#8a83b8"
_OF_GALAXY = len(Component)
_NOUNS = {"merger of two galaxies": "Galaxies", "disk galaxy": "Galaxy"}  # of names of runs


class Group(NamedTuple):
    """Bodies of one colour. `share` is that of the light, `labels` the components."""

    name: str
    colour: str
    labels: tuple[int, ...]
    share: float = 1.0

    def among(self, moment: Moment) -> Bools:
        """Which bodies belong to it; shape (n,)."""
        if moment.component is None:
            return np.full(len(moment.mass), not self.labels)
        return np.isin(moment.component, self.labels)


class Groups(NamedTuple):
    """What there is: `drawn` from the back to the front, `holes` to be marked."""

    drawn: list[Group]
    holes: list[Group]
    noun: str

    @property
    def are_told(self) -> bool:
        """Whether there is anything to tell apart."""
        return len(self.drawn) + len(self.holes) > 1


def groups(moments: Iterable[Moment], name: str = "") -> Groups:
    """The groups of a run. Its name tells whether bodies are galaxies, if labels do not."""
    labels = _labels(moment.component for moment in moments)
    of_galaxies = [label for label in labels if label % _OF_GALAXY != Component.DISK]
    two = any(label >= _OF_GALAXY for label in labels)
    if not of_galaxies and not (two and labels):
        noun = next((word for start, word in _NOUNS.items() if name.startswith(start)), "Bodies")
        return Groups([Group("bodies", BODIES, tuple(labels))], [], noun)
    if not of_galaxies:  # two clusters
        names = ("first", "second")
        stars = [Group(names[label // _OF_GALAXY], _STARS[label // _OF_GALAXY % 2][0], (label,))
                 for label in labels if label < 2 * _OF_GALAXY]  # fmt: skip
        return Groups([*_others(labels), *stars], [], "Bodies")
    stars, holes = [], []
    for label in labels:
        galaxy, kind = divmod(label, _OF_GALAXY)
        number = f" {galaxy + 1}" if two else ""
        if galaxy > 1 or kind == Component.HALO:
            continue
        if kind == Component.BLACK_HOLE:
            holes.append(Group(f"black hole{number}", "white", (label,)))
        else:
            word = ("disk", "bulge")[kind]
            stars.append(Group(word + number, _STARS[galaxy][kind], (label,)))
    halo = tuple(label for label in labels if label % _OF_GALAXY == Component.HALO)
    dark = [Group("dark matter", _DARK_MATTER, halo, 0.35)] if halo else []
    noun = "Galaxies" if two else "Galaxy"
    return Groups([*_others(labels), *dark, *stars], holes, noun)


def _others(labels: list[int]) -> list[Group]:
    """Of a third model and more, which nothing here can make."""
    rest = tuple(label for label in labels if label >= 2 * _OF_GALAXY
                 and label % _OF_GALAXY != Component.HALO)  # fmt: skip
    return [Group("others", BODIES, rest)] if rest else []


def _labels(components: Iterable[Int8s | None]) -> list[int]:
    found: set[int] = set()
    for component in components:
        if component is not None:
            found |= set(np.unique(component).tolist())
    return sorted(found)
