"""Files of bodies typed in by hand from the layouts of the codes that write them.

Nothing here comes from grape6py's writers. All numbers are whole in single precision, so that what
a reader finds is equal, and not near. Sources: NEMO's filesecret.c and snapshot.h, Starlab's
dyn_io.C, starbase_io.C and xreal.C, the TIPSY manual, the user guides of GADGET-2 and GADGET-4,
io.c of GIZMO, distributed_io.c of SWIFT, output.f of NBODY4, NBODY6 and NBODY6++, PeTar's
particle_base.hpp, ptcl.hpp, soft_ptcl.hpp and io.hpp, AMUSE's store_v1.py and store_v2.py."""

import io
import struct

import h5py
import numpy as np

MASS = [0.5, 0.25, 0.125]
POS = [[1.0, 2.0, 3.0], [-4.0, 5.5, 6.0], [7.0, 8.0, -9.25]]
VEL = [[0.5, 0.25, -0.125], [1.5, 2.5, 3.5], [-1.0, -2.0, -4.0]]
IDS = [11, 7, 300]
TIME = 1.5
KPC, MSUN = 3.0856775814913673e21, 1.988409870698051e33


def flat(rows):
    return [number for row in rows for number in row]


def packed(order, kind, values):
    return struct.pack(f"{order}{len(values)}{kind}", *values)


def record(order, data):
    """Of Fortran, between its lengths."""
    mark = struct.pack(order + "i", len(data))
    return mark + data + mark


def nemo_item(order, kind, tag="", values=(), dims=()):
    """An item of filestruct: magic, type, tag, dimensions, data."""
    made = struct.pack(order + "H", 0x0B92 if dims else 0x0992) + kind.encode() + b"\0"
    made += tag.encode() + b"\0" if tag else b""
    if dims:
        made += packed(order, "i", [*dims, 0])
    if kind in "c()":
        return made + bytes(values)
    return made + packed(order, "q" if kind == "l" else kind, values)


def nemo_snapshot(order="<", real="d", form="PhaseSpace", time=TIME, shift=0, mass=True, keys=None):
    def item(*words, **more):
        return nemo_item(order, *words, **more)

    n = len(MASS)
    pos = [[x + shift for x in row] for row in POS]
    made = item("(", "SnapShot") + item("(", "Parameters") + item("i", "Nobj", [n])
    made += item(real, "Time", [time]) + item(")") + item("(", "Particles")
    made += item("i", "CoordSystem", [0o201402])
    if mass:
        made += item(real, "Mass", MASS, [n])
    if form == "PhaseSpace":
        rows = flat(p + v for p, v in zip(pos, VEL, strict=True))
        made += item(real, "PhaseSpace", rows, [n, 2, 3])
    else:
        made += item(real, "Position", flat(pos), [n, 3])
        made += item(real, "Velocity", flat(VEL), [n, 3])
    made += item(real, "Potential", [-1.0, -2.0, -3.0], [n])
    if keys:
        made += item(keys, "Key", IDS, [n])
    return made + item(")") + item(")")


def nemo(order="<", **more):
    head = b"init_xrandom: seed used 123\0"
    history = b"mkplummer out=p3.snap nbody=3\0"
    return (nemo_item(order, "c", "Headline", head, [len(head)])
            + nemo_item(order, "c", "History", history, [len(history)])
            + nemo_snapshot(order, **more))  # fmt: skip


def nemo_of_two(order="<"):
    """Two snapshots with diagnostics between them; the second has no masses."""
    only_energy = b"".join(nemo_item(order, *words) for words in (
        ("(", "SnapShot"), ("(", "Diagnostics"), ("d", "Energy", [-0.25, 0.25, -0.5], [3]), ")", ")"
    ))  # fmt: skip
    second = nemo_snapshot(order, time=2.5, shift=100.0, mass=False)
    return nemo(order) + only_energy + second


# A single star and a binary; the root lies at (10, 0, 0) and moves with (0, 1, 0), the centre of
# mass of the binary is at (0, 4, 0) in the root, its stars at -1 and +1 of x in that.
def _node(head, dynamics, *inner, log="", star=""):
    def lines(text):
        return "".join(f"  {line}\n" for line in text.split("; ") if line)

    parts = {"Log": log, "Dynamics": lines(dynamics), "Hydro": "", "Star": star}
    own = "".join(f"({name}\n{text}){name}\n" for name, text in parts.items())
    return "(Particle\n" + lines(head) + own + "".join(inner) + ")Particle\n"


