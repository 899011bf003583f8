"""Checks the types of arguments that programs give, so that a wrong one is one sentence.

A number that is written where the specification has text makes a table unreadable. Public functions
are checked against their annotations (`checked`), so the functions below them need no checks.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from iceberg_pyspark.errors import InvalidRequestError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)

Misfit: TypeAlias = Callable[[Any], str | None]
"""Returns what a value is, if the value does not fit the type; else None."""

_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "True or False"}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse arguments that do not fit the function's annotations, before the function runs.

    `Annotated[T, "text"]` says what is expected in other words than those of the type.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        signature, checks = _checks(function)
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError:
            # Python's own sentence says which arguments are missing or too many
            return function(*args, **kwargs)
        for name, expected, misfit in checks:
            if name in arguments and (kind := misfit(arguments[name])) is not None:
                raise InvalidRequestError(
                    f"{function.__name__}: {name}: expected {expected}, not {kind}"
                )
        return function(*args, **kwargs)

    return call


def checked_methods(cls: C) -> C:
    """Make the public methods that the class itself defines `checked`."""
    for name, value in list(vars(cls).items()):
        if inspect.isfunction(value) and not name.startswith("_"):
            setattr(cls, name, checked(value))
    return cls


@cache
def _checks(
    function: Callable[..., object],
) -> tuple[inspect.Signature, list[tuple[str, str, Misfit]]]:
    """Return a function's signature, and for each annotated parameter its expected type."""
    signature = inspect.signature(function)
    # without the annotation of the result, which may name an optional package
    annotations = {k: v for k, v in function.__annotations__.items() if k != "return"}
    hints = get_type_hints(
        types.SimpleNamespace(__annotations__=annotations),
        function.__globals__,
        include_extras=True,
    )
    checks = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD or parameter.name not in hints:
            continue
        annotation = hints[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            annotation = types.GenericAlias(Sequence, annotation)
        checks.append((parameter.name, _expected(annotation), _misfit(annotation)))
    return signature, checks


def _expected(annotation: Any) -> str:
    """Return what fits a type in words; `None` goes without saying."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return str(args[1])
    if origin in (Union, types.UnionType):
        return " or ".join(_expected(a) for a in args if a is not type(None))
    if origin is Literal:
        return f"one of {', '.join(map(repr, args))}"
    if _is_function(annotation, origin):
        return "a function"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a dict of texts" if args == (str, str) else "a dict"
    if origin is tuple and args[-1] is not Ellipsis:
        return f"a tuple of {len(args)} values"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        word = {"Sequence": "list", "Collection": "list"}.get(origin.__name__, origin.__name__)
        return f"a {word} of {_plural(_expected(args[0]))}"
    if annotation in _NAMES:
        return _NAMES[annotation]
    name = _name(annotation) if isinstance(annotation, type) else str(annotation)
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def _plural(expected: str) -> str:
    first, of, rest = expected.removeprefix("a ").partition(" of ")
    return f"{first}s{of}{rest}"


def _misfit(annotation: Any) -> Misfit:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _misfit(args[0])
    if origin in (Union, types.UnionType):
        return _misfit_of_all([_misfit(a) for a in args])
    if origin is Literal:
        return _misfit_of_choice(args)
    if _is_function(annotation, origin):
        return lambda value: None if callable(value) else _kind(value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _misfit_of_mapping(*map(_misfit, args))
    if origin is tuple and args[-1] is not Ellipsis:
        return _misfit_of_tuple(list(map(_misfit, args)))
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _misfit_of_elements(origin, _misfit(args[0]))
    if annotation is int or annotation is float:
        numbers = (int,) if annotation is int else (int, float)
        return lambda value: (
            None if isinstance(value, numbers) and not isinstance(value, bool) else _kind(value)
        )
    if annotation is None:
        annotation = type(None)
    # `Any` is a class since Python 3.11
    if annotation is Any or not isinstance(annotation, type) or _is_structural(annotation):
        return lambda value: None
    return lambda value: None if isinstance(value, annotation) else _kind(value)


def _is_function(annotation: Any, origin: Any) -> bool:
    is_call = _is_structural(annotation) and "__call__" in vars(annotation)
    return origin is Callable or is_call


def _is_structural(annotation: Any) -> bool:
    """Return whether `isinstance` cannot decide: a protocol that is not checked at run time."""
    is_protocol = getattr(annotation, "_is_protocol", False)
    return is_protocol and not getattr(annotation, "_is_runtime_protocol", False)


def _misfit_of_all(misfits: Sequence[Misfit]) -> Misfit:
    def misfit(value: Any) -> str | None:
        kinds = [m(value) for m in misfits]
        # of a list with a wrong element, the element says more than the list
        return None if None in kinds else max((k for k in kinds if k is not None), key=len)

    return misfit


def _misfit_of_choice(choices: Collection[str]) -> Misfit:
    def misfit(value: Any) -> str | None:
        if not isinstance(value, str):
            return _kind(value)
        return None if value in choices else repr(value[:40])

    return misfit


def _misfit_of_mapping(of_key: Misfit, of_value: Misfit) -> Misfit:
    def misfit(value: Any) -> str | None:
        if not isinstance(value, Mapping):
            return _kind(value)
        for k, v in value.items():
            if (kind := of_key(k)) is not None:
                return f"a dict with the key {kind}"
            if (kind := of_value(v)) is not None:
                return f"a dict with {kind} under '{k}'"
        return None

    return misfit


def _misfit_of_tuple(of_values: Sequence[Misfit]) -> Misfit:
    def misfit(value: Any) -> str | None:
        if not isinstance(value, tuple) or len(value) != len(of_values):
            return _kind(value)
        kinds = (of_value(v) for of_value, v in zip(of_values, value, strict=True))
        return next((f"a tuple with {kind}" for kind in kinds if kind is not None), None)

    return misfit


def _misfit_of_elements(collection: type, of_element: Misfit) -> Misfit:
    def misfit(value: Any) -> str | None:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, collection):
            return _kind(value)
        # an iterator can be read only once
        for element in value if isinstance(value, Collection) else ():
            if (kind := of_element(element)) is not None:
                return f"a list with {kind}"
        return None

    return misfit


def _kind(value: object) -> str:
    """Return the name of a value's type; the value may be large or secret."""
    return "None" if value is None else _name(type(value))


def _name(cls: type) -> str:
    """Return a class's name, with its package: there are several DataFrames."""
    package = cls.__module__.partition(".")[0]
    is_plain = package in ("builtins", "iceberg_pyspark", cls.__name__)
    return cls.__name__ if is_plain else f"{package}.{cls.__name__}"


def wrong_type(what: str, expected: str, value: object) -> InvalidRequestError:
    """Return the error for an argument of a wrong type."""
    return InvalidRequestError(f"{what}: expected {expected}, not {_kind(value)}")


def check_text(what: str, value: object) -> None:
    """Refuse anything but text."""
    if not isinstance(value, str):
        raise wrong_type(what, "text", value)


def check_whole_number(what: str, value: object) -> None:
    """Refuse anything but an integer; True and False are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(what, "a whole number", value)
