"""From which side a camera looks, and the words for it."""

import math

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

VIEW_PHRASES = ("front view", "side view", "back view", "overhead view")
OVERHEAD = math.pi / 3  # 60 degrees


def seen_from(text: str, phrase: str) -> str:
    """Return the text for what is seen from a side, such as "a red car, side view"."""
    return f"{text}, {phrase}"


def view_shares(
    azimuth: ArrayLike, elevation: ArrayLike, *, overhead: float = OVERHEAD
) -> Float[Array, "*b 4"]:
    """Return how much of a camera's view is front, side, back and overhead; they sum to one.

    DreamFusion, arXiv 2209.14988, section 3.2: overhead where the elevation is above 60 degrees, else a
    combination by azimuth. The paper does not print its weights; here they are linear in the angle to the
    front: all front at 0, all side at 90 degrees to the left and right, all back at 180.

    Piecewise linear in azimuth, with one-sided slopes at multiples of 90 degrees. Not differentiable in
    elevation: the step at `overhead` has gradient zero.

    Args:
        azimuth: radians; 0 is the front (the camera on +X where +Z is up) and any turn may be added.
        elevation: radians above the horizon.
        overhead: elevation above which the view is overhead alone.
    """
    azimuth, elevation = jnp.asarray(azimuth, jnp.float32), jnp.asarray(elevation, jnp.float32)
    turns = jnp.abs(jnp.mod(azimuth + jnp.pi, 2 * jnp.pi) - jnp.pi) / (jnp.pi / 2)
    front, back = jnp.maximum(1 - turns, 0), jnp.maximum(turns - 1, 0)
    above = (elevation > overhead).astype(jnp.float32)
    front, side, back, above = jnp.broadcast_arrays(front, 1 - front - back, back, above)
    level = (1 - above)[..., None] * jnp.stack([front, side, back], axis=-1)
    return jnp.concatenate([level, above[..., None]], axis=-1)
