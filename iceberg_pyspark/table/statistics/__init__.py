"""Computes statistics files: distinct values of columns, files and rows of partitions."""
