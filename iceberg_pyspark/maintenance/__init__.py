"""Plans of maintenance as values: what would be removed, and why it may be."""
