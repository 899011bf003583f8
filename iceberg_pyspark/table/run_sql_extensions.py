"""Runs Iceberg's ALTER TABLE statements as changes of a table: each is one commit.

Defaults are those of Iceberg's own extensions: WRITE without an order makes the table unsorted, and
a replaced branch keeps its retention settings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.table_properties import DISTRIBUTION_MODE
from iceberg_pyspark.sql_text.ddl import Term, parse_term
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
from iceberg_pyspark.table.commits.pending_changes import UpdateSpec
from iceberg_pyspark.table.table import Table


def run_clause(table: Table, clause: Clause) -> None:
    """Execute one statement on a table."""
    find = partial(parse_term, schema=table.schema, case_sensitive=table.case_sensitive)
    match clause:
        case AddPartitionField(term=term, name=name):
            _add_field(table.update_spec(), find(term), name).commit()
        case DropPartitionField(term=term):
            _remove_field(table.update_spec(), term, find).commit()
        case ReplacePartitionField(term=term, with_term=with_term, name=name):
            spec = _remove_field(table.update_spec(), term, find)
            _add_field(spec, find(with_term), name).commit()
        case SetWriteLayout():
            _set_layout(table, clause, find)
        case SetIdentifierFields(columns=columns):
            names = [_column_name(table, c) for c in columns]
            table.update_schema().set_identifier_fields(*names).commit()
        case DropIdentifierFields(columns=columns):
            _drop_identifier_fields(table, [_column_name(table, c) for c in columns])
        case CreateRef():
            _create_ref(table, clause)
        case DropRef():
            _drop_ref(table, clause)


def _add_field(spec: UpdateSpec, term: Term, name: str | None) -> UpdateSpec:
    return spec.add_field(term.column, term.transform, name)


def _remove_field(spec: UpdateSpec, text: str, find: Callable[[str], Term]) -> UpdateSpec:
    """Remove a partition field; a name that is not a column is the partition field's own name."""
    try:
        term = find(text)
    except InvalidRequestError:
        levels = () if "(" in text else parse_levels(text)
        if len(levels) != 1:
            raise
        return spec.remove_field(levels[0])
    return spec.remove_source(term.column, term.transform)


def _set_layout(table: Table, clause: SetWriteLayout, find: Callable[[str], Term]) -> None:
    with table.transaction() as transaction:
        order = transaction.replace_sort_order()
        for by in clause.ordered_by:
            term = find(by.term)
            add = order.asc if by.direction == "asc" else order.desc
            add(term.column, term.transform, by.null_order)
        order.commit()
        if clause.distribution is not None:
            mode = {DISTRIBUTION_MODE.name: clause.distribution}
            transaction.update_properties().set(mode).commit()
    table.refresh()


def _column_name(table: Table, text: str) -> str:
    schema, name = table.schema, ".".join(parse_levels(text))
    field = schema.find(name, case_sensitive=table.case_sensitive is not False)
    return schema.name_by_id[field.field_id]


def _drop_identifier_fields(table: Table, names: list[str]) -> None:
    schema = table.schema
    remaining = {schema.name_by_id[i] for i in schema.identifier_field_ids}
    for name in names:
        if name not in remaining:
            others = ", ".join(sorted(remaining)) or "none"
            raise InvalidRequestError(
                f"column '{name}' of {table.identifier} is not an identifier field; there are: "
                f"{others}"
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
