"""Reads the rows of scan tasks."""
