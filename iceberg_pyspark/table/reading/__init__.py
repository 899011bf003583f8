"""Reads a table: snapshot selection, scans, statistics."""
