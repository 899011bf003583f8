"""Our structs and calls of the metastore's Thrift interface match Hive's generated code."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hive_metastore import ThriftHiveMetastore, ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from iceberg_pyspark.catalogs.hive import thrift as hive_thrift
from iceberg_pyspark.catalogs.hive.thrift import (
    CALLS,
    LIST,
    MAP,
    STRUCT,
    TABLE,
    ListOf,
    MapOf,
    StructOf,
    read_value,
    type_number,
    write_value,
)


def check_struct(ours: StructOf, generated: type) -> None:
    # each field as (number, type, name, contained type, default)
    spec = {field[2]: field for field in generated.thrift_spec if field}  # type: ignore[attr-defined]
    for name, (number, kind) in ours.fields.items():
        assert spec[name][:2] == (number, type_number(kind)), (generated, name)
        check_kind(kind, spec[name][3])


def check_kind(kind: Any, holds: Any) -> None:
    match kind:
        case StructOf():
            check_struct(kind, holds[0])
        case ListOf(item):
            assert holds[0] == type_number(item)
            check_kind(item, holds[1])
        case MapOf(key, value):
            assert (holds[0], holds[2]) == (type_number(key), type_number(value))


@pytest.mark.parametrize("operation", CALLS)
def test_calls_have_the_numbers_of_hive(operation: str) -> None:
    call = CALLS[operation]
    check_struct(call.arguments, getattr(ThriftHiveMetastore, f"{operation}_args"))
    result = getattr(ThriftHiveMetastore, f"{operation}_result").thrift_spec
    if call.answer is not None:
        assert result[0][:2] == (0, type_number(call.answer))
        check_kind(call.answer, result[0][3])
    thrown = [field[3][0].__name__ for field in result[1:] if field]
    # Later releases of Hive declare more errors, at the end; one call no longer declares any.
    if operation != "get_table_objects_by_name":
        assert tuple(thrown[: len(call.errors)]) == call.errors
    for name in call.errors:
        assert getattr(ttypes, name).thrift_spec[1][:3] == (1, hive_thrift.STRING, "message")


def test_fields_that_are_not_known_come_back_as_they_came() -> None:
    written = ttypes.Table(
        tableName="t",
        dbName="d",
        parameters={"häß": "日本"},
        sd=ttypes.StorageDescriptor(
            bucketCols=["b"],
            sortCols=[ttypes.Order("c", 1)],
            parameters={"k": "v"},
            storedAsSubDirectories=True,
            skewedInfo=ttypes.SkewedInfo(["s"], [["x"]], {}),
        ),
        rewriteEnabled=True,
        catName="hive",
        writeId=7,
        accessType=3,
        requiredReadCapabilities=["r"],
    )
    buffer = TMemoryBuffer()
    written.write(TBinaryProtocol(buffer))
    table = read_value(TBinaryProtocol(TMemoryBuffer(buffer.getvalue())), TABLE)
    assert (table["tableName"], table["parameters"]) == ("t", {"häß": "日本"})
    again = TMemoryBuffer()
    write_value(TBinaryProtocol(again), TABLE, table)
    read = ttypes.Table()
    read.read(TBinaryProtocol(TMemoryBuffer(again.getvalue())))
    assert read == written


def test_types_have_the_numbers_of_thrift() -> None:
    names = [n for n, v in inspect.getmembers(hive_thrift) if n.isupper() and isinstance(v, int)]
    assert {LIST, MAP, STRUCT} < {getattr(hive_thrift, n) for n in names}
    assert [getattr(hive_thrift, n) for n in names] == [getattr(TType, n) for n in names]
