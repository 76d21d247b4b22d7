"""Tables on the terminal, and through a pipe."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

UNLIMITED = 10_000
LEAST_COLUMN = 7  # four letters and the frame


def print_whole(table: "Table") -> None:
    """Print a table whose first column is never cut or folded, so that ids and paths can be copied.

    A terminal that is too narrow folds the other columns; through a pipe none is folded.
    """
    from rich.cells import cell_len
    from rich.console import Console

    console = Console()
    for column in table.columns:
        column.overflow = "fold"
    first = table.columns[0]
    first.no_wrap = True
    first.min_width = max(map(cell_len, (str(cell) for cell in first.cells)), default=0)
    least = first.min_width + 4 + LEAST_COLUMN * (len(table.columns) - 1)
    console.width = max(console.width, least) if console.is_terminal else UNLIMITED
    console.print(table)
