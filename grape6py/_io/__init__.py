"""Files of runs: whole at every moment, checksummed, and indexed."""
