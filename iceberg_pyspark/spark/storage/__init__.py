"""Whether and how the JVM reaches the stores of tables."""
