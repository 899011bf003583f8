"""From batches of rows to data and delete files."""
