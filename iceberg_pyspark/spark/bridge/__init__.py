"""The bridge to Spark's JVM: Java sources compiled at run time, and their Python side."""
