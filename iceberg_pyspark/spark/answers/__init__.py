"""Answers to what the JVM asks, a file for each subject; the questions are `bridge/protocol.py`."""
