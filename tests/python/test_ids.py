"""Bodies keep their numbers of 64 bits through changes, events, files and copies."""

import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, plummer, read_snapshot, write_snapshot
from grape6py.errors import ArgumentError
from grape6py.events import Encounter, Escape
from runs import run

HERMITE = Hermite, {"eps": 0.01, "backend": "cpu"}
LEAPFROG = Leapfrog, {"eps": 0.05, "dt_max": 1 / 16, "backend": "cpu"}
BOTH = pytest.mark.parametrize(
    ("kind", "options"), [HERMITE, LEAPFROG], ids=["Hermite", "Leapfrog"]
)
# Beyond 32 bits, beyond what a double holds, and beyond int64, as half of AMUSE's keys are.
STARTS = pytest.mark.parametrize("start", [2**40, 2**53 + 1, 2**63 - 20, 2**64 - 80])


def numbered(start, n):
    return np.array([start + k for k in range(n)], np.uint64 if start + n > 2**63 else np.int64)


@BOTH
@STARTS
def test_large_ids_stay_with_their_bodies(kind, options, start, tmp_path):
    ids = numbered(start, 40)
    c = kind(*plummer(40, seed=1), ids=ids, **options)
    assert c.ids.dtype == ids.dtype
    masses = {start + k: 1 / 40 for k in range(40)}
    c.remove([start + 3, start + 39])
    kept = c.merge([start + 4, start + 5])
    assert kept in (start + 4, start + 5)
    c.set_mass(start + 7, 0.5)
    added = c.add([0.1, 0.2], np.eye(3)[:2], np.zeros((2, 3)))
    assert added.tolist() == [start + 40, start + 41]
    gone = start + 3, start + 39, 2 * start + 9 - kept
    masses = {k: m for k, m in masses.items() if k not in gone}
    masses |= {kept: 1 / 20, start + 7: 0.5, start + 40: 0.1, start + 41: 0.2}
    c.evolve(0.125)
    c.save(tmp_path / "a.h5")
    for again in c, c.copy(), kind.load(tmp_path / "a.h5"):
        assert dict(zip(again.ids.tolist(), again.mass.tolist(), strict=True)) == masses
    found = read_snapshot(tmp_path / "a.h5")
    assert found.ids.tolist() == c.ids.tolist()
    next_one = kind.load(tmp_path / "a.h5")
    next_one.remove(start + 41)
    next_one.save(tmp_path / "b.h5")  # the largest that there was is remembered
    assert kind.load(tmp_path / "b.h5").add(0.0, [9, 0, 0], [0, 0, 0]) == [start + 42]


@STARTS
def test_events_name_large_ids(start):
    mass, pos, vel = plummer(64, seed=2)
    pos[5], vel[5] = [2.9, 0, 0], [2, 0, 0]
    pos[6], vel[6] = pos[7] + [0.05, 0, 0], vel[7] - [1, 0, 0]
    for kind, options in HERMITE, LEAPFROG:
        watched = [Escape(3.0)] + [Encounter(0.02, "merge")] * (kind is Hermite)
        large, small = (kind(mass, pos, vel, ids=ids, **options)
                        for ids in (numbered(start, 64), None))  # fmt: skip
        for c in large, small:
            c.evolve(0.125, events=watched)
            c = c.copy()  # with what is known
        names = [tuple(start + k for k in event.ids) for event in small.events]
        assert (start + 5,) in names
        assert [event.ids for event in large.events] == names
        assert [event.time for event in large.events] == [event.time for event in small.events]
        assert large.state()["pos"].tobytes() == small.state()["pos"].tobytes()


def test_what_is_known_of_pairs_of_large_ids_is_restored(tmp_path):
    pair = np.array([1.0, 1.0]), np.array([[0, 0, 0], [0.1, 0, 0.0]]), np.zeros((2, 3))
    c = Hermite(*pair, eps=1.0, ids=[2**53, 2**53 + 1])
    seen = []
    events = [Encounter(0.5, lambda _, event: seen.append(event.ids)), Escape(0.05, "stop")]
    c.evolve(0.25, events=events[0])
    c.save(tmp_path / "a.h5")
    for again in c.copy(), Hermite.load(tmp_path / "a.h5"):
        again.evolve(0.5, events=events[0])
    assert seen == [(2**53, 2**53 + 1)]


@BOTH
@pytest.mark.parametrize(("ids", "words"), [
    ([5, 6, 5], "5 is the number of two"), ([5, -6, 7], r"ids\[1\] = -6"),
    ([1, 2, 2**64], "18446744073709551616"), ([1.0, 2.0, 3.5], "float64, not integers"),
    ([1, 2], "shape"), (["1", "2", "3"], "not integers"),
])  # fmt: skip
def test_what_is_no_number_of_a_body_is_refused(kind, options, ids, words):
    with pytest.raises(ArgumentError, match=words):
        kind(*plummer(3, seed=1), ids=ids, **options)


@BOTH
def test_after_the_last_number_there_is_none(kind, options):
    c = kind(*plummer(3, seed=1), ids=[2**63 - 1, 1, 2], **options)
    assert c.add(0.0, [9, 0, 0], [0, 0, 0]).tolist() == [2**63]
    c = kind(*plummer(3, seed=1), ids=[2**64 - 1, 1, 2], **options)
    with pytest.raises(ArgumentError, match="give ids="):
        c.add(0.0, [9, 0, 0], [0, 0, 0])
    assert c.add(0.0, [9, 0, 0], [0, 0, 0], ids=[3]).tolist() == [3]


@pytest.mark.parametrize(("ids", "words"), [
    (numbered(2**40, 50), None), (numbered(2**64 - 50, 50), None),
    (np.arange(50)[::-1] - 1, r"ids[49] = -1"), (np.arange(50) // 2, "0 is the number of two"),
])  # fmt: skip
@pytest.mark.parametrize("more", [[], ["--integrator", "leapfrog", "--dt", 0.0625]])
def test_grape6_run_keeps_ids_or_says_why_not(here, capsys, ids, words, more):
    write_snapshot("a.hdf5", plummer(50, seed=1), ids=ids)
    end = [*more, "--eps", 0.1, "--backend", "cpu", "--t-end", 0.0625, "--dt-out", 0.0625]
    status = run("a.hdf5", *end, "--out", "b.h5", "--out", "b.csv")
    if words is not None:
        assert status == 1
        error = capsys.readouterr().err
        assert words in error
        assert "--renumber" in error
        assert run("a.hdf5", *end, "--out", "b.h5", "--renumber") == 0
        assert read_snapshot("b.h5").ids.tolist() == list(range(50))
        return
    assert status == 0
    assert run("b.h5", "--restart", "--t-end", 0.125) == 0
    assert run("b.h5", *end, "--out", "c.h5") == 0  # its last output, as a new run
    for name in ["b.h5", "c.h5", *["b.csv"] * (ids.dtype == np.int64)]:
        assert read_snapshot(name).ids.tolist() == ids.tolist()
