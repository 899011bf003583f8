"""Bytes: files, Avro, Puffin, metadata files, and where files go."""
