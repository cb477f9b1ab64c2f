"""Names of GRAPE's calls in public programs and libraries: the library has each, or a reason.

public_names.json says in which programs names were found (called, declared or defined), in November
2026.
Those of "nbody-archive" are also the calls of the hardware's own library, which lies there."""

import json

import capi
from test_contract_symbols import exported

FOUND = json.loads((capi.TESTS / "api/public_names.json").read_text(encoding="utf-8"))
NAMES, ABSENT = ({name for names in FOUND[which].values() for name in names.split()}
                 for which in ("names", "absent"))  # fmt: skip


def test_every_public_name_is_exported_or_has_a_reason_and_a_source():
    there = {name.rstrip("_") for name in exported()}  # without the underscores of Fortran
    assert sorted(NAMES - there - ABSENT) == []
    assert sorted(ABSENT & there) == []
    assert sorted(ABSENT - NAMES) == []
    used = {source for sources in FOUND["names"] for source in sources.split()}
    assert used == {*FOUND["sources"]}
