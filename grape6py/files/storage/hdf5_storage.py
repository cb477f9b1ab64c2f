"""Whether an HDF5 dataset can be read from its own file, and has been written there.

HDF5 itself opens other files for some, and gives its fill value for what nobody has written.
"""

import math

import h5py

from grape6py._arrays.kinds import Untyped

_SMALL = 1 << 20  # bytes
# How many times smaller its bytes may be than the numbers: of deflate, than which szip, lzf and
# those that only move bits are less; of others, as zstd, whose block of 128 KiB takes 4 bytes.
_DEFLATE, _OTHERS = 1032, 1 << 16
_AT_MOST_DEFLATE = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32,
                    h5py.h5z.FILTER_SZIP, h5py.h5z.FILTER_NBIT, h5py.h5z.FILTER_LZF}  # fmt: skip


def fault(dataset: Untyped) -> str | None:
    """Why a dataset cannot be read, after its name; None if it can. Nothing of it is read here."""
    made = dataset.id.get_create_plist()
    if made.get_layout() == h5py.h5d.VIRTUAL:  # even its shape is asked of other files
        return "is virtual: its numbers are in other files, which are to be read instead"
    if made.get_external_count():
        return "has its numbers in another file, and only this one is read"
    filters = {
        number: name for number, *_, name in map(made.get_filter, range(made.get_nfilters()))
    }
    for number, name in filters.items():
        if not h5py.h5z.filter_avail(number):
            known_as = f"{name.decode('utf-8', 'replace')} ({number})"
            return f"is stored with the filter {known_as}, which HDF5 does not have here: take gzip"
    if not dataset.size:
        return None
    stored, size = dataset.id.get_storage_size(), dataset.size * dataset.id.get_type().get_size()
    pieces, written = 1, min(stored, 1)
    if dataset.chunks is not None:
        sizes = zip(dataset.shape, dataset.chunks, strict=True)
        pieces, written = math.prod(-(-n // k) for n, k in sizes), dataset.id.get_num_chunks()
    if written < pieces:
        how_much = f", {pieces - written} of its {pieces} pieces" * (written > 0)
        return f"was never written{how_much}: there is only the value that HDF5 fills in"
    most = _DEFLATE if filters.keys() <= _AT_MOST_DEFLATE else _OTHERS
    if size > _SMALL and stored * most < size:
        return f"should have {size} bytes, and {stored} are stored"
    return None
