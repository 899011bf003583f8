"""Answers to what the JVM asks, a file for each subject; questions: `spark/bridge/protocol/`."""
