"""What the pipeline of the typed example refers to: tools, a type of answer, and a function."""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import BaseModel

from cadenza import RunContext, ToolDenied, tool


class Warehouse(Protocol):
    """What the tools need of a database."""

    async def pieces(self, sku: str) -> int | None:
        """Return how many pieces of an article there are, or None."""


class Stock(BaseModel):
    """How many pieces of an article there are."""

    sku: str
    pieces: int


@tool(effect="idempotent", timeout_s=5, cost_usd=0.001)
async def stock(sku: str, ctx: RunContext) -> int:
    """Tell how many pieces of an article are in stock.

    Args:
        sku: The article's number.
    """
    warehouse: Warehouse = ctx.resources["db"]
    pieces = await warehouse.pieces(sku)
    if pieces is None:
        raise ToolDenied(f"there is no article {sku!r}")
    return pieces


@tool(effect="guarded", needs_approval=True, rate_limit=(10, 60.0))
def order(sku: str, pieces: int, ctx: RunContext) -> str:
    """Order an article.

    Args:
        sku: The article's number.
        pieces: How many.
    """
    return f"ordered {pieces} of {sku} under {ctx.idempotency_key[:4]}"


async def validate(inputs: dict[str, Any], ctx: RunContext) -> dict[str, bool]:
    """Report a shortage when there is little left."""
    found = Stock.model_validate(inputs["a"])
    note = await ctx.read_file("note.txt")
    if found.pieces < 10:
        ctx.report("shortage", {"sku": found.sku, "note": note.decode()})
    return {"enough": found.pieces >= 10}
