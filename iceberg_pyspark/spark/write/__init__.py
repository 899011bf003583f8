"""Writes of a session: settings, distribution, files, commit."""
