"""Pictures of objects put together wrongly: turned over, squeezed, or made of two halves.

An optimised object that has all its parts in the wrong places fails in these ways; a guide that has words for
them can push away from them. The judges know nothing of them.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, UInt8

DISTORTED_CAPTIONS: tuple[str, ...] = (
    "something distorted",
    "a distorted object",
    "a picture of a distorted object",
    "a broken object",
)
DISTORTED_WORDS = ("broken", "distorted")
SQUEEZE = (0.4, 0.62)  # outside the proportions that the world's own objects have


@jax.jit
def distort(key: PRNGKeyArray, gbuffers: UInt8[Array, "b h w 6"]) -> UInt8[Array, "b h w 6"]:
    """Return the geometry buffers of square pictures, each spoilt in one of the three ways.

    What an object is mixed with is the one before it in the batch.
    """
    way_key, turn_key, squeeze_key, mix_key = jax.random.split(key, 4)
    ways = (turned(turn_key, gbuffers), squeezed(squeeze_key, gbuffers), mixed(mix_key, gbuffers))
    way = jax.random.randint(way_key, (len(gbuffers), 1, 1, 1), 0, len(ways))
    return jnp.select([way == i for i in range(len(ways))], ways)


def turned(key: PRNGKeyArray, gbuffers: UInt8[Array, "b h w 6"]) -> UInt8[Array, "b h w 6"]:
    """Lay each object on its left or right side, or stand it on its head."""
    quarters = jax.random.randint(key, (len(gbuffers), 1, 1, 1), 0, 3)
    turns = [jnp.rot90(gbuffers, k, axes=(1, 2)) for k in (1, 2, 3)]
    return jnp.select([quarters == i for i in range(3)], turns)


def squeezed(key: PRNGKeyArray, gbuffers: UInt8[Array, "b h w 6"]) -> UInt8[Array, "b h w 6"]:
    """Make each object thinner or flatter about the middle of the picture."""
    factor_key, axis_key = jax.random.split(key)
    factor = jax.random.uniform(factor_key, (len(gbuffers),), minval=SQUEEZE[0], maxval=SQUEEZE[1])
    flat = jax.random.bernoulli(axis_key, shape=factor.shape)
    scales = jnp.stack([jnp.where(flat, factor, 1.0), jnp.where(flat, 1.0, factor)], axis=-1)
    size = jnp.array(gbuffers.shape[1:3], jnp.float32)

    def one(gbuffer: UInt8[Array, "h w 6"], scale: Float[Array, "2"]) -> Float[Array, "h w 6"]:
        offset = (1 - scale) * size / 2
        values = gbuffer.astype(jnp.float32)
        return jax.image.scale_and_translate(values, values.shape, (0, 1), scale, offset, "linear")

    return jnp.round(jax.vmap(one)(gbuffers, scales)).astype(jnp.uint8)


def mixed(key: PRNGKeyArray, gbuffers: UInt8[Array, "b h w 6"]) -> UInt8[Array, "b h w 6"]:
    """Give each object the upper or the left half of the object before it."""
    count, height, width, _ = gbuffers.shape
    across = jax.random.bernoulli(key, shape=(count, 1, 1, 1))
    upper = (jnp.arange(height) < height // 2).reshape(1, height, 1, 1)
    left = (jnp.arange(width) < width // 2).reshape(1, 1, width, 1)
    return jnp.where(jnp.where(across, upper, left), jnp.roll(gbuffers, 1, axis=0), gbuffers)
