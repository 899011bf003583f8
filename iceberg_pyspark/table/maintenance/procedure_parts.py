"""What the declaration of a procedure consists of: parameters, columns of the result, and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

DRY_RUN = "dry_run"


class Interface(Enum):
    """Where a parameter is offered; the names are those of CALL, in Python and in the shell."""

    ALL = "everywhere"
    CALL = "CALL"
    CALL_WITHOUT_EFFECT = "CALL, which takes all parameters of Java"
    SPARK = "CALL and the job, since the value is a name in Spark"
    NO_CALL = "Python, `iceberg-py` and the job"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; `type` is Spark's name of its type, None as the default means no value."""

    name: str
    type: str
    help: str
    default: bool | str | None = None
    is_required: bool = False
    choices: tuple[str, ...] = ()
    option: str = ""
    """The name of the option in the shell, if it is another: in the singular if it is repeated."""
    metavar: str | None = None
    """What the shell's help shows for the value."""
    interface: Interface = Interface.ALL

    @property
    def is_repeated(self) -> bool:
        """Whether the option is given once for each item of the value."""
        return self.type.startswith(("array", "map"))

    @property
    def flag(self) -> str:
        """The option in the shell.

        >>> Parameter("dry_run", "boolean", "Only count.", option="plan").flag
        '--plan'
        >>> Parameter("max_concurrent_deletes", "int", "Threads.").flag
        '--max-concurrent-deletes'
        """
        return f"--{self.option or self.name.replace('_', '-')}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the result of CALL, with Spark's name of its type."""

    type: str
    is_nullable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure, with the JVM connector's order of parameters and columns."""

    name: str
    help: str
    """What it does, also the first line of the method's docstring."""
    parameters: tuple[Parameter, ...]
    """The required ones come first, and `dry_run` last where Java has no such parameter."""
    columns: Mapping[str, Column]
    changes_rows: bool = False
    """Whether the table may have other rows afterwards, so that cached rows are read again."""

    @property
    def call_parameters(self) -> tuple[Parameter, ...]:
        """The parameters of CALL."""
        return tuple(p for p in self.parameters if p.interface is not Interface.NO_CALL)

    @property
    def has_dry_run(self) -> bool:
        """Whether the procedure can only count what it would do."""
        return any(p.name == DRY_RUN for p in self.parameters)
