"""Handlers of the JVM's requests, which are in `spark/bridge/protocol/`."""
