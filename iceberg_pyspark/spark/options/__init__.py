"""Declarations of options of reads and writes."""
