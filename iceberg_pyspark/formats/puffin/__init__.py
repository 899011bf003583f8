"""Puffin files and the blobs in them."""
