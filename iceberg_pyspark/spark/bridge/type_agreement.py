"""The types for which Spark and Iceberg agree on order and equality, importable on executors."""

from iceberg_pyspark.spec.types import (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

COMPARED_TYPES = (
    BooleanType,
    IntegerType,
    LongType,
    DecimalType,
    DateType,
    TimestampType,
    TimestamptzType,
    StringType,
)
"""These types exclude floats, bytes and uuids."""
