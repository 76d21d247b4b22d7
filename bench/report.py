"""Rows of the table: what was measured, as JSON and as Markdown."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

OURS = "Wordlight"
PACKAGES = ("jax", "jaxlib", "numpy", "torch", "transformers")


@dataclass(frozen=True)
class Row:
    """The same work by several routes.

    Attributes:
        number: where it stands in the table.
        title: what the work is.
        values: median of each route.
        unit: of the values.
        limit: what the hardware would need for the work's matrix products alone, in the same unit.
        failed: why a route did not run.
        notes: what else there is to know.
        ours: name of the route that the ratios refer to.
    """

    number: str
    title: str
    values: dict[str, float]
    unit: str = "s"
    limit: float | None = None
    failed: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    ours: str = OURS


def write(rows: Sequence[Row], results: Path, docs: Path, *, complete: bool = False) -> None:
    """Write the rows as JSON, and as a page; other rows that were measured here before stay.

    Args:
        rows: what is measured so far.
        results: the JSON file.
        docs: the page.
        complete: these are all rows of their numbers, so older ones of another title go.
    """
    rows = sorted([*_kept(rows, results, complete), *rows], key=lambda row: int(row.number))
    found = {"machine": machine(), "versions": versions(), "rows": [asdict(row) for row in rows]}
    results.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    docs.write_text(page(rows), encoding="utf-8")


def _kept(rows: Sequence[Row], results: Path, complete: bool) -> list[Row]:
    """Return the rows of an earlier run that this one did not measure, if its machine and versions were
    these."""
    if not results.is_file():
        return []
    found = json.loads(results.read_text(encoding="utf-8"))
    if (found["machine"], found["versions"]) != (machine(), versions()):
        return []
    older = [read_row(row) for row in found["rows"]]
    if complete:
        return [row for row in older if row.number not in {new.number for new in rows}]
    return [row for row in older if (row.number, row.title) not in {(new.number, new.title) for new in rows}]


def read_row(found: dict[str, Any]) -> Row:
    """Return a row from its JSON."""
    failed = tuple((name, why) for name, why in found["failed"])
    return Row(**found | {"failed": failed, "notes": tuple(found["notes"])})


def page(rows: Sequence[Row]) -> str:
    """Return the page of the docs."""
    packages = ", ".join(f"{name} {number}" for name, number in versions().items())
    return f"""# Speed

`make bench` makes this table. Where Wordlight stands beside others, the routes take turns in one run, A B C A
B C, each in a process of its own (row 5 in one process; rows 7 and 8, where memory counts, one after
another), and the figure is the median. The ratio is that route's to the row's first: above 1, Wordlight needs
less. The limit is what the work's matrix products alone would take at the rate that a product of large square
matrices reached in the same turns. Whole runs and fits are done once. In rows 1 and 2 Wordlight runs with
[memory kept between steps](conventions.md#memory-between-steps) for eight images and without for one, as
advised there, and beside it the other way; in row 6 with a device for each core; in row 8 [what compiling
leaves is given back](conventions.md#memory-of-a-large-checkpoint), and beside it not. What was tried is in
[the notes](../bench/NOTES.md).

Machine: {machine()}. Versions: {packages}; the Flax classes and torchax run with
transformers 4.57.6 and torch 2.12.1.

| row | work | route | median | ratio |
|---|---|---|---|---|
{chr(10).join(line for row in rows for line in lines(row))}
"""


def lines(row: Row) -> list[str]:
    """Return a row's lines of the Markdown table."""
    ours = row.values.get(row.ours)
    found = []
    for index, (name, value) in enumerate(row.values.items()):
        head = f"{row.number} | {row.title}" if index == 0 else " | "
        ratio = f"{value / ours:.2f}" if ours else ""
        found.append(f"| {head} | {name} | {shown(value)} {row.unit} | {ratio} |")
    if row.limit is not None and ours:
        found.append(f"| | | limit | {shown(row.limit)} {row.unit} | {row.limit / ours:.2f} |")
    found += [f"| | | {name} | did not run: {why} | |" for name, why in row.failed]
    return found + [f"| | {note} | | | |" for note in row.notes]


def shown(value: float) -> str:
    """Return a number with three digits that count."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def machine() -> str:
    """Return what ran it, in words."""
    device = jax.devices()[0].device_kind
    return f"{platform.machine()}, {jax.device_count()} JAX device ({device}), {cores()} cores"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def versions() -> dict[str, str]:
    """Return the versions of the packages that matter, of those that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
