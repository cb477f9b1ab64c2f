"""Integrators of bodies: Hermite block steps and leapfrog, on the host and on a CUDA device."""
