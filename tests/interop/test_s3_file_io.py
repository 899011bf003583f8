"""Java's S3FileIO and ours on one S3 table of one REST catalog: each reads what both wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.amounts import RUNS_MORE
from tests.services.iceberg_aws import s3_file_io_jars
from tests.services.rest_fixture import VERSION, rest_server
from tests.services.s3 import s3_server
from tests.support.spark_sessions import run_python

IN_TURNS = Path(__file__).parents[1] / "support" / "s3_in_turns.py"
EVERY_TURN = RUNS_MORE


@pytest.mark.parametrize(
    "version", [3, pytest.param(2, marks=pytest.mark.more("the same requests to S3"))]
)
def test_a_table_in_s3_changed_in_turns(tmp_path: Path, version: int) -> None:
    """The changes use the Parquet writers of Spark, Python and Java, and deletion vectors."""
    (tmp_path / "rest").mkdir()
    with s3_server(tmp_path / "s3") as s3:
        server = {
            **s3.properties(),
            "warehouse": f"s3://{s3.new_bucket()}/warehouse",
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": s3.properties()["s3.region"],
        }
        with rest_server(tmp_path / "rest", server, s3_file_io_jars(VERSION)) as rest:
            options = {
                "properties": s3.properties(),
                "uri": rest.endpoint,
                "scratch": str(tmp_path / "spark"),
                "versions": [version],
                "every_turn": EVERY_TURN,
            }
            answer = json.loads(run_python(IN_TURNS, json.dumps(options)).splitlines()[-1])
    assert len(answer["turns"]) == (9 if EVERY_TURN and version == 3 else 2)
    for turn in answer["turns"]:
        assert turn["java"] == turn["native"] == turn["portable"], turn["what"]
    assert answer["turns"][-1]["java"][-1] == [90, "x", "p4"]
    assert answer["java_io"] == "S3FileIO"
    # The writers of the data files: Spark's own writer, Python, and Java.
    assert answer["writers"] == ["Spark", "parquet-cpp-arrow", "parquet-mr"]
