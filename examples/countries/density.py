"""The type of the analyst's answer: a table whose figures must agree with each other."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, Field, model_validator


class Place(BaseModel):
    """A country or a region."""

    name: str
    population: int = Field(gt=0)
    land_km2: float = Field(gt=0)
    per_km2: float = Field(description="People per square kilometre of land, one decimal.")

    @model_validator(mode="after")
    def _figures_agree(self) -> Self:
        computed = self.population / self.land_km2
        if abs(computed - self.per_km2) > 0.1:
            raise ValueError(f"{self.name} has {computed:.1f} people per km2, not {self.per_km2}")
        return self


class Density(BaseModel):
    """Places, the most densely populated first."""

    places: list[Place] = Field(min_length=1)

    @model_validator(mode="after")
    def _densest_first(self) -> Self:
        found = [place.per_km2 for place in self.places]
        if found != sorted(found, reverse=True):
            raise ValueError("the places are not in order: begin with the densest")
        return self
