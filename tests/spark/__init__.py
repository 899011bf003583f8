"""Tests of the public API on a real local Spark, with the oldest and the newest pyspark."""
