"""From geometry buffers to pictures: colours, lights and backgrounds, drawn anew at every training step."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt8

from wordlight.augment import random_background
from wordlight.data.world.colours import COLOUR_NAMES, jittered, other
from wordlight.data.world.trace import unpack

BLACK = COLOUR_NAMES.index("black")


def compose(
    key: PRNGKeyArray,
    gbuffer: UInt8[Array, "b h w 6"],
    colour_index: Int[Array, "b"],
    *,
    textured: bool | Bool[Array, "b"] = True,
    background: Float[Array, "b h w 3"] | None = None,
) -> Float[Array, "b h w 3"]:
    """Return pictures of traced objects in the named colours, lit at random.

    Args:
        key: all randomness: colour jitter, the second colour, lights and backgrounds, each image its own.
        gbuffer: packed coverage and normals from `trace`.
        colour_index: the primary colour, an index into `COLOUR_NAMES`.
        textured: where False, every part is light grey and only shading shows the shape.
        background: what stands behind; random if None.

    Returns:
        Images in [0, 1].
    """
    colour_key, light_key, background_key = jax.random.split(key, 3)
    coverage, normals = unpack(gbuffer)
    if background is None:
        # Fused into the sum below, backgrounds would be computed once for each material.
        background = jax.lax.optimization_barrier(
            random_background(background_key, gbuffer.shape[:1], *gbuffer.shape[1:3])
        )
    colours = _material_colours(colour_key, colour_index, jnp.broadcast_to(textured, colour_index.shape))
    shading = _shading(light_key, coverage.sum(axis=-1, keepdims=True), normals)
    through = jnp.maximum(1 - coverage.sum(axis=-1, keepdims=True), 0.0)
    image = through * jnp.asarray(background)
    for material in range(3):
        lit = jnp.minimum(colours[:, material, None, None] * shading, 1.0)
        image = image + coverage[..., material, None] * lit
    return image


def _material_colours(
    key: PRNGKeyArray, index: Int[Array, "b"], textured: Bool[Array, "b"]
) -> Float[Array, "b 3 3"]:
    """Return the colours of the primary, secondary and dark materials."""
    draws = jax.random.uniform(key, (len(index), 11))
    first = jittered(draws[:, :4], index)
    second = jittered(draws[:, 4:8], other(draws[:, 8], index))
    grey = 0.08 + 0.12 * draws[:, 9:10]
    # Dark parts of a black object would melt into it.
    dark = jnp.where((index == BLACK)[:, None], grey + 0.25, grey) * jnp.ones((1, 3))
    clay = (0.6 + 0.3 * draws[:, 10:, None]) * jnp.ones((1, 1, 3))
    return jnp.where(textured[:, None, None], jnp.stack([first, second, dark], axis=1), clay)


def _shading(
    key: PRNGKeyArray, opacity: Float[Array, "b h w 1"], normals: Float[Array, "b h w 3"]
) -> Float[Array, "b h w 1"]:
    """Return the light on each pixel: ambient and one lamp, exposed so that the object's mean is near one.

    The mean normal of what is seen points to the camera; the lamp stands between it and a random direction.
    Exposure keeps an orange object from looking brown in weak light.
    """
    side_key, draw_key = jax.random.split(key)
    draws = jax.random.uniform(draw_key, (3, len(opacity), 1, 1, 1))
    pull, ambient, exposure = 2.5 * draws[0, :, 0, 0], 0.35 + 0.45 * draws[1], 0.86 + 0.16 * draws[2]
    camera = _unit(jnp.sum(normals * opacity, axis=(1, 2)))
    side = _unit(jax.random.normal(side_key, (len(opacity), 3)) + jnp.array([[0.0, 0.0, 0.7]]))
    lamp = _unit(side + pull * camera)
    facing = jnp.maximum(jnp.sum(normals * lamp[:, None, None], axis=-1, keepdims=True), 0.0)
    light = ambient + (1 - ambient) * facing
    covered = jnp.sum(opacity, axis=(1, 2), keepdims=True)
    mean = jnp.sum(light * opacity, axis=(1, 2), keepdims=True) / jnp.maximum(covered, 1e-3)
    return light * exposure / jnp.maximum(mean, 0.1)


def _unit(vectors: Float[Array, "b 3"]) -> Float[Array, "b 3"]:
    """Return unit vectors; zero stays zero."""
    return vectors / jnp.maximum(jnp.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6)
