"""What one write through Spark is told: by its options, by the session, by the table's properties.

Names are the reference implementation's: options (`SparkWriteOptions`), the session's
`spark.sql.iceberg.<option>` and `spark.wap.*`, in that order before the table's properties. An
option that is not known is refused, so that a misspelt one is not without effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from iceberg_pyspark.commits.conflicts import IsolationLevel
from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.data_source.options import OPTIONS_OF_THE_FORMAT
from iceberg_pyspark.spec.properties import (
    ADVISORY_PARTITION_SIZE,
    DATA_FORMAT,
    DISTRIBUTION_MODE,
    FANOUT,
    NATIVE_WRITER,
    TARGET_FILE_SIZE,
    WAP_ENABLED,
    bool_property,
    check_set_properties,
    int_property,
)
from iceberg_pyspark.spec.property_types import LONG_MAX, TableProperty, check_settable
from iceberg_pyspark.spec.snapshots import MAIN
from iceberg_pyspark.table.changes.new_data import data_format

_PROPERTY_BY_OPTION: Mapping[str, TableProperty] = {
    "target-file-size-bytes": TARGET_FILE_SIZE,
    "write-format": DATA_FORMAT,
    "distribution-mode": DISTRIBUTION_MODE,
    "fanout-enabled": FANOUT,
    "native-writer-enabled": NATIVE_WRITER,
    "advisory-partition-size": ADVISORY_PARTITION_SIZE,
}
_OTHERS = {
    "branch",
    "output-spec-id",
    "output-sort-order-id",
    "validate-from-snapshot-id",
    "shred-variants",
    "merge-schema",
    "mergeschema",
    "overwrite-mode",
    "use-table-distribution-and-ordering",
    "isolation-level",
    "txn-app-id",
    "txn-version",
}
# without effect: columns are found by name, a null in a required column is always refused, such
# writes make no delete files, are no streams, and shred no variant
_WITHOUT_EFFECT = {
    "check-ordering",
    "check-nullability",
    "delete-format",
    "delete-granularity",
    "target-delete-file-size-bytes",
    "use-merge-append-for-streaming",
    "variant-inference-buffer-size",
}
_SNAPSHOT_PROPERTY = "snapshot-property."
_SESSION = "spark.sql.iceberg."


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """How to write; `properties` are the table's with those of this write laid over them.

    `validates_from` is the snapshot since which an overwrite with `isolation` looks for conflicts.
    With a `wap_id` the snapshot is staged and no branch has it. `creates_branch`: the branch
    begins at main's snapshot if there is none of that name.
    """

    branch: str
    creates_branch: bool
    wap_id: str | None
    properties: Mapping[str, str]
    spec_id: int | None
    sort_order_id: int | None
    validates_from: int | None
    merges_schema: bool
    uses_layout: bool
    overwrites_dynamically: bool
    isolation: IsolationLevel | None
    transaction: tuple[str, int] | None
    snapshot_properties: Mapping[str, str]


def write_settings(
    options: Mapping[str, str],
    session: Mapping[str, str],
    table_properties: Mapping[str, str],
    *,
    branch: str | None = None,
) -> WriteSettings:
    """Settings of a write; `branch` is the one that the table was named with."""
    given = {k.lower(): v for k, v in options.items()}
    _refuse_unknown(given)
    said = {k.removeprefix(_SESSION): v for k, v in session.items() if k.startswith(_SESSION)}
    said |= given
    properties = {**table_properties, **_overrides(said)}
    file_format = data_format(properties)
    of_format = {f"write.{file_format}.{o}": said[o] for o in OPTIONS_OF_THE_FORMAT if o in said}
    check_set_properties(of_format)
    properties |= of_format
    if bool_property(said, "shred-variants", False):
        raise InvalidRequestError("option shred-variants: variants are not shredded; leave it out")
    named = _named_branch(branch, given.get("branch"))
    wap_id, wap_branch = _write_audit_publish(session, properties)
    if named is not None and wap_branch not in (None, named):
        raise InvalidRequestError(
            f"the session writes to the branch '{wap_branch}' (spark.wap.branch), but the "
            f"statement names the branch '{named}'; unset one of them"
        )
    return WriteSettings(
        branch=(wap_branch or MAIN) if named is None else named,
        creates_branch=wap_branch is not None,
        wap_id=wap_id,
        properties=properties,
        spec_id=_integer(given, "output-spec-id"),
        sort_order_id=_integer(given, "output-sort-order-id"),
        validates_from=_integer(given, "validate-from-snapshot-id"),
        merges_schema=bool_property(
            said, "mergeschema", bool_property(said, "merge-schema", False)
        ),
        uses_layout=bool_property(said, "use-table-distribution-and-ordering", True),
        overwrites_dynamically=_overwrite_mode(given),
        isolation=_isolation(given),
        transaction=_transaction(given),
        snapshot_properties={
            **_with_prefix(session, _SESSION + _SNAPSHOT_PROPERTY),
            **_with_prefix(options, _SNAPSHOT_PROPERTY),
        },
    )


def _overrides(said: Mapping[str, str]) -> dict[str, str]:
    """The properties that options stand for; what a user says is read strictly."""
    found = {}
    for option, prop in _PROPERTY_BY_OPTION.items():
        if option in said:
            check_settable(prop, said[option], option)
            found[prop.name] = said[option]
    return found


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = {*_PROPERTY_BY_OPTION, *OPTIONS_OF_THE_FORMAT, *_OTHERS, *_WITHOUT_EFFECT}
    for name in given:
        if name not in known and not name.startswith(_SNAPSHOT_PROPERTY):
            raise InvalidRequestError(
                f"unknown write option '{name}'; known: {', '.join(sorted(known))}, "
                f"{_SNAPSHOT_PROPERTY}<key>"
            )


def _integer(given: Mapping[str, str], name: str) -> int | None:
    return int_property(given, name, 0) if name in given else None


def _named_branch(named: str | None, option: str | None) -> str | None:
    if named is not None and option not in (None, named):
        raise InvalidRequestError(
            f"the statement names the branch '{named}', the option branch '{option}'; keep one"
        )
    return option if named is None else named


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


def _overwrite_mode(given: Mapping[str, str]) -> bool:
    mode = given.get("overwrite-mode", "static").lower()
    if mode not in ("static", "dynamic"):
        raise InvalidRequestError(f"option overwrite-mode is static or dynamic, got '{mode}'")
    return mode == "dynamic"


def _isolation(given: Mapping[str, str]) -> IsolationLevel | None:
    level = given.get("isolation-level")
    if level is None:
        return None
    if level.lower() not in ("serializable", "snapshot"):
        raise InvalidRequestError(
            f"option isolation-level is serializable or snapshot, got '{level}'"
        )
    return cast("IsolationLevel", level.lower())


def _transaction(given: Mapping[str, str]) -> tuple[str, int] | None:
    app = given.get("txn-app-id")
    if (app is None) != ("txn-version" not in given):
        raise InvalidRequestError("options txn-app-id and txn-version are given together or not")
    if app is None:
        return None
    version = int_property(given, "txn-version", 0)
    if version < 0:
        raise InvalidRequestError(
            f"option txn-version is a number from 0 to {LONG_MAX}, got {version}"
        )
    return app, version


def _with_prefix(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {k[len(prefix) :]: v for k, v in options.items() if k.lower().startswith(prefix)}
