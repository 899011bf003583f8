"""Where the pointer to a table's current metadata lives."""
