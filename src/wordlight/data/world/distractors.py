"""Pictures of no object: empty views, smoke, scattered dots, shapeless blobs.

An optimised field fails in these ways; a guide that has names for them can push away from them.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from wordlight.augment import byte_noise, random_background, smooth_noise

DISTRACTOR_CAPTIONS: tuple[tuple[str, ...], ...] = (
    ("nothing", "an empty picture", "a picture of nothing", "only a background"),
    ("smoke", "fog", "a cloud of smoke", "a picture of smoke"),
    ("a cloud of dots", "noise", "scattered dots", "a picture of random dots"),
    ("a blob", "a shapeless blob", "a picture of a blob"),
)


def distractors(
    key: PRNGKeyArray, count: int, *, height: int = 64, width: int = 64
) -> tuple[Float[Array, "n h w 3"], Int[Array, "n"]]:
    """Return pictures of no object in [0, 1] and their classes, indices into `DISTRACTOR_CAPTIONS`.

    A picture shows one class only, so all classes share what is drawn for it: `draws` are uniform values,
    `smooth` is slow noise (a colour and a density), `cells` are values in squares of 1 to 4 pixels.
    """
    draw_key, smooth_key, cell_key, background_key = jax.random.split(key, 4)
    draws = jax.random.uniform(draw_key, (12, count, 1, 1, 1))
    smooth = smooth_noise(smooth_key, (count,), height, width, channels=4)
    cells = _cells(cell_key, 1 + jnp.floor(4 * draws[0]), height, width)
    background = random_background(background_key, (count,), height, width)
    colour, window = _colour(draws, smooth), _window(draws, height, width)
    speck = colour + draws[1] * (cells[..., :3] - colour)
    dots = (cells[..., 3:] < window * (0.06 + 0.44 * draws[2])).astype(jnp.float32)
    layers = (
        (colour, jnp.zeros_like(window)),
        (colour, window * _smoke(draws, smooth)),
        (speck, dots),
        _blob(draws, colour, smooth),
    )
    index = jnp.floor(len(layers) * draws[3]).astype(jnp.int32)
    pictures = [background + alpha * (front - background) for front, alpha in layers]
    return jnp.select([index == i for i in range(len(layers))], pictures), index.reshape(count)


Draws = Float[Array, "12 n 1 1 1"]


def _colour(draws: Draws, smooth: Float[Array, "n h w 4"]) -> Float[Array, "n h w 3"]:
    """Return a random colour for each picture that drifts more or less across it."""
    base = jnp.concatenate([draws[4], draws[5], draws[6]], axis=-1)
    return base + 0.7 * draws[7] * (smooth[..., :3] - base)


def _window(draws: Draws, height: int, width: int) -> Float[Array, "n h w 1"]:
    """Return a soft disc about the middle, of random width, for half of the pictures; ones for the rest."""
    x, y = _grid(height, width)
    disc = jax.nn.sigmoid(6.0 * (0.35 + 0.6 * draws[8] - jnp.sqrt(x * x + y * y)))
    return jnp.where(draws[9] < 0.5, 1.0, disc)


def _smoke(draws: Draws, smooth: Float[Array, "n h w 4"]) -> Float[Array, "n h w 1"]:
    """Return the opacity of fog whose density changes slowly."""
    return (0.4 + 0.55 * draws[10]) * (0.25 + 0.75 * smooth[..., 3:])


def _blob(
    draws: Draws, colour: Float[Array, "n h w 3"], smooth: Float[Array, "n h w 4"]
) -> tuple[Float[Array, "n h w 3"], Float[Array, "n h w 1"]]:
    """Return colour and opacity of a solid, shaded lump with a random outline."""
    height, width = smooth.shape[1:3]
    x, y = _grid(height, width)
    bump = 1.1 - 1.3 * jnp.sqrt(x * x + y * y + 1e-6)
    field = bump + 1.6 * (smooth[..., 3:] - 0.5) - (0.2 + 0.35 * draws[10])
    return colour * _relief(draws, jnp.maximum(field, 0.0)), jax.nn.sigmoid(field * 0.35 * height)


def _relief(draws: Draws, field: Float[Array, "n h w 1"]) -> Float[Array, "n h w 1"]:
    """Return the shading of the rounded surface over a height field, lit from a random side."""
    surface = jnp.sqrt(field + 1e-2)
    down, across = (_slope(surface, axis) * (field.shape[1] / 3) for axis in (1, 2))
    turn, tip = 2 * jnp.pi * draws[8], draws[11]
    light = (tip * jnp.sin(turn), tip * jnp.cos(turn), jnp.sqrt(1.0 - tip * tip))
    facing = (down * light[0] + across * light[1] + light[2]) / jnp.sqrt(1.0 + down * down + across * across)
    return 0.5 + 0.5 * jnp.maximum(facing, 0.0)


def _slope(surface: Float[Array, "n h w 1"], axis: int) -> Float[Array, "n h w 1"]:
    """Return half the difference of the neighbours along an axis."""
    return (jnp.roll(surface, -1, axis) - jnp.roll(surface, 1, axis)) / 2


def _grid(height: int, width: int) -> tuple[Float[Array, "1 1 w 1"], Float[Array, "1 h 1 1"]]:
    """Return pixel coordinates in [-1, 1]."""
    x, y = ((jnp.arange(n) + 0.5) * 2 / n - 1 for n in (width, height))
    return x.reshape(1, 1, width, 1), y.reshape(1, height, 1, 1)


def _cells(
    key: PRNGKeyArray, size: Float[Array, "n 1 1 1"], height: int, width: int
) -> Float[Array, "n h w 4"]:
    """Return four uniform values for each square of `size` pixels, 1 to 4."""
    drawn = byte_noise(key, (len(size),), height, width, channels=4)

    def enlarged(times: int) -> Float[Array, "n h w 4"]:
        few = drawn[:, : -(-height // times), : -(-width // times)]
        return jnp.repeat(jnp.repeat(few, times, axis=1), times, axis=2)[:, :height, :width]

    return jnp.select([size == times for times in (1, 2, 3, 4)], [enlarged(times) for times in (1, 2, 3, 4)])
