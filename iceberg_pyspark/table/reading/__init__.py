"""What is read of a table: which snapshot, files, statistics."""
