"""Schemas and snapshots in the form shown to a person."""

from __future__ import annotations

from dataclasses import replace

from iceberg_pyspark.display import html_table, printable, utc_text
from iceberg_pyspark.spec.schema import Schema
from iceberg_pyspark.spec.snapshots import Snapshot
from iceberg_pyspark.spec.transforms import (
    BucketTransform,
    IdentityTransform,
    MonthTransform,
    transform_text,
)
from iceberg_pyspark.spec.types import ListType, LongType, NestedField, StringType

SCHEMA = Schema(
    schema_id=3,
    fields=(
        NestedField(field_id=1, name="id", type=LongType(), required=True, doc="the key"),
        NestedField(
            field_id=2, name="tags", type=ListType(element_id=4, element_type=StringType())
        ),
    ),
    identifier_field_ids=(1,),
)
SNAPSHOT = Snapshot(
    snapshot_id=7,
    parent_snapshot_id=6,
    timestamp_ms=1_767_323_045_678,
    summary={
        "operation": "append",
        "added-records": "1200",
        "total-records": "3400",
        "total-data-files": "no number",
        "app.secret-token": "hush",
    },
)


def test_a_schema_is_one_line_a_column() -> None:
    assert repr(SCHEMA).splitlines() == [
        "schema 3 {",
        "  1: id (identifier): required long -- the key",
        "  2: tags: optional list<string>",
        "}",
    ]
    assert "<td>2</td><td>tags</td><td>optional</td><td>list&lt;string&gt;</td><td></td>" in (
        SCHEMA._repr_html_()
    )


def test_a_snapshot_is_one_line_with_its_numeric_counts() -> None:
    assert repr(SNAPSHOT) == (
        "Snapshot(7, append, 2026-01-02 03:04:05.678 UTC, parent 6, rows added 1,200, rows 3,400)"
    )
    first = replace(SNAPSHOT, parent_snapshot_id=None, summary={})
    assert repr(first) == "Snapshot(7, unknown operation, 2026-01-02 03:04:05.678 UTC)"


def test_a_snapshot_in_a_notebook_has_its_whole_summary_but_secrets() -> None:
    html = SNAPSHOT._repr_html_()
    assert "<td>total-data-files</td><td>no number</td>" in html
    assert "<td>app.secret-token</td><td>***</td>" in html
    assert "hush" not in html


def test_a_name_of_control_characters_stays_on_its_line() -> None:
    name = NestedField(field_id=1, name="a\n2: b\x1b[31m", type=LongType(), doc="\ud800")
    text = repr(Schema(fields=(name,)))
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
    text.encode("utf-8")


def test_shown_text_has_no_password() -> None:
    assert printable("ftp://me:pw@host/t") == "ftp://***@host/t"
    assert "pw" not in html_table("ftp://me:pw@host/t", ("ftp://me:pw@host/t",), [])


def test_a_time_that_no_calendar_has_is_shown_as_it_is() -> None:
    assert utc_text(2**62) == f"{2**62} ms from 1970"


def test_transforms_are_written_as_sql_does() -> None:
    texts = [transform_text(t, "c") for t in (IdentityTransform(), BucketTransform(8))]
    assert [*texts, transform_text(MonthTransform(), "c")] == ["c", "bucket(8, c)", "months(c)"]
