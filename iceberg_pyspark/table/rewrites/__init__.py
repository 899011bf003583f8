"""Rewrites files and manifests: the table has the same rows before and after."""
