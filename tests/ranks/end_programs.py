"""Ranks of which one ends: `mpirun -n P python end_programs.py NAME`.

The last rank ends, by whatever; others say what they hear."""

import os
import signal
import sys
import time

from grape6py import Hermite, Leapfrog, Tree, plummer, write_snapshot
from grape6py.events import Escape
from grape6py.ranks import endings
from rank_programs import COMM, LAST, RANK, complaint, of_last, refused

BODIES = plummer(60, seed=1)


def hermite(comm, **more):
    return Hermite(*BODIES, eps=0.1, backend="cpu", comm=comm, **more)


def leapfrog(comm, **more):
    return Leapfrog(*BODIES, eps=0.1, dt=2**-6, backend="cpu", comm=comm, **more)


def leave(*_):
    if LAST:
        sys.exit("seen enough")


def interrupt(*_):
    if LAST:
        os.kill(os.getpid(), signal.SIGINT)


def interrupted_later():
    cluster = hermite(COMM)
    cluster.evolve(0.1)
    if LAST:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        signal.signal(signal.SIGALRM, interrupt)
    cluster.evolve(1e6)


def field(t, pos, vel):
    if t > 0.1:
        leave()
    return -pos, -vel, (pos**2).sum(axis=1) / 2


LEFT, STOPPED = of_last("SystemExit: seen enough"), of_last("KeyboardInterrupt")
ERRORS = [  # of a rank that goes on, and is with the others again
    (lambda: hermite(COMM).evolve(1.0, leave), LEFT),
    (interrupted_later, STOPPED),
    (lambda: hermite(COMM, field=field).evolve(1.0), LEFT),
    (lambda: leapfrog(COMM).evolve(1.0, leave), LEFT),
    (lambda: leapfrog(COMM, field=field).evolve(1.0), LEFT),
    (lambda: leapfrog(COMM).evolve(1.0, events=Escape(1.0, interrupt)), STOPPED),
]


def errors():
    for call, texts in ERRORS:
        refused(call, *texts)
        cluster = hermite(COMM)
        cluster.evolve(0.1)
        assert cluster.time == 0.1


CALLS = [lambda comm: leapfrog(comm).evolve(1.0),
         lambda comm: Tree(BODIES.pos, BODIES.mass, backend="cpu", comm=comm).forces(),
         lambda comm: write_snapshot("a.hdf5", BODIES, comm=comm)]  # fmt: skip


def ends():
    """Programs that end, or die, while others are in a call: of two ranks for each call."""
    case, is_last = divmod(RANK, 2)
    comm = COMM.Split(case)
    cluster = hermite(comm)
    if is_last:
        if case == 0:
            raise ZeroDivisionError("of the program")
        return
    why = " (ZeroDivisionError: of the program)" if case == 0 else ""
    for call in (lambda: CALLS[case](comm), cluster.step):
        assert complaint(call) == f"RankError: rank 1 of 2 has ended its program{why}"
    print("heard")


def first():
    """One program ends much earlier than the other, which needs nobody."""
    hermite(COMM).evolve(0.1)
    if not LAST:
        time.sleep(0.5)
        hermite(None).evolve(0.1)
        print("heard")


def twice():
    """A second Ctrl-C before the first is heard: the rank leaves a call in its midst."""
    hermite(COMM).evolve(1.0, lambda _: (interrupt(), interrupt()))


def alone():
    """One rank has comm=None, and comes later after all."""
    endings._LONG = 0.1
    if LAST:
        time.sleep(1.0)
    hermite(COMM)


globals()[sys.argv[1]]()
