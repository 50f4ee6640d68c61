"""Makes data/countries.csv from the JSON files of The World Factbook.

Usage: python make_data.py FOLDER, where FOLDER holds one folder a region; see data/SOURCE.md.
"""

from __future__ import annotations

import csv
import html
import json
import re
import sys
from pathlib import Path
from typing import Any

SMALLEST_POPULATION = 1_000_000
COLUMNS = (
    "country",
    "capital",
    "region",
    "population",
    "land_km2",
    "water_km2",
    "coastline_km",
    "median_age",
    "life_expectancy",
    "urban_percent",
    "population_year",
)
REGIONS = {
    "africa": "Africa",
    "australia-oceania": "Australia and Oceania",
    "central-america-n-caribbean": "Central America and the Caribbean",
    "central-asia": "Central Asia",
    "east-n-southeast-asia": "East and Southeast Asia",
    "europe": "Europe",
    "middle-east": "Middle East",
    "north-america": "North America",
    "south-america": "South America",
    "south-asia": "South Asia",
}
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_MILLION = re.compile(r"(\d+(?:\.\d+)?) million")


def text_at(entry: dict[str, Any], *path: str) -> str:
    """Return the text at a path, keys compared without blanks; empty when it is not there."""
    value: Any = entry
    for part in path:
        value = {key.strip(): item for key, item in value.items()}.get(part, {})
    return html.unescape(str(value.get("text", "")))


def number(text: str) -> str:
    """Return the first number in a text, without separators; empty when there is none."""
    million = _MILLION.match(text)
    if million is not None:
        return str(round(float(million[1]) * 1_000_000))
    found = _NUMBER.search(text)
    return "" if found is None else found[0].replace(",", "")


def name(government: dict[str, Any]) -> str:
    """Return a country's short name, or its long one where the short one is none or unclear."""
    short = text_at(government, "Country name", "conventional short form")
    if short and short != "none" and "(" not in short and short not in {"DRC", "The Dominican"}:
        return short
    return text_at(government, "Country name", "conventional long form")


def row(entry: dict[str, Any], region: str) -> dict[str, str] | None:
    """Return one row, or None for dependencies, unions, and small or incomplete entries."""
    people, land = entry.get("People and Society", {}), entry.get("Geography", {})
    government = entry.get("Government", {})
    counted = text_at(people, "Population", "total")
    values = (
        name(government),
        re.split(r" in |[;(]", text_at(government, "Capital", "name"))[0].strip(),
        region,
        number(counted),
        number(text_at(land, "Area", "land")),
        number(text_at(land, "Area", "water")),
        number(text_at(land, "Coastline")),
        number(text_at(people, "Median age", "total")),
        number(text_at(people, "Life expectancy at birth", "total population")),
        number(text_at(people, "Urbanization", "urban population")),
        number(counted.partition("(")[2]),
    )
    if "Dependency status" in government or not all(values):
        return None
    found = dict(zip(COLUMNS, values, strict=True))
    return found if int(found["population"]) >= SMALLEST_POPULATION else None


def main(folder: Path) -> None:
    """Write the table beside this file, sorted by country."""
    rows = [
        found
        for part, region in REGIONS.items()
        for path in sorted((folder / part).glob("*.json"))
        if (found := row(json.loads(path.read_text("utf-8")), region)) is not None
    ]
    target = Path(__file__).with_name("data") / "countries.csv"
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda found: found["country"]))
    sys.stdout.write(f"{len(rows)} countries in {target}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
