"""Tables of the kinds that other engines generate, in every snapshot, by every reader.

A family is a file of statements in `families`, separated by semicolons at ends of lines, in which
{t} is the table, {c} its catalog and {v} the format version. Beside SQL, there are two statements
for what Spark's connector has no SQL for:

    equality COLUMNS | KEYS | PARTITION [| SPEC ID]   writes equality deletes
    default COLUMN TYPE VALUE                         adds a column with an initial default

Comments at the top say what the family needs: `versions`, by default all; `values` that Python's
own types cannot hold; `filters: none`; and how `pyiceberg` differs, as a pattern of its error.

The seed fixes the filters; ICEBERG_RANDOM_QUERIES=<seed>:<how many> selects others.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.generated_tables import assert_generated_alike
from tests.support.java_tables import JavaTables
from tests.support.oracle import Oracle
from tests.support.readings import our_table

_FOLDER = Path(__file__).parent / "families"


@dataclass(frozen=True)
class Family:
    """One kind of table; it is made once for each format version."""

    name: str
    statements: tuple[str, ...]
    needs: dict[str, str]

    @property
    def versions(self) -> list[int]:
        """The format versions that can have such a table."""
        return [int(v) for v in self.needs.get("versions", "1 2 3").split()]


def families() -> list[Family]:
    """Return all families, by name."""
    return [_family(path) for path in sorted(_FOLDER.glob("*.sql"))]


def _family(path: Path) -> Family:
    lines = path.read_text(encoding="utf-8").splitlines()
    comments = [line[3:].partition(": ") for line in lines if line.startswith("-- ")]
    text = "\n".join(line for line in lines if not line.startswith("-- "))
    return Family(
        path.stem,
        tuple(statement for s in text.split(";\n") if (statement := s.strip().rstrip(";"))),
        {key: value for key, _, value in comments},
    )


def make_table(oracle: Oracle, name: str, family: Family, version: int) -> None:
    """Create the table of a family with Java."""
    catalog = name.partition(".")[0]
    for text in family.statements:
        statement = text.replace("{t}", name).replace("{c}", catalog).replace("{v}", str(version))
        match statement.partition(" "):
            case ("equality", _, arguments):
                _equality_deletes(oracle, name, arguments)
            case ("default", _, arguments):
                _column_with_default(oracle, name, arguments)
            case _:
                oracle.sql(statement)


def _equality_deletes(oracle: Oracle, name: str, arguments: str) -> None:
    columns, keys, partition, *spec = (part.strip() for part in arguments.split("|"))
    oracle.write_equality_deletes(
        name,
        columns.split(","),
        ast.literal_eval(f"[{keys}]"),
        ast.literal_eval(partition),
        spec_id=int(spec[0]) if spec else None,
    )


def _column_with_default(oracle: Oracle, name: str, arguments: str) -> None:
    path, _, rest = arguments.partition(" ")
    type_text, _, value = rest.rpartition(" ")
    iceberg = oracle.jvm.org.apache.iceberg
    type_ = iceberg.types.Types.fromPrimitiveString(type_text)
    literal = iceberg.expressions.Expressions.lit(ast.literal_eval(value)).to(type_)
    parent, _, column = path.rpartition(".")
    change = oracle.load_java_table(name).updateSchema()
    if parent:
        change.addColumn(parent, column, type_, None, literal).commit()
    else:
        change.addColumn(column, type_, literal).commit()


CASES = [pytest.param(f, v, id=f"{f.name}-{v}") for f in families() for v in f.versions]

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(("family", "version"), CASES)
def test_every_reader_sees_the_same(java: JavaTables, family: Family, version: int) -> None:
    name = f"java_hadoop.generated.{family.name}_{version}"
    make_table(java.oracle, name, family, version)
    assert_generated_alike(
        java,
        name,
        by_spark="values" not in family.needs,
        by_pyiceberg="pyiceberg" not in family.needs,
        by_generics="generics" not in family.needs,
        filters="filters" not in family.needs,
    )
    assert our_table(java.oracle, name).verify(check_files=True).findings == ()
