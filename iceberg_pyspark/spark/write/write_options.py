"""Options of writes, each declared once, with the kinds of writes that accept the option.

Names and defaults are the reference implementation's (`SparkWriteOptions`). The portable kind is
`df.write.format("iceberg-py")`; the catalog kind is every write to a table of a session's catalog,
for which the session's `spark.sql.iceberg.<option>` is the default of an option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.options.option_values import (
    choice_option,
    flag_option,
    list_items,
    lower_names,
    number_option,
    refuse_unknown,
    with_prefix,
)
from iceberg_pyspark.spec.property_types import TableProperty, check_settable
from iceberg_pyspark.spec.table_properties import (
    ADVISORY_PARTITION_SIZE,
    DATA_FORMAT,
    DISTRIBUTION_MODE,
    FANOUT,
    FORMAT_VERSION,
    NATIVE_WRITER,
    SHRED_VARIANTS,
    TARGET_FILE_SIZE,
    VARIANT_INFERENCE_ROWS,
    check_set_properties,
)

if TYPE_CHECKING:
    # Executors import this module and commit nothing.
    from iceberg_pyspark.changes.conflicts import IsolationLevel

Way: TypeAlias = Literal["portable", "catalog"]

PROPERTY_BY_OPTION: Mapping[str, TableProperty] = {
    "target-file-size-bytes": TARGET_FILE_SIZE,
    "write-format": DATA_FORMAT,
    "distribution-mode": DISTRIBUTION_MODE,
    "fanout-enabled": FANOUT,
    "native-writer-enabled": NATIVE_WRITER,
    "advisory-partition-size": ADVISORY_PARTITION_SIZE,
    "shred-variants": SHRED_VARIANTS,
    "variant-inference-buffer-size": VARIANT_INFERENCE_ROWS,
}
"""Options that override a table property for one write."""

OPTIONS_OF_THE_FORMAT = ("compression-codec", "compression-level", "compression-strategy")
"""The same for properties of the data file format: `write.<format>.<option>`."""

_OVERWRITE_MODE = choice_option("overwrite-mode", "static", "dynamic")
_SPEC_ID = number_option("output-spec-id")
_SORT_ORDER_ID = number_option("output-sort-order-id")
_VALIDATE_FROM = number_option("validate-from-snapshot-id")
_ISOLATION = choice_option("isolation-level", "serializable", "snapshot")
TXN_APP_ID, TXN_VERSION = "txn-app-id", "txn-version"
UPSERT_KEYS = "upsert-keys"
_TXN_VERSION = number_option(TXN_VERSION, 0)
_MERGE_SCHEMA = flag_option("merge-schema", False)
_MERGE_SCHEMA_IN_SPARK = flag_option("mergeschema", False)
_USES_DISTRIBUTION = flag_option("use-table-distribution-and-ordering", True)

_OF_BOTH = {
    "branch",
    _OVERWRITE_MODE.name,
    *OPTIONS_OF_THE_FORMAT,
    "target-file-size-bytes",
    "write-format",
    "native-writer-enabled",
    "shred-variants",
    "variant-inference-buffer-size",
}
OPTIONS: Mapping[Way, frozenset[str]] = {
    "portable": frozenset(
        {*_OF_BOTH, "overwrite-filter", "partitioned-by", "location", FORMAT_VERSION}
    ),
    "catalog": frozenset(
        {
            *_OF_BOTH,
            *PROPERTY_BY_OPTION,
            *(_SPEC_ID.name, _SORT_ORDER_ID.name, _VALIDATE_FROM.name, _ISOLATION.name),
            *(TXN_APP_ID, _TXN_VERSION.name, _USES_DISTRIBUTION.name),
            *(_MERGE_SCHEMA.name, _MERGE_SCHEMA_IN_SPARK.name, UPSERT_KEYS),
        }
    ),
}
SNAPSHOT_PROPERTY, _TABLE_PROPERTY = "snapshot-property.", "table-property."
PREFIXES: Mapping[Way, tuple[str, ...]] = {
    "portable": (SNAPSHOT_PROPERTY, _TABLE_PROPERTY),
    "catalog": (SNAPSHOT_PROPERTY,),
}
_WITHOUT_EFFECT_ON_ANY = {
    "check-ordering",  # columns are found by name
    "check-nullability",  # a null in a required column is always refused
    # Writes make no delete files and no streams.
    "delete-format",
    "delete-granularity",
    "target-delete-file-size-bytes",
    "use-merge-append-for-streaming",
}
WITHOUT_EFFECT: Mapping[Way, frozenset[str]] = {
    # A portable task always fans out.
    "portable": frozenset({*_WITHOUT_EFFECT_ON_ANY, "fanout-enabled"}),
    "catalog": frozenset(_WITHOUT_EFFECT_ON_ANY),
}
_SESSION = "spark.sql.iceberg."


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of one write.

    `overrides` are table properties by name. `of_format` are options of the data file format.
    `transaction` is an application and its version. Only a stream's batch in update mode has
    `upsert_keys`, the columns of the key; none: the identifier fields. Only portable writes have a
    filter, and the layout of a table that the write creates: `partitioned_by`, `location` and
    `table_properties`.
    """

    branch: str | None
    overwrite_mode: Literal["static", "dynamic", "filter"]
    overwrite_filter: str | None
    overrides: Mapping[str, str]
    of_format: Mapping[str, str]
    spec_id: int | None
    sort_order_id: int | None
    validates_from: int | None
    isolation: IsolationLevel | None
    merges_schema: bool
    uses_distribution: bool
    transaction: tuple[str, int] | None
    upsert_keys: tuple[str, ...]
    snapshot_properties: Mapping[str, str]
    partitioned_by: tuple[str, ...]
    location: str | None
    table_properties: Mapping[str, str]


