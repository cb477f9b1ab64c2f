"""What the kernels of the tree are told: the structures of tree/job.h, field by field."""

import ctypes

GROUP, SUPER, HYPER = 32, 16, 8  # targets, groups, supers: as in csrc/tree/tree.h
IN_SUPER, IN_HYPER = GROUP * SUPER, GROUP * SUPER * HYPER
CELL_BLOCK, CELL_LEVELS, LEAF_SPAN = 1024, 22, 1024  # of tree/build.cu
TERMS, RATE_TERMS = 64, 36  # of expansions, and of their rates
FLOW_PIECES = 256  # of the particles, for their momentum
COUNTERS = 64  # of pairs, points and locals
GROUPS, LONG_GROUPS, EIGHTS, SINGLES, LONG_SINGLES, KINDS = range(6)  # what is summed at once

# Bytes of struct tree_cell, tree_moments, tree_far, tree_place, tree_group, tree_box, tree_opening,
# tree_rates, tree_motion and tree_flow: a test compares them.
CELL, MOMENTS, FAR, PLACE, GROUP_BYTES, BOX, OPENING = 16, 224, 80, 16, 60, 136, 44
RATES, MOTION, FLOW = 152, 64, 160

_pointer, _int, _double, _uint64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_double, ctypes.c_uint64


def _structure(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


def _all(kind, names):
    return [(name, kind) for name in names.split()]


# As in tree/job.h.
Status = _structure(
    "Status",
    ("low", _uint64 * 3),
    ("high", _uint64 * 3),
    ("mass", _uint64),
    *_all(_int, "bad cells"),
    ("level_first", _int * 24),
    ("need_large", _int * 3),
    ("need_long", _int * 3),
    ("need_singles", _int * 3),
    ("again", _int * KINDS),
    *_all(_int, "close unresolved"),
    ("coincidences", _uint64),
    ("done", _uint64 * (4 * COUNTERS)),
)
Level = _structure(
    "Level", *_all(_pointer, "group local rate lists count"), ("room", _int * 3), ("padding", _int)
)
Job = _structure(
    "Job",
    *_all(_pointer, "x m targets self status box eps2 opening key sorted packed order high low"),
    *_all(
        _pointer, "levels counts summed leaf_at cell above complete moments far place barnes_hut"
    ),
    *_all(_pointer, "v target_v flow momenta velocity target_velocity rates motion far_jerk jerk"),
    *_all(_pointer, "target_order target_high target_low target_self rank last_acc"),
    ("level", Level * 4),
    ("again", _pointer * KINDS),
    *_all(_pointer, "far_sum close acc pot last"),
    *_all(_double, "eps2_given theta bound"),
    *_all(_int, "n target_count blocks hypers supers groups first_group"),
    *_all(_int, "kind again_room slots first_slot close_room order_of_expansion from_root"),
)
