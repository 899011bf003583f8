"""Catalogs: they find and replace the current metadata of tables by name."""
