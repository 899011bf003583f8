"""Targets for text that people write: SQL conditions, schemas, DDL, configuration, options."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from iceberg_pyspark.catalogs.catalog_properties import (
    CatalogProperties,
    configured_names,
    configured_properties,
    default_name,
)
from iceberg_pyspark.catalogs.registry import load_catalog
from iceberg_pyspark.catalogs.sql.database import database_url
from iceberg_pyspark.errors import IcebergError, InvalidRequestError
from iceberg_pyspark.expressions.binding import bind
from iceberg_pyspark.formats.locations import location_provider
from iceberg_pyspark.redaction import redact_uri
from iceberg_pyspark.spark.data_source.read_options import (
    parse_read_options,
    parse_table_options,
    parse_write_options,
)
from iceberg_pyspark.spec.schema import schema_to_json
from iceberg_pyspark.sql_text.ddl import parse_partitioning, parse_sort_order
from iceberg_pyspark.sql_text.extensions import (
    ExtensionSyntaxError,
    extension_statement,
    parse_clause,
)
from iceberg_pyspark.sql_text.filters import parse_filter
from iceberg_pyspark.sql_text.names import is_path, parse_levels
from iceberg_pyspark.sql_text.schema_text import parse_schema
from iceberg_pyspark.storage.files.local import is_local
from iceberg_pyspark.storage.open_storage import open_storage
from iceberg_pyspark.storage.store_properties import store_settings
from iceberg_pyspark.table.run_sql_extensions import run_clause
from iceberg_pyspark.table.table import Table
from tests.fuzz.mutations import mutate_text
from tests.fuzz.seeds import COLUMNS, seed_table
from tests.fuzz.targets import Target

_SCHEMA = parse_schema(COLUMNS)
_FILTERS = (
    "id > 3 AND part LIKE 'a%'",
    "ts >= TIMESTAMP'2024-05-06 07:08:09' OR d BETWEEN 1.5 AND 2.5",
    "NOT (n IN (1, 2, NULL) AND s.a <> 4)",
    "isnan(f) OR startswith(part, 'x') OR b = X'00ff'",
    "part IS NOT NULL AND d <=> 5L AND f < 1e5 AND n = -3",
    "`part` = 'it\\'s' OR ts < DATE'2024-01-01' OR true",
    "d > CAST('1.25' AS DECIMAL(9, 2)) AND id == 1",
)
_FILTER_WORDS = (
    *(
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "LIKE",
        "IS",
        "NULL",
        "TRUE",
        "id",
        "part",
        "ts",
        "d",
        "f",
    ),
    *(
        "b",
        "s.a",
        "n",
        "=",
        "<=>",
        "<>",
        "(",
        ")",
        ",",
        "1",
        "'x'",
        "CASE",
        "WHEN",
        "SELECT",
        "EXISTS",
    ),
    *(
        "CAST",
        "AS",
        "INT",
        "DATE'2024-01-01'",
        "X'00'",
        "RLIKE",
        "*",
        "||",
        "->",
        "[0]",
        "INTERVAL",
    ),
)
_SCHEMAS = (
    COLUMNS,
    "a INT, `b c` STRUCT<x: ARRAY<MAP<STRING, DECIMAL(10, 2)>>, y: TIMESTAMP_NTZ> NOT NULL",
    "v VARIANT, u UUID, t TIME, c VARCHAR(10), e CHAR(3), k BINARY COMMENT 'it''s', z TINYINT",
)
_SCHEMA_WORDS = (
    *(
        "INT",
        "BIGINT",
        "STRING",
        "DECIMAL(",
        "ARRAY<",
        "MAP<",
        "STRUCT<",
        ">",
        ",",
        "NOT NULL",
        ":",
    ),
    *("COMMENT 'x'", "DEFAULT 3", "PRIMARY KEY", "FIXED(3)", "GENERATED ALWAYS AS (1)", "USING x"),
    *(
        "TIMESTAMP",
        "`a`",
        "(",
        ")",
        "INTERVAL DAY",
        "VARCHAR(",
        "CHECK (a > 1)",
        "id",
        "VOID",
        "CHAR",
    ),
)
_PARTITIONS = ("days(ts)", "bucket(16, id) AS x", "truncate(2, part)", "`part`", "hours(ts)", "s.a")
_SORTS = (
    "id DESC NULLS LAST",
    "bucket(4, id) ASC",
    "truncate(3, part)",
    "`part` NULLS FIRST",
    "s.a",
)
_TERM_WORDS = (
    *("days", "bucket", "truncate", "(", ")", ",", "16", "id", "ts", "part", " AS ", "ASC", "DESC"),
    *(
        "NULLS",
        "FIRST",
        "LAST",
        "identity",
        "void",
        "`id`",
        "s.a",
        "0",
        "-1",
        "4294967296",
        "zorder",
    ),
)
_STATEMENTS = (
    "alter table lake.db.t add partition field bucket(16, id) as x",
    "alter table t replace partition field part with truncate(2, part)",
    "alter table t drop partition field part; -- no more",
    "alter table `t` write distributed by partition locally ordered by id desc nulls first, part",
    "alter table t set identifier fields id, part",
    "alter table t create or replace branch b as of version 3 retain 7 days "
    "with snapshot retention 2 snapshots 3 hours",
    "alter table t create tag if not exists g /* later */ retain 9 minutes",
    "alter table t drop branch if exists b",
)
_STATEMENT_WORDS = (
    *("alter", "table", "add", "drop", "replace", "partition", "field", "with", "as", "of", "or"),
    *("write", "ordered", "by", "locally", "unordered", "distributed", "asc", "nulls", "last"),
    *("set", "identifier", "fields", "create", "branch", "tag", "if", "not", "exists", "version"),
    *("retain", "snapshot", "retention", "snapshots", "days", "(", ")", ",", ".", ";", "`", "--"),
    *("/*", "*/", "\n", "id", "part", "days(ts)", "main", "0", "18446744073709551616", "''"),
)
_NAMES = ("db.events", "lake.`a.b`.`c``d`", "/tmp/a/b", "db.t.snapshots", "/x#files", "a")
_YAML = """default-catalog: lake
catalog:
  lake:
    type: sql
    uri: sqlite:////tmp/x.db
    warehouse: file:///tmp/w
    s3.access-key-id: &k abc
  other: {type: memory, x: *k}
