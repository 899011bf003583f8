"""Checks whether a table may be changed, and whether schemas, specs and sort orders are valid.

Specification, "Schemas and Data Types" (types per version, identifier fields, reserved ids),
"Default Values", "Partitioning" and "Sorting". Reading is lenient with the output of older writers;
these checks for new metadata are strict.

Requires schemes in the locations and paths of tables of version 4.

Specification of version 4, "Paths in Metadata": a path without a scheme is relative to the table's
location, even if it begins with a slash. An upgrade adds the scheme of local files to existing
paths without one, because only local paths lack a scheme.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from iceberg_pyspark.changes.metadata_builder import MetadataBuilder
from iceberg_pyspark.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.spec import types
from iceberg_pyspark.spec.default_values import why_no_default
from iceberg_pyspark.spec.encryption import DATA_KEY_LENGTH, KEY_LENGTHS, TABLE_KEY_ID
from iceberg_pyspark.spec.manifests import ManifestFile
from iceberg_pyspark.spec.metadata_columns import ROW_LINEAGE_VERSION
from iceberg_pyspark.spec.partitioning import PartitionField, PartitionSpec
from iceberg_pyspark.spec.relative_paths import RELATIVE_PATHS_VERSION, older_path, scheme_of
from iceberg_pyspark.spec.schema import MAX_USER_FIELD_ID, Schema
from iceberg_pyspark.spec.snapshots import SnapshotsOfRefs, with_paths
from iceberg_pyspark.spec.sorting import SortOrder
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.table_properties import ROOT_MANIFESTS
from iceberg_pyspark.spec.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    accepts,
)

_LOCAL = "file:"


def normal_location(location: str) -> str:
    """Return the location without trailing slashes, unless it consists of slashes or a scheme only.

    >>> normal_location("s3://bucket/table/")
    's3://bucket/table'
    """
    path = location.rstrip("/")
    return location if not path or path.endswith(":") else path


def with_scheme(location: str) -> str:
    """Return a table location in the form that version 4 requires: with a scheme.

    >>> with_scheme("/wh/t"), with_scheme("s3://b/t")
    ('file:/wh/t', 's3://b/t')
    """
    return location if scheme_of(location) or not location else f"{_LOCAL}{location}"


def set_location(builder: MetadataBuilder, location: str) -> None:
    """Set the table's location; refuse to move a version 4 table that has root manifests."""
    m = builder.metadata
    location = normal_location(location)
    if m.format_version >= RELATIVE_PATHS_VERSION:
        location = with_scheme(location)
        if m.location != location and any(s.root_manifest is not None for s in m.snapshots):
            raise InvalidRequestError(
                f"table {m.location}: its location cannot become {location}, because paths in "
                f"metadata of version {m.format_version} are relative to it; leave the location "
                "as it is, or make a new table there"
            )
    builder.change(location=location)


def with_schemes(m: TableMetadata) -> TableMetadata:
    """Return the metadata for an upgrade to version 4: every location and path has a scheme."""
    location = with_scheme(m.location)
    return replace(
        m,
        location=location,
        snapshots=tuple(with_paths(s, location, older_path) for s in m.snapshots),
        metadata_log=tuple(
            replace(e, metadata_file=older_path(e.metadata_file, location)) for e in m.metadata_log
        ),
        statistics=tuple(
            replace(s, statistics_path=older_path(s.statistics_path, location))
            for s in m.statistics
        ),
        partition_statistics=tuple(
            replace(s, statistics_path=older_path(s.statistics_path, location))
            for s in m.partition_statistics
        ),
    )


DEFAULTS_MIN_FORMAT_VERSION = 3
_ENCRYPTION_VERSION = 3


def check_encryption(
    base: TableMetadata | None, format_version: int, properties: Mapping[str, str]
) -> None:
    """Refuse a table that cannot be encrypted, and a change of the table's key.

    `base` is the metadata before the change, None for a new table. Files that are written before a
    key is set, also those of a write that still runs, would be plaintext in an encrypted table.
    """
    key_id = properties.get(TABLE_KEY_ID)
    if base is not None and key_id != base.properties.get(TABLE_KEY_ID):
        raise InvalidRequestError(
            f"table {base.location}: {TABLE_KEY_ID} is set when a table is created, and never "
            "changes or goes; create an encrypted table, and copy the rows into it"
        )
    if key_id is None:
        return
    if format_version != _ENCRYPTION_VERSION:
        raise InvalidRequestError(
            f"{TABLE_KEY_ID}: tables of format version {format_version} cannot be encrypted; "
            f"create the table with 'format-version' = '{_ENCRYPTION_VERSION}'"
        )
    if (length := DATA_KEY_LENGTH.of(properties)) not in KEY_LENGTHS:
        raise InvalidRequestError(
            f"{DATA_KEY_LENGTH.name} = {length}: a key has "
            f"{', '.join(map(str, KEY_LENGTHS))} bytes; choose one of these"
        )


