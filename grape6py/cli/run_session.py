"""One integration from the command line: its cluster, its files, its log, its signals."""

import argparse
import contextlib
import functools
import inspect
import json
import math
import os
import shlex
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import tqdm

from grape6py import _clock, diagnostics, in_units, models, snapshot
from grape6py._arrays.ids import Labels
from grape6py._arrays.kinds import Attributes, PathLike, Untyped
from grape6py.cli import convert, launched, run_fields, run_models
from grape6py.errors import ArgumentError, Grape6Error, meant, printable
from grape6py.files import formats
from grape6py.files.runs import moments, reader
from grape6py.files.runs.outputs import Outputs, outputs_of
from grape6py.files.runs.writer import Writer, describe
from grape6py.files.storage import atomic_files
from grape6py.integrators.blocks import power_of_two
from grape6py.integrators.hermite import Hermite
from grape6py.integrators.leapfrog import Leapfrog
from grape6py.integrators.restored import note_change, restore
from grape6py.ranks.one_rank import ONE
from grape6py.ranks.ranks import Ranks
from grape6py.ranks.stages import Stages
from grape6py.units import Units

RESTART_FILE = Path("grape6-restart.h5")
_KINDS: dict[str, type[Hermite] | type[Leapfrog]] = {"hermite": Hermite, "leapfrog": Leapfrog}
_INTEGRATION = """eta eta_start passes subsystems dt dt_max theta accuracy method order boundary
    precision threads""".split()
_CHANGED = "eta", "precision"  # and dt_out: by a restart, if it is asked for
_FROM_OLD = ["n", "seed", *run_models.OPTIONS, "eps", "integrator"]
_FROM_OLD += ["G", "orbit", "units", "renumber", *convert.LACKING]
_FROM_OLD += [name for name in _INTEGRATION if name not in ("threads", *_CHANGED)]
_HEADER = "    time       dE/E    T/|W|     r10%     r50%     r90%        steps     blocks   wall/s"


def integrate(options: argparse.Namespace) -> int:
    """Do what the options of ``grape6 run`` say, and return the exit status."""
    ranks = launched.join()
    Stages.exact = bool(options.profile)
    try:
        with Signals() as signals, contextlib.ExitStack() as open_files:
            open_files.enter_context(ranks.agreement("grape6 run"))
            return _Integration(options, signals, open_files, ranks).go()
    except KeyboardInterrupt:
        print("grape6: interrupted; what was written before is whole", file=sys.stderr)
        return 128 + signal.SIGINT


