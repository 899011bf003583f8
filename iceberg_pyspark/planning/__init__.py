"""From a snapshot to scan tasks: pruning, matching deletes, splitting, packing."""
