"""Parses the command line, and prints errors; the exit codes of `iceberg-py` and of the jobs.

Options of `iceberg-py` itself, such as `--catalog` and `--json`, may be before or after the
command. Every error is one line on standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Sequence
from enum import IntEnum
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption

from iceberg_pyspark.command_line.output import Output
from iceberg_pyspark.errors import (
    AlreadyExistsError,
    CatalogUnavailableError,
    CommitError,
    CommitStateUnknownError,
    IcebergError,
    InvalidRequestError,
    NotAuthorizedError,
    NotFoundError,
    UnsupportedFeatureError,
)
from iceberg_pyspark.redaction import get_logger


class ExitCode(IntEnum):
    """The exit codes; docs/guide/command-line.md says when to run again."""

    DONE = 0
    FAILED = 1
    WRONG_REQUEST = 2
    NOT_FOUND = 3
    ALREADY_EXISTS = 4
    NOT_AUTHORIZED = 5
    UNAVAILABLE = 6
    CONFLICT = 7
    UNKNOWN = 8
    DAMAGED = 9
    INTERRUPTED = 130


_CODES: tuple[tuple[type[Exception], ExitCode], ...] = (
    (NotFoundError, ExitCode.NOT_FOUND),
    (AlreadyExistsError, ExitCode.ALREADY_EXISTS),
    (NotAuthorizedError, ExitCode.NOT_AUTHORIZED),
    (CatalogUnavailableError, ExitCode.UNAVAILABLE),
    (CommitStateUnknownError, ExitCode.UNKNOWN),
    (CommitError, ExitCode.CONFLICT),
    (InvalidRequestError, ExitCode.WRONG_REQUEST),
    (UnsupportedFeatureError, ExitCode.WRONG_REQUEST),
)


def _code_of(error: Exception) -> ExitCode:
    """Return the exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


ERROR_LOGGER = __name__
"""The logger of the tracebacks of errors, at level DEBUG."""


def options_first(
    arguments: Sequence[str], with_value: Collection[str], flags: Collection[str]
) -> list[str]:
    """Return the arguments with these options and their values first, up to a `--`.

    >>> options_first(["list", "db", "--catalog", "lake", "--json"], {"--catalog"}, {"--json"})
    ['--catalog', 'lake', '--json', 'list', 'db']
    """
    first: list[str] = []
    others: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            others += [argument, *rest]
        elif argument in with_value:
            first += [argument, *([value] if (value := next(rest, None)) is not None else [])]
        elif argument in flags or argument.partition("=")[0] in with_value:
            first.append(argument)
        else:
            others.append(argument)
    return first + others


class CommandLine(TyperGroup):
    """The group of all commands; every error ends the process with one line and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; options of `iceberg-py` itself may follow the command."""
        # eager options, such as --version, end the command
        options = [
            p
            for p in self.params
            if isinstance(p, TyperOption) and p.expose_value and not p.is_eager
        ]
        with_value = {name for p in options if not p.is_flag for name in p.opts}
        flags = {name for p in options if p.is_flag for name in p.opts}
        return super().parse_args(ctx, options_first(args, with_value, flags))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run one command; in standalone mode, exit the process with the command's code."""
        run = partial(
            super().main, args, prog_name, complete_var, False, windows_expand_args, **extra
        )
        return sys.exit(exit_code_of(run)) if standalone_mode else run()


def exit_code_of(run: Callable[[], Any]) -> int:
    """Run a command or a job, print its error on standard error, and return the exit code."""
    try:
        code = run()
        sys.stdout.flush()
        return code if isinstance(code, int) else ExitCode.DONE
    except BrokenPipeError:
        return _read_enough()
    except SystemExit as e:
        if isinstance(e.__context__, BrokenPipeError):
            return _read_enough()
        raise
    except (KeyboardInterrupt, typer.Abort):
        return _fail("stopped", ExitCode.INTERRUPTED)
    except IcebergError as e:
        return _fail(str(e), _code_of(e))
    except Exception as e:  # noqa: BLE001 - no traceback reaches a terminal unless asked for
        if (usage := getattr(e, "format_message", None)) is not None:
            return _fail(f"{usage()} (see {_help_of(e)})", ExitCode.WRONG_REQUEST)
        if isinstance(e, OSError):
            return _fail(str(e), ExitCode.FAILED)
        return _fail(
            f"unexpected {type(e).__name__}: {e}; `--log-level debug` shows where",
            ExitCode.FAILED,
        )


def _read_enough() -> ExitCode:
    """Return success if `iceberg-py ... | head` closed the pipe, and silence Python's complaint."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.DONE


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{'iceberg-py' if context is None else context.command_path} --help"


def _fail(message: str, code: ExitCode) -> ExitCode:
    get_logger(ERROR_LOGGER).debug("the error's traceback", exc_info=True)
    Output(as_json=False).error(message)
    return code