class Signals(contextlib.ExitStack):
    """Context in which SIGINT and SIGTERM stop `cluster`; a second SIGINT interrupts.

    The first signal's number is `received`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cluster: Hermite | Leapfrog | None = None
        self.received: int | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            self.callback(signal.signal, number, signal.signal(number, self._receive))

    def _receive(self, number: int, _: object) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number
        if self.cluster is not None:
            self.cluster.stop()


class _Integration:
    cluster: Hermite | Leapfrog
    _about: Attributes
    _earlier: Outputs  # that is gone on from
    _specific: float | None = None

    def __init__(
        self,
        options: argparse.Namespace,
        signals: Signals,
        open_files: contextlib.ExitStack,
        ranks: Ranks,
    ) -> None:
        self._options, self._signals, self._open_files = options, signals, open_files
        self._ranks, self._is_first = ranks, ranks.rank == 0
        self._began = _clock.seconds()
        self._output_time = self._output_forces = 0.0
        self._events_shown = 0
        self._history: list[reader.Record] = []
        self._seconds: list[float | None] = []
        self._profile_from: tuple[float, float] | None = None
        files = list(dict.fromkeys(options.out))
        archives = [path for path in files if atomic_files.is_hdf5_name(path)]
        self._texts = [path for path in files if path not in archives]
        self._plots = [] if options.plot is None else [options.plot]
        for path in self._texts:
            formats.by_name(path)  # or an error that lists the endings
        for path in [*files, *self._plots] if self._is_first else []:
            atomic_files.check_place(path)
        goes_on = options.restart and not archives
        # Of another name it may be no file of a run at all.
        if goes_on and atomic_files.is_hdf5_name(options.start):
            archives, goes_on = [options.start], False
        self._writers = [self._writer(path) for path in archives]
        if options.restart:
            self._resume()
            if goes_on:
                self._writers = [self._writer(options.start)]
        else:
            self._begin()
        if options.t_end <= self.cluster.time:
            raise ArgumentError(
                f"--t-end {options.t_end:g} is not after the time of the start, "
                f"{self.cluster.time:g}"
            )
        if options.list_binaries and self.cluster._owners.size > 1:
            raise ArgumentError(
                "--list-binaries: of bodies that one rank has, and here each has its own; look for "
                "them in the file"
            )

    def _begin(self) -> None:
        o = self._options
        model = run_models.MODELS.get(o.start)
        units = None if o.units is None else Units.from_text(o.units)
        shape = _given(o, run_models.OPTIONS)
        owners = self._ranks if _KINDS[o.integrator or "hermite"].SHARES_BODIES else ONE
        if model:
            wrong = [name for name in shape if name not in model.options]
            wrong += _given(o, convert.LACKING)
            if wrong:
                o.parser.error(f"{o.start} has no {_spelt(wrong)}")
            if o.renumber:
                o.parser.error(f"--renumber: of a file, and {o.start} is a model")
            n, seed = o.n or 1024, 1 if o.seed is None else o.seed
            drawn = model.draw(n, seed=seed, **shape)
            particles, component = drawn if isinstance(drawn, models.Labelled) else (drawn, None)
            n = len(particles.mass)  # a binary is two bodies
            if owners.size > 1:  # the others' can go
                particles = models.Particles._make(a[owners.rows(n)].copy() for a in particles)
                component = component if component is None else component[owners.rows(n)]
            del drawn
            found = snapshot.Snapshot(*particles, units=units and units.with_g_one())
            found.component = component
            shown = {k: v if isinstance(v, str) else f"{v:g}" for k, v in shape.items()}
            about = [f"{name.replace('_', ' ')} {value}" for name, value in shown.items()]
            name = ", ".join([model.title, *about, f"N = {n}", f"seed {seed}"])
            eps = model.softening(n, shape) if o.eps is None else o.eps
        else:
            if not Path(o.start).exists():
                known = ", ".join(run_models.MODELS)
                hint = meant(o.start, run_models.MODELS)
                raise ArgumentError(f"{o.start} is no file, and no model{hint}: those are {known}")
            given = _given(o, ("n", "seed", *run_models.OPTIONS))
            if given:
                o.parser.error(f"{_spelt(given)}: of a model, and {o.start} is a file")
            found = _read(o.start, owners, **_given(o, convert.LACKING))
            if o.renumber:
                found = found.with_ids(None)
            _, n = owners.numbered(len(found.mass))
            name = f"{_name(o.start)}, N = {n}"
            eps = o.eps or 0.0
        if not n:
            raise ArgumentError(f"{o.start} has no bodies")
        if units is not None:
            found = found.in_units(units)
        self._units = found.units
        self.cluster = _begun(o, found, eps, self._ranks)
        if found.component is not None:
            self.cluster._labels = Labels(self.cluster._own_ids(), found.component)
        self._about = {"name": name, "initial_energy": self.cluster.energy().total}
        if self._units is not None:
            self._about["units"] = str(self._units)
        self._about["dt_out"] = o.dt_out or power_of_two(o.t_end / 8)
        self._shown = moments.Nearest(0.0, o.t_end)

    def _resume(self) -> None:
        o = self._options
        given = _given(o, _FROM_OLD)
        if given or o.field:
            names = _spelt([*given, *["field"] * bool(o.field)])
            o.parser.error(
                "--restart takes all settings but --dt-out, --eta and --precision from the file: "
                f"leave out {names}"
            )
        if o.start in run_models.MODELS:
            o.parser.error("--restart needs the HDF5 file of an earlier run")
        options: Attributes = {"backend": o.backend or "auto", "threads": o.threads}
        options |= {"comm": self._ranks.comm} | _given(o, _CHANGED)
        restored = restore(o.start, **options)
        # It is in units if the file was saved from Python with quantities.
        self.cluster = in_units.without_units(restored)
        self._earlier = outputs_of(o.start)
        about, records = self._earlier.about, self._earlier.records()
        self._history = [record for record in records if record["time"] < self.cluster.time]
        times = [record["time"] for record in self._history] or [self.cluster.time]
        self._shown = moments.Nearest(times[0], o.t_end)
        if o.plot and self._history:
            for which in moments.nearest(times, self._shown.targets):
                self._shown.offer(times[which], functools.partial(self._moment_in, which))
        self._seconds = [None] * len(self._history)  # another run's
        # A file saved from Python has no name and no output times.
        name = f"{_name(o.start)}, N = {self.cluster.n}"
        self._units = self._earlier.units
        self._about = {
            "name": str(about.get("name", name)),
            "initial_energy": float(about["initial_energy"]),
            "dt_out": float(about.get("dt_out", 0)) or power_of_two(o.t_end / 8),
        }
        self._about |= {key: str(about[key]) for key in ("units", "quantities") if key in about}
        if o.dt_out is not None:
            note_change(self.cluster, "dt_out", about.get("dt_out"), o.dt_out)
            self._about["dt_out"] = self.cluster._about["dt_out"] = o.dt_out

    def _signal(self) -> int | None:
        """The number of a signal that has come: one to a rank is one to all."""
        with self._ranks.agreement("a look for signals") as agreement:
            received = agreement.maximum(self._signals.received or 0)
        return int(received.value) or None

    def go(self) -> int:
        """Integrate to the end or a signal, with an output at each output time."""
        cluster, signals, end = self.cluster, self._signals, self._options.t_end
        signals.cluster = cluster
        self._say(f"{self._about['name']}; {cluster.backend}, mode {cluster.precision}")
        self._say(run_fields.shown_settings(cluster.settings))
        if changes := cluster._about.get("changes"):
            self._say(f"changed {changes}")
        if self._units is not None:
            names = self._units.names
            sizes = (f"{k} {self._units.value(k, names[k]):.6g} {names[k]}" for k in names)
            self._say(f"units: {', '.join(sizes)}; G = {self._units.G:.6g}")
        if self._ranks.size > 1:
            self._say(f"{self._ranks.size} ranks")
        self._say(*launched.info(cluster) if self._options.ranks_info else [])
        start = os.path.realpath(self._options.start) if self._options.restart else None
        new_writers = [writer for writer in self._writers if os.path.realpath(writer.path) != start]
        for writer in new_writers:
            self._say_kept(writer.path, writer.keep())
        for path in [*self._texts, *self._plots]:
            keeps = self._is_first and not self._options.overwrite
            self._say_kept(path, atomic_files.keep(path) if keeps else None)
        self._say(_HEADER)
        self._output(new_writers)
        self._profile_from = _clock.seconds(), cluster.force_seconds
        self._output_time = self._output_forces = 0.0
        stopped_by = None
        if self._signal() is None:
            stopped_by = cluster.evolve(
                end,
                lambda _: self._output(self._writers),
                every=self._about["dt_out"],
                events=run_fields.events_of(self._options),
                progress=self._is_first and not self._options.json,
            )
        signals.received = self._signal()
        stopped = cluster.time < end
        cause, status = None, 0
        if stopped and signals.received is not None:
            cause, status = signal.Signals(signals.received).name, 128 + signals.received
        elif stopped and stopped_by is not None:
            cause, status = run_fields.shown_event(stopped_by), run_fields.STOPPED_BY_EVENT
        if stopped and (cluster.time > self._history[-1]["time"] or not self._writers):
            try:
                if not self._writers:
                    self._writers = [self._writer(RESTART_FILE)]
                    self._say_kept(RESTART_FILE, self._writers[0].keep())
                self._output(self._writers)
            except OSError as error:
                raise Grape6Error(
                    f"stopped at time {cluster.time:g} by {cause}, and that is not saved: "
                    f"{error.filename}: {error.strerror}; what was written before is whole"
                ) from error
        self._finish()
        if cause is None:
            return 0
        how = (
            f"grape6: stopped at time {cluster.time:g} by {cause}; go on with: "
            f"grape6 run {shlex.quote(self._writers[0].path)} --restart "
            f"--t-end {repr(end).removesuffix('.0')}"  # every digit: the same end
        )
        print(printable(how), file=sys.stderr)
        return status

    def _writer(self, path: PathLike) -> Writer:
        overwrite = self._options.overwrite and path != RESTART_FILE
        return self._open_files.enter_context(Writer(path, self._ranks, overwrite=overwrite))

    def _say_kept(self, path: PathLike, name: str | None) -> None:
        if name is not None:
            print(printable(f"grape6: {path} was there, and is {name} now"), file=sys.stderr)

    def _output(self, writers: Iterable[Writer]) -> None:
        cluster = self.cluster
        began, forces = _clock.seconds(), cluster.force_seconds
        since = self._profile_from[0] + self._output_time if self._profile_from else began
        self._seconds.append(began - since)
        record = reader.record(describe(cluster), self._about["initial_energy"])
        self._specific = cluster._specific_error()
        record["error"] = record["error"] if self._specific is None else self._specific
        self._history.append(record)
        binaries = cluster.binaries() if self._options.list_binaries else None
        with self._ranks.agreement("an output"):
            for writer in writers:
                writer.save(cluster, about=self._about, binaries=binaries)
            if self._plots:
                self._shown.offer(cluster.time, self._moment)
            self._write_texts()
        new = cluster.events[self._events_shown :]
        self._say(*("  " + run_fields.shown_event(event) for event in new))
        self._events_shown = len(cluster.events)
        self._say(_line(self._history[-1], _clock.seconds() - self._began))
        self._say(*[] if binaries is None else run_fields.shown_binaries(binaries))
        self._output_time += _clock.seconds() - began
        self._output_forces += cluster.force_seconds - forces

    def _write_texts(self) -> None:
        """Write the bodies in the formats of names, with what these have a place for."""
        if not self._texts:
            return
        time = self.cluster.time
        particles, ids = self.cluster._all_particles()
        comment = f"{self._about['name']}\ntime = {time!r}"
        more: Attributes = {"time": time, "ids": ids, "units": self._units}
        for path in self._texts if self._is_first else []:
            kept = {name: more[name] for name in formats.by_name(path).keeps.split()}
            snapshot.write_snapshot(path, particles, comment=comment, **kept)

    def _moment_in(self, which: int) -> moments.Moment:
        """An output of the file that is gone on from; the first rank draws."""
        if self._is_first:
            return moments.read(self._earlier, which)
        return moments.Moment(self._history[which]["time"], np.zeros(0), np.zeros((0, 3)))

    def _moment(self) -> moments.Moment:
        (mass, pos, _), _ = self.cluster._all_particles()
        labels, component = self.cluster._labels, None
        if labels is not None:
            component = self.cluster._owners.to_first(labels.of(self.cluster._own_ids()))
        return moments.Moment(self.cluster.time, mass, pos, component)

    def _finish(self) -> None:
        o, cluster = self._options, self.cluster
        began, forces = self._profile_from or (math.nan, math.nan)
        outputs = self._output_time
        integration = _clock.seconds() - began - outputs
        own = integration - (cluster.force_seconds - forces - self._output_forces)
        profile = {"integration": integration, "bookkeeping": own, "outputs": outputs}
        taken: dict[str, float] = getattr(cluster._forces, "seconds", {})  # of stages of a tree
        slowest = self._ranks.largest(np.array(list(taken.values())))
        stages = dict(zip(taken, slowest.tolist(), strict=True))
        if o.plot and self._is_first:
            from grape6py import picture  # matplotlib takes its time

            title = picture.title_of(self._about | cluster.settings, cluster.n)
            shown, units = self._shown.found(), self._units
            picture.draw(o.plot, title, self._history, diagnostics.FRACTIONS, shown, units=units)
        if o.json:
            report = self._about | {"backend": cluster.backend, "precision": cluster.precision}
            report |= {"settings": cluster.settings, "profile": profile, "history": self._history}
            report |= {"stages": stages} if stages else {}
            report["seconds"] = self._seconds
            report["events"] = [event._asdict() for event in cluster.events]
            print(json.dumps(_without_nan(report)))
            return
        if o.profile:
            share = profile["bookkeeping"] / (profile["integration"] or 1)
            self._say(
                f"profile: integration {profile['integration']:.3f} s, of which forces "
                f"{100 * (1 - share):.1f} %, bookkeeping {100 * share:.1f} %; "
                f"outputs {profile['outputs']:.3f} s"
            )
            if stages:
                each = (f"{name} {seconds:.3f} s" for name, seconds in stages.items())
                self._say(f"stages of the sums, on the slowest rank: {', '.join(each)}")
        written = [*(writer.path for writer in self._writers), *self._texts, *self._plots]
        self._say(*(f"written: {path}" for path in written))
        error = self._history[-1]["error"]
        if math.isnan(error):
            self._say("no relative energy error: the energy was 0 at the start")
        elif self._specific is not None:
            self._say(f"relative error {error:.3e} of the specific energies of bodies without mass")
        else:
            self._say(f"relative energy error {error:.3e}")

    def _say(self, *lines: str) -> None:
        for line in lines if not self._options.json else ():
            tqdm.tqdm.write(printable(line))  # above the bar
            sys.stdout.flush()


def _read(path: PathLike, owners: Ranks, **given: Untyped) -> snapshot.Snapshot:
    """Bodies of a file, or of the last output of a run; each rank of MPI may read a share."""
    found = snapshot.read_snapshot(path, comm=owners.comm, **given)
    if found.expansion is not None:
        raise ArgumentError(
            f"{path} is of a cosmological run, and space does not expand here: grape6 convert "
            f"{path} still.hdf5 --units 'Msun kpc km/s' makes bodies that can be run, in "
            "physical units and without the expansion"
        )
    return found


def _begun(
    options: argparse.Namespace, found: snapshot.Snapshot, eps: float, ranks: Ranks
) -> Hermite | Leapfrog:
    """The integration of these bodies, or of this rank's, that the options ask for."""
    name = options.integrator or "hermite"
    kind, given = _KINDS[name], _given(options, _INTEGRATION)
    known = inspect.signature(kind).parameters
    if wrong := [option for option in given if option not in known]:
        options.parser.error(f"{_spelt(wrong)}: not of --integrator {name}")
    if name == "leapfrog" and not (options.dt or options.dt_max):
        options.parser.error("--integrator leapfrog needs --dt, or --dt-max for block steps")
    given |= run_fields.settings_of(options, found.units)
    given |= {"ids": found.ids, "comm": ranks.comm}
    return kind(*found, eps=eps, **given | _given(options, ["backend"]))


def _given(options: argparse.Namespace, names: Iterable[str]) -> Attributes:
    """Those of the options that were, by name."""
    values = {name: getattr(options, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _name(path: PathLike) -> str:
    """A file's name as text that HDF5 and matplotlib take, whatever its bytes are."""
    return Path(path).name.encode("utf-8", "replace").decode()


def _spelt(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _line(record: reader.Record, wall: float) -> str:
    radii = "".join(f" {_short(radius)}" for radius in record["radii"])
    error = "-" if math.isnan(record["error"]) else f"{record['error']:.2e}"  # there is no energy
    return (
        f"{_short(record['time'])} {error:>10} {_short(record['virial_ratio'])}{radii}"
        f"{record['steps']:13d}{record['blocks']:11d}{wall:9.2f}"
    )


def _short(value: float) -> str:
    """Eight columns, in any units."""
    if math.isnan(value):
        return f"{'-':>8}"
    return f"{value:8.4f}" if value == 0 or 0.01 <= abs(value) < 1000 else f"{value:8.2e}"


def _without_nan(value: object) -> object:
    """None where JSON has no word: what one body or massless ones lack."""
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
