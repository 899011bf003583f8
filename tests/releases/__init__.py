"""Tests on every release of Spark: the Java sources compile, and first steps work."""
