"""Callers' arrays: checked, and the memory space (host or CUDA device) that they lie in."""
