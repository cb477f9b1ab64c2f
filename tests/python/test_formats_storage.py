"""HDF5 in every form that its own file is enough for is read; the rest is refused by its name."""

import io
import os
import zlib

import h5py
import numpy as np
import pytest

import hand_made
from as_read import assert_bodies, read
from grape6py import read_snapshot
from grape6py.errors import SnapshotError
from hand_made import MASS, POS, VEL

N = 3000
X = np.random.default_rng(1).random((N, 3))
ZSTD = 32015


def stored(**how):
    """A file of N bodies whose positions are made with create_dataset(how)."""

    def fill(file):
        file.create_group("Header").attrs.update(NumPart_ThisFile=[0, N], Time=0.0)
        group = file.create_group("PartType1")
        group["Velocities"], group["Masses"] = np.zeros((N, 3)), np.ones(N)
        group.create_dataset("Coordinates", **({"data": X} | how))

    return hand_made.hdf5(fill)


@pytest.mark.parametrize("how", [
    {}, {"chunks": (7, 3)}, {"chunks": (512, 2), "compression": "gzip"},
    {"chunks": (512, 3), "compression": "gzip", "shuffle": True, "fletcher32": True},
    {"chunks": (512, 3), "compression": "lzf"}, {"chunks": (N + 1, 3), "maxshape": (None, 3)},
    {"data": X.astype(">f4")},
    pytest.param({"chunks": (500, 3), "compression": "szip"},
        marks=pytest.mark.skipif(not h5py.h5z.filter_avail(4), reason="SKIP: szip")),
])  # fmt: skip
def test_what_lies_in_the_file_is_read(how):
    assert np.array_equal(read(stored(**how)).pos, how.get("data", X).astype(float))


def test_a_compact_dataset_is_read():
    def change(file):
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_layout(h5py.h5d.COMPACT)
        del file["PartType4/Coordinates"]
        space = h5py.h5s.create_simple((1, 3))
        low = h5py.h5d.create(file["PartType4"].id, b"Coordinates", h5py.h5t.NATIVE_DOUBLE, space,
                              made)  # fmt: skip
        h5py.Dataset(low)[...] = POS[2]

    assert_bodies(read(hand_made.gadget_hdf5(change=change)))


@pytest.mark.parametrize("how", [
    {"compression": "gzip", "compression_opts": 9}, {"scaleoffset": 0},
])  # fmt: skip
def test_equal_numbers_that_are_small_when_compressed_are_read(how):
    """A million equal masses: a thousandth in deflate, and next to nothing as an offset."""
    n = 1 << 20

    def fill(file):
        file.create_group("Header").attrs.update(NumPart_ThisFile=[0, n], Time=0.0)
        group = file.create_group("PartType1")
        for name, shape, kind in (("Coordinates", (n, 3), "i2"), ("Velocities", (n, 3), "i1"),
                                  ("Masses", (n,), "i8")):  # fmt: skip
            group.create_dataset(name, data=np.ones(shape, kind), chunks=(1 << 15, *shape[1:]),
                                 **how)  # fmt: skip

    found = read(hand_made.hdf5(fill))
    assert (found.mass == 1).all()
    assert (found.pos == 1).all()


def virtual(group, key):
    layout = h5py.VirtualLayout((1, 3), "f8")
    layout[:] = h5py.VirtualSource("other.hdf5", "PartType1/Coordinates", (1, 3))
    group.create_virtual_dataset(key, layout)


def external(group, key):
    group.create_dataset(key, (1, 3), "f8", external=[(os.path.abspath("fifo"), 0, 24)])


def link(target):
    return lambda group, key: group.__setitem__(key, target)


def unwritten(shape, **how):
    return lambda group, key: group.create_dataset(key, shape, "f8", **how)


def partly(group, key):
    group.file["Header"].attrs["NumPart_ThisFile"] = [1, 9, 0, 0, 1, 0]
    group.create_dataset(key, (9, 3), "f8", chunks=(3, 3))[:6] = 1.0


