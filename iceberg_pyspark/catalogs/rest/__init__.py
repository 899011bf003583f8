"""The REST catalog: a server keeps names, metadata and commits, and is asked over HTTP."""
