"""The rows that each snapshot changed, without Spark, and snapshots as they come."""
