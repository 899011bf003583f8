"""A catalog whose tables are folders, and tables that are addressed by their path."""
