"""Gravity of particles on others: sums pair by pair, and by a tree."""
