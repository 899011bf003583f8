"""Updates and requirements of views as the JSON of the REST catalog's commits.

Open API specification of the REST catalog, `ViewUpdate` and `ViewRequirement`.
"""

from __future__ import annotations

from typing import Any

from iceberg_pyspark.commits.changes_json import update_to_json
from iceberg_pyspark.commits.view_changes import (
    AddViewVersion,
    AssertViewUUID,
    SetCurrentViewVersion,
    ViewUpdate,
)
from iceberg_pyspark.spec.views import view_version_to_json


def view_update_to_json(update: ViewUpdate) -> dict[str, Any]:
    """Return an update of a view as JSON; its key `action` names the kind."""
    match update:
        case AddViewVersion(version=version):
            return {"action": "add-view-version", "view-version": view_version_to_json(version)}
        case SetCurrentViewVersion(version_id=id_):
            return {"action": "set-current-view-version", "view-version-id": id_}
        case _:
            return update_to_json(update)


def view_requirement_to_json(requirement: AssertViewUUID) -> dict[str, Any]:
    """Return the requirement of a view's UUID as JSON."""
    return {"type": "assert-view-uuid", "uuid": requirement.uuid}
