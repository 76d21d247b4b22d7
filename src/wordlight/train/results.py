"""What a finished field is turned into: a turntable, a sheet, a mesh; and how well it shows what it
should."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from wordlight.errors import WordlightError
from wordlight.export import (
    colourize_depth,
    contact_sheet,
    extract_mesh,
    save_mesh,
    save_png,
    write_video,
)
from wordlight.guidance import Guidance, members
from wordlight.radiance.cameras import Camera
from wordlight.radiance.grids import VoxelField
from wordlight.radiance.lighting import LitField
from wordlight.train.config import CameraConfig
from wordlight.train.guide import Guide
from wordlight.train.pictures import held_out_cameras, render_views, ring
from wordlight.train.sharding import gather


@dataclass(frozen=True)
class ResultConfig:
    """How results are drawn.

    Attributes:
        frames: of the turntable, a multiple of `sheet_views`.
        video_size: side of a frame in pixels.
        sheet_views: columns of the sheet.
        sheet_size: side of its pictures in pixels.
        mesh_resolution: samples along each side of the cube.
        samples: field evaluations per ray.
        elevation: of all cameras, in degrees.
        background: grey level in [0, 1].
    """

    frames: int = 48
    video_size: int = 192
    sheet_views: int = 8
    sheet_size: int = 160
    mesh_resolution: int = 96
    samples: int = 64
    elevation: float = 23.0
    background: float = 0.8


def write_results(
    folder: Path, field: LitField, cameras: CameraConfig, *, config: ResultConfig = ResultConfig()
) -> list[str]:
    """Write `turntable.mp4`, `sheet.png` and `mesh.glb`; return a line for each that could not be made as
    asked."""
    write_sheet(folder / "sheet.png", field, cameras, config)
    return write_turntable(folder, field, cameras, config) + write_mesh(
        folder / "mesh.glb", field.voxels, config
    )


def write_preview(path: Path, field: LitField, cameras: CameraConfig) -> None:
    """Write one picture of the field as training sees it, from the front and a little above."""
    camera = ring(cameras, count=1, elevation=23.0, size=cameras.size, turn=30.0)
    save_png(path, np.asarray(render_views(field, camera, samples=cameras.samples).colour[0]))


def write_sheet(path: Path, field: LitField, cameras: CameraConfig, config: ResultConfig) -> None:
    """Write a row of colour and a row of depth, views all round."""
    count = config.sheet_views
    around = ring(cameras, count=count, elevation=config.elevation, size=config.sheet_size)
    seen = render_views(field, around, samples=config.samples, background=config.background)
    depth = colourize_depth(seen.depth, seen.opacity)
    degrees = [f"{round(index * 360 / count)}°" for index in range(count)]
    save_png(path, contact_sheet([np.asarray(seen.colour), depth], labels=[degrees]))


def write_turntable(folder: Path, field: LitField, cameras: CameraConfig, config: ResultConfig) -> list[str]:
    """Write one turn as a video; return a line where it had to become another file or encoding."""
    around = ring(cameras, count=config.frames, elevation=config.elevation, size=config.video_size)
    written = write_video(folder / "turntable.mp4", _frames(field, around, config))
    if not written.failures:
        return []
    return [f"The turntable is {written.path.name} ({written.encoder}): {'; '.join(written.failures)}."]


def _frames(field: LitField, around: Camera, config: ResultConfig) -> Iterator[np.ndarray]:
    """Yield frames, a few rendered at a time."""
    for start in range(0, config.frames, config.sheet_views):
        some = jax.tree.map(lambda x, s=start: x[s : s + config.sheet_views], around)
        seen = render_views(field, some, samples=config.samples, background=config.background)
        yield from np.asarray(seen.colour)


def write_mesh(path: Path, field: VoxelField, config: ResultConfig) -> list[str]:
    """Write the surface as a mesh; return a line that says why where there is none.

    Its colours are those of the object itself, without the lamp's light, so it is left to a viewer to light
    it.
    """
    densities = jax.jit(lambda points: field(points, jnp.zeros_like(points)).densities)
    colours = jax.jit(lambda points, directions: field(points, directions).colours)
    try:
        save_mesh(path, extract_mesh(densities, colours, resolution=config.mesh_resolution), unlit=False)
    except WordlightError as error:
        return [f"There is no {path.name}. {error}"]
    return []


def held_out_scores(field: LitField, cameras: CameraConfig, guide: Guide) -> dict[str, float]:
    """Return how the guide sees the object from views that training never drew.

    Returns:
        `similarity`: mean cosine with the prompt; `best_other`: mean of each view's highest cosine with a
        text it is held against; `wins`: share of views nearer to the prompt than to all of those; `opacity`:
        mean share of the view that is covered. The middle two are missing where there are no such texts.
        Each is the mean over the models of the guide.
    """
    seen = render_views(field, held_out_cameras(cameras, size=cameras.size), samples=cameras.samples)
    scores = [_seen_by(member, seen.colour) for member, _ in members(gather(guide))]
    means = {name: sum(one[name] for one in scores) / len(scores) for name in scores[0]}
    return means | {"opacity": float(jnp.mean(seen.opacity))}


def _seen_by(guidance: Guidance, images: Float[Array, "views height width 3"]) -> dict[str, float]:
    embeds = jax.jit(lambda model, images: model.encode_image(images))(guidance.model, images)
    wanted = embeds @ guidance.text_embeds.T @ guidance.weights
    scores = {"similarity": float(jnp.mean(wanted))}
    if not len(guidance.negative_embeds):
        return scores
    others = jnp.max(embeds @ guidance.negative_embeds.T, axis=-1)
    return scores | {"best_other": float(jnp.mean(others)), "wins": float(jnp.mean(wanted > others))}
