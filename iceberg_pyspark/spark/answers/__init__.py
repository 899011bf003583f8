"""Answers to the JVM's questions, which are in `spark/bridge/protocol/`."""
