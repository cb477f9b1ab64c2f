"""Writes the C source of the bridge module, grape6py._bridge: python declare.py FILE."""

import re
import sys
from pathlib import Path

import cffi

CSRC = Path(__file__).resolve().parent.parent

CALLBACKS = """
    int64_t grape6_prepare(struct embed *);
    int64_t grape6_open(int32_t, struct device *);
    int64_t grape6_kernels(struct device *, int32_t, int32_t, const char *const *, void **);
    int64_t grape6_allocate(struct device *, int32_t, uint64_t, uint64_t *);
    int64_t grape6_release(struct device *, uint64_t);
    int64_t grape6_tree(struct device *, struct tree_request *);
    int64_t grape6_close(struct device *, int32_t);
"""


def declarations(header):
    """The structures of a header of csrc, without what belongs to the core alone."""
    text = (CSRC / header).read_text(encoding="ascii").split("\nstruct error;")[0]
    text = re.sub(r"/\*.*?\*/|^#.*?$", " ", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\btypedef[^;]*;|enum \{ EMBED_BUILD[^;]*;", "", text)


def bridge():
    """The FFI object of grape6py._bridge."""
    ffi = cffi.FFI()
    ffi.cdef(declarations("core/device.h") + declarations("python/embed.h"))
    ffi.cdef(f'extern "Python" {{{CALLBACKS}}}')
    ffi.embedding_api("")
    ffi.embedding_init_code((CSRC / "python/start.py").read_text(encoding="ascii"))
    callbacks = CALLBACKS.replace("int64_t grape6", "static int64_t grape6")
    source = (CSRC / "python/embed.c").read_text(encoding="ascii")
    ffi.set_source("grape6py._bridge", f'#include "python/embed.h"\n{callbacks}{source}')
    return ffi


if __name__ == "__main__":
    bridge().emit_c_code(sys.argv[1])
