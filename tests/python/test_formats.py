"""Files that other codes write are read as those codes mean them; hand_made.py has the layouts."""

import contextlib
import io
import warnings

import numpy as np
import pytest

import hand_made
from grape6py import Grape6Warning, Units, read_snapshot
from grape6py.errors import SnapshotError
from hand_made import IDS, MASS, POS, TIME, VEL

CODES = ("<", ">")


def read(data, which=-1, **options):
    """A snapshot from bytes; nothing is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_snapshot(io.BytesIO(data), which, **options)


def assert_bodies(found, mass=MASS, pos=POS, vel=VEL):
    assert found.mass.tolist() == list(mass)
    assert found.pos.tolist() == [list(row) for row in pos]
    assert found.vel.tolist() == [list(row) for row in vel]
    assert {array.dtype for array in found} == {np.dtype(float)}


def assert_all(found, name, time=TIME, ids=IDS):
    """The bodies of hand_made, in their order."""
    assert found.format == name
    assert_bodies(found)
    assert found.time == time
    assert (found.ids if found.ids is None else found.ids.tolist()) == ids


def sizes(units):
    """Grams, centimetres and centimetres a second."""
    return [units.in_cgs(name) for name in ("mass", "length", "velocity")]


# ---- NEMO ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", CODES)
@pytest.mark.parametrize("real", "fd")
@pytest.mark.parametrize("form", ["PhaseSpace", "Position"])
@pytest.mark.parametrize("keys", [None, "i", "l"])
def test_nemo_of_any_machine_and_form(order, real, form, keys):
    found = read(hand_made.nemo(order, real=real, form=form, keys=keys))
    assert_all(found, "nemo", ids=IDS if keys else None)
    assert found.units is None


@pytest.mark.parametrize("order", CODES)
def test_nemo_masses_of_an_earlier_snapshot_hold_for_a_later_one(order):
    data = hand_made.nemo_of_two(order)
    shifted = (np.array(POS) + 100).tolist()
    for which in (-1, 1):
        found = read(data, which)
        assert_bodies(found, pos=shifted)
        assert found.time == 2.5
    for which in (0, -2):
        assert_all(read(data, which), "nemo", ids=None)
    for which in (2, -3):  # what has energies alone is no snapshot of bodies
        with pytest.raises(SnapshotError, match=r"2 snapshots.*number"):
            read(data, which)


@pytest.mark.parametrize(("old", "new", "complaint"), [
    (b"i\0Nobj\0\3", b"i\0Nobj\0\4", "Nobj is 4"), (b"d\0Mass", b"i\0Mass", "Mass|item|ends?"),
    (b"PhaseSpace", b"PhaseSpice", "neither PhaseSpace nor Position"),
    (b"d\0Mass\0\3", b"d\0Mass\0\xff", "Mass|item|end"), (b"SnapShot", b"SnapShut", "0 snapshots"),
    (b"d\0Mass", b"q\0Mass", "unknown type"),
])  # fmt: skip
def test_nemo_that_contradicts_itself_is_refused(old, new, complaint):
    data = hand_made.nemo()
    assert old in data
    with pytest.raises(SnapshotError, match=complaint):
        read(data.replace(old, new))


# ---- Starlab ---------------------------------------------------------------------------


def test_starlab_places_are_summed_up_to_the_root():
    found = read(hand_made.dyn())
    assert found.format == "starlab"
    assert_bodies(found, *hand_made.DYN_BODIES)
    assert found.ids.tolist() == hand_made.DYN_IDS
    assert found.time == 0.5
    assert found.units is None  # scales of -1 are none


def test_starlab_scales_of_the_root_are_its_units():
    found = read(hand_made.dyn(scales=hand_made.SCALES))
    units = found.units
    assert units.value("mass", "Msun") == pytest.approx(1e4, rel=1e-12)
    assert units.value("length", "Rsun") == pytest.approx(4e7, rel=1e-12)
    assert units.value("time", "Myr") == pytest.approx(0.25, rel=1e-12)


def test_starlab_snapshots_follow_each_other():
    later = hand_made.dyn(time="  system_time  =  1.25\n").replace(b"10 0 0", b"0 0 0")
    data = hand_made.dyn() + later
    assert read(data, 0).time == 0.5
    found = read(data)
    assert found.time == 1.25
    assert found.pos[:, 0].tolist() == [-1.0, -1.0, 2.0]
    with pytest.raises(SnapshotError, match="2 snapshots"):
        read(data, 2)


@pytest.mark.parametrize("time", [
    "  real_system_time  =  12.5\n  system_time  =  12 0x8000000000000000\n",
    "  real_system_time  =  12.5\n  system_time  =  12 8000000000000000\n",
], ids=["with-0x", "without"])  # fmt: skip
def test_starlab_time_of_extended_precision_is_understood(time):
    """As kira writes it where Starlab was built with xreal: whole part, and fraction / 2^64."""
    assert read(hand_made.dyn(time=time)).time == 12.5


@pytest.mark.parametrize(("old", "new"), [
    ("m  =  0.125", "m  =  nan"), ("r  =  2 0 0", "r  =  2 0"), ("i = 2", "i = two"),
])  # fmt: skip
def test_starlab_faults_are_named_by_their_line(old, new):
    text = hand_made.dyn().decode()
    before, found, after = text.rpartition(old)
    assert found
    with pytest.raises(SnapshotError, match=f"line {before.count(chr(10)) + 1}"):
        read((before + new + after).encode())


# ---- Tipsy -----------------------------------------------------------------------------


@pytest.mark.parametrize("order", CODES)
@pytest.mark.parametrize("header", [28, 32])
def test_tipsy_of_any_machine_with_gas_dark_and_star_particles(order, header):
    found = read(hand_made.tipsy(order, header))
    assert_all(found, "tipsy", ids=None)
    assert found.units is None


# ---- Gadget, binary --------------------------------------------------------------------


@pytest.mark.parametrize("order", CODES)
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("real", "fd")
@pytest.mark.parametrize("integer", "IQ")
def test_gadget_of_any_machine_with_masses_of_the_header_and_of_their_block(
    order, labels, real, integer
):
    data = hand_made.gadget(order, labels, real, integer)
    found = read(data)
    assert found.format.startswith("gadget")
    assert_all(found, found.format)
    for name in ("gadget", "gadget2"):
        assert_all(read(data, format=name), name)


def test_gadget_needs_no_block_of_masses_if_the_header_has_all():
    found = read(hand_made.gadget(bodies=((1, 0.5), (2, 0.25), (5, 0.125))))
    assert_all(found, found.format)
    gas = read(hand_made.gadget(bodies=((0, 0.5), (2, 0.25), (5, 0.125))))  # energies behind ids
    assert_all(gas, gas.format)


@pytest.mark.parametrize("blocks", ["HEAD,POS ,ID  ,VEL ,MASS", "HEAD,POS ,VEL ,ID  ,U   ,MASS"])
def test_gadget_blocks_with_labels_stand_in_any_order(blocks):
    found = read(hand_made.gadget(labels=True, labelled_order=blocks.split(",")))
    assert_all(found, found.format)


def test_gadget_ids_of_eight_bytes_are_whole():
    large = [2**53 + 1, 2**63 + 5, 3]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hand_made, "IDS", large)
        found = read(hand_made.gadget(integer="Q"))
    assert found.ids.tolist() == large


@pytest.mark.parametrize("labels", [False, True])
def test_gadget_in_two_files_is_one_snapshot(tmp_path, labels):
    for k, of in enumerate([(0, 1), (2,)]):
        data = hand_made.gadget(labels=labels, of=of, files=2)
        (tmp_path / f"snap_003.{k}").write_bytes(data)
    for k in (0, 1):
        found = read_snapshot(tmp_path / f"snap_003.{k}")
        assert_all(found, found.format)
    (tmp_path / "snap_003.1").unlink()
    with pytest.raises(SnapshotError, match=r"snap_003\.0.*snap_003\.1 is not there"):
        read_snapshot(tmp_path / "snap_003.0")
    (tmp_path / "elsewhere").write_bytes(data)
    with pytest.raises(SnapshotError, match=r"elsewhere.*2 files"):
        read_snapshot(tmp_path / "elsewhere")


@pytest.mark.parametrize("labels", [False, True])
def test_gadget_of_an_expanding_universe_warns(labels):
    data = hand_made.gadget(labels=labels, cosmology=(0.3, 2.0))
    with pytest.warns(Grape6Warning, match="comoving"):
        read_snapshot(io.BytesIO(data))


# ---- Gadget, HDF5 ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
def test_gadget_hdf5_with_several_types_and_masses_of_the_header(dtype):
    found = read(hand_made.gadget_hdf5(dtype=dtype))
    assert_all(found, "gadget-hdf5")
    assert found.units is None


def test_gadget_hdf5_without_ids_has_none():
    assert_all(read(hand_made.gadget_hdf5(ids=False)), "gadget-hdf5", ids=None)


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


# ---- NBODY6 ----------------------------------------------------------------------------


def assert_nbody6(found, time=TIME):
    mass, pos, vel = (column[:5] for column in hand_made.NBODY)
    assert found.format == "nbody6"
    assert_bodies(found, mass, pos, vel)
    assert found.ids.tolist() == [1, 2, 3, 4, 5]
    assert found.time == time


@pytest.mark.parametrize("order", CODES)
@pytest.mark.parametrize("layout", ["nbody6", "nbody6++", "nbody4"])
@pytest.mark.parametrize("nk", [20, 30])
def test_nbody6_of_each_code_without_the_centres_of_mass_of_its_pairs(order, layout, nk):
    assert_nbody6(read(hand_made.nbody6(layout, order, nk=nk)))


@pytest.mark.parametrize("layout", ["nbody6", "nbody6++", "nbody4"])
def test_nbody6_has_units_of_g_one_from_its_length_and_velocity(layout):
    units = read(hand_made.nbody6(layout, rbar=2.0, vstar=1.5)).units
    assert pytest.approx(1) == units.G
    assert units.value("length", "pc") == pytest.approx(2, rel=1e-6)
    assert units.value("velocity", "km/s") == pytest.approx(1.5, rel=1e-6)
    assert units.value("mass", "Msun") == pytest.approx(1.5**2 * 2 / 4.30091e-3, rel=1e-5)
    assert read(hand_made.nbody6(layout, rbar=0.0, vstar=0.0)).units is None


@pytest.mark.parametrize("layout", ["nbody6", "nbody6++", "nbody4"])
def test_nbody6_snapshots_follow_each_other(layout):
    data = hand_made.nbody6(layout) + hand_made.nbody6(layout, time=2.75, pairs=0)
    assert_nbody6(read(data, 0))
    found = read(data)
    assert found.time == 2.75
    assert len(found.mass) == 7
    assert found.ids.tolist() == hand_made.NAMES
    with pytest.raises(SnapshotError, match="2 snapshots"):
        read(data, -3)


@pytest.mark.parametrize("pairs", [-1, 0.5, 3, np.nan, np.inf])
def test_nbody6_with_an_impossible_number_of_pairs_is_refused(pairs):
    with pytest.raises(SnapshotError, match="pairs"):
        read(hand_made.nbody6(pairs=pairs))


# ---- PeTar -----------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [19, 20, 24, 34])
@pytest.mark.parametrize("make", [hand_made.petar_text, hand_made.petar_binary])
def test_petar_with_and_without_stellar_evolution(make, columns):
    found = read(make(columns))
    assert_all(found, "petar")
    assert found.units is None


@pytest.mark.parametrize("columns", [20, 24, 34])
@pytest.mark.parametrize("make", [hand_made.petar_text, hand_made.petar_binary])
def test_petar_with_an_external_potential_keeps_its_ids(make, columns):
    """Makefile.in: such a PeTar writes the frame in the header and pot_ext before n_nb."""
    found = read(make(columns, external=True, copies=4))
    assert_bodies(found, MASS * 4, POS * 4, VEL * 4)
    assert found.time == TIME
    assert found.ids.tolist() == IDS * 4


@pytest.mark.parametrize("columns", [20, 24, 34])
def test_petar_of_three_bodies_in_an_external_potential_is_no_riddle(columns):
    """48 bytes more of a header are two columns more of three bodies, if any columns will do."""
    assert_bodies(read(hand_made.petar_binary(columns, external=True)))


def test_petar_with_fewer_or_more_particles_than_it_names_is_refused():
    text = hand_made.petar_text().decode()
    for other in (text[: text.rindex("\n", 0, -1) + 1], text.replace("3 3 ", "3 4 ", 1)):
        with pytest.raises(SnapshotError, match=r"names \d particles, and has \d"):
            read(other.encode())


def test_petar_that_has_only_a_comment_is_refused():
    with pytest.raises(SnapshotError):
        read(b"0 3 0.0\n#" + b" 1" * 20 + b"\n")


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
    with pytest.raises(SnapshotError, match="12 states"):
        read(data, 12)


def test_amuse_columns_in_different_units_come_in_one():
    def change(file):
        file["data/0000000001/attributes/y"].attrs["units"] = hand_made.amuse_texts(
            length="(1000.0 * {})"
        )["length"]

    found = read(hand_made.amuse(change=change))
    assert sizes(found.units)[1] == 100
    assert found.pos.tolist() == [[x, 1000 * y, z] for x, y, z in POS]


def test_amuse_without_velocities_or_a_time_is_at_rest():
    def change(file):
        for name in ("vx", "vy", "vz"):
            del file[f"data/0000000001/attributes/{name}"]

    found = read(hand_made.amuse(change=change, timestamp=False))
    assert_bodies(found, vel=np.zeros((3, 3)))
    assert found.time is None


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


def test_amuse_with_two_sets_is_refused_and_they_are_named():
    def change(file):
        file.copy("data", "gas")

    with pytest.raises(SnapshotError, match=r"data.*gas"):
        read(hand_made.amuse(change=change))


# ---- text ------------------------------------------------------------------------------


def in_columns(names, separator=" ", start=""):
    """A header and rows of what is named, and of numbers of no meaning."""
    columns = dict(
        zip(
            ["m", "x", "y", "z", "vx", "vy", "vz", "id"],
            np.transpose([[m, *p, *v, i] for m, p, v, i in zip(MASS, POS, VEL, IDS, strict=True)]),
            strict=True,
        )
    )
    known = [columns.get(name, np.arange(3.0) - 77) for name in names.values()]
    rows = [separator.join(f"{x:.17g}" for x in row) for row in np.transpose(known)]
    return "\n".join([start + separator.join(names), *rows, ""]).encode()  # fmt: skip


@pytest.mark.parametrize(("names", "separator", "start"), [
    ("m x y z vx vy vz id", " ", "# "), ("id mass x y z vx vy vz", ",", ""),
    ("mass pos_x pos_y pos_z vel_x vel_y vel_z id", "\t", ""),
    ("vz vy vx z y x m id density", ",", "#"),
    ("index m pos.x pos.y pos.z vel.x vel.y vel.z", ";", "# "),
    ("Name M X Y Z VX VY VZ phi", "  ", ""),
])  # fmt: skip
def test_text_columns_stand_in_the_order_of_the_header(names, separator, start):
    known = {"mass": "m", "index": "id", "name": "id"}
    plain = {
        word: known.get(word.lower(), word.lower())
        .replace("pos_", "").replace("pos.", "").replace("vel_", "v").replace("vel.", "v")
        for word in names.split()
    }  # fmt: skip
    found = read(in_columns(plain, separator, start))
    assert_all(found, "text", time=None)


def test_text_without_velocities_is_at_rest():
    found = read(in_columns({name: name for name in ("x", "y", "z", "m")}))
    assert_bodies(found, vel=np.zeros((3, 3)))
    assert found.ids is None


def test_csv_of_amuse_is_read_by_its_header():
    rows = [[m, *v, *p] for m, p, v in zip(MASS, POS, VEL, strict=True)]
    lines = [",".join(map(str, row)) for row in rows]
    text = "\n".join(["#mass,vx,vy,vz,x,y,z", "#kg,m / s,m / s,m / s,m,m,m", *lines, ""])
    assert_bodies(read(text.encode()))
    assert_bodies(read(text.encode(), format="csv"))


@pytest.mark.parametrize("separator", [" ", ",", ";", "\t", " , ", "  \t "])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\n\n# a remark\n"])
def test_text_of_seven_columns_with_any_separator_and_end(separator, end):
    data = hand_made.lines(separator).replace(b"\n", end)
    assert_all(read(data), "text", time=None, ids=None)
    assert_bodies(read(data.rstrip()))


@pytest.mark.parametrize("text", [
    "1,5 0 0 0 0 0 0", "1,5 0,5 0,25 0 0 0 0", "0 0 0 0 0 1,5", "1, 2, 3, 4, 5, 6 7",
    "1,,2,3,4,5,6",
])  # fmt: skip
def test_commas_are_no_decimal_points(text):
    for lines in (text, "1 2 3 4 5 6 7\n" + text):
        with pytest.raises(SnapshotError, match=r"not a finite number|column"):
            read(lines.encode())


@pytest.mark.parametrize("write", ["{:.17E}", "{:+.3f}", "{:.10e}", "{:d}"])
@pytest.mark.parametrize("letter", "edDQ")
def test_text_with_exponents_of_fortran(write, letter):
    rows = [[int(8 * m), *(int(4 * x) for x in p + v)] for m, p, v in
            zip(MASS, POS, VEL, strict=True)]  # fmt: skip
    numbers = "d" in write
    words = [[write.format(x if numbers else float(x)) for x in row] for row in rows]
    text = "\n".join(" ".join(words).replace("e", letter).replace("E", letter) for words in words)
    found = read(text.encode())
    assert np.column_stack(found).tolist() == rows


def test_text_with_three_digits_of_exponent_needs_no_letter():
    assert read(b"1-100 2.5+100 .5-200 0 0 0 1D-300").mass[0] == 1e-100
    assert np.column_stack(read(b"1-100 2.5+100 .5-200 0 0 0 1D-300")).tolist() == [
        [1e-100, 2.5e100, 0.5e-200, 0, 0, 0, 1e-300]
    ]


@pytest.mark.parametrize("word", ["9" * 10**6, "0." + "3" * 10**6 + "x", "1" + " " * 10**6 + "1,"],
                         ids=["digits", "decimals", "blanks"])  # fmt: skip
def test_a_line_of_a_million_characters_is_answered_at_once(word):
    with pytest.raises(SnapshotError) as caught:  # a time that grows with its square is hours
        read(f"0 0 0 0 0 0 {word}\n".encode())
    assert len(str(caught.value)) < 200


# ---- whatever the format ---------------------------------------------------------------

HAND_MADE = {
    "nemo": hand_made.nemo(), "starlab": hand_made.dyn(), "tipsy": hand_made.tipsy(),
    "gadget": hand_made.gadget(), "gadget2": hand_made.gadget(labels=True),
    "gadget-hdf5": hand_made.gadget_hdf5(), "nbody6": hand_made.nbody6(),
    "petar": hand_made.petar_text(), "amuse": hand_made.amuse(), "text": hand_made.lines(),
    "csv": hand_made.lines(","),
}  # fmt: skip


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_file_is_read_from_any_source(tmp_path, name):
    (tmp_path / "a").write_bytes(HAND_MADE[name])
    found = [
        read(HAND_MADE[name]),
        read_snapshot(tmp_path / "a"),
        read_snapshot(str(tmp_path / "a")),
    ]
    with open(tmp_path / "a", "rb") as file:
        found.append(read_snapshot(file))
        assert not file.closed
    found.append(read(HAND_MADE[name], format=name))
    for other in found[1:]:
        assert [x.tobytes() for x in other] == [x.tobytes() for x in found[0]]
        assert other.time == found[0].time


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_number_that_is_none_is_named_with_the_file(tmp_path, name):
    """What is no number in one body, in the format's own way of writing it."""
    bad, path = np.nan, tmp_path / "odd"
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(hand_made, "POS", [[1.0, 2.0, 3.0], [-4.0, bad, 6.0], [7.0, 8.0, 9.0]])
        patch.setattr(hand_made, "NBODY", (hand_made.NBODY[0], [[bad] * 3] * 7, hand_made.NBODY[2]))
        patch.setattr(hand_made, "DYN", hand_made.DYN.replace("0 4 0", "0 nan 0"))
        made = {"nemo": hand_made.nemo, "starlab": hand_made.dyn, "tipsy": hand_made.tipsy,
                "gadget": hand_made.gadget, "gadget2": lambda: hand_made.gadget(labels=True),
                "gadget-hdf5": hand_made.gadget_hdf5, "nbody6": hand_made.nbody6,
                "petar": hand_made.petar_text, "amuse": hand_made.amuse, "text": hand_made.lines,
                "csv": lambda: hand_made.lines(",")}[name]()  # fmt: skip
    path.write_bytes(made)
    with pytest.raises(SnapshotError, match=str(path)):
        read_snapshot(path)


def test_units_of_a_file_are_units():
    assert isinstance(read(hand_made.nbody6()).units, Units)
