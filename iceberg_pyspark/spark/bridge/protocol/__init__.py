"""The JVM's questions to Python: the messages by subject, and their table `operations.py`."""
