"""Writes batches of rows to data files and delete files."""
