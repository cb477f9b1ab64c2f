"""Ranks of which one ends: `mpirun -n P python end_programs.py NAME`.

The last rank ends, by whatever; others say what they hear.
"""

import json
import os
import signal
import sys
import time

from mpi4py import MPI

from grape6py import Hermite, Leapfrog, Tree, plummer, write_snapshot
from grape6py.events import Escape
from grape6py.ranks import endings

WORLD = MPI.COMM_WORLD
IS_LAST = WORLD.rank == WORLD.size - 1
BODIES = plummer(60, seed=1)


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")


def heard(call):
    try:
        call()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def hermite(comm, **more):
    return Hermite(*BODIES, eps=0.1, backend="cpu", comm=comm, **more)


def leapfrog(comm, **more):
    return Leapfrog(*BODIES, eps=0.1, dt=2**-6, backend="cpu", comm=comm, **more)


def leave(*_):
    if IS_LAST:
        sys.exit("seen enough")


def interrupt(*_):
    if IS_LAST:
        os.kill(os.getpid(), signal.SIGINT)


def interrupted_later():
    cluster = hermite(WORLD)
    cluster.evolve(0.1)
    if IS_LAST:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        signal.signal(signal.SIGALRM, interrupt)
    cluster.evolve(1e6)


def field(t, pos, vel):
    if t > 0.1:
        leave()
    return -pos, -vel, (pos**2).sum(axis=1) / 2


ERRORS = {  # of a rank that goes on, and is with the others again
    "callback": lambda: hermite(WORLD).evolve(1.0, leave),
    "Ctrl-C in a callback": lambda: hermite(WORLD).evolve(1.0, interrupt),
    "Ctrl-C": interrupted_later,
    "field": lambda: hermite(WORLD, field=field).evolve(1.0),
    "leapfrog": lambda: leapfrog(WORLD).evolve(1.0, leave),
    "field of a leapfrog": lambda: leapfrog(WORLD, field=field).evolve(1.0),
    "Ctrl-C in an action": lambda: leapfrog(WORLD).evolve(1.0, events=Escape(1.0, interrupt)),
}


def errors():
    for name, call in ERRORS.items():
        texts = WORLD.gather(heard(call))
        cluster = hermite(WORLD)
        cluster.evolve(0.1)
        if WORLD.rank == 0:
            say(case=name, texts=texts, time=cluster.time)


CALLS = [
    lambda comm: leapfrog(comm).evolve(1.0),
    lambda comm: Tree(BODIES.pos, BODIES.mass, backend="cpu", comm=comm).forces(),
    lambda comm: write_snapshot("a.hdf5", BODIES, comm=comm),
]


def ends():
    """Programs that end, or die, while others are in a call: of two ranks for each call."""
    case, is_last = divmod(WORLD.rank, 2)
    comm = WORLD.Split(case)
    cluster = hermite(comm)
    if is_last:
        if case == 0:
            raise ZeroDivisionError("of the program")
        return
    text = heard(lambda: CALLS[case](comm))
    say(case=case, text=text, again=heard(cluster.step) == text)


def first():
    """One program ends much earlier than the other, which needs nobody."""
    hermite(WORLD).evolve(0.1)
    if not IS_LAST:
        time.sleep(0.5)
        say(alone=hermite(None).evolve(0.1))


def twice():
    """A second Ctrl-C before the first is heard: the rank leaves a call in its midst."""
    hermite(WORLD).evolve(1.0, lambda _: (interrupt(), interrupt()))


def alone():
    """One rank has comm=None, and comes later after all."""
    endings._LONG = 0.1
    if IS_LAST:
        time.sleep(1.0)
    hermite(WORLD)


globals()[sys.argv[1]]()
