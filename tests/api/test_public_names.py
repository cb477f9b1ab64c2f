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


def there():
    """Without the underscores of Fortran."""
    return {name.rstrip("_") for name in exported()}


def test_every_public_name_is_exported_or_has_a_reason():
    assert sorted(NAMES - there() - ABSENT) == []


def test_what_is_said_to_be_absent_is():
    assert sorted(ABSENT & there()) == []
    assert sorted(ABSENT - NAMES) == []


def test_every_name_has_a_source():
    used = {source for sources in FOUND["names"] for source in sources.split()}
    assert used == {*FOUND["sources"]}
