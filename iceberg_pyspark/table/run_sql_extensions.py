"""Runs Iceberg's ALTER TABLE statements as changes of a table: each is one commit.

Defaults are those of Iceberg's own extensions: WRITE without an order makes the table unsorted, and
a replaced branch keeps its retention settings.
"""

from __future__ import annotations

from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.properties import DISTRIBUTION_MODE
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.sql_text.ddl import parse_term
from iceberg_pyspark.sql_text.extensions import (
    AddPartitionField,
    Clause,
    CreateRef,
    DropIdentifierFields,
    DropPartitionField,
    DropRef,
    ReplacePartitionField,
    SetIdentifierFields,
    SetWriteLayout,
)
from iceberg_pyspark.sql_text.names import parse_levels
from iceberg_pyspark.table.changes.pending_changes import UpdateSpec
from iceberg_pyspark.table.table import Table


def run_clause(table: Table, clause: Clause) -> None:
    """Execute one statement on a table."""
    match clause:
        case AddPartitionField(term=term, name=name):
            _add_field(table.update_spec(), table.schema, term, name).commit()
        case DropPartitionField(term=term):
            _remove_field(table.update_spec(), table.schema, term).commit()
        case ReplacePartitionField(term=term, with_term=with_term, name=name):
            spec = _remove_field(table.update_spec(), table.schema, term)
            _add_field(spec, table.schema, with_term, name).commit()
        case SetWriteLayout():
            _set_layout(table, clause)
        case SetIdentifierFields(columns=columns):
            names = [_column_name(c) for c in columns]
            table.update_schema().set_identifier_fields(*names).commit()
        case DropIdentifierFields(columns=columns):
            _drop_identifier_fields(table, [_column_name(c) for c in columns])
        case CreateRef():
            _create_ref(table, clause)
        case DropRef():
            _drop_ref(table, clause)


def _add_field(spec: UpdateSpec, schema: Schema, text: str, name: str | None) -> UpdateSpec:
    term = parse_term(text, schema)
    return spec.add_field(term.column, term.transform, name)


def _remove_field(spec: UpdateSpec, schema: Schema, text: str) -> UpdateSpec:
    """Remove a partition field; a name that is not a column is the partition field's own name."""
    if "(" not in text:
        levels = parse_levels(text)
        if len(levels) == 1 and levels[0] not in schema.id_by_name:
            return spec.remove_field(levels[0])
    term = parse_term(text, schema)
    return spec.remove_source(term.column, term.transform)


def _set_layout(table: Table, clause: SetWriteLayout) -> None:
    with table.transaction() as transaction:
        order = transaction.replace_sort_order()
        for by in clause.ordered_by:
            term = parse_term(by.term, table.schema)
            add = order.asc if by.direction == "asc" else order.desc
            add(term.column, term.transform, by.null_order)
        order.commit()
        if clause.distribution is not None:
            mode = {DISTRIBUTION_MODE.name: clause.distribution}
            transaction.update_properties().set(mode).commit()
    table.refresh()


def _column_name(text: str) -> str:
    return ".".join(parse_levels(text))


def _drop_identifier_fields(table: Table, names: list[str]) -> None:
    schema = table.schema
    remaining = {schema.name_by_id[i] for i in schema.identifier_field_ids}
    for name in names:
        schema.find(name)
        if name not in remaining:
            others = ", ".join(sorted(remaining)) or "none"
            raise InvalidRequestError(
                f"column '{name}' of {table.identifier} is no identifier field; there are: {others}"
            )
        remaining.discard(name)
    table.update_schema().set_identifier_fields(*sorted(remaining)).commit()


def _create_ref(table: Table, clause: CreateRef) -> None:
    exists = clause.name in table.refs
    if exists and clause.if_not_exists:
        return
    changes = table.manage_snapshots()
    settings: dict[str, Any] = {"max_ref_age_ms": clause.max_ref_age_ms}
    if clause.type == "branch":
        settings["min_snapshots_to_keep"] = clause.min_snapshots_to_keep
        settings["max_snapshot_age_ms"] = clause.max_snapshot_age_ms
    if clause.replace and (exists or not clause.create):
        to = _snapshot_to_point_at(table, clause)
        move = changes.replace_branch if clause.type == "branch" else changes.replace_tag
        move(clause.name, to)
        if any(value is not None for value in settings.values()):
            changes.set_retention(clause.name, **settings)
    elif clause.type == "branch":
        changes.create_branch(clause.name, clause.snapshot_id, **settings)
    else:
        changes.create_tag(clause.name, clause.snapshot_id, **settings)
    changes.commit()


def _snapshot_to_point_at(table: Table, clause: CreateRef) -> int:
    if clause.snapshot_id is not None:
        return clause.snapshot_id
    current = table.current_snapshot
    if current is None:
        raise InvalidRequestError(
            f"{table.identifier} has no snapshot yet that {clause.type} '{clause.name}' could "
            "point at; write to it first, or add AS OF VERSION"
        )
    return current.snapshot_id


def _drop_ref(table: Table, clause: DropRef) -> None:
    if clause.if_exists and clause.name not in table.refs:
        return
    changes = table.manage_snapshots()
    if clause.type == "branch":
        changes.remove_branch(clause.name)
    else:
        changes.remove_tag(clause.name)
    changes.commit()
