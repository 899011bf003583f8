"""Arguments are checked against annotations: what fits passes, what does not is named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import pytest

from iceberg_pyspark.errors import InvalidRequestError
from iceberg_pyspark.spec.argument_types import checked, checked_methods


class Call(Protocol):
    def __call__(self, n: int) -> int: ...


class Shape(Protocol):
    size: int


Named: TypeAlias = Annotated[int | str, "a name or a number"]


@checked
def function(  # one parameter of each kind of annotation
    text: str = "",
    *names: str,
    number: int | None = None,
    ratio: float = 0.5,
    flag: bool = False,
    anything: Any = None,
    thing: object = None,
    choice: Literal["a", "b"] = "a",
    texts: Sequence[str] = (),
    numbers: Collection[int] = (),
    levels: tuple[str, ...] = (),
    pair: tuple[str, int] = ("", 0),
    paths: frozenset[str] = frozenset(),
    properties: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    rows: Collection[Mapping[str, str | None]] | None = None,
    call: Call | None = None,
    function: Callable[[], int] | None = None,
    shape: Shape | None = None,
    named: Named = 1,
    error: ValueError | None = None,
) -> None:
    """Accept these."""


FITS: dict[str, list[Any]] = {
    "text": ["", "x"],
    "number": [0, -1, None],
    "ratio": [1, 1.5],
    "flag": [True],
    "anything": [None, 1, object()],
    "thing": [None, 1, object()],
    "choice": ["a", "b"],
    "texts": [[], ["x"], ("x",)],
    "numbers": [[1], (1,), {1}, frozenset([1]), {1: 2}.keys()],
    "levels": [(), ("a", "b")],
    "pair": [("a", 1)],
    "paths": [frozenset(["x"])],
    "properties": [{}, {"a": "b"}, None],
    "options": [{"a": 1, "b": None}],
    "rows": [[{"a": "b", "c": None}], [], None],
    "call": [len, None],
    "function": [lambda: 1],
    "shape": [object(), None],
    "named": [1, "x"],
    "error": [ValueError(), UnicodeError()],
}
MISFITS: dict[str, list[tuple[Any, str]]] = {
    "text": [(None, "text, not None"), (b"x", "text, not bytes"), (1, "text, not int")],
    "number": [(True, "a whole number, not bool"), (1.0, "a whole number, not float")],
    "ratio": [(True, "a number, not bool"), ("1", "a number, not str")],
    "flag": [(1, "True or False, not int"), (None, "True or False, not None")],
    "choice": [("c", "one of 'a', 'b', not 'c'"), (["a"], "one of 'a', 'b', not list")],
    "texts": [
        ("x", "a list of texts, not str"),
        ([1], "a list of texts, not a list with int"),
        ({"x": 1}, "a list of texts, not dict"),
        ({"x"}, "a list of texts, not set"),
    ],
    "numbers": [(b"x", "a list of whole numbers, not bytes"), ([True], "not a list with bool")],
    "levels": [(["a"], "a tuple of texts, not list"), (("a", 1), "not a list with int")],
    "pair": [
        (("a",), "a tuple of 2 values, not tuple"),
        (("a", "b"), "a tuple of 2 values, not a tuple with str"),
    ],
    "paths": [(["x"], "a frozenset of texts, not list")],
    "properties": [
        ([], "a dict of texts, not list"),
        ({1: "a"}, "a dict of texts, not a dict with the key int"),
        ({"a": 1}, "a dict of texts, not a dict with int under 'a'"),
    ],
    "options": [({1: 1}, "a dict, not a dict with the key int")],
    "rows": [([{"a": 1}], "a list of dicts, not a list with a dict with int under 'a'")],
    "call": [(1, "a function, not int")],
    "function": [("f", "a function, not str")],
    "named": [(None, "a name or a number, not None")],
    "error": [(KeyError(), "a ValueError, not KeyError")],
}


@pytest.mark.parametrize("name", FITS)
def test_argument_of_the_annotated_type_is_accepted(name: str) -> None:
    for value in FITS[name]:
        function(**{name: value})


@pytest.mark.parametrize("name", MISFITS)
def test_argument_of_another_type_is_refused_by_name(name: str) -> None:
    for value, sentence in MISFITS[name]:
        with pytest.raises(InvalidRequestError) as refusal:
            function(**{name: value})
        assert str(refusal.value).startswith(f"function: {name}: expected ")
        assert str(refusal.value).endswith(sentence)


def test_positional_and_more_arguments_are_checked() -> None:
    function("x", "y", "z")
    with pytest.raises(InvalidRequestError, match="names: expected a list of texts"):
        function("x", "y", 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'txt'"):
        function(txt="x")  # type: ignore[call-arg]


def test_methods_that_a_class_defines_are_checked() -> None:
    @checked_methods
    class Thing:
        def name(self, name: str) -> str:
            return name

        def _inner(self, name: str) -> str:
            return name

    thing = Thing()
    assert thing.name("x") == "x"
    assert thing._inner(1) == 1  # type: ignore[arg-type, comparison-overlap]
    with pytest.raises(InvalidRequestError, match="name: name: expected text, not int"):
        thing.name(1)  # type: ignore[arg-type]
