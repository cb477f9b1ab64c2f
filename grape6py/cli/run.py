"""``grape6 run``: integrate a cluster or galaxies, with log, snapshots, restarts and picture."""

import argparse
import math
import sys
import warnings
from pathlib import Path

from grape6py.cli import convert
from grape6py.cli.numbers import kind, not_negative, picture_name, positive, seed, whole
from grape6py.errors import Grape6Warning, printable

BACKENDS = ("auto", "cpu", "cuda", "tree", "cpu-tree", "cuda-tree")

_EPILOG = """
MODEL is plummer, hernquist, king (--w0), eff (--gamma, --truncation), nfw (--concentration),
uniform (--virial-ratio), fractal (--dimension, --virial-ratio), galaxy (--black-hole), or merger
(--black-hole, --mass-ratio, --pericentre, --separation).
Clusters have G = M = 1 and E = -1/4, galaxies the units of the (first) disk's mass and scale
length, and five bodies of dark matter to a star. Those before fractal take --mass-function,
--segregation and --binaries.
FILE is a file of bodies of any of the formats that grape6 convert lists, as text (a line a body:
m x y z vx vy vz; G = 1), or an HDF5 file of an earlier run, whose last output is taken as the
start, at time 0. Numbered files of a Gadget snapshot have the name of one of them, or that without
the number. Ctrl-C and SIGTERM end the run after
the block step under way and leave a file to restart from; a restarted run has the same
bits as one that was never stopped. What is there is renamed to FILE.~1~, FILE.~2~, ..., unless
--overwrite is given. The outputs of run.h5 are files in the folder run; run.h5 is their index. Of
leapfrog on several ranks of MPI each output is in numbered files, of which each rank writes its
own.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the subcommand takes."""
    parser.description, parser.epilog = __doc__, _EPILOG
    parser.usage = "grape6 run [-h] [MODEL | FILE] [options]"
    add = parser.add_argument
    add("start", nargs="?", default="plummer", metavar="MODEL | FILE",
        help="what to integrate (plummer)")  # fmt: skip
    add("--n", type=whole, help="bodies of the model (1024)")
    add("--seed", type=seed, help="of the model (1)")
    add("--w0", type=_depth, help="central depth of king, from 1 to 12 (6)")
    add("--gamma", type=positive, help="slope of the surface density of eff (3)")
    add("--truncation", type=positive, metavar="R", help="of eff, in scale radii: below 3 needed")
    add("--concentration", type=positive, metavar="C", help="of nfw (10)")
    add("--virial-ratio", type=_ratio, metavar="Q",
        help="T/|W| of uniform and fractal, below 1; 0 for a cold one (0.5)")  # fmt: skip
    add("--dimension", type=_dimension, metavar="D", help="of fractal, from 1 to 3 (1.6)")
    add("--mass-function", choices=("kroupa", "salpeter", "maschberger"),
        help="of the stars; by default all have the same mass")  # fmt: skip
    add("--segregation", type=_share, metavar="S",
        help="of these masses, from 0 to 1, where a heavier star lies deeper (0)")  # fmt: skip
    add("--binaries", type=_share, metavar="F",
        help="this share of the N bodies become binaries with semi-major axes of 0.02/N to 2/N, "
        "and there is no softening (0)")  # fmt: skip
    add("--black-hole", type=not_negative, metavar="M",
        help="mass in the centre of each galaxy, over its disk's (0; 0.001 in merger)")  # fmt: skip
    add("--mass-ratio", type=positive, metavar="Q",
        help="mass of the second galaxy over the first's (1/3)")  # fmt: skip
    add("--pericentre", type=positive, metavar="R", help="smallest distance of the orbit (3)")
    add("--separation", type=positive, metavar="R", help="distance of the galaxies (30)")
    add("--t-end", type=positive, default=1.0, metavar="T", help="time to integrate to (1)")
    add("--eps", type=not_negative,
        help="softening length (4/N for a cluster, 0.05 galaxy, 0.1 merger, 0 file)")  # fmt: skip
    add("--integrator", choices=("hermite", "leapfrog"),
        help="scheme: of fourth order (hermite), or of second, for galaxies")  # fmt: skip
    add("--eta", type=positive, help="accuracy parameter of the steps (0.02; leapfrog: 0.025)")
    add("--eta-start", type=positive, metavar="ETA",
        help="the first steps are ETA |a| / |da/dt| (an eighth of --eta)")  # fmt: skip
    add("--passes", type=whole, metavar="N", help="corrector passes a step (1)")
    add("--subsystems", action=argparse.BooleanOptionalAction,
        help="integrate close pairs by themselves, which is so without softening")  # fmt: skip
    add("--dt", type=positive, help="constant step shared by all, instead of block steps")
    add("--dt-max", type=positive, metavar="DT", help="largest block step")
    add("--theta", type=positive, help="opening angle of leapfrog's tree (0.75; bh 0.85)")
    add("--accuracy", type=positive, metavar="ERROR",
        help="median error of the forces of leapfrog's tree, in place of --theta")  # fmt: skip
    add("--method", choices=("fmm", "bh"), help="how leapfrog's tree is walked (fmm)")
    add("--order", type=whole, metavar="P",
        help="of the expansions of fmm, 2 to 6 (5, less with --accuracy)")  # fmt: skip
    add("--boundary", type=positive, metavar="R",
        help="leapfrog takes out who is farther than R from the origin")  # fmt: skip
    add("--ranks-info", action="store_true",
        help="under mpirun: where each rank is, its backend, threads and bodies")  # fmt: skip
    add("--G", type=positive, metavar="G", help="the gravitational constant (1, or of the units)")
    add("--units", metavar="TEXT",
        help="what the model's mass and length of 1 are, or units to take the file's bodies in: "
        "'Msun pc', '5e4 Msun 1.2 pc' (G = 1), 'Msun kpc km/s'")  # fmt: skip
    convert.add_lacking(parser)
    add("--field", action="append", default=[], metavar="NAME,PARAMETER=...",
        help="field from outside, as mwpotential2014,radius=8000,speed=33.5 or nfw,mass=1,scale=2; "
        "may be given more than once: they add up")  # fmt: skip
    add("--orbit", type=_orbit, metavar="X,Y,Z,VX,VY,VZ",
        help="place and velocity of the bodies' frame in the field, in which it moves")  # fmt: skip
    add("--encounter", type=positive, metavar="R", help="watch for bodies closer than R")
    add("--on-encounter", choices=("stop", "merge"), help="what then (stop)")
    add("--escape", type=_radius, metavar="R",
        help="take out bodies farther than R from the origin, or (tidal) than two tidal radii "
        "from the density centre")  # fmt: skip
    add("--max-error", type=positive, metavar="E", help="stop at a larger energy error")
    add("--wall-time", type=positive, metavar="S", help="stop after so many seconds")
    add("--list-binaries", action="store_true",
        help="find binaries at each output, for the log and HDF5")  # fmt: skip
    add("--dt-out", type=positive, metavar="DT",
        help="time between outputs (a power of two, about T/8)")  # fmt: skip
    add("--backend", choices=BACKENDS, help="where forces are summed (auto; leapfrog: tree)")
    add("--precision", choices=("auto", "grape", "double", "single"),
        help="arithmetic of the forces")  # fmt: skip
    add("--threads", type=_threads, metavar="N", help="threads of a force call; 0 for all")
    add("--out", action="append", default=[], metavar="FILE", type=Path,
        help="snapshots; .h5: HDF5, a file for each output, to restart from; else the last output, "
        "in the ending's format (see grape6 convert). May be given more than once")  # fmt: skip
    add("--overwrite", action="store_true", help="replace the files of --out and --plot")
    add("--plot", metavar="FILE", type=picture_name, help="picture of the run: .png, .pdf or .svg")
    add("--renumber", action="store_true", default=None,
        help="the bodies of FILE get the numbers 0, 1, ... in place of its ids")  # fmt: skip
    add("--restart", action="store_true",
        help="go on where FILE, an HDF5 file, ends, with its settings (and into it, without "
        "--out)")  # fmt: skip
    add("--profile", action="store_true", help="print where the time went")
    add("--json", action="store_true", help="print the log as JSON at the end, and no bar")


