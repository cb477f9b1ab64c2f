"""What ``grape6 run`` takes of fields, orbits and events."""

import argparse
import inspect
import math
from collections.abc import Callable, Sequence

from grape6py import events, fields
from grape6py._arrays.kinds import Attributes, Untyped
from grape6py.bound_pairs import Binaries
from grape6py.errors import ArgumentError, meant
from grape6py.units import Units

FIELDS = """mwpotential2014 point_mass plummer miyamoto_nagai nfw logarithmic power_law_cutoff
    rotation""".split()
STOPPED_BY_EVENT = 3  # exit status

_MOST_LISTED = 5  # binaries after a line of the log


def field_of(texts: Sequence[str], units: Units | None) -> fields.Field | None:
    """The sum of fields named as NAME,PARAMETER=VALUE,..., in units."""
    total = None
    for text in texts:
        name, *parameters = text.split(",")
        name = name.strip().replace("-", "_")
        if name not in FIELDS:
            raise ArgumentError(
                f"--field {name}{meant(name, FIELDS)}: there are {', '.join(FIELDS)}"
            )
        make: Untyped = getattr(fields, name)
        known = [key for key in inspect.signature(make).parameters if key != "units"]
        given: dict[str, float] = {}
        for parameter in parameters:
            key, is_one, value = parameter.partition("=")
            if not is_one or key.strip() not in known:
                raise ArgumentError(f"--field {text}: {name} has {'=..., '.join(known)}=...")
            try:
                given[key.strip()] = float(value)
            except ValueError:
                raise ArgumentError(f"--field {text}: {value!r} is not a number") from None
        try:
            field = make(**given, units=units)
        except TypeError:
            raise ArgumentError(f"--field {text}: {name} needs {', '.join(known)}") from None
        total = field if total is None else total + field
    return total


def settings_of(options: argparse.Namespace, units: Units | None) -> Attributes:
    """Arguments of an integration: G, field, orbit."""
    found: Attributes = {}
    if options.G is not None and units is not None and not math.isclose(options.G, units.G):
        raise ArgumentError(f"--G {options.G:g}, and G = {units.G:.6g} in units {units}: give one")
    if options.G is not None or units is not None:
        found["G"] = options.G or (units and units.G)
    if options.field:
        found["field"] = field_of(options.field, units)
    if options.orbit is not None:
        found["orbit"] = options.orbit
    return found


def events_of(options: argparse.Namespace) -> list[events.AnyEvent]:
    """What is watched for."""
    if options.encounter is None and options.on_encounter is not None:
        options.parser.error("--on-encounter: of --encounter R")
    tidal: Attributes = {"factor": 2.0, "centre": "density"}
    kinds: dict[str, Callable[[Untyped], events.AnyEvent]] = {
        "encounter": lambda radius: events.Encounter(radius, options.on_encounter or "stop"),
        "escape": lambda radius: events.Escape(radius, **tidal if radius == "tidal" else {}),
        "max_error": events.EnergyError,
        "wall_time": events.WallTime,
    }
    given = {name: getattr(options, name) for name in kinds}
    return [kinds[name](value) for name, value in given.items() if value is not None]


def shown_settings(settings: Attributes) -> str:
    """The line of the log."""
    words = []
    for name, value in settings.items():
        if name == "field" and str(value).startswith("["):
            words.append(f"field {fields.Field.from_text(value)!r}")
        elif name in ("orbit", "few_bodies"):
            words.append(f"{name.replace('_', ' ')} {value}")
        elif isinstance(value, str):
            words.append(value)
        else:
            words.append(f"{name} {value:g}")
    return ", ".join(words)


def shown_event(event: events.Event) -> str:
    """A line of the log."""
    bodies = " and ".join(map(str, event.ids))
    return {
        "encounter": f"encounter at time {event.time:.6g}: bodies {bodies} closer than "
        f"{event.value:g}",
        "escape": f"escape at time {event.time:.6g}: body {bodies} beyond {event.value:g}",
        "energy": f"energy error {event.value:.2e} at time {event.time:.6g}",
        "wall time": f"wall time of {event.value:.1f} s at time {event.time:.6g}",
    }[event.kind]


def shown_binaries(found: Binaries) -> list[str]:
    """Lines of the log: the hardest, of those that are hard."""
    hard = int((found.hardness >= 1).sum())
    lines = [
        f"  binary of {one} and {two}: a = {a:.4g}, e = {e:.4f}, hardness {h:.3g}"
        for one, two, a, e, h in list(zip(*found, strict=True))[: min(hard, _MOST_LISTED)]
    ]
    return lines + [f"  and {hard - _MOST_LISTED} more hard ones"] * (hard > _MOST_LISTED)
