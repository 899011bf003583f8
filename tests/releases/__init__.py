"""Every release of Spark: what compiles against its jars, and what first steps do on it."""
