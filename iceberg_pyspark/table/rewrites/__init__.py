"""Rows read and written again: the table has the same rows before and after."""
