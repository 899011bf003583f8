"""The part of the Hive metastore's Thrift interface that this catalog uses.

The names and numbers come from Hive's hive_metastore.thrift. A struct is a dict by field name.
Undeclared fields keep their numbers and values and are sent back, because a newer metastore has
more fields, and a change of a table must not lose those fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

# Thrift's type numbers, as in thrift.Thrift.TType
STOP, BOOL, BYTE, DOUBLE, I16, I32, I64, STRING, STRUCT, MAP, SET, LIST = (
    *(0, 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15),
)


@dataclass(frozen=True)
class ListOf:
    """A list whose items have one kind."""

    item: Kind


@dataclass(frozen=True)
class MapOf:
    """A map from one kind to another."""

    key: Kind
    value: Kind


@dataclass(frozen=True)
class StructOf:
    """A struct: the number and kind of each field, by field name."""

    fields: Mapping[str, tuple[int, Kind]]


@dataclass(frozen=True)
class Call:
    """A call: its arguments, its answer (None: no answer), and its errors, numbered from 1."""

    arguments: StructOf
    answer: Kind | None
    errors: tuple[str, ...]


Kind: TypeAlias = int | ListOf | MapOf | StructOf
Struct: TypeAlias = dict[str | int, Any]

_TEXTS = MapOf(STRING, STRING)


def _struct(*fields: tuple[str, Kind]) -> StructOf:
    """Return a struct whose fields are numbered from 1 without a gap."""
    return StructOf({name: (n, kind) for n, (name, kind) in enumerate(fields, 1)})


FIELD_SCHEMA = _struct(("name", STRING), ("type", STRING), ("comment", STRING))
SERDE_INFO = _struct(("name", STRING), ("serializationLib", STRING), ("parameters", _TEXTS))
STORAGE_DESCRIPTOR = _struct(
    ("cols", ListOf(FIELD_SCHEMA)),
    ("location", STRING),
    ("inputFormat", STRING),
    ("outputFormat", STRING),
    ("compressed", BOOL),
    ("numBuckets", I32),
    ("serdeInfo", SERDE_INFO),
)
TABLE = _struct(
    ("tableName", STRING),
    ("dbName", STRING),
    ("owner", STRING),
    ("createTime", I32),
    ("lastAccessTime", I32),
    ("retention", I32),
    ("sd", STORAGE_DESCRIPTOR),
    ("partitionKeys", ListOf(FIELD_SCHEMA)),
    ("parameters", _TEXTS),
    ("viewOriginalText", STRING),
    ("viewExpandedText", STRING),
    ("tableType", STRING),
)
DATABASE = StructOf(
    {
        "name": (1, STRING),
        "description": (2, STRING),
        "locationUri": (3, STRING),
        "parameters": (4, _TEXTS),
        "ownerName": (6, STRING),
        "ownerType": (7, I32),
    }
)
ENVIRONMENT_CONTEXT = _struct(("properties", _TEXTS))
GET_TABLE_REQUEST = _struct(("dbName", STRING), ("tblName", STRING))
GET_TABLE_RESULT = _struct(("table", TABLE))
GET_TABLES_REQUEST = _struct(("dbName", STRING), ("tblNames", ListOf(STRING)))
GET_TABLES_RESULT = _struct(("tables", ListOf(TABLE)))
LOCK_COMPONENT = _struct(("type", I32), ("level", I32), ("dbname", STRING), ("tablename", STRING))
LOCK_REQUEST = _struct(
    ("component", ListOf(LOCK_COMPONENT)),
    ("txnid", I64),
    ("user", STRING),
    ("hostname", STRING),
    ("agentInfo", STRING),
)
LOCK_RESPONSE = _struct(("lockid", I64), ("state", I32))
CHECK_LOCK_REQUEST = _struct(("lockid", I64))
UNLOCK_REQUEST = _struct(("lockid", I64))
HEARTBEAT_REQUEST = _struct(("lockid", I64))
SHOW_LOCKS_REQUEST = _struct(("dbname", STRING), ("tablename", STRING))
SHOWN_LOCK = StructOf({"lockid": (1, I64), "state": (5, I32), "agentInfo": (13, STRING)})
SHOW_LOCKS_RESPONSE = _struct(("locks", ListOf(SHOWN_LOCK)))

ERROR = _struct(("message", STRING))
"""The field that all errors of the interface have."""

_META, _EXISTS, _MISSING = "MetaException", "AlreadyExistsException", "NoSuchObjectException"
_OBJECT, _OPERATION = "InvalidObjectException", "InvalidOperationException"
_TRANSACTION = ("NoSuchTxnException", "TxnAbortedException")

CALLS: Mapping[str, Call] = {
    "set_ugi": Call(
        _struct(("user_name", STRING), ("group_names", ListOf(STRING))), ListOf(STRING), (_META,)
    ),
    "get_all_databases": Call(_struct(), ListOf(STRING), (_META,)),
    "get_database": Call(_struct(("name", STRING)), DATABASE, (_MISSING, _META)),
    "create_database": Call(_struct(("database", DATABASE)), None, (_EXISTS, _OBJECT, _META)),
    "alter_database": Call(_struct(("dbname", STRING), ("db", DATABASE)), None, (_META, _MISSING)),
    "drop_database": Call(
        _struct(("name", STRING), ("deleteData", BOOL), ("cascade", BOOL)),
        None,
        (_MISSING, _OPERATION, _META),
    ),
    "get_all_tables": Call(_struct(("db_name", STRING)), ListOf(STRING), (_META,)),
    "get_table": Call(_struct(("dbname", STRING), ("tbl_name", STRING)), TABLE, (_META, _MISSING)),
    "get_table_req": Call(_struct(("req", GET_TABLE_REQUEST)), GET_TABLE_RESULT, (_META, _MISSING)),
    "get_table_objects_by_name": Call(
        _struct(("dbname", STRING), ("tbl_names", ListOf(STRING))),
        ListOf(TABLE),
        (_META, _OPERATION, "UnknownDBException"),
    ),
    "get_table_objects_by_name_req": Call(
        _struct(("req", GET_TABLES_REQUEST)),
        GET_TABLES_RESULT,
        (_META, _OPERATION, "UnknownDBException"),
    ),
    "create_table": Call(_struct(("tbl", TABLE)), None, (_EXISTS, _OBJECT, _META, _MISSING)),
    "drop_table": Call(
        _struct(("dbname", STRING), ("name", STRING), ("deleteData", BOOL)),
        None,
        (_MISSING, _META),
    ),
    "alter_table_with_environment_context": Call(
        _struct(
            ("dbname", STRING),
            ("tbl_name", STRING),
            ("new_tbl", TABLE),
            ("environment_context", ENVIRONMENT_CONTEXT),
        ),
        None,
        (_OPERATION, _META),
    ),
    "lock": Call(_struct(("rqst", LOCK_REQUEST)), LOCK_RESPONSE, _TRANSACTION),
    "check_lock": Call(
        _struct(("rqst", CHECK_LOCK_REQUEST)),
        LOCK_RESPONSE,
        (*_TRANSACTION, "NoSuchLockException"),
    ),
    "unlock": Call(
        _struct(("rqst", UNLOCK_REQUEST)), None, ("NoSuchLockException", "TxnOpenException")
    ),
    "heartbeat": Call(
        _struct(("ids", HEARTBEAT_REQUEST)), None, ("NoSuchLockException", *_TRANSACTION)
    ),
    "show_locks": Call(_struct(("rqst", SHOW_LOCKS_REQUEST)), SHOW_LOCKS_RESPONSE, ()),
}
"""The supported calls, by name."""


def write_value(protocol: Any, kind: Kind, value: Any) -> None:
    """Write a value of a kind; struct fields that are None are left out."""
    match kind:
        case StructOf(fields):
            for name, (number, field_kind) in fields.items():
                if value.get(name) is not None:
                    protocol.writeFieldBegin(name, type_number(field_kind), number)
                    write_value(protocol, field_kind, value[name])
                    protocol.writeFieldEnd()
            for key, came in value.items():
                if isinstance(key, int):
                    protocol.writeFieldBegin("", came[0], key)
                    _write_raw(protocol, *came)
                    protocol.writeFieldEnd()
            protocol.writeFieldStop()
        case ListOf(item):
            protocol.writeListBegin(type_number(item), len(value))
            for v in value:
                write_value(protocol, item, v)
        case MapOf(of_key, of_value):
            protocol.writeMapBegin(type_number(of_key), type_number(of_value), len(value))
            for k, v in value.items():
                write_value(protocol, of_key, k)
                write_value(protocol, of_value, v)
        case number:
            _write_raw(protocol, number, value)


def read_value(protocol: Any, kind: Kind) -> Any:
    """Read a value of a kind."""
    match kind:
        case StructOf(fields):
            return _read_struct(protocol, {n: (name, k) for name, (n, k) in fields.items()})
        case ListOf(item):
            _type, size = protocol.readListBegin()
            return [read_value(protocol, item) for _ in range(size)]
        case MapOf(of_key, of_value):
            _key, _value, size = protocol.readMapBegin()
            return {
                read_value(protocol, of_key): read_value(protocol, of_value) for _ in range(size)
            }
        case number:
            return _read_raw(protocol, number)


def _read_struct(protocol: Any, by_number: Mapping[int, tuple[str, Kind]]) -> Struct:
    struct: Struct = {}
    while True:
        _name, type_, number = protocol.readFieldBegin()
        if type_ == STOP:
            return struct
        name, kind = by_number.get(number, ("", STOP))
        if type_number(kind) == type_:
            struct[name] = read_value(protocol, kind)
        else:
            struct[number] = (type_, _read_raw(protocol, type_))


def type_number(kind: Kind) -> int:
    """Return Thrift's type number of a kind."""
    match kind:
        case StructOf():
            return STRUCT
        case ListOf():
            return LIST
        case MapOf():
            return MAP
        case number:
            return number


