"""`wordlight evaluate`: what independent judges see in the results of runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from rich.table import Table

    from wordlight.evaluate import Ranking, RunJudgement


@dataclass(frozen=True)
class Evaluate:
    """Measure the R-Precision of runs with two judges that took no part in them.

    From views that training never drew, each judge ranks the run's caption among all 240 captions of the
    embedded world (prompts without a colour: among its 24 kinds), and once more, with the texture removed,
    among the 24 kinds. A run counts when both judges rank its caption first.

    Attributes:
        runs: Folders that `wordlight dream` wrote.
        json: Also write all rankings and figures to this file.
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN ...")]
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None

    def run(self) -> int:
        """Judge the runs, print two tables, and write the file that was asked for."""
        from rich.console import Console

        from wordlight.evaluate import as_json, evaluate
        from wordlight.train.run_file import write_json

        results = evaluate(self.runs)
        if self.json is not None:
            write_json(self.json, as_json(results))
        console = Console()
        console.print(rankings_table(results))
        console.print(precision_table(results))
        return 0


def rankings_table(results: "Sequence[RunJudgement]") -> "Table":
    """Return a row for each run: what each judge ranked first, and the rank of the true caption where that is
    another."""
    from rich.markup import escape
    from rich.table import Table

    judges = list(results[0].judges)
    table = Table("caption", *(f"{j}, {what}" for j in judges for what in ("colour", "geometry")), "both")
    for result in results:
        cells = [_cell(r) for j in judges for r in (result.judges[j].colour, result.judges[j].geometry)]
        table.add_row(escape(result.caption), *cells, "right" if result.colour_right else "wrong")
    return table


def _cell(ranking: "Ranking") -> str:
    return "right" if ranking.right else f"{ranking.top} (true: {ranking.rank} of {ranking.captions})"


def precision_table(results: "Sequence[RunJudgement]") -> "Table":
    """Return each judge's precision and that of both, with standard errors."""
    from rich.table import Table

    from wordlight.evaluate import precisions

    table = Table("R-Precision", "colour", "geometry", title=f"{len(results)} runs")
    for judge, row in precisions(results).items():
        table.add_row(judge, *(f"{p.value:.1%} ± {p.standard_error:.1%}" for p in row.values()))
    return table
