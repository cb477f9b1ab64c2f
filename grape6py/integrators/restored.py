"""An integration that goes on from its file."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grape6py import in_units
from grape6py._arrays import validate
from grape6py._arrays.ids import Labels, of, once
from grape6py._arrays.kinds import Attributes, Floats, PathLike, State, Untyped
from grape6py._lib.cluster import Board
from grape6py._lib.declarations import BACKENDS, PRECISIONS
from grape6py.errors import ArgumentError, Grape6Warning, NotFiniteError, RangeError, SnapshotError
from grape6py.files.runs import index as run_index
from grape6py.files.runs import reader as run_reader
from grape6py.files.runs.outputs import Outputs, outputs_of
from grape6py.files.storage import output_file
from grape6py.integrators import external
from grape6py.integrators.state import EXTRA, extra_of, integrator
from grape6py.ranks.one_rank import ONE, ranks_of
from grape6py.ranks.ranks import Ranks

if TYPE_CHECKING:
    from grape6py.integrators.base import Integration
    from grape6py.integrators.hermite import Hermite
    from grape6py.integrators.leapfrog import Leapfrog

_OPTIONS = "backend", "precision", "threads", "comm", "field", "eta"  # of restore


def restore(
    path: PathLike | Outputs, which: int | None = None, **options: Untyped
) -> Hermite | Leapfrog:
    """The integration that a file ends with, or of another output; it continues with the same bits.

    Parameters
    ----------
    path : path-like or Run
        Of a run, or of one output.
    which : int, optional
        The number of an output, with whose settings it goes on; by default the last that is whole.
        What goes on from an earlier one is saved under another name.
    **options
        backend, precision, threads, comm, as in :class:`Hermite`, and field, if that is a function;
        mode and backend are the file's by default, the backend if it can be had and
        GRAPE6_BACKEND names no other. With another `eta` or `precision` the bits are no longer
        those of a run that was never stopped: files written from then on say so in `changes`.

    Returns
    -------
    Hermite or Leapfrog
        With `comm`, each rank of a Leapfrog has a share of the bodies, in their order.

    Raises
    ------
    ArgumentError
        (a ValueError) for a setting that cannot be changed.
    SnapshotError
        (a ValueError) if it is not a file of :func:`save`, or has no such output; with `which` if
        that one is damaged.
    OSError
        If it cannot be opened.

    Warns
    -----
    Grape6Warning
        If backend, instruction set or mode differ from the file's: so will the bits. If the last
        output is damaged, and an earlier one is taken.
    """
    if wrong := [name for name in options if name not in _OPTIONS]:
        raise ArgumentError(
            f"{', '.join(wrong)}: a run that goes on takes {', '.join(_OPTIONS)}; for another "
            "setting begin a new one with its particles()"
        )
    ranks, eta = ranks_of(options.get("comm")), options.pop("eta", None)
    with ranks.agreement("load()"):
        with ranks.agreement("which output") as agreement:
            which = None if which is None else validate.integer("which", which)
            agreement.same("which", which)
        source = path if isinstance(path, Outputs) else outputs_of(path)
        run, outputs = source.outputs_for(which)
        with output_file.explained(run.path):
            mode, backend = str(run.about["precision"]), str(run.about["backend"])
            validate.choice("precision", mode, PRECISIONS)
            kind = integrator(str(run.about.get("integrator", "hermite")))
            settings = before = kind.settings_from(run.about)
            external.parsed(settings)
            converter = run_reader.converter_of(run.about)
        if eta is not None:
            if "dt" in settings:
                raise ArgumentError(f"eta: {run.path} is of one constant step")
            settings = settings | {"eta": validate.positive("eta", eta)}
        if "method" in settings and options.get("precision") not in (None, mode):
            raise ArgumentError("precision: the sums of a tree have one of their own")
        mass, state, about = _last_whole(run, outputs, kind, ranks if kind.SHARES_BODIES else ONE)
        component = about.pop("component")
        about |= {"run_id": run.id, "precision": mode} | options | _backend(backend, options)
        try:
            cluster = kind.restored(settings, mass, state, **about)
        except (NotFiniteError, RangeError) as error:  # of what is predicted from the state
            raise SnapshotError(f"{run.path} cannot go on: {error}") from error
        own = {*before, "precision", "backend", "run"}
        cluster._since = cluster.time
        cluster._about = {k: v for k, v in run.about.items() if k not in own}
        if component is not None:
            cluster._labels = Labels(cluster._own_ids(), component)
        note_change(cluster, "eta", before.get("eta"), settings.get("eta"))
        note_change(cluster, "precision", mode, cluster.precision)
        for name, was in (("backend", backend), ("precision", mode)):
            if getattr(cluster, name) != was:
                warnings.warn(
                    f"{run.path} was made with {name} {was}; this is {getattr(cluster, name)}: the "
                    "numbers will differ in the last digits",
                    Grape6Warning,
                    stacklevel=2,
                )
        seen: Untyped = cluster if converter is None else in_units.InUnits(cluster, converter)
        return seen  # type: ignore[no-any-return]


def note_change(cluster: Integration, name: str, old: object, new: object) -> None:
    """Let files to come say that a run has gone on with another setting."""
    if new != old:
        instead = "" if old is None else f" instead of {old}"
        line = f"at time {cluster.time!r}: {name} {new}{instead}"
        known = cluster._about.get("changes")
        cluster._about["changes"] = f"{known}; {line}" if known else line


def _backend(name: str, options: Attributes) -> Attributes:
    """The option that is a file's backend, unless another is asked for or needed."""
    asked = options.get("backend", "auto"), os.environ.get("GRAPE6_BACKEND", "auto")
    kind = name.partition(" ")[0]
    is_here = kind in BACKENDS and ("cuda" not in kind or _has_gpu())
    return {"backend": kind} if asked == ("auto", "auto") and is_here else {}


