"""HDF5 files of Gadget, SWIFT, GIZMO and AMUSE are read as those codes mean them."""

import h5py
import numpy as np
import pytest

import hand_made
from as_read import assert_all, read, sizes
from grape6py import read_snapshot
from grape6py.errors import SnapshotError
from hand_made import GADGET, GIZMO, IDS, KPC, MSUN, POS, SWIFT, TIME, put


@pytest.mark.parametrize(("size", "bits"), [(8, 64), (8, 48), (6, 48), (5, 40)])
def test_gadget_hdf5_ids_of_any_size_are_exact(size, bits):
    """Gadget-4 has ids of 48 bits, in six bytes or in eight."""
    ids = [2**bits - 1, 2**33 + 5, 1]

    def change(file):
        kind = h5py.h5t.STD_U64LE.copy()
        kind.set_precision(bits)
        kind.set_size(size)
        for k, name in enumerate(name for name in list(file) if name.startswith("PartType")):
            del file[name]["ParticleIDs"]
            space = h5py.h5s.create_simple((1,))
            dataset = h5py.h5d.create(file[name].id, b"ParticleIDs", kind, space)
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([ids[k]], "u8"))

    assert read(hand_made.gadget_hdf5(change=change)).ids.tolist() == ids


def group_of(name, attributes):
    return lambda file: file.require_group(name).attrs.update(attributes)


def swift(file):
    """Headers as SWIFT writes them: arrays of one number."""
    group_of("Units", SWIFT)(file)
    group_of("InternalCodeUnits", SWIFT | {"Unit length in cgs (U_L)": [1.0]})(file)
    header = file["Header"].attrs
    for name in ("Time", "Redshift", "NumFilesPerSnapshot"):
        header[name] = np.atleast_1d(header[name])
    header["Dimension"], header["BoxSize"], header["Code"] = [3], [10.0] * 3, np.bytes_("SWIFT")
    group_of("Cosmology", {"Cosmological run": [0], "Omega_m": [1.0]})(file)


