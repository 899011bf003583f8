"""Metrics of columns: counts and bounds."""
