"""The units that a run's pictures are in: those that its numbers have names for."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from grape6py.files.runs.moments import Moment
from grape6py.files.runs.reader import Record
from grape6py.units import Units


class Scale(NamedTuple):
    """What times and lengths are multiplied by to be shown, and their units; none without units."""

    time: float = 1.0
    length: float = 1.0
    of_time: str = ""
    of_length: str = ""

    @classmethod
    def of(cls, units: Units | None) -> Self:
        """That of numbers in these units."""
        if units is None:
            return cls()
        time, length = units.names["time"], units.names["length"]
        return cls(units.value("time", time), units.value("length", length), time, length)

    def moment(self, moment: Moment) -> Moment:
        """Bodies to be shown."""
        return moment._replace(time=moment.time * self.time, pos=moment.pos * self.length)

    def history(self, history: Sequence[Record]) -> list[Record]:
        """Records to be shown."""
        return [
            {**record, "time": record["time"] * self.time,
             "radii": [radius * self.length for radius in record["radii"]]}
            for record in history
        ]  # fmt: skip

    def at(self, label: str) -> str:
        """A time, of which `label` has the digits."""
        return f"t = {label} {self.of_time}".rstrip()


def labelled(name: str, unit: str) -> str:
    """What an axis shows."""
    return f"{name} [{unit}]" if unit else name


def distinct(values: Sequence[float]) -> list[str]:
    """Numbers with five digits, or as many as tell them apart."""
    for digits in range(5, 18):
        labels = [f"{value:.{digits}g}".replace("-", "\N{MINUS SIGN}") for value in values]
        if len(set(labels)) == len(set(values)):
            break
    return labels
