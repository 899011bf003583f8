"""Rows: files to and from Arrow record batches."""