_LOG = """ ===>  Wed Mar 23 14:04:59 2011
       Starlab 4.4.4 (user someone) : makeplummer -n 3
  m  =  99
  r  =  not of a body
  i = a word
 a (remark) in brackets; N = many
"""
DYN = _node(
    "name = root; N = 3",
    "m  =  0.875; r  =  10 0 0; v  =  0 1 0; com_time = 0; total_energy = -0.25",
    _node(
        "i = 3; N = 1",
        "t  =  0.5; m  =  0.5; r  =  -1 -2 -3; v  =  0.25 0 0; a  =  9 9 9",
        star="  Type   =  main_sequence\n  M_rel  =  5\n",
    ),
    _node(
        "name = (1,2); N = 2",
        "m  =  0.375; r  =  0 4 0; v  =  0 0 2",
        _node("i = 1; N = 1", "m  =  0.25; r  =  -1 0 0; v  =  0 -8 0"),
        _node("i = 2; N = 1", "m  =  0.125; r  =  2 0 0; v  =  0 16 0"),
        star="  mass_scale     =  77\n",
    ),
    log=_LOG,
    star="{scales}",
).replace("(Dynamics\n", "(Dynamics\n{time}", 1)
DYN_BODIES = ([0.5, 0.25, 0.125],
              [[9.0, -2.0, -3.0], [9.0, 4.0, 0.0], [12.0, 4.0, 0.0]],
              [[0.25, 1.0, 0.0], [0.0, -7.0, 2.0], [0.0, 17.0, 2.0]])  # fmt: skip
DYN_IDS = [3, 1, 2]
SCALES = "  mass_scale     =  0.0001\n  size_scale     =  2.5e-08\n  time_scale     =  8.1\n"
NO_SCALES = "  mass_scale     =  -1\n  size_scale     =  -1\n  time_scale     =  -1\n"


def dyn(time="  system_time  =  0.5\n", scales=NO_SCALES):
    return DYN.format(time=time, scales=scales).encode()


def tipsy(order=">", header=32):
    """A gas, a dark and a star particle."""
    made = struct.pack(order + "d5i", TIME, 3, 3, 1, 1, 1) + bytes(header - 28)
    common = [[m, *p, *v] for m, p, v in zip(MASS, POS, VEL, strict=True)]
    made += struct.pack(order + "12f", *common[0], 91, 92, 93, 94, 95)  # rho ... phi
    made += struct.pack(order + "9f", *common[1], 96, 97)  # eps phi
    return made + struct.pack(order + "11f", *common[2], 81, 82, 83, 84)  # metals tform eps phi


def bonsai(version=2, ids=(3 * 10**18 + 5, 7, 2 * 10**18 + 1), order="<", gas=0):
    """Its dark particle and its two stars; of gas the first one."""
    made = struct.pack(order + "d6i", TIME, 3, 3, gas, 1 - gas, 2, version)
    for k, number in enumerate(ids):
        row = [MASS[k], *POS[k], *VEL[k], *[0.0] * (2 * (k > 0) + 3 * (k == 0 and gas))]
        made += packed(order, "f", row) + struct.pack("<Q", number)
    return made


def numbers_of(bodies, types=6):
    """Bodies of each type."""
    return [sum(kind == k for kind, _ in bodies) for k in range(types)]


def gadget_header(order, counts, table, total, files=1, time=TIME, cosmology=(0.0, 0.0)):
    omega, redshift = cosmology
    made = struct.pack(order + "6i6ddd", *counts, *table, time, redshift)
    made += struct.pack(order + "2i6Iii", 0, 0, *total, 0, files)
    made += struct.pack(order + "4d", 0.0, omega, 0.7 * (omega > 0), 0.7)
    return made + bytes(256 - len(made))


BODIES = ((0, 0.0), (1, 0.25), (4, 0.0))  # types of particles, and masses in the table of these


def of_file(bodies, of, types=6):
    """Numbers of particles of a file, and its table of masses: body k of `of` is bodies[k]."""
    table = [0.0] * types
    for k in of:
        table[bodies[k][0]] = bodies[k][1]
    return numbers_of([bodies[k] for k in of], types), table


