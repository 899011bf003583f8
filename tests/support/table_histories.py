"""Tables with a random history, and the rows that a naive reader finds in them.

Each step changes the table through the layers below Spark, and also changes the model, a list of
rows with values by field id. The steps are printed as Hypothesis notes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from iceberg_pyspark import TableCatalog
from iceberg_pyspark.arrow.arrow_schemas import to_arrow_schema
from iceberg_pyspark.arrow.write.write_files import write_data_files
from iceberg_pyspark.changes.conflicts import ConflictChecks
from iceberg_pyspark.changes.removals import delete_file_id
from iceberg_pyspark.changes.snapshot_changes import RowDelta
from iceberg_pyspark.errors import InvalidRequestError, UnsupportedFeatureError
from iceberg_pyspark.formats.puffin.deletion_vectors import write_deletion_vectors
from iceberg_pyspark.spec.manifests import DataFile, FileContent
from iceberg_pyspark.spec.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from iceberg_pyspark.spec.partitioning import PartitionSpec
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.transforms import IdentityTransform
from iceberg_pyspark.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
    VariantType,
)
from iceberg_pyspark.table.commits.commit_files import commit_action
from iceberg_pyspark.table.commits.new_data import write_context_of, write_rows
from tests.support.file_commits import commit_append
from tests.support.history_model import ID, Draw, History, ModelRow, schema_text
from tests.support.naive_rows import field_of, key_of, row_by_name
from tests.support.plain_values import UNORDERED_TYPES, plain_values, values
from tests.support.sql_conditions import Column, columns_of

COLUMN_NAMES = ["a", "b", "A", "c d", "ü"]


_FIELD_NAMES = ["x", "y", "X"]


_COMMON: list[PrimitiveType] = [
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DecimalType(9, 2),
    DecimalType(20, 2),
    DateType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    BinaryType(),
]


_RARE: list[PrimitiveType] = [UUIDType(), FixedType(2), TimeType()]


_NEW: list[PrimitiveType] = [
    UnknownType(),
    VariantType(),
    VariantType(),
    GeometryType("EPSG:3857"),
    GeographyType(),
]
"""Types of version 3."""


_PROMOTED: dict[str, list[PrimitiveType]] = {
    "int": [LongType()],
    "float": [DoubleType()],
    "decimal(9, 2)": [DecimalType(18, 2), DecimalType(20, 2)],
    "date": [TimestampType()],
    "unknown": [IntegerType(), StringType()],
}


_TRANSFORMS = ["identity", "identity", "bucket[3]", "truncate[2]", "year", "month", "day", "hour"]


def column_types(version: int, next_id: Callable[[], int]) -> SearchStrategy[Type]:
    """Return a strategy for column types, sometimes nested; `next_id` numbers the inner fields."""
    rare = _RARE if version < 3 else [*_RARE, *_NEW]
    common = st.sampled_from(_COMMON)
    primitive = st.one_of(common, common, common, st.sampled_from(rare))

    def struct(inner: SearchStrategy[Type]) -> SearchStrategy[Type]:
        fields = st.dictionaries(st.sampled_from(["x", "y"]), inner, min_size=1, max_size=2)
        return fields.map(
            lambda type_by_name: StructType(
                tuple(
                    NestedField(field_id=next_id(), name=n, type=t) for n, t in type_by_name.items()
                )
            )
        )

    stored = st.one_of(common, common, st.sampled_from(_RARE))
    nested = st.one_of(
        struct(primitive),
        struct(struct(common)),
        stored.map(lambda t: ListType(element_id=next_id(), element_type=t)),
        struct(common).map(lambda t: ListType(element_id=next_id(), element_type=t)),
        stored.map(
            lambda t: MapType(
                key_id=next_id(), key_type=StringType(), value_id=next_id(), value_type=t
            )
        ),
    )
    return st.one_of(primitive, primitive, primitive, nested)


def change_schema(h: History) -> None:
    """Add, rename, drop, widen or move a column; ignore a change that the table refuses."""
    columns = [c for c in columns_of(h.struct) if c.path != (ID,)]
    changes: list[Callable[[History, Sequence[Column]], str | None]] = [_add]
    if columns:
        changes += [_add, _rename, _rename, _drop, _drop, _add_again, _add_again, _promote, _move]
    change = h.draw(st.sampled_from(changes))
    try:
        done = change(h, columns)
    except InvalidRequestError as e:
        note(f"{change.__name__} refused: {e}")
        return
    if done is not None:
        h.table.refresh()
        note(f"{done}: {schema_text(h.table.schema)}")


def _parents(columns: Sequence[Column]) -> list[tuple[str, ...]]:
    return [(), *(c.path for c in columns if isinstance(c.type, StructType))]


def _free_name(h: History, parent: tuple[str, ...]) -> str | None:
    used = {c.path[-1].lower() for c in columns_of(h.struct) if c.path[:-1] == parent}
    free = [n for n in (_FIELD_NAMES if parent else COLUMN_NAMES) if n.lower() not in used]
    return h.draw(st.sampled_from(free)) if free else None


def _new_type(h: History) -> tuple[Type, Any]:
    ids = iter(range(100_000, 101_000))
    type_ = h.draw(column_types(h.version, lambda: next(ids)))
    if h.version < 3 or not isinstance(type_, PrimitiveType) or isinstance(type_, UNORDERED_TYPES):
        return type_, None
    return type_, h.draw(st.none() | plain_values(type_))


def _add(h: History, columns: Sequence[Column]) -> str | None:
    parent = h.draw(st.sampled_from(_parents(columns)))
    name = _free_name(h, parent)
    if name is None:
        return None
    type_, default = _new_type(h)
    above = ".".join(parent) or None
    h.table.update_schema().add_column(name, type_, parent=above, default=default).commit()
    return f"add {above}.{name} {type_} default {default}"


def _rename(h: History, columns: Sequence[Column]) -> str | None:
    c = h.draw(st.sampled_from(columns))
    name = _free_name(h, c.path[:-1])
    if name is None:
        return None
    h.table.update_schema().rename_column(".".join(c.path), name).commit()
    return f"rename {c.text} to {name}"


def _drop(h: History, columns: Sequence[Column]) -> str:
    c = h.draw(st.sampled_from(columns))
    h.table.update_schema().drop_column(".".join(c.path)).commit()
    return f"drop {c.text}"


def _add_again(h: History, columns: Sequence[Column]) -> str:
    c = h.draw(st.sampled_from(columns))
    type_, default = (c.type, None) if h.draw(st.booleans()) else _new_type(h)
    h.table.update_schema().drop_column(".".join(c.path)).commit()
    above = ".".join(c.path[:-1]) or None
    name = h.draw(st.sampled_from([c.path[-1], c.path[-1].swapcase()]))
    h.table.update_schema().add_column(name, type_, parent=above, default=default).commit()
    return f"drop {c.text}, add it again as {name} {type_} default {default}"


def _promote(h: History, columns: Sequence[Column]) -> str | None:
    result = [c for c in columns if str(c.type) in _PROMOTED]
    if not result:
        return None
    c = h.draw(st.sampled_from(result))
    type_ = h.draw(st.sampled_from(_PROMOTED[str(c.type)]))
    h.table.update_schema().update_type(".".join(c.path), type_).commit()
    return f"widen {c.text} to {type_}"


def _move(h: History, columns: Sequence[Column]) -> str:
    c = h.draw(st.sampled_from(columns))
    h.table.update_schema().move_first(".".join(c.path)).commit()
    return f"move {c.text} first"


def change_partitioning(h: History) -> None:
    """Add or remove a partition field; ignore a change that the table refuses."""
    columns = [c for c in columns_of(h.struct) if isinstance(c.type, PrimitiveType)]
    c = h.draw(st.sampled_from(columns))
    transform = h.draw(st.sampled_from(_TRANSFORMS))
    fields = [f.name for f in h.table.spec.fields]
    removed = h.draw(st.sampled_from(fields)) if fields and h.draw(st.booleans()) else None
    try:
        update = h.table.update_spec()
        if removed is not None:
            update.remove_field(removed)
        else:
            update.add_field(".".join(c.path), transform)
        update.commit()
    except InvalidRequestError as e:
        note(f"partitioning refused: {e}")
        return
    h.table.refresh()
    note(f"partitioned by {[(f.name, str(f.transform)) for f in h.table.spec.fields]}")


_METRICS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)


_ROOTS = {"write.root.file-system-tables.enabled": "true"}
_ROOT_LIMITS: Sequence[Mapping[str, str]] = (
    {},
    {"write.root.max-data-entries": "1", "write.root.max-delete-entries": "1"},
    {"write.root.max-data-entries": "0", "commit.manifest.min-count-to-merge": "2"},
    {"write.root.max-delete-entries": "0", "write.root.max-bytes": "1"},
)


def a_history(
    draw: Draw, catalog: TableCatalog, *, newest: int = 4, key_id: str | None = None
) -> History:
    """Create a table and change it a few times, up to the format version `newest`.

    With the id of a key that the catalog has, some tables of version 3 are encrypted, and stay so.
    """
    version = draw(st.sampled_from([v for v in (1, 2, 2, 3, 3, 4, 4) if v <= newest]))
    ids = iter(range(2, 1000))
    names = draw(
        st.lists(st.sampled_from(COLUMN_NAMES), min_size=1, max_size=4, unique_by=str.lower)
    )
    fields = [NestedField(field_id=1, name=ID, type=LongType(), required=True)]
    for name in names:
        type_ = draw(column_types(version, lambda: next(ids)))
        fields.append(NestedField(field_id=next(ids), name=name, type=type_))
    schema = Schema(fields=tuple(fields))
    properties = {"format-version": str(version)}
    if draw(st.booleans()):
        properties["write.metadata.metrics.default"] = draw(
            st.sampled_from(["none", "counts", "full", "truncate(1)"])
        )
    if newest >= 4:
        properties |= _ROOTS | draw(st.sampled_from(_ROOT_LIMITS))
    if key_id is not None and version == 3 and draw(st.booleans()):
        properties["encryption.key-id"] = key_id
        newest = 3
    catalog.create_namespace("db", if_not_exists=True)
    table = catalog.create_table(f"db.t{uuid.uuid4().hex}", schema, properties=properties)
    note(f"create version {version}: {schema_text(schema)}")
    history = History(draw, table, newest=newest if version >= 3 else min(newest, 3))
    if draw(st.booleans()):
        change_partitioning(history)
    append(history)
    steps = [append, change_schema, change_schema, change_partitioning, upgrade]
    steps += [delete_positions, delete_positions, delete_keys, delete_keys]
    for step in draw(st.lists(st.sampled_from(steps), max_size=7)):
        step(history)
    return history


# files


def append(h: History) -> None:
    """Add a few rows."""
    (id_field, *_) = (f for f in h.struct.fields if f.name == ID)
    others = [f for f in h.struct.fields if f.name != ID]
    result = h.draw(
        st.lists(
            st.fixed_dictionaries({f.field_id: values(f.type) for f in others}),
            min_size=1,
            max_size=5,
        )
    )
    stored = [{**row, id_field.field_id: h.next_id + i} for i, row in enumerate(result)]
    by_id = {row[id_field.field_id]: row for row in stored}
    h.next_id += len(stored)
    rows = pa.Table.from_pylist(
        [row_by_name(h.struct, row) for row in stored], schema=to_arrow_schema(h.table.schema)
    )
    try:
        _, files = write_rows(h.table.identifier, h.table.metadata, h.table.io, rows)
    except UnsupportedFeatureError as e:
        note(f"append refused: {e}")  # a struct without a field that has a type
        return
    files = [_rewritten(h, f) for f in files]
    commit_append(h.table.catalog, h.table.loaded, h.table.io, files)
    h.table.refresh()
    note(f"append {[row_by_name(h.struct, row) for row in stored]} in {len(files)} files")
    for f in files:
        h.files[f.file_path] = f
        for position, row_id in enumerate(_row_ids(h, f)):
            h.rows.append(
                ModelRow(
                    stored=by_id[row_id],
                    file_path=f.file_path,
                    position=position,
                    spec_id=f.spec_id,
                    partition=repr(f.partition),
                    sequence_number=h.table.metadata.last_sequence_number,
                )
            )
    _remember(h)


def _row_ids(h: History, f: DataFile) -> list[int]:
    """Return the ids of the rows of a new file, by their positions."""
    if f.key_metadata is None:
        return list(pq.ParquetFile(_local(f)).read([ID])[ID].to_pylist())
    rows = h.table.scan(columns=[ID, "_file", "_pos"]).to_arrow()
    rows = rows.filter(pc.equal(rows["_file"], f.file_path)).sort_by("_pos")
    assert rows["_pos"].to_pylist() == list(range(f.record_count))
    return list(rows[ID].to_pylist())


def _rewritten(h: History, f: DataFile) -> DataFile:
    """Rewrite the file in a layout that another writer might choose, and return its new entry."""
    if f.key_metadata is not None:
        return f
    if any(isinstance(t.type, GeometryType | GeographyType) for t in columns_of(h.struct)):
        return f  # Arrow would write the columns without their logical types
    options = {
        "row_group_size": h.draw(st.sampled_from([1, 2, 1000])),
        "store_decimal_as_integer": h.draw(st.booleans()),
        "write_page_index": h.draw(st.booleans()),
        "use_dictionary": h.draw(st.booleans()),
    }
    absent = _absent_columns(h, f)
    rows = pq.read_table(_local(f), partitioning=None).drop_columns([c.name for c in absent])
    pq.write_table(rows, _local(f), **options)
    f = _without_metrics(f, {c.field_id for c in absent})
    read = pq.ParquetFile(_local(f))
    groups = [read.metadata.row_group(i) for i in range(read.metadata.num_row_groups)]
    offsets = tuple(
        min(
            c.dictionary_page_offset or c.data_page_offset
            for c in (g.column(i) for i in range(g.num_columns))
        )
        for g in groups
    )
    size = h.table.io.size(f.file_path)
    return replace(f, file_size_in_bytes=size, split_offsets=offsets)


def _absent_columns(h: History, f: DataFile) -> list[NestedField]:
    """Draw the columns that the file lacks, because its partition has their values."""
    spec = h.table.metadata.spec_by_id[f.spec_id]
    ids = [p.source_ids[0] for p in spec.fields if isinstance(p.transform, IdentityTransform)]
    result = [c for c in h.struct.fields if c.field_id in ids and c.name != ID]
    return result if result and h.draw(st.booleans()) else []


def _without_metrics(f: DataFile, field_ids: set[int]) -> DataFile:
    maps: dict[str, Any] = {
        name: {i: v for i, v in (getattr(f, name) or {}).items() if i not in field_ids}
        for name in _METRICS
    }
    return replace(f, **maps)


def delete_positions(h: History) -> None:
    """Delete rows of one or two files by position, in the form that the format version requires."""
    if h.version == 1 or not h.files:
        return
    targets = h.draw(st.lists(st.sampled_from(list(h.files)), min_size=1, max_size=2, unique=True))
    deleted: list[ModelRow] = []
    for path in targets:
        rows = [row for row in h.rows if row.file_path == path]
        deleted += h.draw(
            st.lists(st.sampled_from(rows), min_size=1, max_size=3, unique_by=lambda r: r.position)
        )
    removed: list[DataFile] = []
    if h.version == 2:
        added = [
            _position_deletes(h, path, [row for row in deleted if row.file_path == path])
            for path in targets
        ]
        kind = "position delete files"
    else:
        added, removed = _vectors(h, targets, deleted)
        kind = "deletion vectors"
    _commit_deletes(h, added, removed)
    for row in deleted:
        row.is_live = False
        row.is_position_deleted = True
    note(f"{kind} delete {[row.stored[1] for row in deleted]}")
    _remember(h)


def _position_deletes(h: History, path: str, rows: Sequence[ModelRow]) -> DataFile:
    target = h.files[path]
    pairs = sorted((row.file_path, row.position) for row in rows)
    schema = Schema(fields=(DELETE_FILE_PATH, DELETE_FILE_POS))
    written = _write_deletes(
        h, schema, [{"file_path": file, "pos": position} for file, position in pairs]
    )
    return replace(
        written,
        content=FileContent.POSITION_DELETES,
        spec_id=target.spec_id,
        partition=target.partition,
        sort_order_id=None,
        referenced_data_file=path if h.draw(st.booleans()) else None,
    )


def _vectors(
    h: History, targets: Sequence[str], deleted: Sequence[ModelRow]
) -> tuple[list[DataFile], list[DataFile]]:
    positions = {
        path: {
            row.position
            for row in h.rows
            if row.file_path == path and (row.is_position_deleted or row in deleted)
        }
        for path in targets
    }
    location = f"{h.table.location}/data/{uuid.uuid4()}.puffin"
    blobs = write_deletion_vectors(h.table.io, location, positions)
    removed = [h.vectors[path] for path in targets if path in h.vectors]
    for path, blob in blobs.items():
        h.vectors[path] = DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=location,
            file_format="puffin",
            spec_id=h.files[path].spec_id,
            partition=h.files[path].partition,
            record_count=blob.cardinality,
            file_size_in_bytes=blob.file_size_in_bytes,
            key_metadata=blob.key_metadata,
            referenced_data_file=path,
            content_offset=blob.content_offset,
            content_size_in_bytes=blob.content_size_in_bytes,
        )
    return [h.vectors[path] for path in targets], removed


def delete_keys(h: History) -> None:
    """Delete rows by the values of one or two columns, in one partition or in the whole table."""
    if h.version == 1 or not h.files:
        return
    columns = [
        c
        for c in columns_of(h.struct)
        if isinstance(c.type, PrimitiveType) and not isinstance(c.type, UNORDERED_TYPES)
    ]
    compared = h.draw(st.lists(st.sampled_from(columns), min_size=1, max_size=2, unique=True))
    scopes = [(f.spec_id, f.partition) for f in h.files.values()]
    scopes += [
        (s.spec_id, (None,) * len(s.fields))
        for s in h.table.metadata.partition_specs
        if s.is_unpartitioned
    ]
    spec_id, partition = h.draw(st.sampled_from(scopes))
    unpartitioned = h.table.metadata.spec_by_id[spec_id].is_unpartitioned
    keys = [_some_key(h, compared) for _ in range(h.draw(st.integers(1, 2)))]
    written = _write_keys(h, compared, keys)
    _commit_deletes(h, [replace(written, spec_id=spec_id, partition=partition)], [])
    texts = [tuple(map(key_of, key)) for key in keys]
    for row in h.rows:
        in_scope = unpartitioned or (row.spec_id, row.partition) == (spec_id, repr(partition))
        own = tuple(key_of(field_of(h.struct, row.stored, c.path)) for c in compared)
        row.is_live &= not (in_scope and own in texts)
    scope = "everywhere" if unpartitioned else f"in {partition} of spec {spec_id}"
    note(f"equality deletes of {[c.text for c in compared]} = {keys} {scope}")
    _remember(h)


def _some_key(h: History, compared: Sequence[Column]) -> list[Any]:
    live = h.live()
    if live and h.draw(st.integers(0, 3)):
        row = h.draw(st.sampled_from(live))
        return [field_of(h.struct, row, c.path) for c in compared]
    return [
        h.draw(st.none() | plain_values(c.type))  # type: ignore[arg-type]
        if c.path != (ID,)
        else h.draw(st.integers(0, 9))
        for c in compared
    ]


def _write_keys(h: History, compared: Sequence[Column], keys: Sequence[Sequence[Any]]) -> DataFile:
    names = [".".join(c.path) for c in compared]
    schema = _optional(h.table.schema.select(names))
    rows = []
    for key in keys:
        row: dict[str, Any] = {}
        for c, value in zip(compared, key, strict=True):
            inner = row
            for name in c.path[:-1]:
                inner = inner.setdefault(name, {})
            inner[c.path[-1]] = value
        rows.append(row)
    ids = tuple(h.table.schema.find(name).field_id for name in names)
    written = _write_deletes(h, schema, rows)
    return replace(written, content=FileContent.EQUALITY_DELETES, equality_ids=ids)


def _optional(schema: Schema) -> Schema:
    return replace(schema, fields=tuple(replace(f, required=False) for f in schema.fields))


def _write_deletes(h: History, schema: Schema, rows: Sequence[Mapping[str, Any]]) -> DataFile:
    context = replace(
        write_context_of("deletes", h.table.metadata, h.table.io, write_id=str(uuid.uuid4())),
        schema=schema,
        schemas=(),
        spec=PartitionSpec(spec_id=0),
    )
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=to_arrow_schema(schema))
    (written,) = write_data_files(
        context, table.to_batches(), h.table.io, partition_id=0, task_id=0
    )
    return written


def _commit_deletes(h: History, added: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
    action = RowDelta(
        delete_files=tuple(added),
        removed_deletes=frozenset(map(delete_file_id, removed)),
        checks=ConflictChecks(base_snapshot_id=h.table.metadata.current_snapshot_id),
    )
    commit_action(h.table.catalog, h.table.loaded, h.table.io, action)
    h.table.refresh()


def _remember(h: History) -> None:
    snapshot = h.table.current_snapshot
    assert snapshot is not None
    h.moments.append(replace(h.now(), snapshot_id=snapshot.snapshot_id))


def upgrade(h: History) -> None:
    """Upgrade the table to the next format version."""
    if h.version < h.newest:
        h.table.update_properties().set({"format-version": str(h.version + 1)}).commit()
        h.table.refresh()
        note(f"upgrade to version {h.version}")
        if h.version == 4:
            _with_schemes(h)


def _local(f: DataFile) -> str:
    """Return the file's path without a scheme, because pyarrow would decode a URI."""
    return f.file_path.removeprefix("file:")


def _with_schemes(h: History) -> None:
    """Add the scheme to local paths in the model: since version 4, readers return paths with it."""
    for row in h.rows:
        row.file_path = f"file:{row.file_path}"
    for files_by_path in (h.files, h.vectors):
        files = {f"file:{path}": _with_scheme(f) for path, f in files_by_path.items()}
        files_by_path.clear()
        files_by_path.update(files)


def _with_scheme(f: DataFile) -> DataFile:
    target = f.referenced_data_file
    return replace(
        f,
        file_path=f"file:{f.file_path}",
        referenced_data_file=None if target is None else f"file:{target}",
    )