_SCALARS = {BOOL: "Bool", BYTE: "Byte", DOUBLE: "Double", I16: "I16", I32: "I32", I64: "I64"}


def _write_raw(protocol: Any, type_: int, value: Any) -> None:
    match type_:
        case 11:  # STRING, which may also contain binary data
            protocol.writeBinary(value.encode("utf-8", "surrogateescape"))
        case 12:  # STRUCT
            write_value(protocol, StructOf({}), value)
        case 13:  # MAP
            key_type, value_type, items = value
            protocol.writeMapBegin(key_type, value_type, len(items))
            for k, v in items:
                _write_raw(protocol, key_type, k)
                _write_raw(protocol, value_type, v)
        case 14 | 15:  # SET and LIST, which have the same encoding
            item_type, items = value
            protocol.writeListBegin(item_type, len(items))
            for item in items:
                _write_raw(protocol, item_type, item)
        case _:
            getattr(protocol, f"write{_SCALARS[type_]}")(value)


def _read_raw(protocol: Any, type_: int) -> Any:
    match type_:
        case 11:
            return protocol.readBinary().decode("utf-8", "surrogateescape")
        case 12:
            return _read_struct(protocol, {})
        case 13:
            key_type, value_type, size = protocol.readMapBegin()
            items = [
                (_read_raw(protocol, key_type), _read_raw(protocol, value_type))
                for _ in range(size)
            ]
            return key_type, value_type, items
        case 14 | 15:
            item_type, size = protocol.readListBegin()
            return item_type, [_read_raw(protocol, item_type) for _ in range(size)]
        case _:
            return getattr(protocol, f"read{_SCALARS[type_]}")()