def catalog_write_options(options: Mapping[str, str], session: Mapping[str, str]) -> WriteOptions:
    """Return the options of a catalog write; raise `InvalidRequestError` for an unknown name or a
    bad value.
    """
    accepted_names = OPTIONS["catalog"] | WITHOUT_EFFECT["catalog"]
    refuse_unknown(
        lower_names(options), "unknown write option", accepted_names, PREFIXES["catalog"]
    )
    return write_options(options, "catalog", session)


def write_options(
    options: Mapping[str, str], way: Way, session: Mapping[str, str] | None = None
) -> WriteOptions:
    """Return the options that a kind of write accepts; raise `InvalidRequestError` for bad values.

    All other options were refused before, or have no effect. `session` are the settings of the
    session, which only catalog writes have.
    """
    values = {k: v for k, v in lower_names(options).items() if k in OPTIONS[way]}
    settings = session or {}
    values_or_settings = {
        **{k.removeprefix(_SESSION): v for k, v in settings.items() if k.startswith(_SESSION)},
        **values,
    }
    merges_schema = _MERGE_SCHEMA.of(values_or_settings)
    table_properties = with_prefix(options, _TABLE_PROPERTY)
    if FORMAT_VERSION in values:
        table_properties[FORMAT_VERSION] = values[FORMAT_VERSION]
    check_set_properties(table_properties)
    return WriteOptions(
        branch=values.get("branch"),
        overwrite_mode=_overwrite_mode(values),
        overwrite_filter=values.get("overwrite-filter"),
        overrides=_overrides(values_or_settings),
        of_format={
            o: values_or_settings[o] for o in OPTIONS_OF_THE_FORMAT if o in values_or_settings
        },
        spec_id=_SPEC_ID.of(values),
        sort_order_id=_SORT_ORDER_ID.of(values),
        validates_from=_VALIDATE_FROM.of(values),
        isolation=cast("IsolationLevel | None", _ISOLATION.of(values)),
        merges_schema=replace(_MERGE_SCHEMA_IN_SPARK, default=merges_schema).of(values_or_settings),
        uses_distribution=_USES_DISTRIBUTION.of(values_or_settings),
        transaction=_transaction(values),
        upsert_keys=list_items(values.get(UPSERT_KEYS)) or (),
        snapshot_properties={
            **with_prefix(settings, _SESSION + SNAPSHOT_PROPERTY),
            **with_prefix(options, SNAPSHOT_PROPERTY),
        },
        partitioned_by=list_items(values.get("partitioned-by")) or (),
        location=values.get("location"),
        table_properties=table_properties,
    )


def _overrides(options: Mapping[str, str]) -> dict[str, str]:
    overrides = {}
    for name, prop in PROPERTY_BY_OPTION.items():
        if name in options:
            check_settable(prop, options[name], name)
            overrides[prop.name] = options[name]
    return overrides


def _overwrite_mode(values: Mapping[str, str]) -> Literal["static", "dynamic", "filter"]:
    filters = "overwrite-filter" in values
    by_filter = values.get(_OVERWRITE_MODE.name, "filter" if filters else "").lower() == "filter"
    if filters != by_filter:
        raise InvalidRequestError(
            "an overwrite by filter takes the option overwrite-filter and no other overwrite-mode"
        )
    if by_filter:
        return "filter"
    return "dynamic" if _OVERWRITE_MODE.of(values) == "dynamic" else "static"


def _transaction(values: Mapping[str, str]) -> tuple[str, int] | None:
    app, version = values.get(TXN_APP_ID), _TXN_VERSION.of(values)
    if (app is None) != (version is None):
        raise InvalidRequestError("options txn-app-id and txn-version must be given together")
    return None if app is None or version is None else (app, version)