def run(options: argparse.Namespace) -> int:
    """Integrate, and return the exit status: 128 + the signal's number if stopped by one."""
    from grape6py import snapshot
    from grape6py.cli import run_models
    from grape6py.cli.run_session import integrate  # opens the library

    if options.start not in run_models.MODELS:
        options.start = snapshot.file_of(options.start)
    if options.dt and options.dt_max:
        options.parser.error("--dt is a constant step: leave out --dt-max")
    reported = set()

    def say(message: object, *_: object, **__: object) -> None:
        if str(message) not in reported:  # not at every output
            reported.add(str(message))
            print(printable(f"grape6: {message}"), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", Grape6Warning)
        warnings.showwarning = say
        return integrate(options)


_orbit = kind(
    lambda text: [float(word) for word in text.replace(",", " ").split()],
    lambda values: len(values) == 6,
    "six numbers: x,y,z,vx,vy,vz",
)
_threads = kind(int, lambda v: 0 <= v <= 1024, "a whole number from 0 to 1024")
_depth = kind(float, lambda value: 1 <= value <= 12, "a number from 1 to 12")
_ratio = kind(float, lambda value: 0 <= value < 1, "a number from 0 to below 1")
_share = kind(float, lambda value: 0 <= value <= 1, "a number from 0 to 1")
_dimension = kind(float, lambda value: 1 <= value <= 3, "a number from 1 to 3")
_radius = kind(
    lambda text: text if text == "tidal" else float(text),
    lambda value: value == "tidal" or 0 < float(value) < math.inf,
    "a number above zero, or tidal",
)
