"""The Python side of the CUDA backend: devices, their memory, and their compiled kernels.

The C core drives it through ``grape6py._bridge`` (csrc/python/bridge.c), in the interpreter that it
has started or in the one that it was loaded into. Nothing here is for users, and no call of a force
passes through it: what it hands out are addresses.
"""
