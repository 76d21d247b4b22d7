"""Frozen description of a run, and presets with what they are for."""

from dataclasses import dataclass
from dataclasses import field as default
from typing import Literal

from wordlight.guidance import GuidanceConfig, ViewConfig
from wordlight.radiance.fields import DensityConfig
from wordlight.radiance.pyramid import PyramidConfig

# Empty space starts empty, unlike with the field's own defaults: fog is what a guide forgives first.
SOLID = DensityConfig(scale=25.0, bias=-5.0, blob_strength=5.5, blob_radius=0.35, bound=0.9)

PresetName = Literal["fast", "default", "fine"]


@dataclass(frozen=True)
class CameraConfig:
    """Where training cameras stand. Angles in degrees, lengths in scene units.

    Attributes:
        elevation: range above the horizon.
        held_out: elevations within it that training never sees, kept for judging.
        radius: range of the distance from the origin.
        field_of_view: vertical opening angle.
        size: side of the rendered square in pixels.
        samples: field evaluations per ray.
    """

    elevation: tuple[float, float] = (-5.0, 55.0)
    held_out: tuple[float, float] = (20.0, 26.0)
    radius: tuple[float, float] = (3.0, 3.4)
    field_of_view: float = 40.0
    size: int = 64
    samples: int = 40


@dataclass(frozen=True)
class PenaltyConfig:
    """Weights of what makes a field a solid, smooth, compact thing in empty space; 0 turns one off.

    Attributes:
        opacity: weight of the transmittance target (Dream Fields, arXiv 2112.01455, eq. 5).
        transmittance: the target's value at the start and at the end of the annealing.
        half_opacity: weight of the entropy of pixel opacities.
        density_variation: weight of the total variation of raw density.
        colour_variation: weight of the total variation of raw colour.
        outskirts: weight of the solid share of the cube beyond `core`, by its squared distance.
        core: radius about the origin within which matter costs nothing, in scene units.
        distortion: weight of mip-NeRF 360's distortion.
    """

    opacity: float = 3.0
    transmittance: tuple[float, float] = (0.7, 0.85)
    half_opacity: float = 1.2
    density_variation: float = 0.2
    colour_variation: float = 0.8
    outskirts: float = 30.0
    core: float = 0.6
    distortion: float = 0.0


@dataclass(frozen=True)
class OptimizerConfig:
    """Adam with a warm-up and a cosine decay to a tenth.

    Attributes:
        learning_rate: peak rate.
        warmup: share of the steps in which the rate rises.
        clip: largest norm of the gradient.
    """

    learning_rate: float = 0.05
    warmup: float = 0.05
    clip: float = 1.0


@dataclass(frozen=True)
class RunConfig:
    """One run, from prompt to object.

    Attributes:
        prompt: what the object should be.
        models: names or folders of the guides, which see every image together.
        negatives: texts to push away from; None lets the guide's own world decide.
        seed: of everything random.
        steps: optimiser steps.
        views: images a step, a multiple of the number of devices.
        cameras: where they are taken from.
        ambient: range of the share of light that comes from everywhere; the rest comes from a lamp, another
            one for each view. (1, 1) shades nothing.
        plain: share of the views that show the object in plain grey, where its shape alone has to be that of
            the prompt (DreamFusion, arXiv 2209.14988, section 3.1).
        plain_ambient: as `ambient`, for those views.
        sides: whether the prompt says from which side the camera looks, as in "a red car, side view"
            (DreamFusion, section 3.2), to models that can read it. The front is +X.
        field: the grids.
        penalties: what keeps it an object.
        optimizer: how it is moved.
        guidance: how images become a loss.
        max_skipped: non-finite steps in a row that end the run.
    """

    prompt: str
    models: tuple[str, ...] = ("demo", "demo-resnet")
    negatives: tuple[str, ...] | None = None
    seed: int = 0
    steps: int = 600
    views: int = 4
    cameras: CameraConfig = default(default_factory=CameraConfig)
    ambient: tuple[float, float] = (0.6, 1.0)
    plain: float = 0.6
    plain_ambient: tuple[float, float] = (0.35, 0.7)
    sides: bool = True
    field: PyramidConfig = default(default_factory=lambda: PyramidConfig(noise=0.3, density=SOLID))
    penalties: PenaltyConfig = default(default_factory=PenaltyConfig)
    optimizer: OptimizerConfig = default(default_factory=OptimizerConfig)
    guidance: GuidanceConfig = default(
        default_factory=lambda: GuidanceConfig(
            loss="softmax",
            pull=12.0,
            views=ViewConfig(count=3, zoom=(0.85, 1.15), blur=(1.0, 1.5), noise=0.05),
        )
    )
    max_skipped: int = 20
