"""A whole run: from a configuration to a folder of results."""

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh
from rich.console import Console

from wordlight.clip.load import load
from wordlight.errors import WordlightError
from wordlight.guidance import members
from wordlight.train import run_file
from wordlight.train.checks import check_config, enough_memory
from wordlight.train.config import RunConfig
from wordlight.train.guide import RunGuide, make_guide
from wordlight.train.health import TrainingDivergedError
from wordlight.train.loop import Outcome, Status, interruptible, train
from wordlight.train.pictures import finished
from wordlight.train.reporter import Reporter
from wordlight.train.results import ResultConfig, held_out_scores, write_results
from wordlight.train.run_folder import check_folder, default_folder, own_folder
from wordlight.train.sharding import make_mesh


@dataclass
class Summary:
    """What `run.json` holds; filled in while the run goes on.

    Attributes:
        config: the whole configuration.
        loss: what the guide minimised, and `negatives`, how many texts it held the prompt against.
        devices: how many of them shared the views.
        status: `"running"` until training ends; then how it ended. `"failed"` where an error ended the run,
            `"interrupted"` as well where its results were abandoned.
        reason: of the error, else empty.
        steps: taken, with those that were skipped.
        skipped_steps: whose loss or gradient was not finite.
        condition: `"dissolved"` or `"filled"` where the object was so at the end, else empty.
        scores: see `held_out_scores`; by the guide itself, so no measure of what a person sees.
        seconds: spent in each part.
        warnings: a line each.
    """

    config: RunConfig
    loss: str
    negatives: int
    devices: int
    status: Status = "running"
    reason: str = ""
    steps: int = 0
    skipped_steps: int = 0
    condition: str = ""
    scores: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the entries of `run.json`, what matters most first."""
        entries = {name: value for name, value in vars(self).items() if name != "config"}
        seed_and_prompt = {"prompt": self.config.prompt, "seed": self.config.seed}
        return {
            **versions(),
            **seed_and_prompt,
            **entries,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "config": self.config,
        }


def versions() -> dict[str, str]:
    """Return the versions that a run's numbers depend on."""
    try:
        own = version("wordlight")
    except PackageNotFoundError:
        own = "not installed"
    return {"wordlight": own, "jax": jax.__version__, "python": platform.python_version()}


def dream(
    config: RunConfig,
    *,
    output: Path | None = None,
    overwrite: bool = False,
    checkpoint_every: int = 200,
    results: ResultConfig | None = None,
    console: Console | None = None,
) -> tuple[Path, Summary]:
    """Make an object from words, and write everything about it into a folder.

    Ctrl-C or SIGTERM ends the training early; what there is by then is written as usual, with the status
    `"interrupted"`. A first one while the results are written changes nothing, a second one abandons them.

    Args:
        config: the run.
        output: the folder; by default `runs/<prompt>-<hash>`.
        overwrite: replace the files of the run that the folder holds.
        checkpoint_every: steps between checkpoints; the last state is always saved.
        results: how the results are drawn.
        console: where progress is shown.

    Returns:
        The folder and what its `run.json` holds.

    Raises:
        WordlightError: the configuration, the model or the folder is refused, and nothing was written; or
            memory or the disk ran out, and what was written before is kept.
        KeyboardInterrupt: the results were abandoned.
        TrainingDivergedError: training ended early; results of the last good step were written.
    """
    check_config(config)
    _check_interval(checkpoint_every)
    folder = output or default_folder(config)
    check_folder(folder, overwrite=overwrite)
    start = time.monotonic()
    guide = make_guide([load(name) for name in config.models], config)
    first, _ = members(guide.guide)[0]
    mesh = make_mesh(config.views)
    summary = Summary(config, first.config.loss, len(first.negative_embeds), mesh.size)
    summary.seconds["load"] = time.monotonic() - start
    console = console or Console()
    with own_folder(folder, overwrite=overwrite), _recorded(folder, summary), enough_memory(config):
        console.print(f"{config.prompt!r} into {folder}", markup=False, highlight=False)
        reporter = Reporter(folder, config, console, checkpoint_every)
        with interruptible() as stop:
            outcome = _train(summary, guide, mesh, reporter, stop)
            _write(folder, summary)
            console.print(_writing(stopped=stop()), markup=False, highlight=False)
            _finish(folder, summary, outcome, guide, results or ResultConfig())
    if outcome.status == "diverged":
        raise TrainingDivergedError(
            f"Training ended at step {summary.steps}: {outcome.health.worst} steps in a row had a loss or a "
            "gradient that is not finite. Too high a learning rate, or damaged weights of the guide, is the "
            f"usual cause. The last good state is kept in {folder}; lower the learning rate, or try another "
            "seed or model."
        )
    return folder, summary


@contextmanager
def _recorded(folder: Path, summary: Summary) -> Iterator[None]:
    """Have `run.json` say that the run goes on, and how it ended where an exception ends it."""
    _write(folder, summary)
    try:
        yield
    except BaseException as error:
        summary.status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        summary.reason = f"{type(error).__name__}: {error}".rstrip(": ")
        with suppress(OSError):  # on a full disk
            _write(folder, summary)
        raise


def _train(
    summary: Summary, guide: RunGuide, mesh: Mesh, reporter: Reporter, stop: Callable[[], bool]
) -> Outcome:
    """Train, and take what the summary tells of it, as far as it came."""
    try:
        with _timed(summary, "train"), reporter:
            outcome = train(summary.config, guide, mesh=mesh, report=reporter, stop=stop)
            reporter.finish(outcome.state)
    finally:
        summary.steps = reporter.steps
    summary.seconds["compile"] = reporter.first_step
    summary.seconds["train"] -= reporter.first_step
    _take_in(summary, outcome)
    return outcome


def _writing(*, stopped: bool) -> str:
    return f"Writing the results (Ctrl-C {'again' if stopped else 'twice'} abandons them)"


def _check_interval(steps: int) -> None:
    if steps < 1:
        raise WordlightError(
            f"A checkpoint every {steps} steps was asked for. Zero is no way to turn checkpoints off: the "
            "last state is always saved. Give at least 1, or a number above the steps of the run."
        )


def _take_in(summary: Summary, outcome: Outcome) -> None:
    summary.status = outcome.status
    summary.steps = int(outcome.state.step)
    summary.skipped_steps = outcome.health.skipped
    summary.condition = outcome.health.condition
    summary.warnings += outcome.health.warnings


def _finish(folder: Path, summary: Summary, outcome: Outcome, guide: RunGuide, results: ResultConfig) -> None:
    """Write results and scores; `run.json` last, so that its scores tell that all others are there."""
    voxels, cameras = finished(outcome.state.field), summary.config.cameras
    with _timed(summary, "export"):
        summary.scores = held_out_scores(voxels, cameras, guide.guide)
        summary.warnings += write_results(folder, voxels, cameras, config=results)
    _write(folder, summary)


def _write(folder: Path, summary: Summary) -> None:
    run_file.write_json(folder / run_file.NAME, summary.as_json())


@contextmanager
def _timed(summary: Summary, part: str) -> Iterator[None]:
    start = time.monotonic()
    yield
    summary.seconds[part] = time.monotonic() - start
