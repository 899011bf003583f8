"""Replaces updates that add an existing schema, spec, sort order or view version by its id.

Usually an update adds such a part, and the next update sets "the last added" part as current. A
REST server may refuse "the last added" if the first update added nothing new (Java's does), so an
existing part is referenced by its id and not added again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from iceberg_pyspark.changes import changes as ch
from iceberg_pyspark.changes.apply_schemas import same_schema
from iceberg_pyspark.changes.view_changes import (
    AddViewVersion,
    SetCurrentViewVersion,
    ViewUpdate,
)
from iceberg_pyspark.spec.table_metadata import TableMetadata
from iceberg_pyspark.spec.views import ViewMetadata, ViewVersion


def with_known_ids(
    metadata: TableMetadata, updates: Sequence[ch.TableUpdate]
) -> list[ch.TableUpdate]:
    """Return equivalent updates that do not add a part that the metadata already has.

    A part that is added gets the next free id: some servers assign ids themselves (Java's does),
    others use the ids in the request (Nessie does). If an update removes schemas or specs, the
    updates are returned unchanged, since a removed part may be added again.
    """
    if any(isinstance(update, ch.RemoveSchemas | ch.RemovePartitionSpecs) for update in updates):
        return list(updates)
    updates_with_ids: list[ch.TableUpdate] = []
    schema_id = spec_id = order_id = ch.LAST_ADDED
    schema_ids = count(1 + max((s.schema_id for s in metadata.schemas), default=-1))
    spec_ids = count(1 + max((s.spec_id for s in metadata.partition_specs), default=-1))
    order_ids = count(1 + max((o.order_id for o in metadata.sort_orders), default=0))
    for update in updates:
        match update:
            case ch.AddSchema(schema=schema, last_column_id=last_column_id):
                ids = [s.schema_id for s in metadata.schemas if same_schema(s, schema)]
                schema_id = next(iter(ids), ch.LAST_ADDED)
                # An existing schema is only sent to raise last-column-id, so that no column id is
                # used twice.
                if not ids:
                    update = replace(update, schema=replace(schema, schema_id=next(schema_ids)))
                    updates_with_ids.append(update)
                elif last_column_id > metadata.last_column_id:
                    updates_with_ids.append(update)
            case ch.AddPartitionSpec(spec=spec):
                ids = [s.spec_id for s in metadata.partition_specs if s.same_fields(spec)]
                spec_id = next(iter(ids), ch.LAST_ADDED)
                if not ids:
                    update = replace(update, spec=replace(spec, spec_id=next(spec_ids)))
                    updates_with_ids.append(update)
            case ch.AddSortOrder(sort_order=order):
                ids = [o.order_id for o in metadata.sort_orders if o.fields == order.fields]
                order_id = next(iter(ids), ch.LAST_ADDED)
                if not ids:
                    order = replace(order, order_id=next(order_ids) if order.fields else 0)
                    updates_with_ids.append(replace(update, sort_order=order))
            case ch.SetCurrentSchema(schema_id=ch.LAST_ADDED):
                updates_with_ids.append(ch.SetCurrentSchema(schema_id))
            case ch.SetDefaultSpec(spec_id=ch.LAST_ADDED):
                updates_with_ids.append(ch.SetDefaultSpec(spec_id))
            case ch.SetDefaultSortOrder(order_id=ch.LAST_ADDED):
                updates_with_ids.append(ch.SetDefaultSortOrder(order_id))
            case _:
                updates_with_ids.append(update)
    return updates_with_ids


def view_updates_with_known_ids(
    view: ViewMetadata, updates: Sequence[ViewUpdate]
) -> list[ViewUpdate]:
    """Return equivalent updates that do not add a schema or version that the view already has."""
    updates_with_ids: list[ViewUpdate] = []
    schema_id = version_id = ch.LAST_ADDED
    for update in updates:
        match update:
            case ch.AddSchema(schema=schema):
                ids = [s.schema_id for s in view.schemas if same_schema(s, schema)]
                schema_id = next(iter(ids), ch.LAST_ADDED)
                updates_with_ids += [] if ids else [update]
            case AddViewVersion(version=version):
                if version.schema_id == ch.LAST_ADDED:
                    version = replace(version, schema_id=schema_id)
                ids = [
                    v.version_id for v in view.versions if _definition(v) == _definition(version)
                ]
                version_id = next(iter(ids), ch.LAST_ADDED)
                updates_with_ids += [] if ids else [AddViewVersion(version)]
            case SetCurrentViewVersion(version_id=ch.LAST_ADDED):
                updates_with_ids.append(SetCurrentViewVersion(version_id))
            case _:
                updates_with_ids.append(update)
    return updates_with_ids


def _definition(version: ViewVersion) -> ViewVersion:
    return replace(version, version_id=0, timestamp_ms=0)
