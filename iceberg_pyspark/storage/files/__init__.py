"""The interface of stores, and files of the local file system and of memory."""
