"""Files that are whole at every moment, and what HDF5 says of its storage."""
