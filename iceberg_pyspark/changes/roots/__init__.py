"""Changes of root manifests (version 4, experimental)."""
