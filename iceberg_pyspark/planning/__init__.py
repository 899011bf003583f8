"""From a snapshot to scan tasks: pruning manifests and files, matching deletes, splitting, packing."""
