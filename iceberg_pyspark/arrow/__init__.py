"""Conversion between data files and Arrow record batches."""
