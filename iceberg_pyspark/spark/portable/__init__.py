"""Tables where only the format `iceberg-py` exists: under Spark Connect, and without the bridge.

The client builds DataFrames and knows what the format tells; the server reads, writes and commits.
"""