"""
_YAML_WORDS = (
    *(
        "catalog",
        "default-catalog",
        ":",
        "- ",
        "  ",
        "\n",
        "&a",
        "*a",
        "!!python/object:os.system",
        "|",
    ),
    *(
        "{",
        "}",
        "[",
        "]",
        "<<: *a",
        "? ",
        "!!binary",
        "---",
        "...",
        "#",
        "null",
        "true",
        "'",
        '"',
        "\t",
    ),
)
_READ_OPTIONS: Mapping[str, str] = {
    "path": "db.t",
    "columns": "id,`a,b`",
    "filter": "id > 1",
    "split-size": "100",
    "as-of-timestamp": "12",
    "case-sensitive": "true",
    "catalog.uri": "x",
    "lookback": "3",
    "timestampAsOf": "2024-01-01T00:00:00Z",
    "versionAsOf": "5",
    "branch": "b",
    "tag": "t",
}
_WRITE_OPTIONS: Mapping[str, str] = {
    "path": "db.t",
    "partitioned-by": "days(ts), bucket(16, id)",
    "overwrite-mode": "dynamic",
    "overwrite-filter": "id = 1",
    "target-file-size-bytes": "100",
    "format-version": "2",
    "compression-level": "3",
    "snapshot-property.a": "b",
    "table-property.c": "d",
}
_STORE_PROPERTIES: Mapping[str, str] = {
    "s3.endpoint": "http://h:1",
    "s3.region": "r",
    "s3.connect-timeout": "3.5",
    "s3.sse.type": "kms",
    "s3.path-style-access": "true",
    "adls.sas-token.acc": "s",
    "adls.connection-string": "a=b",
    "gcs.project-id": "p",
    "client.region": "r",
    "s3.proxy-uri": "http://p:1",
    "write.object-storage.enabled": "true",
    "write.data.path": "mem://x/y",
    "write.metadata.path": "a",
}
_URIS = (
    *(
        "sqlite:////tmp/a b.db",
        "sqlite:///a b.db",
        "jdbc:sqlite:/tmp/c.db?x=1",
        "jdbc:sqlite:c.db?x=1",
        "postgresql+psycopg://u:pw@h:5432/d?a=b",
    ),
    *("jdbc:mysql://h/d?user=me&password=pw", "sqlite://", "jdbc:oracle:thin:me/pw@h:1521"),
    *(
        "s3://bucket/a/b",
        "file:///tmp/x",
        "gs://b/x",
        "abfss://c@a.dfs.core.windows.net/x",
        "/tmp/y",
    ),
)
_VALUE_WORDS = (
    *(
        "",
        "true",
        "3",
        "-1",
        "3x",
        "1e9",
        "NaN",
        "inf",
        "://",
        ":",
        "@",
        "/",
        "//",
        "[::1]",
        "?",
        "#",
        "%2",
    ),
    *(
        "sqlite",
        "jdbc:",
        "file:",
        "s3",
        "memory",
        "..",
        "${x}",
        "\x00",
        "9" * 5000,
        "2024-13-40",
        "²",
    ),
)


def _of(texts: Sequence[str], words: Sequence[str]) -> Callable[[Random], str]:
    return lambda choose: mutate_text(choose.choice(texts), choose, words)


def _filter(text: str) -> None:
    predicate = parse_filter(text)
    bind(predicate, _SCHEMA, case_sensitive=False)
    _each(predicate, *(lambda p, t=t: t.scan(filter=p).to_arrow() for t in _tables()))


@functools.cache
def _tables() -> list[Table]:
    """Return two version 3 tables, one with partitions and one without."""
    seeds = [seed_table(3, True), seed_table(3, False)]
    return [s.opened(json.dumps(s.metadata_json).encode()) for s in seeds]


def _schema(text: str) -> None:
    schema = parse_schema(text)
    schema_to_json(schema)


def _partitions(text: str) -> None:
    parse_partitioning([text], _SCHEMA)


def _sorts(text: str) -> None:
    parse_sort_order([text], _SCHEMA)


def _ddl(text: str) -> None:
    """Parse names and lists of terms in the form of write options."""
    options = parse_write_options({"partitioned-by": text})
    parse_partitioning(options.partitioned_by, _SCHEMA)
    _each(text, parse_levels, is_path)


def _statement(text: str) -> None:
    """Parse and run one of Iceberg's ALTER TABLE statements."""
    statement = extension_statement(text)
    if statement is None:
        return
    try:
        clause = parse_clause(text, statement.offset)
    except ExtensionSyntaxError as e:
        raise InvalidRequestError(str(e)) from e
    seed = seed_table(2, True)
    run_clause(seed.opened(json.dumps(seed.metadata_json).encode()), clause)


