"""The key by which a stream in update mode replaces rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spark.row_level.stream_upserts import upsert_key
from iceberg_pyspark.spark.write.write_options import catalog_write_options
from iceberg_pyspark.sql_text.schema_text import parse_schema

SCHEMA = parse_schema("id BIGINT, `a.b` INT, s STRUCT<k: INT, v: STRING>, l ARRAY<INT>, M STRING")


@pytest.mark.parametrize(
    ("names", "condition"),
    [
        (["id"], "t.`id` = s.`id`"),
        (["ID", "m"], "t.`id` = s.`id` AND t.`M` = s.`M`"),
        (["s.k"], "t.`s`.`k` = s.`s`.`k`"),
        (["`a.b`"], "t.`a.b` = s.`a.b`"),
    ],
)
def test_the_key_of_named_columns(names: list[str], condition: str) -> None:
    assert upsert_key("t", SCHEMA, names, case_sensitive=False).condition == condition


def test_the_key_of_identifier_fields() -> None:
    nested = SCHEMA.find("s.k").field_id
    schema = replace(SCHEMA, identifier_field_ids=(1, nested))
    key = upsert_key("t", schema, [], case_sensitive=True)
    assert key.paths == ("`id`", "`s`.`k`")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], r"set the option upsert-keys .*SET IDENTIFIER FIELDS"),
        (["no"], "no column 'no'"),
        (["ID"], "no column 'ID'"),
        (["s"], "cannot have the column s of type"),
        (["l"], "cannot have the column l of type"),
        (["l.element"], r"cannot have the column l\.element of type int"),
    ],
)
def test_keys_that_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        upsert_key("t", SCHEMA, names, case_sensitive=True)


def test_the_option_names_columns() -> None:
    options = catalog_write_options({"Upsert-Keys": "id, `a,b`"}, {})
    assert options.upsert_keys == ("id", "`a,b`")
    assert catalog_write_options({}, {}).upsert_keys == ()
