"""Generates the Java class in front of a session's parser for the installed release.

The methods of the parser interface differ between releases, so the class is generated with the
methods of the installed release. All methods delegate, except the methods that parse statements. A
`java.lang.reflect.Proxy` cannot be used: parsers throw checked exceptions that the interface does
not declare.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_INTERFACE = "org.apache.spark.sql.catalyst.parser.ParserInterface"
_STATIC = 8
_CLASS = """
/** Made for one release of Spark: see parser_source.py. */
public class IcebergPyParser extends IcebergPyFrontParser implements {interface} {{
  public IcebergPyParser({interface} next) {{ super(next); }}
{methods}
}}
"""
_METHOD = """
  public {type} {name}({parameters}) {{
    try {{
      {statement}return next.{name}({arguments});
    }} catch (Throwable e) {{
      org.apache.spark.unsafe.Platform.throwException(e);
      return null;
    }}
  }}"""
_STATEMENT = """{type} plan = plan(a0);
      if (plan != null) return plan;
      """


def parser_source(loader: Any) -> str:
    """Return the class `IcebergPyParser`; the rest of the parser is in `java/extensions/`."""
    methods = "".join(_methods(loader.loadClass(_INTERFACE)))
    return _CLASS.format(interface=_INTERFACE, methods=methods)


def _methods(interface: Any) -> Iterator[str]:
    for method in interface.getMethods():
        if method.getModifiers() & _STATIC:
            continue
        name, type_ = method.getName(), method.getReturnType().getCanonicalName()
        types = [t.getCanonicalName() for t in method.getParameterTypes()]
        parses_statements = name.startswith("parsePlan") and types[0] == "java.lang.String"
        yield _METHOD.format(
            type=type_,
            name=name,
            parameters=", ".join(f"{t} a{i}" for i, t in enumerate(types)),
            arguments=", ".join(f"a{i}" for i in range(len(types))),
            statement=_STATEMENT.format(type=type_) if parses_statements else "",
        )