FILES = {
    **{dtype: ({"dtype": dtype}, False) for dtype in ("f4", "f8", ">f4")},
    "no ids": ({"ids": False}, False),
    **{code: ({"change": group_of(group, attributes)}, True) for code, group, attributes in [
        ("Gadget-2", "Units", GADGET), ("Gadget-4", "Parameters", GADGET),
        ("Arepo", "Header", GADGET), ("GIZMO", "Header", GIZMO), ("SWIFT", "Units", SWIFT)]},
    "seven types": ({"types": 7, "bodies": ((0, 0), (1, 0), (6, 0)), "change": swift}, True),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_gadget_hdf5_of_each_code_is_read_with_its_units(case):
    given, has_units = FILES[case]
    found = read(hand_made.gadget_hdf5(**given))
    assert_all(found, "gadget-hdf5", ids=IDS if given.get("ids", True) else None)
    if has_units:
        assert sizes(found.units) == pytest.approx([1e10 * MSUN, KPC, 1e5], rel=1e-12)
    else:
        assert found.units is None


@pytest.mark.parametrize("change", [
    put("PartType1/Coordinates", [[1.0, 2.0]]), put("PartType1/Velocities", None),
    put("PartType4/Masses", [[1.0]]), put("PartType4/Masses", [b"one"]), put("PartType0", None),
    put("PartType1/Coordinates", [[np.nan, 2.0, 3.0]]), put("PartType1", 5.0),
    group_of("Header", {"NumPart_ThisFile": ["many"]}), group_of("Header", {"MassTable": [1.0]}),
    group_of("Header", {"Time": "late"}), group_of("Header", {"NumPart_ThisFile": [[-1] * 6]}),
    group_of("Units", GADGET | {"UnitMass_in_g": 0.0}),
    group_of("Units", GADGET | {"UnitMass_in_g": "heavy"}),
    group_of("Units", SWIFT | {"Unit time in cgs (U_t)": [0.0]}),
    # no array of that many is to be tried
    group_of("Header", {"NumPart_ThisFile": [0, 2**44, 0, 0, 0, 0], "MassTable": [1.0] * 6}),
])  # fmt: skip
def test_gadget_hdf5_that_contradicts_itself_is_refused_by_its_name(tmp_path, change):
    path = tmp_path / "odd.hdf5"
    path.write_bytes(hand_made.gadget_hdf5(change=change))
    with pytest.raises(SnapshotError, match=r"odd\.hdf5"):
        read_snapshot(path)


TEXTS = {
    "sun": (hand_made.amuse_texts(mass=hand_made.SUN, length=hand_made.PARSEC,
                                  time=hand_made.MEGAYEAR),
            [1.98892e33, 3.08567758128e18, 3.08567758128e18]),
    "si": (hand_made.amuse_texts(), [1e3, 1e2, 1e2]),
    "nested": (hand_made.amuse_texts(mass="((1000.0 * 1e+3) * {})", length="(1e3 * (2 * {}))"),
               [1e9, 2e5, 2e5]),
    "quotient": (hand_made.amuse_texts() | {
        "velocity": "((1000.0 * system.get('S.I.').base('length')) "
                    "/ system.get('S.I.').base('time'))"}, [1e3, 1e2, 1e5]),
}  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("texts", [*TEXTS, None])
def test_amuse_of_both_versions_with_units_and_in_n_body_units(version, texts):
    words, expected = TEXTS[texts] if texts else (hand_made.amuse_texts("generic"), None)
    found = read(hand_made.amuse(version, texts=words))
    assert_all(found, "amuse", time=found.time)
    if texts is None:
        assert (found.units, found.time) == (None, TIME)
        return
    assert sizes(found.units) == pytest.approx(expected, rel=1e-12)
    seconds = TIME * (3.1556926e13 if texts == "sun" else 1)
    assert found.time * found.units.in_cgs("time") == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("version", [1, 2])
def test_amuse_has_each_saved_state(version):
    data = hand_made.amuse(version, states=12)
    for which, shift in ((0, 0), (-1, 1100), (9, 900)):
        assert read(data, which).pos.tolist() == (np.array(POS) + shift).tolist()
    with pytest.raises(SnapshotError, match="12 moments"):
        read(data, 12)


def test_amuse_columns_in_different_units_come_in_one():
    def change(file):
        file["data/0000000001/attributes/y"].attrs["units"] = hand_made.amuse_texts(
            length="(1000.0 * {})"
        )["length"]

    found = read(hand_made.amuse(change=change))
    assert sizes(found.units)[1] == 100
    assert found.pos.tolist() == [[x, 1000 * y, z] for x, y, z in POS]


def test_amuse_keys_of_64_bits_are_whole_and_a_time_may_be_missing():
    large = [2**64 - 1, 2**63, 2**53 + 1]
    found = read(hand_made.amuse(keys=large, timestamp=False))
    assert found.ids.tolist() == large
    assert found.time is None


@pytest.mark.parametrize("unit", [
    "__import__('os').getpid()", "none", "", "1.0", "system.get('S.I.').base('mass')",
    "(0.0 * system.get('S.I.').base('length'))", "(-1.0 * system.get('S.I.').base('length'))",
    "(1e999 * system.get('S.I.').base('length'))", "(10**400 * system.get('S.I.').base('length'))",
    "(system.get('S.I.').base('length') ** system.get('S.I.').base('length'))",
    "system.get('nowhere').base('length')", "(1/0 * system.get('S.I.').base('length'))",
    "(" * 500 + "1" + ")" * 500, "9" * 5000, "\u212b",
])  # fmt: skip
def test_amuse_units_that_are_none_of_length_are_refused(unit):
    def change(file):
        file["data/0000000001/attributes/x"].attrs["units"] = np.array(unit.encode(), "S6000")

    with pytest.raises(SnapshotError):
        read(hand_made.amuse(change=change))


def two_sets(version, name, shift, timestamp=True, first=None):
    """The bodies of hand_made twice: again as a set of a name, with other keys; or behind them."""

    def change(file):
        old = file["data" if version == 2 else "particles"]
        again = file.require_group(name) if name else old
        file.copy(old["0000000001"], again, f"{len(again) + 1:010d}")
        again[f"{len(again):010d}"]["keys"][...] += np.uint64(shift)
        if first:
            file.move(old.name, first)

    return hand_made.amuse(version, change=change, timestamp=timestamp)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("first", [None, "stars"])
def test_amuse_sets_of_one_moment_are_read_together_or_by_name(version, first):
    data = two_sets(version, "gas", 1000, first=first)
    first = first or ("data" if version == 2 else "particles")
    for only in (None, "all"):
        found = read(data, None, set=only)
        assert found.pos.tolist() == POS * 2
        assert sorted(found.ids.tolist()) == sorted(IDS + [i + 1000 for i in IDS])
        assert sorted(found.sets) == sorted([("gas", 3), (first, 3)])
        assert found.time == TIME * 3.1556926e13  # seconds
    assert read(data, None, set="gas").ids.tolist() == [i + 1000 for i in IDS]
    assert read(data, None, set=first).ids.tolist() == IDS
    with pytest.raises(SnapshotError, match=rf"no set 'core'.*gas.*{first}|{first}.*gas"):
        read(data, None, set="core")


@pytest.mark.parametrize(("shift", "timestamp", "n"), [
    (1000, True, 6),  # one time, other keys: two sets
    (0, True, 3), (0, False, 3),  # the same set, saved again
    (1000, False, None), (4, True, None), (4, False, None),  # 7 + 4 = 11: who can tell
])  # fmt: skip
def test_amuse_states_that_may_be_sets_or_moments_are_never_chosen_silently(shift, timestamp, n):
    data = two_sets(2, None, shift, timestamp)
    if n is None:
        with pytest.raises(SnapshotError, match=r"sets or moments: set='all'.*--which K"):
            read(data, None)
        assert read(data, -1).ids.tolist() == [i + shift for i in IDS]
        assert read(data, 0).ids.tolist() == IDS
        n = 3
    else:
        assert len(read(data, None).mass) == n
    assert len(read(data, None, set="all").mass) == 6


def test_amuse_sets_that_do_not_fit_together_are_refused_by_name():
    def without(file):
        del file["gas/0000000001/attributes/mass"]

    def later(file):
        file["gas/0000000001"].attrs["timestamp"] = 7.0

    def twice(file):
        file.copy("gas/0000000001", "gas/0000000002")
        file["gas/0000000002"].attrs["timestamp"] = 7.0

    for change, complaint in (
        (without, "gas attribute mass"), (later, "of the times"), (twice, "data 1, gas 2")
    ):  # fmt: skip
        data = hand_made.amuse(change=lambda file: (file.copy("data", "gas"), change(file)))  # noqa: B023
        with pytest.raises(SnapshotError, match=complaint):
            read(data, None)
        assert read(data, None, set="data").pos.tolist() == POS
    with pytest.raises(SnapshotError, match="no sets in files of Gadget HDF5"):
        read(hand_made.gadget_hdf5(), set="gas")
