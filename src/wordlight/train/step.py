"""One training step: cameras to images to loss to a moved field.

`train_step` is pure. Views are the leading axis of the batch; sharded over a device mesh, the step runs on
all of its devices, and the means over views become sums between them.
"""

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from wordlight.augment import random_background
from wordlight.radiance.cameras import Camera, orbit, orbit_angles
from wordlight.radiance.fields import density
from wordlight.radiance.grids import VoxelField
from wordlight.radiance.lighting import LitField, random_lamp
from wordlight.radiance.pyramid import PyramidField
from wordlight.radiance.rays import camera_rays, intersect_ball, intersect_box
from wordlight.radiance.regularizers import (
    annealed,
    distortion,
    half_opacity,
    opacity_target,
    total_variation,
)
from wordlight.radiance.render import Rendering, render_rays
from wordlight.train.config import CameraConfig, PenaltyConfig, RunConfig
from wordlight.train.guide import RunGuide
from wordlight.train.state import RunMetrics, RunState, make_optimizer


class Views(NamedTuple):
    """A batch: cameras and a key for each of them, so that a view's noise does not depend on where it
    runs.
    """

    cameras: Camera
    keys: PRNGKeyArray


@partial(jax.jit, static_argnames=("config", "count"))
def sample_views(key: PRNGKeyArray, config: CameraConfig, *, count: int) -> Views:
    """Draw cameras all round the object, their azimuths spread evenly from a random start.

    Elevations are uniform over the configured range without the band that is held out.
    """
    start_key, elevation_key, radius_key, view_key = jax.random.split(key, 4)
    start = jax.random.uniform(start_key, maxval=2 * jnp.pi)
    azimuth = start + jnp.arange(count) * 2 * jnp.pi / count
    elevation = jnp.deg2rad(_elevations(elevation_key, config, count))
    radius = jax.random.uniform(radius_key, (count,), minval=config.radius[0], maxval=config.radius[1])
    cameras = orbit(
        azimuth,
        elevation,
        radius=radius,
        field_of_view=float(jnp.pi / 180) * config.field_of_view,
        height=config.size,
        width=config.size,
    )
    return Views(cameras, jax.random.split(view_key, count))


def _elevations(key: PRNGKeyArray, config: CameraConfig, count: int) -> Float[Array, "count"]:
    low, high = config.elevation
    start, end = (min(max(bound, low), high) for bound in config.held_out)
    band = end - start
    drawn = low + (high - low - band) * jax.random.uniform(key, (count,))
    return jnp.where(drawn < start, drawn, drawn + band)


@partial(jax.jit, static_argnames="config", donate_argnames="state")
def train_step(
    state: RunState, guide: RunGuide, views: Views, *, config: RunConfig
) -> tuple[RunState, RunMetrics]:
    """Take one step; a step whose loss or gradient is not finite leaves the field as it was and is
    counted."""
    value_and_grad = jax.value_and_grad(run_loss, has_aux=True)
    (loss, (similarity, opacity)), gradient = value_and_grad(state.field, guide, views, state.step, config)
    norm = optax.tree.norm(gradient)
    good = jnp.isfinite(loss) & jnp.isfinite(norm)
    optimizer = make_optimizer(config.optimizer, config.steps)
    updates, optimizer_state = optimizer.update(gradient, state.optimizer, state.field)  # type: ignore
    moved = optax.apply_updates(state.field, updates)  # type: ignore
    keep = partial(jax.tree.map, lambda new, old: jnp.where(good, new, old))
    skipped = state.skipped + ~good
    new = RunState(
        keep(moved, state.field),
        keep(optimizer_state, state.optimizer),
        state.step + 1,
        skipped,
        jnp.where(good, 0, state.skipped_in_a_row + 1),
    )
    return new, RunMetrics(loss, similarity, opacity, norm, skipped)


def run_loss(
    field: PyramidField, guide: RunGuide, views: Views, step: Array, config: RunConfig
) -> tuple[Float[Array, ""], tuple[Float[Array, ""], Float[Array, ""]]]:
    """Return the guidance loss plus the penalties, and (similarity, opacity)."""
    voxels = field.voxels()
    look = partial(_look, voxels, guide, config)
    losses, similarities, renderings = jax.vmap(look)(views.cameras, views.keys)
    penalty = view_penalties(renderings, step, config) + grid_penalties(voxels, config.penalties)
    return jnp.mean(losses) + penalty, (jnp.mean(similarities), jnp.mean(renderings.opacity))


