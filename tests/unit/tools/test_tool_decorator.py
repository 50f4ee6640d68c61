"""The decorator: what the model is told, what is accepted, what cannot be described."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from agents.context import RunContext
from agents.errors import ToolDefinitionError
from agents.tool_arguments import short_form
from agents.tool_decorator import tool
from agents.tools import RateLimit, Tool

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found] # what a test is about

    import agents.context as elsewhere

CTX = RunContext("r", "s", "a", 1)


class Order(BaseModel):
    sku: str
    pieces: Annotated[int, Field(ge=1)]


@tool(
    effect="idempotent",
    timeout_s=5,
    cost_usd=0.001,
    rate_limit=(2, 1.0),
    destination_args=("warehouse",),
    reads="untrusted",
)
async def stock(sku: str, ctx: RunContext, warehouse: Literal["tokyo", "oslo"] = "tokyo") -> int:
    """Count the pieces in stock.

    Only what lies on the shelf.

    Args:
        sku: The article's number,
            as on the label.
        ctx: Not for the model.
        warehouse (str): Where to count.

    Returns:
        Pieces.

    Raises:
        KeyError: No such article.
    """
    assert ctx.run == "r"
    return len(sku) + len(warehouse)


@tool
def plain(json: int, schema: str = "x", *, orders: list[Order] | None = None) -> str:
    return f"{json} {schema} {orders}"


def accept(tools: Sequence[Tool]) -> list[str]:
    return [t.name for t in tools]


async def test_a_decorated_function_is_a_tool_and_can_still_be_called() -> None:
    pieces: int = await stock("ab", CTX)
    text: str = plain(1)
    assert (pieces, text) == (7, "1 x None")
    assert accept(tools=[stock, plain]) == ["stock", "plain"]
    assert await stock.call(stock.validate({"sku": "abc"}), CTX) == 8


def test_options_reach_the_tool() -> None:
    assert (stock.effect, stock.timeout_s, stock.cost_usd) == ("idempotent", 5, 0.001)
    assert stock.rate_limit == RateLimit(2, 1.0)
    assert (stock.destination_args, stock.reads) == (("warehouse",), "untrusted")
    assert stock.with_options(needs_approval=True).needs_approval


def test_the_schema_comes_from_annotations_and_docstring_without_the_context() -> None:
    assert stock.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["sku"],
        "properties": {
            "sku": {"type": "string", "description": "The article's number, as on the label."},
            "warehouse": {
                "type": "string",
                "enum": ["tokyo", "oslo"],
                "default": "tokyo",
                "description": "Where to count.",
            },
        },
    }
    assert stock.description == (
        "Count the pieces in stock.\n\nOnly what lies on the shelf.\nReturns: Pieces."
    )
    assert short_form(stock.parameters) == "sku: string, warehouse?: 'tokyo' | 'oslo'"
    assert short_form(plain.parameters) == (
        "json: integer, schema?: string, orders?: array of Order | null"
    )


def test_a_tool_without_arguments_has_an_empty_schema() -> None:
    @tool
    def ping() -> str:
        return "pong"

    assert ping.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert ping.validate({}) == {}
    with pytest.raises(ValueError, match="unknown argument 'x'; valid arguments: none"):
        ping.validate({"x": 1})


def test_values_are_converted_where_the_meaning_is_plain() -> None:
    valid = plain.validate({"json": "12", "schema": 7, "orders": [{"sku": "1", "pieces": "3"}]})
    assert valid == {"json": 12, "schema": "7", "orders": [Order(sku="1", pieces=3)]}
    assert plain.validate({"json": 12.0}) == {"json": 12}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "missing argument 'json'"),
        ({"json": "many"}, "argument 'json': Input should be a valid integer.* not 'many'"),
        (
            {"json": 1, "schemas": ""},
            r"unknown argument 'schemas' \(did you mean 'schema'\?\); valid",
        ),
        ({"json": 1, "a0": 2}, "unknown argument 'a0'; valid arguments: json, schema, orders"),
        ({"json": 1, "orders": [{"sku": "a", "pieces": 0}]}, "argument 'orders.0.pieces': Input"),
        ({"json": "x" * 500}, "not 'x{79}…$"),
        ({"x": 1}, "missing argument 'json'; unknown argument 'x'"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        plain.validate(arguments)


def test_a_context_imported_for_type_checkers_only_is_recognised() -> None:
    @tool
    def whoami(a: int, ctx: elsewhere.RunContext | None = None) -> str:
        return str(ctx)

    assert list(whoami.parameters["properties"]) == ["a"]


def test_types_defined_inside_a_function_are_found() -> None:
    class Local(BaseModel):
        n: int

    @tool
    def use(it: Local) -> int:
        return it.n

    assert use(use.validate({"it": {"n": "4"}})["it"]) == 4


async def test_a_method_can_be_a_tool() -> None:
    class Shop:
        def price(self, sku: str) -> int:
            """Tell the price."""
            return len(sku)

    price = tool(Shop().price)
    assert (price.name, price.description) == ("price", "Tell the price.")
    assert await price.call({"sku": "abc"}, CTX) == 3


def _untyped(a) -> int:  # type: ignore[no-untyped-def] # what the test is about
    return int(a)


def _many(*names: str) -> None: ...


def _any(**names: str) -> None: ...


def _positional(a: int, /) -> None: ...


def _unknown(a: Missing) -> None: ...


def _callback(f: Callable[[], None]) -> None: ...


def _twice(a: RunContext, b: RunContext) -> None: ...


def _stream() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_untyped, "parameter 'a' of tool '_untyped' has no type: write 'a: str'"),
        (_many, "parameter 'names' of tool '_many' .* name each one"),
        (_any, "parameter 'names' of tool '_any' .* name each one"),
        (_positional, "remove the '/'"),
        (_unknown, "'Missing' is not defined: import the type at run time"),
        (_callback, "tool '_callback': a parameter's type has no JSON form"),
        (_twice, "takes two RunContexts"),
        (_stream, "yields: return a list"),
        (Order, "is not a function"),
    ],
)
def test_a_signature_that_cannot_be_described_says_what_to_change(
    function: Callable[..., Any], told: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=told):
        tool(function)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "a b"}, "1 to 64 of"),
        ({"effect": "reconcilable"}, "need each other"),
        ({"timeout_s": 0}, "more than 0"),
        ({"rate_limit": (0, 1.0)}, "rate_limit"),
        ({"destination_args": ("skuu",)}, r"no parameter \(did you mean 'sku'\?\)"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, Any], told: str) -> None:
    def buy(sku: str) -> None: ...

    with pytest.raises(ToolDefinitionError, match=told):
        tool(**options)(buy)
