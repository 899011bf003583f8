"""The layer that knows pyspark: it translates requests and delegates them, and has no Iceberg
rules.
"""
