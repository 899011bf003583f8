"""Real servers for tests, each on loopback, its version pinned, built once and kept."""
