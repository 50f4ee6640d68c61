"""What a final answer must be: text, JSON that fits a schema, or a pydantic model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from agents.assignment import Assignment
from agents.errors import InvalidOutput
from agents.outcome import Completed

_FENCED = re.compile(r"```(?:json|JSON)?\s*\n?(.*?)```", re.DOTALL)
_SHOWN_ERRORS = 5


class OutputType(Protocol):
    """How the final answer's text becomes the outcome's JSON value."""

    @property
    def schema(self) -> dict[str, Any] | None:
        """JSON Schema for the provider and the prompt; None for free text."""

    def parse(self, text: str, assignment: Assignment) -> Any:
        """Return the value.

        Raises:
            InvalidOutput: With a message for the model that says what to change.
        """

    def complete(self, value: Any, assignment: Assignment) -> Completed:
        """Return the outcome for a value; the loop adds findings, usage and stop reason."""

    def give_up(self, text: str, assignment: Assignment, error: str) -> Completed | None:
        """Return a degraded outcome when the repair failed too, or None to fail."""


class _Plain:
    """Completes with the JSON value itself and never degrades."""

    def complete(self, value: Any, assignment: Assignment) -> Completed:
        return Completed(value)

    def give_up(self, text: str, assignment: Assignment, error: str) -> Completed | None:
        return None


class TextOutput(_Plain):
    """Any text that is not empty."""

    schema: dict[str, Any] | None = None

    def parse(self, text: str, assignment: Assignment) -> Any:
        """Return the stripped text."""
        if not text.strip():
            raise InvalidOutput("The answer is empty. Give a final answer.")
        return text.strip()


def read_json(text: str) -> Any:
    """Return the JSON value in a text: bare, in a code fence, or between other words.

    Raises:
        InvalidOutput: There is none.
    """
    for candidate in (text, *(m[1] for m in _FENCED.finditer(text))):
        try:
            return json.loads(candidate.strip())
        except ValueError:
            continue
    starts = [i for i in (text.find("{"), text.find("[")) if i >= 0]
    if starts:
        try:
            return json.JSONDecoder().raw_decode(text, min(starts))[0]
        except ValueError as exc:
            raise InvalidOutput(f"The answer is not valid JSON: {exc}.") from exc
    raise InvalidOutput("The answer is not JSON. Answer with one JSON value and nothing else.")


class SchemaOutput(_Plain):
    """JSON that fits a JSON Schema.

    Args:
        schema: JSON Schema, draft 2020-12 unless it names another.

    Raises:
        ValueError: The schema itself is not valid.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema: dict[str, Any] | None = schema
        self._errors = _validator(schema)

    def parse(self, text: str, assignment: Assignment) -> Any:
        """Return the JSON value."""
        value = read_json(text)
        errors = self._errors(value)
        if errors:
            raise InvalidOutput("The answer does not fit the schema: " + "; ".join(errors))
        return value


def _validator(schema: dict[str, Any]) -> Callable[[Any], list[str]]:
    # jsonschema costs 0.1 s to import; most pipelines have no schema of this kind.
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except SchemaError as exc:
        raise ValueError(f"the output schema is not valid: {exc.message}") from exc
    validator = kind(schema)

    def errors(value: Any) -> list[str]:
        found = sorted(validator.iter_errors(value), key=lambda e: e.json_path)
        return [f"{e.json_path}: {e.message}" for e in found[:_SHOWN_ERRORS]]

    return errors


class ModelOutput(_Plain):
    """JSON that a pydantic model accepts; dependents receive the model's JSON form."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model
        self.schema: dict[str, Any] | None = model.model_json_schema()

    def parse(self, text: str, assignment: Assignment) -> Any:
        """Return the JSON value of the validated model."""
        try:
            return self._model.model_validate(read_json(text)).model_dump(mode="json")
        except ValidationError as exc:
            wrong = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or '(whole)'}: {e['msg']}"
                for e in exc.errors(include_url=False)[:_SHOWN_ERRORS]
            )
            raise InvalidOutput(f"The answer does not fit {self._model.__name__}: {wrong}") from exc