def _has_gpu() -> bool:
    with contextlib.closing(Board({}, None)) as board:
        board.prepare_for(0, 0)
        return board.option("DEVICE") >= 0


def _last_whole(
    run: run_index.Run, outputs: Iterable[run_index.Saved], kind: type[Integration], owners: Ranks
) -> tuple[Floats, State, Attributes]:
    """Masses, state, and what else is restored, of the first output that is whole on all ranks."""
    first = None
    for saved in outputs:
        found, error = None, None
        with owners.agreement("load()") as agreement:
            try:
                found = _read(run, saved, kind, owners)
            except SnapshotError as its:
                error = its
            is_damaged = agreement.maximum(error is not None)
        if is_damaged.value:
            first = first or next(filter(None, owners.from_each(error)))
            continue
        assert found is not None
        if first:
            text = f"{first}; gone on from time {found[2]['time']:g} instead"
            warnings.warn(text, Grape6Warning, stacklevel=3)
        return found
    raise SnapshotError(f"{run.path} has no output that is whole. The last one: {first}") from first


def _read(
    run: run_index.Run, saved: run_index.Saved, kind: type[Integration], owners: Ranks
) -> tuple[Floats, State, Attributes]:
    """Of all bodies, or of this rank's share."""
    by_body = ("mass", "ids", "component", *(f"state/{name}" for name in kind.STATE))
    arrays, extra, attributes = run.read(saved, by_body, [f"state/{k}" for k in EXTRA], owners)
    with output_file.explained(run.path_of(saved)):
        mass = validate.floats("mass", arrays["mass"], (None,))
        state = {
            name: validate.floats(name, arrays[f"state/{name}"], (len(mass), *shape))
            for name, shape in kind.STATE.items()
        }
        known = [name for name in EXTRA if f"state/{name}" in extra]
        state |= {name: extra_of(name, extra[f"state/{name}"]) for name in known}
        if not (state["dt"] > 0).all():
            raise ArgumentError("a step is not above zero")
        return mass, state, {
            "ids": once("ids", of("ids", arrays["ids"], len(mass))) if "ids" in arrays else None,
            "component": arrays.get("component"),
            "time": validate.number("time", attributes["time"]),
            **{name: _count(name, attributes[name]) for name in ("steps", "blocks")},
        }  # fmt: skip


def _count(name: str, value: Untyped) -> int:
    found = int(validate.number(name, value, negative=False))
    if found >= 2**63:
        raise ArgumentError(f"{name} = {found} is beyond 64 bits")
    return found
