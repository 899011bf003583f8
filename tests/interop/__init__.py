"""We read tables of Iceberg's Java runtime and of PyIceberg, and they read our tables."""
