"""What the JVM asks Python: the messages by subject, and one table of them, `operations.py`."""