def _look(
    field: VoxelField, guide: RunGuide, config: RunConfig, camera: Camera, key: PRNGKeyArray
) -> tuple[Float[Array, ""], Float[Array, ""], Rendering]:
    """Render one view before a random background and let the guide look at it."""
    ray_key, lamp_key, plain_key, background_key, guidance_key = jax.random.split(key, 5)
    plain = jax.random.uniform(plain_key) < config.plain
    low, high = (jnp.where(plain, p, c) for p, c in zip(config.plain_ambient, config.ambient, strict=True))
    lit = LitField(field, *random_lamp(lamp_key, camera.pose[:, 3], ambient=(low, high)), 1.0 - plain)
    rendering = render_ball(lit, camera, ray_key, config)
    background = random_background(background_key, (), camera.height, camera.width)
    image = rendering.colour + (1 - rendering.opacity[..., None]) * background
    loss, metrics = guide.for_view(plain, *orbit_angles(camera))(image, guidance_key)
    return loss, metrics.similarity, rendering


def render_ball(field: LitField, camera: Camera, key: PRNGKeyArray | None, config: RunConfig) -> Rendering:
    """Render what a camera sees of the ball that holds all matter; pixels that cannot show it cost nothing.

    The samples are those of the rays through the ball alone, `[rays, ...]`.
    """
    pixels, bound = pixels_of_ball(config), config.field.density.bound
    shape = (camera.height, camera.width)
    rays = jax.tree.map(lambda x: x.reshape(-1, 3), camera_rays(camera))
    # A ball that reaches out of the cube is bounded by the cube.
    near, far = intersect_ball(rays, radius=bound) if bound and bound < 1 else intersect_box(rays)
    seen, near, some_far = jax.tree.map(lambda x: x[pixels], (rays, near, far))
    some = render_rays(field, seen, key, near=near, far=some_far, samples=config.cameras.samples)

    def spread(values: Array, whole: Array) -> Array:
        return whole.at[pixels].set(values, unique_indices=True).reshape(*shape, *values.shape[1:])

    return replace(
        some,
        colour=spread(some.colour, jnp.zeros((len(far), 3))),
        depth=spread(some.depth, far),
        opacity=spread(some.opacity, jnp.zeros(len(far))),
    )


def pixels_of_ball(config: RunConfig) -> Int[np.ndarray, "rays"]:
    """Return the pixels, row by row, that can show the ball from some camera of the run.

    Cameras look at its centre, so it is a disc, largest from the nearest of them.
    """
    cameras, bound = config.cameras, config.field.density.bound
    across = np.arange(cameras.size) + 0.5 - cameras.size / 2
    off_axis = np.hypot(*np.meshgrid(across, across)).ravel()
    if bound is None or bound >= cameras.radius[0]:
        return np.arange(off_axis.size)
    focal = cameras.size / 2 / math.tan(math.radians(cameras.field_of_view) / 2)
    edge = focal * math.tan(math.asin(bound / cameras.radius[0]))
    return np.flatnonzero(off_axis <= edge)


def view_penalties(renderings: Rendering, step: Array, config: RunConfig) -> Float[Array, ""]:
    """Return the penalties that images show: too much or half covered, spread along the rays."""
    penalties = config.penalties
    start, end = penalties.transmittance
    target = annealed(step, start=start, end=end, steps=max(config.steps // 2, 1))
    total = penalties.opacity * jnp.mean(opacity_target(renderings.opacity, target))
    total += penalties.half_opacity * jnp.mean(half_opacity(renderings.opacity))
    if penalties.distortion and renderings.samples is not None:
        spread = distortion(renderings.samples.weights, renderings.samples.edges)
        # The mean over all pixels: those without samples have none.
        total += penalties.distortion * jnp.sum(spread) / renderings.opacity.size
    return total


def grid_penalties(voxels: VoxelField, penalties: PenaltyConfig) -> Float[Array, ""]:
    """Return the variation of raw density and of raw colour, and matter far from the middle, weighted."""
    values = voxels.values
    shape, colour = total_variation(values[..., :1]), total_variation(values[..., 1:])
    total = penalties.density_variation * shape + penalties.colour_variation * colour
    return total + penalties.outskirts * outskirts(voxels, penalties.core)


def outskirts(voxels: VoxelField, core: float) -> Float[Array, ""]:
    """Return the mean over the grid of what a cell stops of the light through it, by how far out it lies.

    Nothing holds an object in the middle of the view otherwise; it wanders until the cube's faces cut it.
    """
    vertices = voxels.vertices()
    densities = density(voxels.values[..., 0], vertices, voxels.config.density)
    solid = 1 - jnp.exp(-densities * 2 / voxels.config.resolution)
    beyond = jnp.maximum(jnp.sum(jnp.square(vertices), axis=-1) - core**2, 0.0)
    return jnp.mean(solid * beyond)
