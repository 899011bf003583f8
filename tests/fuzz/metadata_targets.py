"""Targets for table metadata, which is parsed, scanned and committed to, and for related JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from iceberg_pyspark import Table
from iceberg_pyspark.errors import IcebergError
from iceberg_pyspark.expressions.json import predicate_from_json, predicate_to_json
from iceberg_pyspark.formats.long_histories import metadata_with_long_history
from iceberg_pyspark.formats.metadata_files import read_table_metadata
from iceberg_pyspark.spec.json_fields import JsonObject
from iceberg_pyspark.spec.name_mapping import name_mapping_from_text, name_mapping_to_text
from iceberg_pyspark.spec.schema import schema_from_json
from iceberg_pyspark.spec.table_metadata import (
    TableMetadata,
    metadata_from_bytes,
    metadata_to_bytes,
)
from iceberg_pyspark.spec.types import PrimitiveType, Type, primitive_from_string
from iceberg_pyspark.spec.values import (
    value_from_bytes,
    value_from_json,
    value_to_bytes,
    value_to_json,
)
from iceberg_pyspark.table.metadata_tables.lookup import METADATA_TABLES
from tests.fuzz.mutations import json_bytes, mutate_bytes, mutate_json
from tests.fuzz.seeds import NAME_MAPPING, SeedTable, rows, seed_tables
from tests.fuzz.targets import Target
from tests.support.strategies import PRIMITIVE_TYPES


class WrongAnswerError(Exception):
    """A parser accepted an input and returned a wrong result."""


def _mutated(choose: Random) -> tuple[SeedTable, bytes, int]:
    seed = choose.choice(seed_tables())
    if choose.random() < 0.1:
        changed = _with_lagging_counter(seed.metadata_json, choose)
    else:
        changed = mutate_json(seed.metadata_json, choose)
    return seed, json_bytes(changed, choose), choose.getrandbits(32)


_COUNTERS = (
    *("last-sequence-number", "last-updated-ms", "last-column-id", "last-partition-id"),
    "next-row-id",
)


def _with_lagging_counter(metadata: dict[str, Any], choose: Random) -> dict[str, Any]:
    """Return the metadata with one of its counters lowered or missing."""
    name = choose.choice([name for name in _COUNTERS if name in metadata])
    changed = dict(metadata)
    lower = choose.choice((None, 0, choose.randrange(max(1, changed.pop(name)))))
    return changed if lower is None else {**changed, name: lower}


def _parse(arguments: tuple[SeedTable, bytes, int]) -> None:
    read_fast = metadata_with_long_history(arguments[1], "mutated.metadata.json")
    try:
        metadata = metadata_from_bytes(arguments[1], "mutated.metadata.json")
    except IcebergError as e:
        if read_fast is not None:
            raise WrongAnswerError("a long history is read where a short one is refused") from e
        raise
    if read_fast is not None and read_fast != metadata:
        raise WrongAnswerError("a long history is read otherwise than a short one")
    if metadata_from_bytes(metadata_to_bytes(metadata), "again.metadata.json") != metadata:
        raise WrongAnswerError("metadata changes by being written and read")


def _scan(arguments: tuple[SeedTable, bytes, int]) -> None:
    seed, data, number = arguments
    scan(seed.opened(data), Random(number))


def scan(table: Table, choose: Random) -> None:
    """Show a table, read it in several ways, and read some of its metadata tables."""
    _tolerate(lambda: (repr(table).encode(), table._repr_html_().encode()))
    _tolerate(lambda: table.scan().to_arrow())
    _tolerate(lambda: table.scan(filter="id > 3 AND part = 'p1'").to_arrow())
    _tolerate(lambda: table.scan(columns=["_partition", "_file", "_row_id"]).count())
    for name in choose.sample(METADATA_TABLES, 3):
        _tolerate(lambda name=name: table.metadata_table(name).to_arrow())  # type: ignore[misc]


def scan_and_commit(seed: SeedTable, metadata: bytes, choose: Random) -> None:
    """Read a table, then change it in a random way."""
    scan(seed.opened(metadata), choose)
    _commit((seed, metadata, choose.getrandbits(32)))


def _tolerate(step: Callable[[], object]) -> None:
    """Ignore our own errors, so that the later steps of the case run too."""
    try:
        step()
    except IcebergError:
        return


def _append(table: Table) -> None:
    arguments = rows(table.schema, 100, 2).select([f.name for f in table.schema.fields])
    table.append(arguments)


def _append_what_is_there(table: Table) -> None:
    table.append(table.scan().to_arrow())


def _overwrite(table: Table) -> None:
    table.overwrite(table.scan().to_arrow(), "part = 'p1'")


def _overwrite_dynamic(table: Table) -> None:
    table.overwrite(table.scan().to_arrow().slice(0, 1), dynamic=True)


def _union(table: Table) -> None:
    table.update_schema().union_by_name(seed_tables()[0].opened(_plain()).schema).commit()


def _plain() -> bytes:
    return json.dumps(seed_tables()[0].metadata_json).encode()


_CHANGES: Sequence[Callable[[Table], object]] = (
    _append,
    _append_what_is_there,
    _overwrite,
    _overwrite_dynamic,
    _union,
    lambda t: t.delete("id >= 0"),
    lambda t: t.delete("part = 'p1'"),
    lambda t: t.update_schema().add_column("new", "STRUCT<a: INT, b: ARRAY<STRING>>").commit(),
    lambda t: t.update_schema().rename_column("part", "p2").commit(),
    lambda t: t.update_schema().drop_column("n").commit(),
    lambda t: t.update_schema().update_type("e", "long").commit(),
    lambda t: t.update_schema().move_first("d").set_identifier_fields("id").commit(),
    lambda t: t.update_properties().set({"a": "b"}).remove("write.format.default").commit(),
    lambda t: t.update_properties().set({"format-version": "3"}).commit(),
    lambda t: t.update_spec().add_field("part", "bucket[3]").commit(),
    lambda t: t.update_spec().remove_field("n").commit(),
    lambda t: t.manage_snapshots().create_tag("t2").create_branch("b2").commit(),
    lambda t: t.manage_snapshots().rollback_to_timestamp(1_700_000_000_004).commit(),
    lambda t: t.manage_snapshots().fast_forward("b", "main").commit(),
    lambda t: t.manage_snapshots().remove_tag("v1").commit(),
    lambda t: t.manage_snapshots().cherry_pick(t.snapshots[-1].snapshot_id).commit(),
    lambda t: t.manage_snapshots().set_current_snapshot(t.snapshots[0].snapshot_id).commit(),
)


def _commit(arguments: tuple[SeedTable, bytes, int]) -> None:
    seed, data, number = arguments
    table = seed.opened(data)
    before = table.metadata
    Random(number).choice(_CHANGES)(table)
    try:
        table.refresh()
        again = read_table_metadata(table.io, table.loaded.metadata_location)
    except IcebergError as e:
        raise WrongAnswerError(f"the commit was accepted and cannot be read: {e}") from e
    if again != table.metadata:
        raise WrongAnswerError("the commit is not what was read again")
    _check_new_numbers(before, again)


def _check_new_numbers(before: TableMetadata, after: TableMetadata) -> None:
    """Check that a commit gave out no number that the table had given out before."""
    for s in after.snapshots:
        if s.snapshot_id in before.snapshot_by_id:
            continue
        if after.format_version > 1 and any(
            s.sequence_number <= old.sequence_number for old in before.snapshots
        ):
            raise WrongAnswerError(f"sequence number {s.sequence_number} is given out again")
        if s.first_row_id is not None and any(
            s.first_row_id < (old.first_row_id or 0) + (old.added_rows or 0)
            for old in before.snapshots
        ):
            raise WrongAnswerError(f"row id {s.first_row_id} is given out again")
    known_columns = {i for schema in before.schemas for i in schema.field_by_id}
    new_columns = {i for schema in after.schemas for i in schema.field_by_id} - known_columns
    if new_columns and min(new_columns) <= max(known_columns):
        raise WrongAnswerError(f"field ids {new_columns} are given out again")
    log = after.snapshot_log
    if after != before and log and after.last_updated_ms < log[-1].timestamp_ms:
        raise WrongAnswerError("last-updated-ms is before the end of the snapshot log")


def _name_mapping(arguments: str) -> None:
    mapping = name_mapping_from_text(arguments)
    if name_mapping_from_text(name_mapping_to_text(mapping)) != mapping:
        raise WrongAnswerError("a name mapping changes by being written and read")


def _mutated_name_mapping(choose: Random) -> str:
    changed = json_bytes(mutate_json(json.loads(NAME_MAPPING), choose), choose)
    return changed.decode("utf-8", "surrogateescape" if choose.random() < 0.1 else "replace")


_TYPES: tuple[Type, ...] = (
    *PRIMITIVE_TYPES,
    *(primitive_from_string(t) for t in ("unknown", "variant", "geometry", "geography", "binary")),
    schema_from_json(
        JsonObject(
            {
                "fields": [
                    {"id": 1, "name": "a", "required": False, "type": "int"},
                    {
                        "id": 2,
                        "name": "l",
                        "required": False,
                        "type": {
                            "type": "list",
                            "element-id": 3,
                            "element-required": False,
                            "element": "date",
                        },
                    },
                    {
                        "id": 4,
                        "name": "m",
                        "required": False,
                        "type": {
                            "type": "map",
                            "key-id": 5,
                            "value-id": 6,
                            "value-required": False,
                            "key": "string",
                            "value": "decimal(9,2)",
                        },
                    },
                ]
            }
        )
    ).as_struct,
)
_JSON_VALUES: Sequence[Any] = (
    *(True, 34, 3.5, "14.20", "2017-11-16", "22:31:08.123456", "2017-11-16T22:31:08.123456"),
    *("2017-11-16T22:31:08.123456+00:00", "2017-11-16T22:31:08.123456789", "iceberg"),
    *("2017-11-16T22:31:08.123456789+00:00", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "78797A"),
    {"1": 5, "2": ["2020-01-01"], "4": {"keys": ["a"], "values": ["1.00"]}},
)


def _mutated_single_value(choose: Random) -> tuple[Type, Any]:
    type_ = choose.choice(_TYPES)
    if choose.random() < 0.5:
        return type_, mutate_json(choose.choice(_JSON_VALUES), choose)
    if choose.random() < 0.5:
        return type_, choose.randbytes(choose.choice((0, 1, 2, 4, 8, 12, 16, 17, 100, 5000)))
    return type_, mutate_bytes(b"\x00\x01\x02\x03\x04\x05\x06\x07", choose)


def _single_value(arguments: tuple[Type, Any]) -> None:
    type_, data = arguments
    if isinstance(data, bytes):
        value = value_from_bytes(type_, data)
        if value is not None and value == value and isinstance(type_, PrimitiveType):
            again = value_from_bytes(type_, value_to_bytes(type_, value))
            if again != value:
                raise WrongAnswerError(f"{type_} {value!r} comes back as {again!r}")
        return
    try:
        value = value_from_json(type_, data)
    except (ValueError, TypeError):
        # The function documents these errors; its caller knows the place and adds it to the error.
        return
    if value_from_json(type_, json.loads(json.dumps(value_to_json(type_, value)))) != value:
        raise WrongAnswerError(f"{type_} {value!r} changes by being written and read")


_EXPRESSION = {
    "type": "and",
    "left": {"type": "in", "term": "id", "values": [1, 2]},
    "right": {
        "type": "or",
        "left": {"type": "not", "child": {"type": "starts-with", "term": "part", "value": "a"}},
        "right": {"type": "gt-eq", "term": "ts", "value": "2024-01-01T00:00:00+00:00"},
    },
}


def _expression(arguments: Any) -> None:
    schema = seed_tables()[0].opened(_plain()).schema
    predicate_to_json(predicate_from_json(arguments, schema))


METADATA_TARGETS = (
    Target(name="metadata-parsed", mutate=_mutated, parse=_parse),
    Target(name="metadata-scanned", mutate=_mutated, parse=_scan, in_tests=50),
    Target(name="metadata-committed", mutate=_mutated, parse=_commit, in_tests=125),
    Target(name="name-mapping", mutate=_mutated_name_mapping, parse=_name_mapping),
    Target(name="single-values", mutate=_mutated_single_value, parse=_single_value),
    Target(
        name="expression-json",
        mutate=lambda choose: mutate_json(_EXPRESSION, choose),
        parse=_expression,
    ),
)
