"""How values, bounds and sizes are encoded in files of metadata."""
