"""What the sections of a pipeline file have in common."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, Strict

NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
REFERENCE = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
SECRET = r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"  # noqa: S105  # a pattern, not a secret

Name = Annotated[str, Field(pattern=NAME)]
Strings = Annotated[tuple[str, ...], Strict(False)]  # YAML gives lists
Count = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A mapping of the pipeline file: unknown keys and wrong types are errors."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, use_attribute_docstrings=True
    )


def secret_name(reference: str) -> str:
    """Return the variable that ``${VAR}`` names."""
    return re.sub(r"[${}]", "", reference)
