"""The Iceberg specification as values and pure functions, using only the standard library.

No module in this package reads files, clocks or random numbers.
"""
