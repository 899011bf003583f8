"""Plans maintenance: files to delete, files to rewrite, and the order of manifest entries."""