_NULL_DEFAULT_ONLY = (types.UnknownType, types.VariantType, types.GeometryType, types.GeographyType)


def check_may_change(metadata: TableMetadata) -> None:
    """Refuse to change a table whose counters lag, or a version 4 table of another engine.

    This applies to every change that writes metadata or deletes files: numbers would be given out
    twice, and a snapshot with a root manifest would make the table unreadable for that engine.
    """
    _check_counters(metadata)
    if metadata.format_version >= RELATIVE_PATHS_VERSION and not ROOT_MANIFESTS.of(
        metadata.properties
    ):
        raise UnsupportedFeatureError(
            f"table {metadata.location} has format version {metadata.format_version} and was made "
            "by another engine, which cannot read the root manifests that are written here; change "
            f"it with that engine, or set its property {ROOT_MANIFESTS.name} to true there to go "
            "on without it"
        )


def _check_counters(metadata: TableMetadata) -> None:
    """Refuse metadata with a counter behind the numbers that its snapshots have."""
    snapshots = metadata.snapshots
    if isinstance(snapshots, SnapshotsOfRefs):
        # the others are in the hands of the catalog's server, which checks the commit too
        snapshots = tuple(snapshots.loaded_by_id.values())
    for s in snapshots:
        if s.sequence_number > metadata.last_sequence_number:
            raise _lags(
                metadata,
                "last-sequence-number",
                metadata.last_sequence_number,
                f"snapshot {s.snapshot_id} has sequence number {s.sequence_number}",
            )
        if (s.first_row_id or 0) + (s.added_rows or 0) > metadata.next_row_id:
            raise _lags(
                metadata,
                "next-row-id",
                metadata.next_row_id,
                f"snapshot {s.snapshot_id} has {s.added_rows or 0} rows from id "
                f"{s.first_row_id or 0}",
            )


def check_manifests(metadata: TableMetadata, manifests: Iterable[ManifestFile]) -> None:
    """Refuse to build on manifests with numbers that the metadata has not given out yet."""
    for m in manifests:
        if m.sequence_number > metadata.last_sequence_number:
            raise _lags(
                metadata,
                "last-sequence-number",
                metadata.last_sequence_number,
                f"manifest {m.manifest_path} has sequence number {m.sequence_number}",
            )
        if metadata.format_version < ROW_LINEAGE_VERSION or m.first_row_id is None:
            continue
        # existing files may have ids of their own, which an older snapshot has given out
        if m.first_row_id + (m.added_rows_count or 0) > metadata.next_row_id:
            raise _lags(
                metadata,
                "next-row-id",
                metadata.next_row_id,
                f"manifest {m.manifest_path} has {m.added_rows_count or 0} rows from id "
                f"{m.first_row_id}",
            )


def _lags(metadata: TableMetadata, name: str, number: int, higher: str) -> InvalidMetadataError:
    return InvalidMetadataError(
        f"table {metadata.location}: it cannot be changed, because its {name} is {number}, but "
        f"{higher}: the next commit would give out numbers again that are in use; the table can "
        "still be read, so copy its rows to a new table, or let the engine that wrote the metadata "
        "correct it"
    )


def check_schema(schema: Schema, format_version: int) -> None:
    """Raise `InvalidRequestError` for a schema that this format version does not allow."""
    if types.is_too_deep(schema.as_struct):
        raise InvalidRequestError(f"the schema nests deeper than {types.MAX_TYPE_DEPTH} levels")
    if len(schema.id_by_name) != len(schema.field_by_id):
        names = list(schema.name_by_id.values())
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequestError(f"column name '{twice}' occurs twice; names must be unique")
    for field_id, f in schema.field_by_id.items():
        name = schema.name_by_id[field_id]
        if not 0 < field_id <= MAX_USER_FIELD_ID:
            raise InvalidRequestError(
                f"column '{name}': field id {field_id} is reserved; use 1 to {MAX_USER_FIELD_ID}"
            )
        _check_field(f, name, format_version)
    for field_id in schema.identifier_field_ids:
        check_identifier_field(schema, field_id)


def _check_field(f: types.NestedField, name: str, format_version: int) -> None:
    if isinstance(f.type, types.PrimitiveType):
        min_version = types.MIN_FORMAT_VERSION.get(type(f.type), 1)
        if format_version < min_version:
            raise InvalidRequestError(
                f"column '{name}': type {f.type} needs format version {min_version}, "
                f"the table has {format_version}; upgrade the table or choose another type"
            )
        reason = types.why_not_made(f.type)
        if reason is not None:
            raise InvalidRequestError(f"column '{name}': type {f.type}: {reason}; choose another")
    if isinstance(f.type, types.UnknownType) and f.required:
        raise InvalidRequestError(f"column '{name}': a column of type unknown must be optional")
    if f.initial_default is None and f.write_default is None:
        return
    if format_version < DEFAULTS_MIN_FORMAT_VERSION:
        raise InvalidRequestError(
            f"column '{name}': default values need format version {DEFAULTS_MIN_FORMAT_VERSION}, "
            f"the table has {format_version}; upgrade the table, or leave the default out"
        )
    if isinstance(f.type, _NULL_DEFAULT_ONLY):
        raise InvalidRequestError(f"column '{name}': a {f.type} must default to null")
    for default in (f.initial_default, f.write_default):
        reason = why_no_default(f.type, default)
        if reason is not None:
            raise InvalidRequestError(
                f"column '{name}': {default!r} cannot be the default of a column of type "
                f"{f.type}: {reason}"
            )


