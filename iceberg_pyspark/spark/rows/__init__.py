"""Rows between Spark, Arrow and Python workers."""
