"""Scans by Spark's own readers: their columns, files and deletes."""