def check_identifier_field(schema: Schema, field_id: int) -> None:
    """Refuse a field that cannot be an identifier field (specification, "Identifier Field IDs")."""
    f = schema.field_by_id.get(field_id)
    if f is None:
        raise InvalidRequestError(f"identifier field id {field_id} is not in the schema")
    name = schema.name_by_id[field_id]
    refusal = f"column '{name}' cannot be an identifier field: "
    if not isinstance(f.type, types.PrimitiveType):
        raise InvalidRequestError(refusal + "it is not of a primitive type")
    if isinstance(f.type, types.FloatType | types.DoubleType):
        raise InvalidRequestError(refusal + f"{f.type} values cannot be compared exactly")
    if f.optional:
        raise InvalidRequestError(refusal + "it is optional")
    parent_id = schema.parent_by_id.get(field_id)
    while parent_id is not None:
        parent = schema.field_by_id[parent_id]
        if not isinstance(parent.type, types.StructType):
            raise InvalidRequestError(refusal + "it is nested in a list or map")
        if parent.optional:
            raise InvalidRequestError(refusal + f"it is nested in the optional '{parent.name}'")
        parent_id = schema.parent_by_id.get(parent_id)


def check_spec(spec: PartitionSpec, schema: Schema, format_version: int) -> None:
    """Refuse a new partition spec that does not fit the schema and the format version."""
    names: set[str] = set()
    partitions: dict[tuple[tuple[int, ...], str], str] = {}
    for i, f in enumerate(spec.fields):
        if not f.name:
            raise InvalidRequestError("a partition field needs a name")
        if f.name in names:
            raise InvalidRequestError(f"partition field name '{f.name}' occurs twice")
        names.add(f.name)
        if format_version == 1 and f.field_id != 1000 + i:
            raise InvalidRequestError(
                f"partition field '{f.name}' has id {f.field_id}; version 1 tables number the "
                f"fields of a spec from 1000, so it must be {1000 + i}"
            )
        check_partition_source(f, schema)
        _check_partition_name(f, schema)
        if isinstance(f.transform, VoidTransform):
            continue
        key = (f.source_ids, _redundancy_name(f.transform))
        if key in partitions:
            raise InvalidRequestError(
                f"partition field '{f.name}' is redundant with '{partitions[key]}'; leave it out"
            )
        partitions[key] = f.name


def _redundancy_name(transform: Transform) -> str:
    # hours(ts) already separates what days(ts) separates
    if isinstance(transform, YearTransform | MonthTransform | DayTransform | HourTransform):
        return "time"
    return str(transform)


def check_partition_source(f: PartitionField, schema: Schema) -> None:
    """Refuse a partition field whose source column is missing or does not fit its transform."""
    if isinstance(f.transform, VoidTransform | UnknownTransform):
        return
    _check_source(f"partition field '{f.name}'", f.source_ids, f.transform, schema)


def _check_source(
    field: str, source_ids: tuple[int, ...], transform: Transform, schema: Schema
) -> None:
    if len(source_ids) != 1:
        raise InvalidRequestError(f"{field}: transform '{transform}' takes one source column")
    source = schema.field_by_id.get(source_ids[0])
    if source is None:
        raise InvalidRequestError(
            f"{field}: its source column (id {source_ids[0]}) is not in the schema; drop the field "
            "before its source column"
        )
    if not accepts(transform, source.type):
        raise InvalidRequestError(
            f"{field}: transform '{transform}' does not take '{source.name}' of type {source.type}"
        )
    parent_id = schema.parent_by_id.get(source.field_id)
    while parent_id is not None:
        if not isinstance(schema.field_by_id[parent_id].type, types.StructType):
            raise InvalidRequestError(f"{field}: '{source.name}' is nested in a list or map")
        parent_id = schema.parent_by_id.get(parent_id)


def _check_partition_name(f: PartitionField, schema: Schema) -> None:
    column = schema.id_by_name.get(f.name)
    if column is None:
        return
    if isinstance(f.transform, IdentityTransform | VoidTransform) and f.source_ids == (column,):
        return
    raise InvalidRequestError(
        f"partition field '{f.name}' has the name of a column; only the identity of that column "
        "may be called so"
    )


def check_sort_order(order: SortOrder, schema: Schema) -> None:
    """Refuse a sort order whose source columns are missing or do not fit their transforms."""
    for i, f in enumerate(order.fields):
        if not isinstance(f.transform, VoidTransform | UnknownTransform):
            _check_source(f"sort field {i + 1}", f.source_ids, f.transform, schema)
