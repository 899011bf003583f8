"""Requests of the JVM: malformed ones are refused, and Java uses the same names as Python."""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any, NoReturn

import msgspec
import pytest

from iceberg_pyspark import errors
from iceberg_pyspark.errors import InvalidRequestError, NoSuchTableError, TableAlreadyExistsError
from iceberg_pyspark.spark.bridge import spark_conditions
from iceberg_pyspark.spark.bridge.java_modules import BUILDS_ON
from iceberg_pyspark.spark.bridge.protocol.catalog_messages import CatalogOpen
from iceberg_pyspark.spark.bridge.protocol.messages import Failure
from iceberg_pyspark.spark.bridge.protocol.operations import (
    OPERATIONS,
    decode_request,
    response_text,
)
from iceberg_pyspark.spark.bridge.protocol.scan_messages import PlannedScan
from iceberg_pyspark.spark.bridge.protocol.table_messages import SetProperty, TableAlter
from iceberg_pyspark.spark.bridge.protocol.write_messages import DmlRun
from iceberg_pyspark.spark.requests.handlers import HANDLERS, handle_request
from iceberg_pyspark.spark.requests.sessions import BridgeSessions
from tests.generate.java_protocol import (
    HEADER,
    JAVA,
    REQUESTS,
    accessors,
    java_files,
    method_of,
    response_classes,
    words,
)

TABLE = '"catalog":"s/lake","namespace":["db"],"name":"t"'


def test_a_request_is_what_java_wrote() -> None:
    changes = '[{"op":"set_property","key":"k","value":"v"}]'
    text = f'{{{TABLE},"changes":{changes},"case_sensitive":false}}'
    assert decode_request("table.alter", text) == TableAlter(
        catalog="s/lake",
        namespace=("db",),
        name="t",
        changes=(SetProperty(key="k", value="v"),),
        case_sensitive=False,
    )


@pytest.mark.parametrize(
    ("operation", "text", "why"),
    [
        ("table.drop", f"{{{TABLE}}}", "missing required field `purge`"),
        ("table.drop", f'{{{TABLE},"purge":true,"cascade":true}}', "unknown field `cascade`"),
        ("table.drop", f'{{{TABLE},"purge":"yes"}}', "Expected `bool`, got `str` - at `$.purge`"),
        ("tables.list", '{"catalog":"c","namespace":["a",1]}', "at `$.namespace[1]`"),
        ("tables.list", '{"catalog":"c","namespace":null}', "got `null` - at `$.namespace`"),
        (
            "table.alter",
            f'{{{TABLE},"changes":[{{"op":"burn"}}]}}',
            "at `$.changes[0].op`",
        ),
        ("table.stage", f'{{{TABLE},"mode":"maybe"}}', "table.stage"),
        ("tables.list", "{", "truncated"),
        ("tables.burn", "{}", "there is no such request"),
        ("dml.run", '{"session":"s"}', "its plan does not come beside it"),
        ("dml.run", ['{"session":"s","plan":1}', object()], "its plan does not come beside it"),
        ("statement.parse", ['{"text":"s"}', object()], "it comes with a plan"),
    ],
)
def test_malformed_request_is_refused_with_its_operation(
    operation: str, text: Any, why: str
) -> None:
    with pytest.raises(InvalidRequestError) as e:
        decode_request(operation, text)
    assert operation in str(e.value)
    assert why in str(e.value)
    assert "restart it" in str(e.value)


def test_plan_is_sent_beside_its_request() -> None:
    plan = object()
    request = decode_request("dml.run", ['{"session":"s"}', plan])
    assert isinstance(request, DmlRun)
    assert request.plan is plan


def test_parts_go_beside_their_response() -> None:
    response = PlannedScan(proven_conditions=(1,), parts=lambda text: [text, object()])
    assert response_text(response) == '{"parts":null,"proven_conditions":[1]}'


def test_messages_show_no_options() -> None:
    assert "hush" not in repr(CatalogOpen(session="hush", name="c", options={"token": "hush"}))


def failing(error: Exception) -> BridgeSessions:
    def session_of(_handle: str) -> NoReturn:
        raise error

    return BridgeSessions(session_of, session_of)


