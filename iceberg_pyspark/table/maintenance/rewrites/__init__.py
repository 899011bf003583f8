"""Rewrites of data files, delete files and manifests."""
