"""`wordlight dream`: from a prompt to an object."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from wordlight.errors import WordlightError
from wordlight.train.config import PresetName, RunConfig
from wordlight.train.presets import PRESETS, find_preset

if TYPE_CHECKING:
    from wordlight.train.dream import Summary

_PRESET_HELP = "How much work to do. " + " ".join(f"{p.name}: {p.description}." for p in PRESETS)

_FromPreset = Annotated[
    int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: the preset's)")
]


@dataclass(frozen=True)
class Dream:
    """Make a 3D object from words.

    Writes a folder with turntable.mp4, sheet.png (views all round, colour and depth), mesh.glb, preview.png,
    metrics.jsonl, run.json and checkpoints/. Ctrl-C ends the training early, writes what there is, and exits
    with 130; a second one abandons the results.

    Attributes:
        prompt: What the object should be, for example "a yellow bulldozer".
        output: Folder of the results. By default runs/, with a name made from the prompt and the options.
        model: The guides, which look at every picture together: names of models in this package, folders
            with a checkpoint, or ids on the Hugging Face Hub. demo and demo-resnet know a small world of 24
            kinds of objects in 10 colours, and need no network.
        preset: How much work to do.
        steps: Optimiser steps.
        views: Pictures a step.
        size: Side of the pictures in pixels, 16 to 2048.
        samples: Field evaluations per ray.
        seed: Of everything random. The same seed on the same machine gives the same object.
        negatives: Texts that the object should not match. demo pushes away from all other captions of its
            world as well.
        sides: Tell the guides from which side they look, as in "a red car, side view", if they can read it.
            Without, an object tends to show its most telling side all round.
        checkpoint_every: Steps between checkpoints; the last state is always saved.
        overwrite: Replace the files of the run that the folder holds.
    """

    prompt: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PROMPT")]
    output: Annotated[str | None, tyro.conf.arg(aliases=["-o"], metavar="DIR", help_behavior_hint="")] = None
    model: tuple[str, ...] = RunConfig("").models
    preset: Annotated[PresetName, tyro.conf.arg(help=_PRESET_HELP)] = "default"
    steps: _FromPreset = None
    views: _FromPreset = None
    size: _FromPreset = None
    samples: _FromPreset = None
    seed: int = 0
    negatives: tuple[str, ...] = ()
    sides: bool = True
    checkpoint_every: int = 200
    overwrite: tyro.conf.FlagCreatePairsOff[bool] = False

    def config(self) -> RunConfig:
        """Return the run that the options describe."""
        negatives = self.negatives or None
        base = RunConfig(
            self.prompt, models=self.model, negatives=negatives, seed=self.seed, sides=self.sides
        )
        config = find_preset(self.preset).apply(base)
        steps = config.steps if self.steps is None else self.steps
        views = config.views if self.views is None else self.views
        size = config.cameras.size if self.size is None else self.size
        samples = config.cameras.samples if self.samples is None else self.samples
        cameras = replace(config.cameras, size=size, samples=samples)
        return replace(config, steps=steps, views=views, cameras=cameras)

    def folder(self) -> Path | None:
        """Return the folder of the results that was named, if any.

        Raises:
            WordlightError: its name is empty.
        """
        if self.output is None:
            return None
        if not self.output.strip():
            raise WordlightError(
                f"The folder {self.output!r} given with -o has no name. An unset variable is the usual "
                "cause. Name a folder, or leave -o out to get one under runs/."
            )
        return Path(self.output)

    def run(self) -> int:
        """Make the object and print where it lies."""
        from wordlight.train.dream import dream

        folder, summary = dream(
            self.config(),
            output=self.folder(),
            overwrite=self.overwrite,
            checkpoint_every=self.checkpoint_every,
        )
        show(folder, summary)
        return 130 if summary.status == "interrupted" else 0


def show(folder: Path, summary: "Summary") -> None:
    """Print what was written, how well the guide knows it, and what went wrong."""
    from rich.console import Console

    console = Console(highlight=False)
    seconds = ", ".join(f"{name} {value:.0f} s" for name, value in summary.seconds.items())
    scores = ", ".join(f"{name.replace('_', ' ')} {value:.3f}" for name, value in summary.scores.items())
    console.print(f"{summary.status} after {summary.steps} steps ({seconds})", markup=False)
    console.print(f"held-out views, as the guide sees them: {scores}", markup=False)
    if summary.skipped_steps:
        console.print(f"{summary.skipped_steps} steps were skipped: they were not finite", markup=False)
    for line in summary.warnings:
        console.print(f"warning: {line}", markup=False)
    for path in sorted(folder.iterdir()):
        console.print(f"  {path}{'/' if path.is_dir() else ''}", markup=False, soft_wrap=True)
