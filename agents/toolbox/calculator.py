"""The calculator tool: arithmetic from text, without ``eval``."""

from __future__ import annotations

import ast
import math
import operator
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from simpleeval import InvalidExpression, SimpleEval

from agents.tool_arguments import near
from agents.tool_decorator import tool

LONGEST_EXPRESSION = 500
MOST_BITS = 8_192

_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_FOREIGN = re.compile(r"[^0-9A-Za-z_.,+\-*/%()\s]")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_GROUPED = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?!\d)")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%(?!\s*[\w(.+-])")
_NODES = (ast.Expr, ast.Constant, ast.UnaryOp, ast.BinOp, ast.Call, ast.Name)
_NAMES = {"pi": math.pi, "e": math.e}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (abs, round, min, max, math.sqrt, math.floor, math.ceil, math.exp)},
    **{f.__name__: f for f in (math.log, math.log2, math.log10, math.sin, math.cos, math.tan)},
}


def _bounded(operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def bounded(a: Any, b: Any) -> Any:
        result = operate(a, b)
        if isinstance(result, int) and result.bit_length() > MOST_BITS:
            raise OverflowError
        return result

    return bounded


def _power(a: Any, b: Any) -> Any:
    # Refused before it is worked out: 9 ** 9 ** 9 has 369 million digits.
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() * abs(b) > MOST_BITS:
        raise OverflowError
    return a**b


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: _bounded(operator.add),
    ast.Sub: _bounded(operator.sub),
    ast.Mult: _bounded(operator.mul),
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def calculate(expression: str) -> int | float:
    """Return the value of an arithmetic expression.

    Args:
        expression: For example ``12 * (3 + 7)``; ``^`` is a power, ``15%`` is 0.15, ``1,200`` is
            1200, full-width characters count as their plain forms.

    Raises:
        ValueError: It is not arithmetic, or too large; the message names the fault.
    """
    text = _plain(expression)
    evaluator = SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names=_NAMES)
    evaluator.nodes = {node: run for node, run in evaluator.nodes.items() if node in _NODES}
    shown = expression if len(expression) <= 60 else f"{expression[:60]}…"
    try:
        value = evaluator.eval(text)
    except ZeroDivisionError:
        raise ValueError(f"{shown!r} divides by zero") from None
    except OverflowError:
        raise ValueError(f"{shown!r} is too large to work out") from None
    except (SyntaxError, InvalidExpression, RecursionError, MemoryError):
        raise ValueError(f"{shown!r} is not arithmetic") from None
    except (TypeError, ValueError) as exc:
        raise ValueError(f"{shown!r} cannot be worked out: {exc}") from None
    return _tidy(value, shown)


def _plain(expression: str) -> str:
    """Return the expression in ASCII, with the signs that Python reads."""
    if len(expression) > LONGEST_EXPRESSION:
        raise ValueError(
            f"the expression has {len(expression)} characters; at most {LONGEST_EXPRESSION} do"
        )
    for char in expression:
        # NFKC would make 2² into 22 and ½ into 1⁄2.
        if unicodedata.category(char) == "No":
            raise ValueError(f"{char!r} is not read: write a power as ^ and a fraction as 1/2")
    text = unicodedata.normalize("NFKC", expression).translate(_SIGNS).strip().removesuffix("=")
    if not text.strip():
        raise ValueError("the expression is empty")
    foreign = _FOREIGN.search(text)
    if foreign:
        raise ValueError(f"{expression[:60]!r} is not arithmetic: it holds {foreign[0]!r}")
    words = set(_WORD.findall(text))
    known = {*_FUNCTIONS, *_NAMES}
    for word in sorted(words - known):
        listed = ", ".join(sorted(known))
        raise ValueError(f"{word!r} is not known{near(word, known)}; known are: {listed}")
    if not words & _FUNCTIONS.keys():  # within max(1,234) the comma parts two arguments
        text = _GROUPED.sub(lambda m: m[0].replace(",", ""), text)
    return _PERCENT.sub(r"(\1/100)", text).strip()


def _tidy(value: Any, shown: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{shown!r} has no value that is a real number")
    if isinstance(value, int):
        return value
    if not math.isfinite(value):
        raise ValueError(f"{shown!r} is too large to work out")
    if value.is_integer() and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.15g}")  # 0.1 + 0.2 is 0.3 to whoever asks


@tool(timeout_s=5)
async def calculator(expression: str) -> int | float:
    """Work out an arithmetic expression: + - * / // % ^ ( ), sqrt, log, round, min, max, pi.

    Args:
        expression: For example 12 * (3 + 7). Numbers only, no units and no words.
    """
    return calculate(expression)
