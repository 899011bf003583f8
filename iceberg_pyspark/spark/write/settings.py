"""The settings of one write, from its options, the session and the table's properties.

An option takes precedence over the session's setting (`spark.sql.iceberg.<option>`, `spark.wap.*`),
and the session's setting over the table's property. The options are in
`spark/write/write_options.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.write.write_options import WriteOptions, catalog_write_options
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.spec.table_properties import WAP_ENABLED, check_set_properties
from iceberg_pyspark.table.commits.new_data import data_format


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """The settings of one write; `properties` are the table's, overridden by those of the write.

    With a `wap_id` the snapshot is staged and belongs to no branch. With `creates_branch` a missing
    branch is created at main's snapshot.
    """

    options: WriteOptions
    properties: Mapping[str, str]
    branch: str = MAIN
    creates_branch: bool = False
    wap_id: str | None = None


def write_settings(
    options: Mapping[str, str],
    session: Mapping[str, str],
    table_properties: Mapping[str, str],
    *,
    branch: str | None = None,
) -> WriteSettings:
    """Return the settings of a catalog write; `branch` is the branch in the table's name."""
    values = catalog_write_options(options, session)
    return resolve_settings(values, session, table_properties, branch=branch)


def resolve_settings(
    options: WriteOptions,
    session: Mapping[str, str],
    table_properties: Mapping[str, str],
    *,
    branch: str | None = None,
) -> WriteSettings:
    """Return the settings: options take precedence over the session, the session over the table."""
    properties = {**table_properties, **options.overrides}
    file_format = data_format(properties)
    of_format = {f"write.{file_format}.{o}": v for o, v in options.of_format.items()}
    check_set_properties(of_format)
    branch_in_name = _named_branch(branch, options.branch)
    wap_id, wap_branch = _write_audit_publish(session, properties)
    if branch_in_name is not None and wap_branch not in (None, branch_in_name):
        raise InvalidRequestError(
            f"the session writes to the branch '{wap_branch}' (spark.wap.branch), but the "
            f"statement names the branch '{branch_in_name}'; unset one of them"
        )
    return WriteSettings(
        options=options,
        properties={**properties, **of_format},
        branch=(wap_branch or MAIN) if branch_in_name is None else branch_in_name,
        creates_branch=wap_branch is not None,
        wap_id=wap_id,
    )


def _named_branch(branch_in_name: str | None, option: str | None) -> str | None:
    if branch_in_name is not None and option not in (None, branch_in_name):
        raise InvalidRequestError(
            f"the statement names the branch '{branch_in_name}', the option branch '{option}'; "
            "keep one"
        )
    return option if branch_in_name is None else branch_in_name


def _write_audit_publish(
    session: Mapping[str, str], properties: Mapping[str, str]
) -> tuple[str | None, str | None]:
    if not WAP_ENABLED.of(properties):
        return None, None
    wap_id, branch = session.get("spark.wap.id"), session.get("spark.wap.branch")
    if wap_id is not None and branch is not None:
        raise InvalidRequestError(
            f"spark.wap.id ('{wap_id}') and spark.wap.branch ('{branch}') are both set; unset one"
        )
    return wap_id, branch
