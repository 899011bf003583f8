"""Real servers for tests, each on loopback, with a pinned version, built once and kept."""
