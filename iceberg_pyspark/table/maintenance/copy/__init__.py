"""Copies of tables to another location."""
