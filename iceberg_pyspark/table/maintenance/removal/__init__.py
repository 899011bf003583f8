"""Removal of files that no table needs."""
