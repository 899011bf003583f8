"""The way into Spark's JVM: one Java source compiled at run time, and Python that answers it."""
