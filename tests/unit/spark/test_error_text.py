"""Our error is found in the text of the exception that Spark shows."""

from __future__ import annotations

import pytest

from iceberg_pyspark.spark.error_text import iceberg_error_in, with_class_name

FROM_A_TASK = """\
An error occurred while calling o58.count.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 \
times, most recent failure: org.apache.spark.api.python.PythonException: Traceback (most recent \
call last):
  File "site-packages/pyspark/worker.py", line 2, in main
    process()
  File "iceberg_pyspark/arrow/formats/parquet_reader.py", line 2, in open
    raise StorageError(message)
iceberg_pyspark.errors.StorageError: file:/t/a.parquet: no Parquet file; restore it

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(P.scala:1)
"""


def test_class_and_message_are_taken_out_of_a_failed_task() -> None:
    class_and_message = iceberg_error_in(FROM_A_TASK)
    assert class_and_message == ("StorageError", "file:/t/a.parquet: no Parquet file; restore it")


def test_sqlstate_of_spark_is_cut_from_the_message() -> None:
    text = "iceberg_pyspark.errors.NoSuchTableError: no table db.t\n SQLSTATE: 38000\n"
    assert iceberg_error_in(text) == ("NoSuchTableError", "no table db.t")
    assert iceberg_error_in(text.replace("\n", "")) == ("NoSuchTableError", "no table db.t")


def test_of_chained_errors_the_last_counts_with_all_its_lines() -> None:
    text = (
        "iceberg_pyspark.errors.StorageError: short file\n\nThe above exception was the direct "
        "cause of the following exception:\n\nTraceback (most recent call last):\n"
        "iceberg_pyspark.errors.InvalidMetadataError: m.avro: damaged\nrestore it\n"
    )
    assert iceberg_error_in(text) == ("InvalidMetadataError", "m.avro: damaged\nrestore it")


def test_text_of_a_value_error_is_not_an_iceberg_error() -> None:
    assert iceberg_error_in("ValueError: StorageError: x") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("", "\n\nJVM stacktrace:\norg.apache.spark.SparkException: iceberg_pyspark.errors.x"),
        (
            "An error occurred while calling o5.sql.\n"
            ": org.apache.spark.sql.execution.QueryExecutionException: ",
            "\n\tat py4j.Gateway.invoke(Gateway.java:282)\n",
        ),
    ],
)
def test_message_before_others_is_found(before: str, after: str) -> None:
    text = with_class_name("CatalogError", "catalog: down\n  try again")
    assert text.splitlines()[0] == "catalog: down"
    assert iceberg_error_in(before + text + after) == ("CatalogError", "catalog: down\n  try again")
