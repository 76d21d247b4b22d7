"""Rays and cameras to images, for any field.

`render_rays` is a pure function of arrays with any leading axes, so it runs under `jit`, `grad`, `vmap`,
`pmap` and `shard_map` as it is. `render_image` sends a whole image through it in chunks, forwards and
backwards, so that memory does not grow with the image.
"""

import math
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key

from wordlight.numerics import safe_normalize
from wordlight.radiance.cameras import Camera
from wordlight.radiance.checks import (
    check_answer,
    check_background,
    check_chunk,
    check_interval,
    check_rays,
    check_samples,
    check_size,
)
from wordlight.radiance.chunks import in_chunks
from wordlight.radiance.fields import Field, density_normals
from wordlight.radiance.rays import (
    Rays,
    camera_rays,
    importance_distances,
    intersect_box,
    segment_edges,
    stratified_distances,
)
from wordlight.radiance.volume import composite, volume_weights
from wordlight.typing import Scalars, Vectors


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Samples:
    """Where along the rays the field was asked, and what each answer counted.

    Attributes:
        edges: borders of the segments, `[..., samples + 1]`, distances in scene units.
        weights: shares of the ray's light, `[..., samples]`.
        normals: unit normals, `[..., samples, 3]`, when they were asked for.
    """

    edges: Float[Array, "*b edges"]
    weights: Float[Array, "*b samples"]
    normals: Float[Array, "*b samples 3"] | None = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Rendering:
    """What the rays see.

    Attributes:
        colour: `[..., 3]` in [0, 1], over the background.
        depth: expected distance, `[...]`, scene units; light that nothing stops counts at the far bound.
        opacity: `[...]` in [0, 1].
        normals: mean of the samples' normals by weight, `[..., 3]`, no longer than the opacity, when asked
            for.
        samples: what `wordlight.radiance.regularizers` need; None in whole images.
    """

    colour: Vectors
    depth: Scalars
    opacity: Scalars
    normals: Vectors | None = None
    samples: Samples | None = None


def render_rays(
    field: Field,
    rays: Rays,
    key: Key[Array, ""] | None,
    *,
    near: ArrayLike | None = None,
    far: ArrayLike | None = None,
    samples: int = 48,
    importance_samples: int = 0,
    background: ArrayLike | None = None,
    normals: bool = False,
) -> Rendering:
    """Return what each ray sees of the field.

    Args:
        field: a function of points and directions, `[..., samples, 3]` each; see `Field`.
        rays: any leading axes.
        key: jitters the samples within their parts of the interval; None takes the middles.
        near: where sampling starts, broadcast to the rays; by default where the ray enters the cube `|x| <=
            1`.
        far: where it ends, above `near`; by default where the ray leaves the cube.
        samples: field evaluations per ray.
        importance_samples: more evaluations where a first pass, without gradient, found something; the field
            is then evaluated `samples` times and once more `samples + importance_samples` times.
        background: colour behind the field, in [0, 1], broadcast to the rays; None is black.
        normals: also find normals, for about the cost of another gradient of the field.

    Raises:
        ValueError: there are no samples, shapes do not fit, those of the field's answer among them, or `far`
            is below `near` where both are known.

    Differentiable in the field, the rays, the bounds and the background. The places of importance samples are
    held constant.
    """
    check_samples(samples, importance_samples)
    shape = check_rays(rays)
    check_interval(near, far, shape)
    check_background(background, shape)
    box_near, box_far = intersect_box(rays)
    near = jnp.broadcast_to(box_near if near is None else jnp.asarray(near), shape)
    far = jnp.broadcast_to(box_far if far is None else jnp.asarray(far), shape)
    first, second = (None, None) if key is None else jax.random.split(key)
    distances = stratified_distances(first, near, far, samples)
    if importance_samples:
        distances = _refined(field, rays, second, near, far, distances, importance_samples)
    rendering = _render_at(field, rays, distances, near, far, normals)
    return rendering if background is None else _over(rendering, jnp.asarray(background))


def _directions_at(rays: Rays, points: Array) -> Array:
    return jnp.broadcast_to(rays.directions[..., None, :], points.shape)


def _weigh(field: Field, rays: Rays, distances: Array, edges: Array) -> tuple[Array, Array]:
    """Return weights and colours of samples at `distances` that stand for the segments between `edges`."""
    points = rays.at(distances)
    densities, colours = field(points, _directions_at(rays, points))
    check_answer(points.shape, densities, colours)
    return volume_weights(densities, jnp.diff(edges, axis=-1)), colours


