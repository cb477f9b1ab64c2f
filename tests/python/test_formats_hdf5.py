"""HDF5 files of Gadget, SWIFT, GIZMO and AMUSE are read as those codes mean them."""

import io

import h5py
import numpy as np
import pytest

import hand_made
from as_read import assert_all, assert_bodies, read, sizes
from grape6py import Grape6Warning, read_snapshot
from grape6py.errors import SnapshotError
from hand_made import IDS, POS, TIME

# ---- Gadget, HDF5 ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
def test_gadget_hdf5_with_several_types_and_masses_of_the_header(dtype):
    found = read(hand_made.gadget_hdf5(dtype=dtype))
    assert_all(found, "gadget-hdf5")
    assert found.units is None


def test_gadget_hdf5_without_ids_has_none():
    assert_all(read(hand_made.gadget_hdf5(ids=False)), "gadget-hdf5", ids=None)


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


GADGET = {"UnitLength_in_cm": 3.085678e21, "UnitMass_in_g": 1.989e43,
          "UnitVelocity_in_cm_per_s": 1e5}  # fmt: skip
GIZMO = {"UnitLength_In_CGS": 3.085678e21, "UnitMass_In_CGS": 1.989e43,
         "UnitVelocity_In_CGS": 1e5, "Internal_UnitB_In_Gauss": 1.0}  # fmt: skip
SWIFT = {"Unit length in cgs (U_L)": [3.085678e21], "Unit mass in cgs (U_M)": [1.989e43],
         "Unit time in cgs (U_t)": [3.085678e16], "Unit current in cgs (U_I)": [1.0],
         "Unit temperature in cgs (U_T)": [1.0]}  # fmt: skip


def group_of(name, attributes):
    return lambda file: file.require_group(name).attrs.update(attributes)


@pytest.mark.parametrize(("place", "attributes"), [
    ("Units", GADGET), ("Parameters", GADGET), ("Header", GADGET), ("Header", GIZMO),
    ("Units", SWIFT),
], ids=["Units", "Gadget-4", "Arepo", "GIZMO", "SWIFT"])  # fmt: skip
def test_gadget_hdf5_units_by_the_names_of_each_code(place, attributes):
    found = read(hand_made.gadget_hdf5(change=group_of(place, attributes)))
    assert_all(found, "gadget-hdf5")
    assert sizes(found.units) == pytest.approx([1.989e43, 3.085678e21, 1e5], rel=1e-12)


def swift(file):
    """Headers as SWIFT writes them: arrays of one number."""
    group_of("Units", SWIFT)(file)
    group_of("InternalCodeUnits", SWIFT | {"Unit length in cgs (U_L)": [1.0]})(file)
    header = file["Header"].attrs
    for name in ("Time", "Redshift", "NumFilesPerSnapshot"):
        header[name] = np.atleast_1d(header[name])
    header["Dimension"], header["BoxSize"], header["Code"] = [3], [10.0] * 3, np.bytes_("SWIFT")
    group_of("Cosmology", {"Cosmological run": [0], "Omega_m": [1.0]})(file)


def test_a_file_of_swift_with_its_seven_types_is_read():
    found = read(hand_made.gadget_hdf5(types=7, bodies=((0, 0), (1, 0), (6, 0)), change=swift))
    assert_all(found, "gadget-hdf5")
    assert sizes(found.units) == pytest.approx([1.989e43, 3.085678e21, 1e5], rel=1e-12)


def test_gadget_hdf5_in_two_files_is_one_snapshot(tmp_path):
    for k, of in enumerate([(0, 1), (2,)]):
        data = hand_made.gadget_hdf5(of=of, NumFilesPerSnapshot=2, change=group_of("Units", GADGET))
        (tmp_path / f"snap_003.{k}.hdf5").write_bytes(data)
    for k in (0, 1):
        found = read_snapshot(tmp_path / f"snap_003.{k}.hdf5")
        assert_all(found, "gadget-hdf5")
        assert found.units is not None
    (tmp_path / "snap_003.0.hdf5").unlink()
    with pytest.raises(SnapshotError, match=r"snap_003\.1.*snap_003\.0\.hdf5 is not there"):
        read_snapshot(tmp_path / "snap_003.1.hdf5")


# Where each code says that space expands: the header of Gadget-2 and Arepo, the Parameters of
# Gadget-4, the header of GIZMO with a name of its own, and a group of SWIFT's.
EXPANDING = {
    "Gadget-2": group_of("Header", {"Redshift": 2.0, "Omega0": 0.3, "HubbleParam": 0.7}),
    "Gadget-4": lambda file: (
        group_of("Header", {"Redshift": 2.0})(file),
        group_of("Parameters", {"Omega0": 0.3, "ComovingIntegrationOn": 1})(file),
    ),
    "GIZMO": group_of("Header", {"Redshift": 2.0, "ComovingIntegrationOn": 1, "Omega_Matter": 0.3}),
    "SWIFT": lambda file: (
        swift(file),
        group_of("Header", {"Redshift": [2.0]})(file),
        group_of("Cosmology", {"Cosmological run": [1]})(file),
    ),
}


