"""The kernel opens no files and uses no clock or random numbers, even where no import shows it.

A contract of import-linter in pyproject.toml restricts the kernel's imports; this test checks calls
of builtins and the few impure functions of allowed modules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import iceberg_pyspark

PACKAGE = Path(iceberg_pyspark.__file__).parent
KERNEL = [
    PACKAGE / "errors.py",
    PACKAGE / "display.py",
    PACKAGE / "redaction.py",
    *(
        file
        for name in ("spec", "expressions", "changes")
        for file in (PACKAGE / name).rglob("*.py")
    ),
]
IMPURE = {
    "open",
    "print",
    "input",
    "exec",
    "eval",
    "__import__",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
    "io.open",
    "uuid.uuid1",
    "uuid.uuid4",
}


def impure_names(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and full name of each impure function that a module mentions, called or not."""
    tree = ast.parse(source)
    imported = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported[alias.asname or alias.name.split(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            root, *rest = ast.unparse(node).split(".")
            name = ".".join([imported.get(root, root), *rest])
            if name in IMPURE:
                yield node.lineno, name


def test_no_kernel_module_names_an_impure_function() -> None:
    assert KERNEL
    places = [
        f"{file.relative_to(PACKAGE)}:{line}: {name}"
        for file in KERNEL
        for line, name in impure_names(file.read_text(encoding="utf-8"))
    ]
    assert places == []
