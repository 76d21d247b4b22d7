"""Presets: how much work a run is worth."""

from dataclasses import dataclass, replace

from wordlight.train.config import PresetName, RunConfig


@dataclass(frozen=True)
class Preset:
    """Changes to a run's configuration, with what they are for; None keeps a value as it is.

    Attributes:
        name: what it is called on the command line.
        description: what to expect of it.
        steps: optimiser steps.
        views: images a step.
        size: side of the rendered square in pixels.
        samples: field evaluations per ray.
        resolutions: of the field's grids, coarse to fine.
    """

    name: PresetName
    description: str
    steps: int | None = None
    views: int | None = None
    size: int | None = None
    samples: int | None = None
    resolutions: tuple[int, ...] | None = None

    def apply(self, config: RunConfig) -> RunConfig:
        """Return the configuration with this preset's changes."""
        cameras = replace(config.cameras, **_given(size=self.size, samples=self.samples))
        grids = replace(config.field, **_given(resolutions=self.resolutions))
        return replace(config, cameras=cameras, field=grids, **_given(steps=self.steps, views=self.views))


PRESETS: tuple[Preset, ...] = (
    Preset("fast", "a first look: few steps on small pictures", steps=120, size=40, samples=32),
    Preset("default", "a recognisable object within three minutes on two cores"),
    Preset(
        "fine",
        "more steps, larger pictures and a finer grid; about ten times the work",
        steps=1200,
        size=96,
        samples=72,
        resolutions=(12, 24, 48, 64),
    ),
)


def find_preset(name: PresetName) -> Preset:
    """Return the preset of that name."""
    return next(preset for preset in PRESETS if preset.name == name)


def _given(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}
