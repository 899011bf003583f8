"""From the files of a scan task to batches of its rows."""
