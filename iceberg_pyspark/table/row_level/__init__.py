"""The parts of DELETE, UPDATE and MERGE that Spark and plain Python share."""
