"""The REST catalog: a server stores names and metadata, and commits, over HTTP."""
