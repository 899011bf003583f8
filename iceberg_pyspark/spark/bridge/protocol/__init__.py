"""The JVM's requests to Python: the messages by subject, and their table `operations.py`."""
