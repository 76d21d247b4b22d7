"""Compare with PyTorch, transformers and open_clip: `python -m parity [--remake]`.

Everything is compared live, and the golden files that the tests read are compared with what the reference
programs give now. With `--remake` those files are written again first.
"""

import argparse
import math

from rich.console import Console
from rich.table import Table

from parity import (
    golden,
    host_cases,
    preprocess_cases,
    program_cases,
    size_cases,
    text_cases,
    torch_file_cases,
    tower_cases,
)

Results = dict[str, tuple[float, float]]


def main() -> int:
    """Run every comparison, print a table and return 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m parity", description=__doc__)
    parser.add_argument("--remake", action="store_true", help="write the golden files again")
    parser.add_argument("--only", default="", metavar="TEXT", help="show only names that hold this text")
    options = parser.parse_args()
    if options.remake:
        golden.remake()
    results = {name: result for name, result in compare().items() if options.only in name}
    show(results)
    return int(not results or any(not holds(result) for result in results.values()))


def compare() -> Results:
    """Return (error, limit) by name."""
    return {
        **preprocess_cases.check_live(),
        **text_cases.check_live(),
        **tower_cases.check_live(),
        **size_cases.check_live(),
        **torch_file_cases.check_live(),
        **host_cases.check_live(),
        **program_cases.check_live(),
        **golden.check(),
    }


def holds(result: tuple[float, float]) -> bool:
    """Whether an error is within its limit; one that is not a number is not."""
    error, limit = result
    return math.isfinite(error) and error <= limit


def show(results: Results) -> None:
    """Print the table, failures last so that they are seen."""
    table = Table("name", "error", "limit", "")
    for name, result in sorted(results.items(), key=lambda item: not holds(item[1])):
        mark = "ok" if holds(result) else "[red]FAIL[/red]"
        table.add_row(name, f"{result[0]:.2e}", f"{result[1]:.2e}", mark)
    console = Console(width=None if Console().is_terminal else 110)
    console.print(table)
    failed = sum(not holds(result) for result in results.values())
    console.print(f"{len(results)} comparisons, {failed} failed")


if __name__ == "__main__":
    raise SystemExit(main())