RENAME = f'{{{TABLE},"to_namespace":["other"],"to_name":"u"}}'


@pytest.mark.parametrize(
    ("error", "operation", "request_text", "about"),
    [
        (NoSuchTableError("gone\nfor good"), "table.rename", RENAME, (("db",), "t")),
        (TableAlreadyExistsError("there"), "table.rename", RENAME, (("other",), "u")),
        (NoSuchTableError("gone"), "staged.abort", '{"catalog":"s/l","handle":"h"}', ((), None)),
        (ValueError("?"), "table.exists", f"{{{TABLE}}}", ((), None)),
    ],
)
def test_an_error_is_a_response(
    error: Exception, operation: str, request_text: str, about: tuple[tuple[str, ...], str | None]
) -> None:
    failure = msgspec.json.decode(
        handle_request(failing(error), operation, request_text), type=Failure
    )
    ours = not isinstance(error, ValueError)
    assert failure.error == (type(error).__name__ if ours else "")
    assert failure.message == (str(error) if ours else "ValueError: ?")
    assert (failure.namespace, failure.name) == about


def test_no_other_response_looks_like_an_error() -> None:
    fields = {m: {f.name for f in msgspec.structs.fields(m)} for m in response_classes()}
    assert [m for m, names in fields.items() if "error" in names] == [Failure]


def test_every_operation_has_a_handler() -> None:
    assert set(HANDLERS) == set(OPERATIONS)
    assert all(name == row.name for name, row in OPERATIONS.items())
    assert len({row.request for row in OPERATIONS.values()}) == len(OPERATIONS)


# --- Java ----------------------------------------------------------------------------------------


@cache
def sources() -> dict[str, str]:
    return {
        p.name: p.read_text("utf-8")
        for module in BUILDS_ON
        for p in (JAVA / module).rglob("*.java")
    }


@cache
def by_hand() -> str:
    generated = java_files()
    return "\n".join(text for name, text in sources().items() if name not in generated)


def without_blanks(text: str) -> str:
    return "".join(text.split())


def test_java_s_side_is_written_from_the_protocol() -> None:
    written = {n: t for n, t in sources().items() if t.startswith(HEADER)}
    generated = java_files()
    assert set(written) == set(generated), "run `make generate`"
    for name, text in generated.items():
        assert without_blanks(written[name]) == without_blanks(text), f"{name}: `make generate`"


def test_java_calls_what_the_table_has() -> None:
    operations = {
        (name, operation)
        for name, text in sources().items()
        for operation in re.findall(r'\bcall\(\s*"([^"]+)"', text)
    }
    assert operations == {(f"{REQUESTS}.java", operation) for operation in OPERATIONS}


def test_java_sends_every_request_and_reads_all_of_every_response() -> None:
    called = set(re.findall(rf"\b{REQUESTS}\s*\.(\w+)\(", by_hand()))
    assert called >= {method_of(row) for row in OPERATIONS.values()}
    requests = java_files()[f"{REQUESTS}.java"]
    assert called == set(re.findall(r"static \w+ (\w+)\(", requests))
    read = set(re.findall(r"\.(\w+)\(\)", by_hand()))
    for message in response_classes():
        assert read >= set(accessors(message)), message


def test_python_knows_the_operators_that_java_names() -> None:
    java_operators = {
        op for text in sources().values() for op in re.findall(r'\bnode\(\s*"(\w+)"', text)
    }
    assert java_operators >= {"and", "or", "not", "in", "starts_with", "other"}
    python_operators = set(re.findall(r'"(\w+)"', inspect.getsource(spark_conditions)))
    assert java_operators - python_operators == {"other"}


def test_java_writes_every_word_that_python_knows() -> None:
    for word in words():
        assert f'"{word}"' in by_hand(), word


def test_java_names_errors_that_there_are() -> None:
    java_errors = set(re.findall(r'\bkind\.equals\("(\w+)"\)', sources()["IcebergPyBridge.java"]))
    assert java_errors
    assert java_errors <= vars(errors).keys()