def gadget(
    order="<", labels=False, real="f", integer="I", bodies=BODIES, of=(0, 1, 2),
    labelled_order=None, total=None, **header,
):  # fmt: skip
    counts, table = of_file(bodies, of)
    total = numbers_of(bodies) if total is None else total
    own = [MASS[k] for k in of if bodies[k][1] == 0]
    blocks = [(b"HEAD", gadget_header(order, counts, table, total, **header)),
              (b"POS ", packed(order, real, flat(POS[k] for k in of))),
              (b"VEL ", packed(order, real, flat(VEL[k] for k in of))),
              (b"ID  ", packed(order, integer, [IDS[k] for k in of])),
              (b"MASS", packed(order, real, own)),
              (b"U   ", packed(order, real, [55.0] * counts[0]))]  # fmt: skip
    if labelled_order:
        named = dict(blocks)
        blocks = [(name.encode(), named[name.encode()]) for name in labelled_order]
    made = b""
    for label, data in blocks:
        if data and labels:
            made += record(order, label + struct.pack(order + "i", len(data) + 8))
        made += record(order, data) if data else b""
    return made


def hdf5(fill, **options):
    """The bytes of a file that a function fills."""
    file = io.BytesIO()
    with h5py.File(file, "w", **options) as made:
        fill(made)
    return file.getvalue()


def put(name, value):
    """A change of a file: in the place of a dataset or an attribute; for None it is missing."""

    def change(file):
        where, _, key = name.rpartition("/")
        group = file[where] if where else file
        place = group if key in group else group.attrs
        del place[key]
        if value is not None:
            place[key] = value

    return change


def gadget_hdf5(
    bodies=BODIES, of=(0, 1, 2), types=6, dtype="f8", ids=True, change=lambda file: None, **header
):
    counts, table = of_file(bodies, of, types)

    def fill(file):
        about = {"NumPart_ThisFile": np.array(counts, "i4"), "MassTable": table, "Time": TIME,
                 "NumPart_Total": np.array(numbers_of(bodies, types), "u4"),
                 "NumFilesPerSnapshot": 1,
                 "Redshift": 0.0, "BoxSize": 0.0}  # fmt: skip
        file.create_group("Header").attrs.update({**about, **header})
        for kind in range(types):
            mine = [k for k in of if bodies[k][0] == kind]
            if not mine:
                continue
            group = file.create_group(f"PartType{kind}")
            group["Coordinates"] = np.array([POS[k] for k in mine], dtype)
            group["Velocities"] = np.array([VEL[k] for k in mine], dtype)
            if ids:
                group["ParticleIDs"] = np.array([IDS[k] for k in mine], "u8")
            if table[kind] == 0:
                group["Masses"] = np.array([MASS[k] for k in mine], dtype)
        change(file)

    return hdf5(fill)


# Units of 1e10 Msun, kpc and km/s, as three codes write them.
GADGET = {"UnitLength_in_cm": KPC, "UnitMass_in_g": 1e10 * MSUN, "UnitVelocity_in_cm_per_s": 1e5}
GIZMO = {"UnitLength_In_CGS": KPC, "UnitMass_In_CGS": 1e10 * MSUN, "UnitVelocity_In_CGS": 1e5,
         "Internal_UnitB_In_Gauss": 1.0}  # fmt: skip
SWIFT = {"Unit length in cgs (U_L)": [KPC], "Unit mass in cgs (U_M)": [1e10 * MSUN],
         "Unit time in cgs (U_t)": [KPC / 1e5], "Unit current in cgs (U_I)": [1.0],
         "Unit temperature in cgs (U_T)": [1.0]}  # fmt: skip
BASE = "system.get('{}').base('{}')"


def amuse_texts(system="S.I.", mass="{}", length="{}", time="{}"):
    """Units as AMUSE writes them; the words are what stands around a base unit."""
    bases = {name: BASE.format(system, name) for name in ("mass", "length", "time")}
    speed = f"({bases['length']} * ({bases['time']}**-1))"
    return {"mass": mass.format(bases["mass"]), "length": length.format(bases["length"]),
            "velocity": length.format(speed), "time": time.format(bases["time"])}  # fmt: skip


SUN = "(1.98892e+30 * {})"
PARSEC = "(3.08567758128e+16 * {})"
MEGAYEAR = "(3.1556926e+13 * {})"


