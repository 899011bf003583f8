"""A catalog whose tables are folders, and tables by their path."""
