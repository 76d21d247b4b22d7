"""What a run shows and writes while it goes: a progress line, metrics, previews, checkpoints, warnings."""

import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from wordlight.train.checkpoint import Checkpoints
from wordlight.train.config import RunConfig
from wordlight.train.health import Record
from wordlight.train.loop import Update
from wordlight.train.pictures import finished
from wordlight.train.results import write_preview
from wordlight.train.run_file import json_line
from wordlight.train.state import RunState

PREVIEWS, LINES = 12, 10


class Reporter:
    """Takes a loop's updates; a context manager that owns `metrics.jsonl`, the progress line and the
    checkpoints.

    Attributes:
        steps: reported so far.
        first_step: seconds from the start to the end of the first step, nearly all of them spent compiling.
    """

    def __init__(self, folder: Path, config: RunConfig, console: Console, checkpoint_every: int) -> None:
        self._folder, self._config, self._console = folder, config, console
        self._checkpoint_every = checkpoint_every
        self._stack = ExitStack()
        self._warned = 0
        self._start = time.monotonic()
        self.steps = 0
        self.first_step = 0.0

    def __enter__(self) -> "Reporter":
        self._metrics = self._stack.enter_context(open(self._folder / "metrics.jsonl", "a", encoding="utf-8"))
        self._checkpoints = self._stack.enter_context(Checkpoints(self._folder))
        self._progress = self._stack.enter_context(_progress(self._console))
        self._task = self._progress.add_task("compiling", total=self._config.steps, figures="")
        self._start = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __call__(self, update: Update) -> None:
        """Report what happened since the last update."""
        seconds = time.monotonic() - self._start
        self.first_step = self.first_step or seconds
        done = range(update.records[0].step + 1, update.records[-1].step + 2)
        self.steps = done[-1]
        self._log(update.records, seconds)
        self._show(update.records[-1], seconds, _crossed(done, self._config.steps // LINES))
        self._warn(update.health.warnings)
        if done[0] == 1 or _crossed(done, self._config.steps // PREVIEWS):
            self._preview(update.state)
        if _crossed(done, self._checkpoint_every):
            self._checkpoints.save(update.state)

    def finish(self, state: RunState) -> None:
        """Save a last checkpoint and preview."""
        self._checkpoints.save(state)
        self._preview(state)

    def _preview(self, state: RunState) -> None:
        write_preview(self._folder / "preview.png", finished(state.field), self._config.cameras)

    def _log(self, records: list[Record], seconds: float) -> None:
        for record in records:
            self._metrics.write(json_line({**record._asdict(), "seconds": round(seconds, 3)}))
        self._metrics.flush()

    def _show(self, last: Record, seconds: float, line_due: bool) -> None:
        done = last.step + 1
        rate = last.step / max(seconds - self.first_step, 1e-9)
        figures = f"loss {last.loss:.3f}  similarity {last.similarity:.3f}  opacity {last.opacity:.2f}"
        speed = f"  {rate:.1f} steps/s" if last.step else ""
        self._progress.update(self._task, completed=done, description="training", figures=figures + speed)
        if line_due and not self._console.is_terminal:
            self._console.print(f"step {done} of {self._config.steps}  {figures}{speed}", highlight=False)

    def _warn(self, warnings: tuple[str, ...]) -> None:
        for line in warnings[self._warned :]:
            self._progress.console.print(f"[yellow]warning:[/] {line}")
        self._warned = len(warnings)


def _progress(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


def _crossed(steps: range, every: int) -> bool:
    """Return whether one of the steps is a multiple of `every`, where 0 counts as 1."""
    return any(step % max(every, 1) == 0 for step in steps)
