"""One sum, integration or tree over the ranks of MPI (mpi4py), with the bits of one rank."""
