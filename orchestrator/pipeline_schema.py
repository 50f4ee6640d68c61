"""The JSON Schema of pipeline files, for editors."""

from __future__ import annotations

from typing import Any

from orchestrator.settings import PipelineSettings


def pipeline_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12), each key with its description.

    Numbers and booleans may also be written as ``${VAR}``, which editors must not underline.
    """
    schema = PipelineSettings.model_json_schema()
    for section in (schema, *schema["$defs"].values()):
        for name, field in section.get("properties", {}).items():
            field.pop("title", None)
            section["properties"][name] = _with_variables(field)
    schema["title"] = "Cadenza pipeline"
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _with_variables(field: dict[str, Any]) -> dict[str, Any]:
    kinds = field.get("anyOf", [field])
    if not any(kind.get("type") in ("integer", "number", "boolean") for kind in kinds):
        return field
    about = {key: field.pop(key) for key in ("description", "default") if key in field}
    return about | {"anyOf": [*kinds, {"type": "string", "pattern": r"\$\{"}]}
