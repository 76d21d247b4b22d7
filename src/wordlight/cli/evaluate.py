"""`wordlight evaluate`: what independent judges see in the results of runs."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from wordlight.errors import WordlightError

if TYPE_CHECKING:
    from rich.table import Table

    from wordlight.evaluate import Ranking, RunJudgement


@dataclass(frozen=True)
class Evaluate:
    """Measure the R-Precision of runs with two judges that took no part in them.

    From views that training never drew, each judge ranks the run's caption among all 240 captions of the
    embedded world (prompts without a colour: among its 24 kinds), and once more, with the texture removed,
    among the 24 kinds. A run counts when both judges rank its caption first. Runs that did not finish are
    judged by their latest checkpoint, and marked; folders that cannot be judged are left out and named.

    Attributes:
        runs: Folders that `wordlight dream` wrote.
        json: Also write all rankings and figures to this file.
    """

    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN ...")]
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None

    def run(self) -> int:
        """Judge the runs, print two tables, and write the file that was asked for."""
        from wordlight.cli.tables import print_whole
        from wordlight.evaluate import as_json, evaluate
        from wordlight.train.run_file import write_json

        if self.json is not None:
            check_writable(self.json)
        results = evaluate(self.runs, leave_out=_tell)
        print_whole(rankings_table(results))
        print_whole(precision_table(results))
        if self.json is not None:
            write_json(self.json, as_json(results))
        return 0


def check_writable(path: Path) -> None:
    """Refuse a path that no file can be written to; folders that are missing would be made.

    Raises:
        WordlightError: it is a folder, lies inside a file, or may not be written.
    """
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if path.is_dir():
        reason = "it is a folder"
    elif not folder.is_dir():
        reason = f"{folder} is a file"
    elif not all(os.access(place, os.W_OK) for place in (folder, path) if place.exists()):
        reason = "it is read-only, or not yours"
    else:
        return
    raise WordlightError(
        f"The file {path} cannot be written: {reason}. The path was probably cut short, or belongs to "
        "another user. Name a new file in a folder of yours, such as --json rankings.json."
    )


def _tell(folder: Path, error: Exception) -> None:
    print(f"wordlight: Left out {folder}: {error}", file=sys.stderr)


def rankings_table(results: "Sequence[RunJudgement]") -> "Table":
    """Return a row for each run: what each judge ranked first, and the rank of the true caption where that is
    another. Runs that did not finish are marked with the step that was judged."""
    from rich.markup import escape
    from rich.table import Table

    judges = list(results[0].judges)
    table = Table("caption", *(f"{j}, {what}" for j in judges for what in ("colour", "geometry")), "both")
    for result in results:
        cells = [_cell(r) for j in judges for r in (result.judges[j].colour, result.judges[j].geometry)]
        table.add_row(escape(_name(result)), *cells, "right" if result.colour_right else "wrong")
    return table


def _name(result: "RunJudgement") -> str:
    if result.finished:
        return result.caption
    return f"{result.caption} ({result.status}, step {result.step} of {result.steps})"


def _cell(ranking: "Ranking") -> str:
    return "right" if ranking.right else f"{ranking.top} (true: {ranking.rank} of {ranking.captions})"


def precision_table(results: "Sequence[RunJudgement]") -> "Table":
    """Return each judge's precision and that of both, with standard errors."""
    from rich.table import Table

    from wordlight.evaluate import precisions

    unfinished = sum(not result.finished for result in results)
    title = f"{len(results)} runs" + (f", {unfinished} of them unfinished" if unfinished else "")
    table = Table("R-Precision", "colour", "geometry", title=title)
    for judge, row in precisions(results).items():
        table.add_row(judge, *(f"{p.value:.1%} ± {p.standard_error:.1%}" for p in row.values()))
    return table
