"""The calculator: what it reads, and what it refuses by name."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.toolbox.calculator import LONGEST_EXPRESSION, calculate, calculator


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("12 * (3 + 7)", 120),
        ("１２　×　（３＋７）", 120),
        ("7 ÷ 2", 3.5),
        ("10 / 2", 5),
        ("2^10", 1024),
        ("2**-1", 0.5),
        ("−3 − 4 =", -7),
        ("0.1 + 0.2", 0.3),
        ("1,234,567 + 1", 1_234_568),
        ("max(1,234)", 234),
        ("15% * 200", 30),
        ("17 % 5", 2),
        ("17 // 5", 3),
        ("round(sqrt(2), 3)", 1.414),
        ("1e3 + floor(pi)", 1003),
        ("2 * -e", -5.43656365691809),
    ],
)
def test_arithmetic_is_worked_out(expression: str, value: float) -> None:
    result = calculate(expression)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("14:25:07", "'14:25:07' is not arithmetic: it holds ':'"),
        ("", "is empty"),
        (" = ", "is empty"),
        ("1 +", "'1 \\+' is not arithmetic"),
        ("1, 2", "is not arithmetic"),
        ("1 if 2 else 3", "'else' is not known"),
        ("sqr(2)", r"'sqr' is not known \(did you mean 'sqrt'\?\); known are: abs, ceil"),
        ("__import__('os')", "is not arithmetic: it holds"),
        ("().__class__", "is not arithmetic"),
        ("pi.real", "is not arithmetic"),
        ("sqrt", "no value that is a real number"),
        ("1j", "no value that is a real number"),
        ("(-8) ** 0.5", "no value that is a real number"),
        ("1 / 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("sqrt(-1)", "cannot be worked out: "),
        ("round(1, 2, 3)", "cannot be worked out"),
        ("9 ** 9 ** 9", "too large"),
        ("9.0 ** 9999", "too large"),
        ("1e308 * 10", "too large"),
        ("2²", "'²' is not read: write a power as"),
        ("2½", "'½' is not read"),
        ("(" * 400, "is not arithmetic"),
        ("-" * 499 + "1", "is not arithmetic"),
        ("1" * (LONGEST_EXPRESSION + 1), "at most 500"),
        ("**".join(["99"] * 100), "too large"),
        ("*".join(["(99**999)"] * 40), "too large"),
    ],
)
def test_what_is_not_arithmetic_is_refused_by_name_and_at_once(expression: str, told: str) -> None:
    began = time.perf_counter()
    with pytest.raises(ValueError, match=told):
        calculate(expression)
    assert time.perf_counter() - began < 1


@given(st.text(max_size=40) | st.text("0123456789+-*/%^().,e× ÷", max_size=40))
def test_any_text_gives_a_number_or_a_value_error(expression: str) -> None:
    with suppress(ValueError):
        assert isinstance(calculate(expression), int | float)


async def test_the_tool_calls_it() -> None:
    assert await calculator("2 + 3") == 5
