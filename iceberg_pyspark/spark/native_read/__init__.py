"""Scans of Spark's own readers: what they read, and what of it is deleted."""
