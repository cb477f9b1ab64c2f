"""The C library as Python sees it: opened, its declarations, one session, one tree."""
