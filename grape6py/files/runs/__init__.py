"""Files of runs: one for each output, and their index."""