def _refined(
    field: Field, rays: Rays, key: Array | None, near: Array, far: Array, distances: Array, count: int
) -> Array:
    """Return the given distances and `count` more where the field stops light, sorted."""
    edges = segment_edges(distances, near, far)
    weights, _ = _weigh(field, rays, distances, edges)
    return jnp.sort(
        jnp.concatenate([distances, importance_distances(key, edges, weights, count)], axis=-1), axis=-1
    )


def _render_at(
    field: Field, rays: Rays, distances: Array, near: Array, far: Array, with_normals: bool
) -> Rendering:
    edges = segment_edges(distances, near, far)
    weights, colours = _weigh(field, rays, distances, edges)
    colour, depth, opacity = composite(weights, colours, distances, far)
    if not with_normals:
        return Rendering(colour, depth, opacity, samples=Samples(edges, weights))
    points = rays.at(distances)
    sampled = density_normals(field, points, _directions_at(rays, points))
    mean = jnp.sum(weights[..., None] * sampled, axis=-2)
    return Rendering(colour, depth, opacity, mean, Samples(edges, weights, sampled))


def _over(rendering: Rendering, background: Array) -> Rendering:
    through = 1 - rendering.opacity[..., None]
    behind = jnp.broadcast_to(background, rendering.colour.shape)
    return replace(rendering, colour=rendering.colour + through * behind)


def render_image(
    field: Field,
    camera: Camera,
    key: Key[Array, ""] | None = None,
    *,
    chunk: int = 8192,
    samples: int = 48,
    importance_samples: int = 0,
    background: ArrayLike | None = None,
    normals: bool = False,
) -> Rendering:
    """Return the images of one or more cameras, `[*b, height, width, ...]`, computed `chunk` rays at a time.

    The memory is that of one chunk, whatever the image size, for the gradient as well: only rays are kept,
    and the backward pass renders every chunk once more, with the same key, when its turn comes. That costs
    one more forward pass than keeping everything would. The last chunk is padded and the padding cut.
    Options are those of `render_rays`; `background` is broadcast to `[*b, height, width, 3]`. With a key
    each chunk has jitter of its own, so the jitter depends on `chunk`.

    Raises:
        ValueError: `chunk` is below 1, the camera has no pixels, there are no samples, or shapes do not fit.
    """
    check_chunk(chunk)
    check_size(camera.height, camera.width)
    rays = camera_rays(camera)
    shape = rays.directions.shape[:-1]
    check_background(background, shape)
    behind = jnp.broadcast_to(jnp.zeros(3) if background is None else jnp.asarray(background), (*shape, 3))
    count = math.prod(shape)
    chunk = min(chunk, count)

    def render_chunk(part: tuple[Array, Rays, Array]) -> Rendering:
        index, rays, behind = part
        own = None if key is None else jax.random.fold_in(key, index)
        rendering = render_rays(
            field,
            rays,
            own,
            samples=samples,
            importance_samples=importance_samples,
            background=behind,
            normals=normals,
        )
        return replace(rendering, samples=None)

    parts = jax.tree.map(lambda x: in_chunks(x.reshape(count, 3), chunk), (rays, behind))
    # Replayed inside a loop, whose turns XLA cannot merge, so its guard against that is not needed.
    replayed = jax.checkpoint(render_chunk, prevent_cse=False)
    rendered = jax.lax.map(replayed, (jnp.arange(-(-count // chunk)), *parts))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:count].reshape(*shape, *x.shape[2:]), rendered)


def shade(
    rendering: Rendering,
    *,
    light: ArrayLike | tuple[float, float, float] = (0.4, 0.3, 0.87),
    ambient: float = 0.35,
    background: ArrayLike = 1.0,
) -> Vectors:
    """Return the shape without its texture: grey under one lamp, `[..., 3]` in [0, 1].

    Half-Lambert shading of the mean normal, `ambient + (1 - ambient) * ((1 + n . l) / 2)**2`, over
    `background`.

    Args:
        rendering: made with `normals=True`.
        light: direction towards the lamp, world axes, any length above 0.
        ambient: brightness of what faces away from the lamp, in [0, 1].
        background: colour behind, broadcast to the rays.

    Raises:
        ValueError: the rendering has no normals.
    """
    if rendering.normals is None:
        raise ValueError(
            "The rendering has no normals to shade. Normals cost another gradient of the field, so they are "
            "made only on request. Render with normals=True."
        )
    lamp = jnp.asarray(light) / jnp.linalg.norm(jnp.asarray(light))
    facing = (1 + jnp.einsum("...c,c->...", safe_normalize(rendering.normals), lamp)) / 2
    grey = (ambient + (1 - ambient) * facing**2)[..., None]
    opacity = rendering.opacity[..., None]
    behind = jnp.broadcast_to(jnp.asarray(background), rendering.colour.shape)
    return opacity * grey + (1 - opacity) * behind
