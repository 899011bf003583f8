"""Computes new table metadata: updates, requirements, conflicts. Pure functions."""