def zstd(group, key):
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((1, 3))
    made.set_filter(ZSTD, h5py.h5z.FLAG_OPTIONAL, (3,))
    space = h5py.h5s.create_simple((1, 3))
    h5py.h5d.create(group.id, key.encode(), h5py.h5t.NATIVE_DOUBLE, space, made)


def datatype(group, key):
    group[key] = np.dtype("f8")


FIRST, MASSES = "PartType1/Coordinates", "PartType4/Masses"
REFUSED = {
    "virtual": (FIRST, virtual, f"{FIRST} is virtual.*other files"),
    "external storage": (FIRST, external, f"{FIRST} has its numbers in another file"),
    "external link": (FIRST, link(h5py.ExternalLink("other.hdf5", "/x")), "link to another"),
    "link to a fifo": (MASSES, link(h5py.ExternalLink("fifo", "/x")), "link to another"),
    "link to itself": (FIRST, link(h5py.SoftLink("/" + FIRST)), f"{FIRST} is a link to too many"),
    "link to nothing": (FIRST, link(h5py.SoftLink("/nowhere")), f"no {FIRST}"),
    "group": (FIRST, lambda group, key: group.create_group(key), f"{FIRST} is no array"),
    "named datatype": (FIRST, datatype, f"{FIRST} is no array"),
    "never written": (FIRST, unwritten((1, 3)), f"{FIRST} was never written"),
    "masses never written": (MASSES, unwritten(1, fillvalue=1.0), f"{MASSES} was never written"),
    "chunks never written": (FIRST, unwritten((1, 3), chunks=(1, 3)), f"{FIRST} was never written"),
    "partly written": (FIRST, partly, f"{FIRST} was never written, 1 of its 3 pieces"),
    "a filter": (FIRST, zstd, rf"{FIRST} is stored with the filter .*\({ZSTD}\)"),
    "units elsewhere": ("/Units", link(h5py.ExternalLink("other.hdf5", "/")),
                        "/Units is a link to another file"),
    "a great many": (FIRST, unwritten((10**12, 3), chunks=(1 << 20, 3)), "was never written"),
}  # fmt: skip


@pytest.mark.skipif(h5py.h5z.filter_avail(ZSTD), reason="SKIP: a zstd of HDF5 is installed")
@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_lie_in_the_file_is_refused_by_its_name(case, here):
    os.mkfifo("fifo")
    with h5py.File("other.hdf5", "w") as file:
        file["x"] = file["PartType1/Coordinates"] = np.ones((1, 3))
    name, make, said = REFUSED[case]

    def change(file):
        group, key = name.rsplit("/", 1)
        if name in file:
            del file[name]
        make(file[group or "/"], key)

    data = hand_made.gadget_hdf5(change=change)
    (here / "a.hdf5").write_bytes(data)
    for source in ("a.hdf5", io.BytesIO(data)):
        with pytest.raises(SnapshotError, match=said) as caught:
            read_snapshot(source)
        assert "\n" not in str(caught.value)


def test_links_inside_the_file_are_followed():
    def change(file):
        file.move("PartType1", "dark")
        file["PartType1"] = h5py.SoftLink("dark")
        file["places"] = file["dark/Coordinates"]
        del file["dark/Coordinates"]
        file["dark/Coordinates"] = h5py.SoftLink("/./places")

    assert_bodies(read(hand_made.gadget_hdf5(change=change)), MASS, POS, VEL)


def test_chunks_that_claim_more_than_they_can_hold_are_refused():
    """Each of 4 MB of zeros, and written in 20 bytes that are no data of deflate's."""
    n = 1 << 22

    def fill(file):
        file.create_group("Header").attrs.update(NumPart_ThisFile=[0, n], Time=0.0)
        group = file.create_group("PartType1")
        made = group.create_dataset("Coordinates", (n, 3), "i1", chunks=(n, 3), compression="gzip")
        made.id.write_direct_chunk((0, 0), zlib.compress(bytes(100)))

    with pytest.raises(SnapshotError, match=r"should have 12582912 bytes, and \d+ are stored"):
        read(hand_made.hdf5(fill))
