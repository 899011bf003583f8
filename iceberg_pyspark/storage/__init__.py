"""Files: stores, Avro, Puffin, metadata files, and locations of new files."""