def amuse(version=2, states=1, change=lambda file: None, texts=None, timestamp=True, keys=IDS):
    texts = texts or amuse_texts(mass=SUN, time=MEGAYEAR)

    def fill(file):
        if version == 2:
            file.create_group("AMUSE_INF").attrs["version"] = "2.0"
        for k in range(states):
            group = file.create_group(f"{'data' if version == 2 else 'particles'}/{k + 1:010d}")
            group.attrs["type"] = b"particles"
            group.attrs["number_of_particles"] = len(MASS)
            kind = b"camuse.datamodel.particles\nParticles\np0\n."
            group.attrs["class_of_the_particles"] = np.void(kind)
            if timestamp:
                group.attrs["timestamp"] = TIME + k
                group.attrs["timestamp_unit"] = texts["time"].encode("ascii")
            group["keys"] = np.array(keys, "u8")
            columns = [MASS, *np.transpose(POS) + 100.0 * k, *np.transpose(VEL), [1.0] * 3]
            names = ["mass", "x", "y", "z", "vx", "vy", "vz", "radius"]
            kinds = ["mass", *["length"] * 3, *["velocity"] * 3, "length"]
            for name, column, kind in zip(names, columns, kinds, strict=True):
                group[f"attributes/{name}"] = column
                group[f"attributes/{name}"].attrs["units"] = texts[kind].encode("ascii")
            group["attributes/name"] = np.array([1, 2, 3])
            group["attributes/name"].attrs["units"] = b"none"
        change(file)

    return hdf5(fill, libver="latest" if version == 2 else "earliest")


# Five stars of which the first four are two pairs, and then the two centres of mass.
NBODY = ([0.5, 0.25, 0.125, 0.0625, 2.0, 0.75, 0.1875],
         [[k, -k / 2, 4.0 * k] for k in range(1, 8)],
         [[k / 4, 8.0 * k, -k] for k in range(1, 8)])  # fmt: skip
NAMES = [1, 2, 3, 4, 5, 1001, 1003]


def nbody6(layout="nbody6", order="<", time=TIME, pairs=2, rbar=2.0, vstar=1.5, nk=20, names=NAMES):
    """One snapshot: two Fortran records."""
    mass, pos, vel = NBODY
    n, of_run = len(mass), [0.0] * nk
    of_run[:4], of_run[10:12] = (time, pairs, rbar, 0.5), (0.47, vstar)
    density, potential = [90.0] * n, [-1.5] * n
    before, behind = {  # RHOS and XNS, and PHI; or RHO1 and PHI1
        "nbody6": ([], []), "nbody6++": ([density, [6.0] * n], [potential]),
        "nbody4": ([], [density, potential]),
    }[layout]  # fmt: skip
    columns = of_run, mass, *before, flat(pos), flat(vel), *behind
    words = b"".join(packed(order, "f", column) for column in columns)
    words += packed(order, "i", names + [1] * n * (layout == "nbody4"))  # KSTAR
    return record(order, packed(order, "i", [n, 3, 1, nk])) + record(order, words)


# What stellar evolution puts behind binary_state: radius, dm, time_record, time_interrupt, and with
# BSE ten numbers more, of which the first is an integer.
PETAR_EXTRA = {20: 0, 24: 4, 34: 14}


def petar_rows(columns=20, external=False, copies=1):
    """Rows of numbers; those that are integers in PeTar are int."""
    rows = []
    for m, p, v, number in zip(MASS, POS, VEL, IDS, strict=True):
        extra = [0.5, 0.0, 0.0, 8.0, 1, 5.0, 5.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 3.0]
        if columns == 19:  # before pot_soft
            row = [m, *p, *v, 0, 0.75, number, 21, 22, 0.01, 0.1, 0.1, 0.2, 0.3, -1.5, 2]
        else:
            row = [m, *p, *v, 0, *extra[: PETAR_EXTRA[columns]], 0.75, number, 21, 22, 0.01, 0.1]
            row += [0.1, 0.2, 0.3, -1.5, -1.25, *[-9.5] * external, 2]
        rows.append(row)
    return rows * copies


def petar_text(columns=20, external=False, copies=1):
    header = f"3 {3 * copies} {TIME:26.17e}"
    if external:  # pos_offset, vel_offset: with EXTERNAL_POT_IN_PTCL goes RECORD_CM_IN_HEADER
        header += "".join(f" {x:26.17e}" for x in (8000, 0, 16, 0, 220, 0))
    lines = ["".join(f" {x}" if isinstance(x, int) else f"{x:26.17e} " for x in row)
             for row in petar_rows(columns, external, copies)]  # fmt: skip
    return "\n".join([header, *lines, ""]).encode()


def petar_binary(columns=20, external=False, copies=1):
    made = struct.pack("<2qd", 3, 3 * copies, TIME)
    if external:
        made += struct.pack("<6d", 8000, 0, 16, 0, 220, 0)
    for row in petar_rows(columns, external, copies):
        made += b"".join(struct.pack("<q" if isinstance(x, int) else "<d", x) for x in row)
    return made


def lines(separator=" "):
    rows = [[m, *p, *v] for m, p, v in zip(MASS, POS, VEL, strict=True)]
    return "".join(separator.join(map(repr, row)) + "\n" for row in rows).encode()
