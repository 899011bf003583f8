"""The public API through a real local Spark, on the oldest and the newest supported pyspark."""
