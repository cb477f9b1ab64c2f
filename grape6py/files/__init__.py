"""Files: formats of snapshots, runs, and how files are written whole."""