@pytest.mark.parametrize("code", EXPANDING)
def test_gadget_hdf5_of_an_expanding_universe_warns(code):
    data = hand_made.gadget_hdf5(change=EXPANDING[code])
    with pytest.warns(Grape6Warning, match="comoving"):
        read_snapshot(io.BytesIO(data))


def put(name, value):
    def change(file):
        del file[name]
        if value is not None:
            file[name] = value

    return change


@pytest.mark.parametrize("change", [
    put("PartType1/Coordinates", [[1.0, 2.0]]), put("PartType1/Velocities", None),
    put("PartType4/Masses", [[1.0]]), put("PartType4/Masses", [b"one"]), put("PartType0", None),
    put("PartType1/Coordinates", [[np.nan, 2.0, 3.0]]), put("PartType1", 5.0),
    group_of("Header", {"NumPart_ThisFile": ["many"]}), group_of("Header", {"MassTable": [1.0]}),
    group_of("Header", {"Time": "late"}), group_of("Header", {"NumPart_ThisFile": [[-1] * 6]}),
    group_of("Units", GADGET | {"UnitMass_in_g": 0.0}),
    group_of("Units", GADGET | {"UnitMass_in_g": "heavy"}),
    group_of("Units", SWIFT | {"Unit time in cgs (U_t)": [0.0]}),
])  # fmt: skip
def test_gadget_hdf5_that_contradicts_itself_is_refused_by_its_name(tmp_path, change):
    path = tmp_path / "odd.hdf5"
    path.write_bytes(hand_made.gadget_hdf5(change=change))
    with pytest.raises(SnapshotError, match=r"odd\.hdf5"):
        read_snapshot(path)


def test_no_memory_is_taken_for_a_number_of_bodies_that_a_file_has_not():
    """Here 2^44, of which the header has the mass: no array of that many is to be tried."""
    counts = np.array([0, 2**44, 0, 0, 0, 0])
    many = group_of("Header", {"NumPart_ThisFile": counts, "MassTable": [0.0, 0.25, 0, 0, 0, 0]})
    with pytest.raises(SnapshotError):
        read(hand_made.gadget_hdf5(bodies=((1, 0.25),) * 3, change=many))


# ---- AMUSE -----------------------------------------------------------------------------

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
@pytest.mark.parametrize("texts", TEXTS)
def test_amuse_of_both_versions_with_units(version, texts):
    words, expected = TEXTS[texts]
    found = read(hand_made.amuse(version, texts=words))
    assert_bodies(found)
    assert found.format == "amuse"
    assert found.ids.tolist() == IDS
    assert sizes(found.units) == pytest.approx(expected, rel=1e-12)
    seconds = TIME * (3.1556926e13 if texts == "sun" else 1)
    assert found.time * found.units.in_cgs("time") == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("version", [1, 2])
def test_amuse_in_n_body_units_has_none_of_its_own(version):
    found = read(hand_made.amuse(version, texts=hand_made.amuse_texts("generic")))
    assert_all(found, "amuse")
    assert found.units is None


@pytest.mark.parametrize("version", [1, 2])
def test_amuse_has_each_saved_state(version):
    data = hand_made.amuse(version, states=12)
    assert read(data, 0).pos.tolist() == POS
    assert read(data).pos[0, 0] == POS[0][0] + 1100
    assert read(data, 9).pos[0, 0] == POS[0][0] + 900
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


def test_amuse_without_a_time_has_none():
    assert read(hand_made.amuse(timestamp=False)).time is None


def test_amuse_keys_of_64_bits_are_whole():
    large = [2**64 - 1, 2**63, 2**53 + 1]
    assert read(hand_made.amuse(keys=large)).ids.tolist() == large


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
    def unlike(change):
        def changed(file):
            file.copy("data", "gas")
            change(file["gas/0000000001"])

        return hand_made.amuse(change=changed)

    def without(group):
        del group["attributes/mass"]

    def later(group):
        group.attrs["timestamp"] = 7.0

    def twice(group):
        group.file.copy(group, "gas/0000000002")
        group.file["gas/0000000002"].attrs["timestamp"] = 7.0

    for change, complaint in (
        (without, "gas attribute mass"), (later, "of the times"), (twice, "data 1, gas 2")
    ):  # fmt: skip
        with pytest.raises(SnapshotError, match=complaint):
            read(unlike(change), None)
        assert read(unlike(change), None, set="data").pos.tolist() == POS


def test_a_set_of_a_format_without_sets_is_refused():
    with pytest.raises(SnapshotError, match="no sets in files of Gadget HDF5"):
        read(hand_made.gadget_hdf5(), set="gas")
