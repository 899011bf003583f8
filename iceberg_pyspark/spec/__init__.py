"""The Iceberg specification as values and pure functions: standard library only, no file access,
clock or randomness.
"""
