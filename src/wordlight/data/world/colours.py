"""The ten colours of the world: names and sRGB values."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

COLOUR_NAMES: tuple[str, ...] = (
    "red", "orange", "yellow", "green", "blue", "purple", "pink", "brown", "white", "black",
)  # fmt: skip
COLOUR_VALUES: tuple[tuple[float, float, float], ...] = (
    (0.86, 0.10, 0.10),
    (0.97, 0.53, 0.06),
    (0.96, 0.88, 0.14),
    (0.12, 0.62, 0.20),
    (0.13, 0.30, 0.88),
    (0.50, 0.15, 0.68),
    (0.97, 0.55, 0.74),
    (0.38, 0.21, 0.09),
    (0.95, 0.95, 0.95),
    (0.07, 0.07, 0.08),
)
GREY = (0.55, 0.55, 0.55)


def jittered(draws: Float[Array, "b 4"], index: Int[Array, "b"]) -> Float[Array, "b 3"]:
    """Return the named colours varied a little in hue and brightness, in [0, 1]; index 10 is grey.

    `draws` are uniform in [0, 1): three for the hue, one for the brightness.
    """
    values = jnp.array((*COLOUR_VALUES, GREY))[index]
    hue, gain = 0.1 * (draws[:, :3] - 0.5), 0.9 + 0.18 * draws[:, 3:]
    return jnp.clip(values * gain + hue, 0.0, 1.0)


def other(draws: Float[Array, "b"], index: Int[Array, "b"]) -> Int[Array, "b"]:
    """Return for each colour another one, grey (10) included, equally likely for uniform `draws`."""
    others = len(COLOUR_NAMES)
    step = 1 + jnp.floor(others * draws).astype(index.dtype)
    return (index + step) % (others + 1)
