"""Credentials of stores, and their renewal."""
