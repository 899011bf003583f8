"""Updates and requirements as the JSON of the REST catalog's commits.

Open API specification of the REST catalog, `TableUpdate`, `TableRequirement`, `ViewUpdate` and
`ViewRequirement`. The parts (schemas, snapshots, ...) are written as in metadata.
"""

from __future__ import annotations

from typing import Any

from iceberg_pyspark.changes import changes as ch
from iceberg_pyspark.changes import view_changes as v
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.partitioning import spec_to_json
from iceberg_pyspark.spec.schema import schema_to_json
from iceberg_pyspark.spec.snapshots import ref_to_json, snapshot_to_json
from iceberg_pyspark.spec.sorting import sort_order_to_json
from iceberg_pyspark.spec.statistics import partition_statistics_to_json, statistics_to_json
from iceberg_pyspark.spec.views import view_version_to_json


def requirement_to_json(requirement: ch.TableRequirement) -> dict[str, Any]:
    """Return a requirement as JSON; its key `type` names the kind."""
    match requirement:
        case ch.AssertCreate():
            return {"type": "assert-create"}
        case ch.AssertTableUUID(uuid=uuid):
            return {"type": "assert-table-uuid", "uuid": uuid}
        case ch.AssertRefSnapshotId(ref=ref, snapshot_id=snapshot_id):
            return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": snapshot_id}
        case ch.AssertLastAssignedFieldId(last_assigned_field_id=id_):
            return {"type": "assert-last-assigned-field-id", "last-assigned-field-id": id_}
        case ch.AssertCurrentSchemaId(current_schema_id=id_):
            return {"type": "assert-current-schema-id", "current-schema-id": id_}
        case ch.AssertLastAssignedPartitionId(last_assigned_partition_id=id_):
            return {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": id_}
        case ch.AssertDefaultSpecId(default_spec_id=id_):
            return {"type": "assert-default-spec-id", "default-spec-id": id_}
        case ch.AssertDefaultSortOrderId(default_sort_order_id=id_):
            return {"type": "assert-default-sort-order-id", "default-sort-order-id": id_}
        case _:
            raise InvalidRequestError(f"unknown requirement {type(requirement).__name__}")


def update_to_json(update: ch.TableUpdate) -> dict[str, Any]:
    """Return an update as JSON; its key `action` names the kind."""
    match update:
        case ch.AssignUUID(uuid=uuid):
            return {"action": "assign-uuid", "uuid": uuid}
        case ch.UpgradeFormatVersion(format_version=version):
            return {"action": "upgrade-format-version", "format-version": version}
        case ch.AddSchema(schema=schema, last_column_id=last_column_id):
            return {
                "action": "add-schema",
                "schema": schema_to_json(schema),
                "last-column-id": last_column_id,
            }
        case ch.SetCurrentSchema(schema_id=id_):
            return {"action": "set-current-schema", "schema-id": id_}
        case ch.AddPartitionSpec(spec=spec):
            return {"action": "add-spec", "spec": spec_to_json(spec)}
        case ch.SetDefaultSpec(spec_id=id_):
            return {"action": "set-default-spec", "spec-id": id_}
        case ch.AddSortOrder(sort_order=order):
            return {"action": "add-sort-order", "sort-order": sort_order_to_json(order)}
        case ch.SetDefaultSortOrder(order_id=id_):
            return {"action": "set-default-sort-order", "sort-order-id": id_}
        case ch.SetLocation(location=location):
            return {"action": "set-location", "location": location}
        case ch.SetProperties(updates=properties):
            return {"action": "set-properties", "updates": dict(properties)}
        case ch.RemoveProperties(removals=removals):
            return {"action": "remove-properties", "removals": list(removals)}
        case ch.RemoveSchemas(schema_ids=ids):
            return {"action": "remove-schemas", "schema-ids": list(ids)}
        case ch.RemovePartitionSpecs(spec_ids=ids):
            return {"action": "remove-partition-specs", "spec-ids": list(ids)}
        case _:
            return _snapshot_update_to_json(update)


def _snapshot_update_to_json(update: ch.TableUpdate) -> dict[str, Any]:
    match update:
        case ch.AddEncryptionKey(key=key):
            return {"action": "add-encryption-key", "encryption-key": dict(key)}
        case ch.AddSnapshot(snapshot=snapshot):
            return {"action": "add-snapshot", "snapshot": snapshot_to_json(snapshot)}
        case ch.SetSnapshotRef(name=name, ref=ref):
            return {"action": "set-snapshot-ref", "ref-name": name, **ref_to_json(ref)}
        case ch.RemoveSnapshotRef(name=name):
            return {"action": "remove-snapshot-ref", "ref-name": name}
        case ch.RemoveSnapshots(snapshot_ids=ids):
            return {"action": "remove-snapshots", "snapshot-ids": list(ids)}
        case ch.SetStatistics(statistics=file):
            # The specification deprecates this separate id, but older servers require it.
            return {
                "action": "set-statistics",
                "snapshot-id": file.snapshot_id,
                "statistics": statistics_to_json(file),
            }
        case ch.RemoveStatistics(snapshot_id=id_):
            return {"action": "remove-statistics", "snapshot-id": id_}
        case ch.SetPartitionStatistics(partition_statistics=partition_file):
            return {
                "action": "set-partition-statistics",
                "partition-statistics": partition_statistics_to_json(partition_file),
            }
        case ch.RemovePartitionStatistics(snapshot_id=id_):
            return {"action": "remove-partition-statistics", "snapshot-id": id_}
        case _:
            raise InvalidRequestError(f"unknown table update {type(update).__name__}")


def view_requirement_to_json(requirement: v.AssertViewUUID) -> dict[str, Any]:
    """Return the requirement of a view's UUID as JSON."""
    return {"type": "assert-view-uuid", "uuid": requirement.uuid}


def view_update_to_json(update: v.ViewUpdate) -> dict[str, Any]:
    """Return an update of a view as JSON; its key `action` names the kind."""
    match update:
        case v.AddViewVersion(version=version):
            return {"action": "add-view-version", "view-version": view_version_to_json(version)}
        case v.SetCurrentViewVersion(version_id=id_):
            return {"action": "set-current-view-version", "view-version-id": id_}
        case _:
            return update_to_json(update)
