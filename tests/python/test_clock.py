"""No result depends on measured time: a clock that jumps, in the library and in Python, changes no
bit of what is computed."""

import re

import pytest

import capi

# Every integrator, backend of the host and kind of event; a frame, whose path is looked ahead; a
# field that is a function; calls that the library sums ahead.
SCRIPT = """
import hashlib, itertools, os
import numpy as np
import grape6py._clock
from grape6py import Grape6, Hermite, Leapfrog, fields, plummer
from grape6py.events import EnergyError, Encounter, Escape

if "GRAPE6_TEST_CLOCK" in os.environ:
    random, looks = np.random.default_rng(int(os.environ["GRAPE6_TEST_CLOCK"])), itertools.count()
    ahead = itertools.accumulate(random.choice([0, 0.001, 0.1, 10]) for _ in looks)
    grape6py._clock.seconds = ahead.__next__
built_in = fields.nfw(5, 1)
function = lambda t, pos, vel: built_in(t, pos, vel)
orbit = [4, 0, 0.3, 0, 1, 0]
model = plummer(32, seed=1)
watched = [Encounter(0.02, lambda c, e: c.kick(e.ids[0], [0, 0, 0.01])), Escape(2), EnergyError(9)]
frames = [{}, {"field": built_in}, {"field": function}, {"field": built_in, "orbit": orbit},
          {"field": function, "orbit": orbit}]
made = [(Hermite, frame | more)
        for frame in frames for more in ({"backend": "auto"}, {"passes": 2})]
made += [(Leapfrog, frames[-1] | more | {"backend": backend})
         for more in ({"dt": 1 / 64}, {"dt_max": 1 / 16}) for backend in ("auto", "cpu-tree")]
made += [(Leapfrog, {"dt_max": 1 / 16, "accuracy": 1e-3, "backend": "cpu-tree"})]
for kind, options in made:
    for events in ([], watched) if kind is Hermite else ([], watched[1:]):
        cluster = kind(*model, eps=0.01, **options)
        cluster.evolve(0.11, events=events)
        cluster.evolve(0.23, lambda c: None)
        found = cluster.time, cluster.steps, cluster.pos, cluster.vel, *cluster.origin, cluster.ids
        text = b"".join(np.ascontiguousarray(a).tobytes() for a in found)
        text += repr(cluster.events).encode()
        print(kind.__name__, list(options), len(events), hashlib.sha256(text).hexdigest())
with Grape6() as grape:
    grape.set_particles(*model)
    rows = [grape.forces(model.pos[k : k + 4], model.vel[k : k + 4]) for k in range(0, 32, 4)]
    print(hashlib.sha256(b"".join(each.acc.tobytes() for each in rows)).hexdigest())
"""


def test_a_clock_that_jumps_changes_no_bit(variants):
    env = {"GRAPE6_TEST_LIBRARY": str(variants["counted"].library)}
    plain = capi.run_python(SCRIPT, **env).stdout
    assert len(plain.splitlines()) > 20
    assert capi.run_python(SCRIPT, **env, GRAPE6_TEST_CLOCK="1").stdout == plain


PYTHON_CLOCK = r"time\.(time|monotonic|perf_counter)(_ns)?\b|from time import|datetime"
C_CLOCK = r"\b(clock_gettime|gettimeofday|clock|time|rdtsc\w*|timespec_get)\("
ALLOWED = {"_clock.py", "clock.c", "clock.h"}


@pytest.mark.parametrize(
    ("folder", "pattern", "call"), [("grape6py", "*.py", PYTHON_CLOCK), ("csrc", "*.[ch]", C_CLOCK)]
)
def test_the_clock_is_read_in_one_place(folder, pattern, call):
    paths = [path for path in (capi.ROOT / folder).rglob(pattern) if path.name not in ALLOWED]
    assert [p.name for p in paths if re.search(call, p.read_text())] == []