def _each(value: Any, *parsers: Callable[[Any], object]) -> None:
    for parse in parsers:
        try:
            parse(value)
        except IcebergError:
            continue


def _configuration(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    with tempfile.TemporaryDirectory(prefix="iceberg-fuzz-") as folder:
        Path(folder, ".pyiceberg.yaml").write_bytes(data)
        environment = {"PYICEBERG_HOME": folder}
        _each(
            environment, default_name, configured_names, lambda e: configured_properties("lake", e)
        )


def _mutated_map(choose: Random) -> tuple[str, dict[str, str]]:
    name, seed = choose.choice(
        (("read", _READ_OPTIONS), ("write", _WRITE_OPTIONS), ("store", _STORE_PROPERTIES))
    )
    keys = choose.sample(sorted(seed), choose.randrange(1, 5))
    values = {key: seed[key] for key in keys}
    for _ in range(choose.choice((1, 1, 2))):
        key = choose.choice(keys)
        if choose.random() < 0.2:
            values[mutate_text(key, choose, _VALUE_WORDS)] = values[key]
        else:
            values[key] = mutate_text(seed[key], choose, (*_VALUE_WORDS, *_TERM_WORDS))
    return name, values


def _options(case: tuple[str, dict[str, str]]) -> None:
    kind, options = case
    match kind:
        case "read":
            _each(options, parse_table_options, parse_read_options)
        case "write":
            _each(options, parse_table_options, parse_write_options)
        case _:
            for protocol in ("s3", "gs", "abfs"):
                _each(options, lambda o, p=protocol: store_settings(p, "b", o))  # type: ignore[misc]
            _each(options, lambda o: location_provider("mem://t", o).new_data_location("f", "a=b"))
            repr(CatalogProperties(options))


def _uri(uri: str) -> None:
    _each(
        uri,
        redact_uri,
        lambda u: database_url(u, {"jdbc.user": "me", "jdbc.password": "pw"}),
        lambda u: open_storage(u, {}).exists(u) if is_local(u) else open_storage(u, {}),
        lambda u: load_catalog("fuzz", type="hadoop", warehouse=u),
        lambda u: load_catalog("fuzz", type="memory", warehouse=u),
        lambda u: load_catalog("fuzz", uri=u, warehouse="w") if _is_file_here(u) else None,
    )


def _is_file_here(uri: str) -> bool:
    """Return whether a catalog with this URI would create its database in the working folder."""
    try:
        url = database_url(uri, {})
    except IcebergError:
        # Our own code refuses this URI anyway.
        return False
    path = os.path.realpath(url.database or "")
    return url.get_backend_name() == "sqlite" and path.startswith(os.getcwd() + os.sep)


_TERMS = tuple(", ".join(_PARTITIONS[i:]) for i in range(4))

TEXT_TARGETS = (
    Target(name="filter", mutate=_of(_FILTERS, _FILTER_WORDS), parse=_filter, in_tests=62),
    Target(name="schema", mutate=_of(_SCHEMAS, _SCHEMA_WORDS), parse=_schema, in_tests=50),
    Target(name="partition", mutate=_of(_PARTITIONS, _TERM_WORDS), parse=_partitions, in_tests=50),
    Target(name="sort", mutate=_of(_SORTS, _TERM_WORDS), parse=_sorts, in_tests=50),
    Target(name="ddl", mutate=_of((*_TERMS, *_NAMES), _TERM_WORDS), parse=_ddl, in_tests=50),
    Target(
        name="statement", mutate=_of(_STATEMENTS, _STATEMENT_WORDS), parse=_statement, in_tests=125
    ),
    Target(
        name="configuration", mutate=_of((_YAML,), _YAML_WORDS), parse=_configuration, in_tests=25
    ),
    Target(name="options", mutate=_mutated_map, parse=_options),
    Target(name="uri", mutate=_of(_URIS, _VALUE_WORDS), parse=_uri, in_tests=62),
)
