"""What the benchmarks share: figures with their reference, as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        name: What was measured.
        ours: The value.
        unit: Its unit.
        reference: The value of what it is compared with, measured in the same run, or None.
        than: What that is.
        target: The ratio that is aimed at, with its direction, for people; empty for none.
    """

    name: str
    ours: float
    unit: str
    reference: float | None = None
    than: str = ""
    target: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the reference."""
        return None if not self.reference else self.ours / self.reference


@dataclass(slots=True)
class Table:
    """Figures of one benchmark."""

    title: str
    figures: list[Figure] = field(default_factory=list)

    def add(self, figure: Figure) -> None:
        """Add a figure, and show it."""
        self.figures.append(figure)
        print(f"  … {figure.name}: {figure.ours:,.4g} {figure.unit}", file=sys.stderr, flush=True)

    def show(self) -> None:
        """Print the table; with ``BENCH_JSON=FILE`` write it there too."""
        rows = [("", "ours", "reference", "", "ratio", "target")]
        for f in self.figures:
            reference = "" if f.reference is None else f"{f.reference:,.4g} {f.unit}"
            ratio = "" if f.ratio is None else f"{f.ratio:.2f}"
            rows.append((f.name, f"{f.ours:,.4g} {f.unit}", reference, f.than, ratio, f.target))
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        print(f"\n{self.title}")
        for row in rows:
            print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)))
        print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}")
        if target := os.environ.get("BENCH_JSON"):
            told = [{**asdict(f), "ratio": f.ratio} for f in self.figures]
            Path(target).write_text(json.dumps({"title": self.title, "figures": told}, indent=1))


def percentile(values: list[float], share: float) -> float:
    """Return the value below which a share of them lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
