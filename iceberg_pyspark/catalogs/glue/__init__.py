"""A catalog in AWS Glue."""
