"""Generate Java's side of `bridge/protocol/`; run `make generate` after a change there.

`IcebergPyRequests` builds and sends the requests; each response has a class that reads it. A name
on the wire is therefore only in `bridge/protocol/` and in the files that this module generates.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from iceberg_pyspark.spark import bridge
from iceberg_pyspark.spark.bridge.protocol import (
    catalog_messages,
    messages,
    scan_messages,
    source_messages,
    stream_messages,
    table_messages,
    write_messages,
)
from iceberg_pyspark.spark.bridge.protocol import source_messages as credentials
from iceberg_pyspark.spark.bridge.protocol.messages import (
    Message,
    Request,
    RequestWithPlan,
    Response,
    ResponseWithParts,
)
from iceberg_pyspark.spark.bridge.protocol.operations import OPERATIONS, BridgeOperation

JAVA = Path(str(bridge.__file__)).parent / "java"
_FOLDER = JAVA / "core" / "messages"
REQUESTS = "IcebergPyRequests"
HEADER = "// Written from bridge/protocol by `make generate`.\n"
_MODULES = (
    messages,
    catalog_messages,
    table_messages,
    scan_messages,
    stream_messages,
    write_messages,
    source_messages,
    credentials,
)


def java_files() -> dict[str, str]:
    """Return the content of each Java file by name, before clang-format sets whitespace."""
    classes = {f"{java_class(m)}.java": _response(m) for m in response_classes()}
    return {f"{REQUESTS}.java": _requests(), **classes}


def response_classes() -> list[type[Message]]:
    """Return the response classes that have fields, and the messages nested in them."""
    responses = [
        m for m in _messages() if issubclass(m, Response) and m not in _BASES and _fields(m)
    ]
    inside = {
        inner for m in responses for hint in _fields(m).values() for inner in _messages_in(hint)
    }
    return [*responses, *sorted(inside, key=lambda m: m.__name__)]


def java_class(message: type[Message]) -> str:
    """Return the name of the Java class that reads a message."""
    return f"IcebergPy{message.__name__}"


def method_of(operation: BridgeOperation[Any, Any]) -> str:
    """Return the name of the method of `IcebergPyRequests` that sends the request."""
    return _camel(operation.name.replace(".", "_"))


def accessors(message: type[Message]) -> list[str]:
    """Return the names of the accessor methods of the class that reads a message."""
    return [_camel(name) for name in _fields(message)]


def words() -> set[str]:
    """Return all values of Literal fields in requests."""
    hints = [hint for m in _in_requests() for hint in _fields(m).values()]
    return {word for hint in hints if get_origin(hint) is Literal for word in get_args(hint)}


_JAVA_TYPES: Mapping[Any, str] = {
    str: "String",
    bool: "boolean",
    int: "long",
    tuple: "List",
    Sequence: "List",
    # A callable field produces a list.
    Callable: "List",
    Any: "Object",
}
_BASES = (Request, RequestWithPlan, Response, ResponseWithParts)


def _messages() -> list[type[Message]]:
    return [
        m
        for module in _MODULES
        for m in vars(module).values()
        if inspect.isclass(m)
        and m.__module__ == module.__name__
        and issubclass(m, Message)
        and m is not Message
    ]


def _fields(message: type[Message]) -> Mapping[str, Any]:
    """Return the field types by name on the wire; fields of base classes come first."""
    hints = get_type_hints(message)
    return {f.encode_name: hints[f.name] for f in msgspec.structs.fields(message)}


def _messages_in(hint: Any) -> list[type[Message]]:
    if inspect.isclass(hint) and issubclass(hint, Message):
        return [hint]
    return [m for inner in get_args(hint) for m in _messages_in(inner)]


def _requests() -> str:
    inside = [
        m for m in _messages() if not issubclass(m, Request | Response) and m in _in_requests()
    ]
    methods = [*(_sends(row) for row in OPERATIONS.values()), *(_map_of(m) for m in inside)]
    return (
        f"{HEADER}import java.util.List;\nimport java.util.Map;\n\n"
        "/** The requests to Python, and the messages inside them. */\n"
        f"class {REQUESTS} {{\n{''.join(methods)}}}\n"
    )


def _in_requests() -> set[type[Message]]:
    open_ = [row.request for row in OPERATIONS.values()]
    requests: set[type[Message]] = set()
    while open_:
        message = open_.pop()
        if message not in requests:
            requests.add(message)
            open_ += [m for hint in _fields(message).values() for m in _messages_in(hint)]
    return requests


def _sends(row: BridgeOperation[Any, Any]) -> str:
    fields = dict(_fields(row.request))
    beside = issubclass(row.request, RequestWithPlan)
    if beside:
        del fields["plan"]
    parameters = [f"{_java_type(hint)} {_camel(name)}" for name, hint in fields.items()]
    parameters += ["Object plan"] * beside
    call = f'IcebergPyBridge.call("{row.name}", {_pairs(fields)}{", plan" * beside})'
    returned, body = "void", f"{call};"
    if _fields(row.response):
        returned = java_class(row.response)
        body = f"return new {returned}({call});"
    return f"  static {returned} {method_of(row)}({', '.join(parameters)}) {{ {body} }}\n"


def _map_of(message: type[Message]) -> str:
    """Return the Java method that builds a message nested in a request."""
    fields = _fields(message)
    parameters = ", ".join(f"{_java_type(hint)} {_camel(name)}" for name, hint in fields.items())
    config = message.__struct_config__
    tag = [] if config.tag is None else [f'"{config.tag_field}"', f'"{config.tag}"']
    name = message.__name__[0].lower() + message.__name__[1:]
    return f"  static Map {name}({parameters}) {{ return {_pairs(fields, tag)}; }}\n"


def _pairs(fields: Mapping[str, Any], tag: list[str] | None = None) -> str:
    pairs = list(tag or [])
    for name, hint in fields.items():
        boxed = {"boolean": "Boolean.valueOf({})", "long": "Long.valueOf({})"}
        pairs += [f'"{name}"', boxed.get(_java_type(hint), "{}").format(_camel(name))]
    return f"IcebergPyBridge.arguments(new Object[] {{{', '.join(pairs)}}})"


def _response(message: type[Message]) -> str:
    name = java_class(message)
    methods = [_accessor(key, hint) for key, hint in _fields(message).items()]
    lists = any("List" in m for m in methods)
    arrays = any("ArrayList" in m for m in methods)
    imports = ["java.util.ArrayList"] * arrays + ["java.util.List"] * lists + ["java.util.Map"]
    (doc, *_rest) = inspect.cleandoc(message.__doc__ or "").splitlines()
    return (
        f"{HEADER}{''.join(f'import {i};' + chr(10) for i in imports)}\n/** {doc} */\n"
        f"class {name} {{\n  private final Map fields;\n"
        f"  {name}(Map fields) {{ this.fields = fields; }}\n{''.join(methods)}}}\n"
    )


def _accessor(key: str, hint: Any) -> str:
    type_, response = _java_type(hint), f'fields.get("{key}")'
    inner = _messages_in(hint)
    if inner and get_origin(hint) is tuple:
        item = f"new {java_class(inner[0])}((Map) values.get(i))"
        body = (
            f"List values = (List) {response}, items = new ArrayList();"
            f"for (int i = 0; i < values.size(); i++) items.add({item});"
            "return items;"
        )
        return f"  List {_camel(key)}() {{ {body} }}\n"
    if inner:
        type_ = java_class(inner[0])
        body = f"return {response} == null ? null : new {type_}((Map) {response});"
    elif type_ == "boolean":
        body = f"return ((Boolean) {response}).booleanValue();"
    elif type_ == "long":
        body = f"return ((Number) {response}).longValue();"
    else:
        body = f"return {response};" if type_ == "Object" else f"return ({type_}) {response};"
    return f"  {type_} {_camel(key)}() {{ {body} }}\n"


def _java_type(hint: Any) -> str:
    hints = [a for a in get_args(hint) if a is not types.NoneType]
    if get_origin(hint) in (Union, types.UnionType):
        boxed = {"boolean": "Boolean", "long": "Number"}
        kinds = {_java_type(a) for a in hints}
        (java,) = kinds if len(kinds) == 1 else {"Object"}
        return boxed.get(java, java)
    if get_origin(hint) is Literal:
        return "String"
    if inspect.isclass(hint) and issubclass(hint, Message):
        return "Map"
    return _JAVA_TYPES.get(get_origin(hint) or hint, "Map")


def _camel(name: str) -> str:
    return re.sub("_(.)", lambda m: m[1].upper(), name)


def main() -> None:
    """Write the files, and delete generated files of classes that no longer exist."""
    files = java_files()
    for path in _FOLDER.glob("*.java"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (_FOLDER / name).write_text(text, "utf-8")
    subprocess.run(["clang-format", "-i", *(str(_FOLDER / name) for name in files)], check=True)


if __name__ == "__main__":
    main()
