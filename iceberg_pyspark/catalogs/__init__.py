"""Catalogs, which find and replace the current metadata of tables by name."""
