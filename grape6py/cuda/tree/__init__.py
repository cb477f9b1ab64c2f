"""The octree on a CUDA device: cells, sums and searches, and what their kernels are given."""
