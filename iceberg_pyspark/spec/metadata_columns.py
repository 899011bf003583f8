"""Metadata columns and other reserved field ids. Specification, "Reserved Field IDs"."""

from __future__ import annotations

from iceberg_pyspark.spec.types import (
    BooleanType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

FILE = NestedField(field_id=2147483646, name="_file", type=StringType(), required=True)
POS = NestedField(field_id=2147483645, name="_pos", type=LongType(), required=True)
DELETED = NestedField(field_id=2147483644, name="_deleted", type=BooleanType(), required=True)
SPEC_ID = NestedField(field_id=2147483643, name="_spec_id", type=IntegerType(), required=True)
PARTITION_ID = 2147483642
PARTITION_NAME = "_partition"
ROW_ID = NestedField(field_id=2147483540, name="_row_id", type=LongType())
LAST_UPDATED_SEQUENCE_NUMBER = NestedField(
    field_id=2147483539, name="_last_updated_sequence_number", type=LongType()
)
LINEAGE = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
"""The columns of row lineage."""

ROW_LINEAGE_VERSION = 3
"""The first format version with row lineage."""


def lineage_columns(format_version: int) -> tuple[NestedField, ...]:
    """Return the columns of row lineage; empty before format version 3."""
    return LINEAGE if format_version >= ROW_LINEAGE_VERSION else ()


CHANGE_TYPE = NestedField(
    field_id=2147483543,
    name="_change_type",
    type=StringType(),
    required=True,
    doc="Record type in changelog",
)
CHANGE_ORDINAL = NestedField(
    field_id=2147483542,
    name="_change_ordinal",
    type=IntegerType(),
    doc="Change ordinal in changelog",
)
COMMIT_SNAPSHOT_ID = NestedField(
    field_id=2147483541, name="_commit_snapshot_id", type=LongType(), doc="Commit snapshot ID"
)
CHANGE_COLUMNS = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)
"""The columns of a changelog row: INSERT or DELETE, the ordinal of the commit, the snapshot id."""

COMMIT_SEQUENCE_NUMBER = NestedField(
    field_id=2147483448, name="_commit_sequence_number", type=LongType(), required=True
)
COMMIT_TIMESTAMP = NestedField(
    field_id=2147483449, name="_commit_timestamp", type=TimestamptzType(), required=True
)
COMMIT_COLUMNS = (COMMIT_SEQUENCE_NUMBER, COMMIT_TIMESTAMP)
"""Columns of this package alone, with ids that the specification reserves and does not use."""

DELETE_FILE_PATH = NestedField(
    field_id=2147483546, name="file_path", type=StringType(), required=True
)
DELETE_FILE_POS = NestedField(field_id=2147483545, name="pos", type=LongType(), required=True)
DELETE_FILE_ROW_ID = 2147483544


def partition_column(partition_type: StructType) -> NestedField:
    """Return the `_partition` column for a partition struct type."""
    return NestedField(field_id=PARTITION_ID, name=PARTITION_NAME, type=partition_type)


PLAIN_METADATA_COLUMNS = {f.name: f for f in (FILE, POS, DELETED, SPEC_ID, *LINEAGE)}
"""Metadata columns whose type does not depend on the table, by name."""
