"""Key-first, differentiable views of images: backgrounds, windows, blur and noise.

Images are `[..., height, width, 3]` floats in [0, 1]. Random backgrounds keep an object from hiding behind a
known one: noise, checkerboards and random textures as in Dream Fields (arXiv 2112.01455, section 4.2), plain
colours.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

SMOOTH_CELLS = (3, 9)  # grid sizes of the two octaves of smooth noise, in cells an image side


def byte_noise(
    key: PRNGKeyArray, batch_shape: Sequence[int], height: int, width: int, *, channels: int = 3
) -> Float[Array, "*b h w c"]:
    """Return independent values in [0, 1] with 256 levels, for up to 4 channels.

    JAX's generator would take longer over this than all the rest of a small picture. So it draws one seed an
    image, and a 32-bit integer mixer (shift and multiply, twice) of seed and pixel number gives a byte to
    each channel.
    """
    seeds = jax.random.bits(key, (*batch_shape, 1, 1, 1), jnp.uint32)
    pixels = jnp.arange(height * width, dtype=jnp.uint32).reshape(height, width, 1)
    x = _lift(pixels * jnp.uint32(0x9E3779B9), batch_shape) + seeds
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    shifts = _lift(8 * jnp.arange(channels, dtype=jnp.uint32), (*batch_shape, height, width))
    return (((x ^ (x >> 16)) >> shifts) & 255).astype(jnp.float32) / 255


def smooth_noise(
    key: PRNGKeyArray, batch_shape: Sequence[int], height: int, width: int, *, channels: int = 3
) -> Float[Array, "*b h w c"]:
    """Return low-frequency noise in [0, 1]: two octaves of enlarged random grids, mixed at random."""
    few, many = (cells * cells for cells in SMOOTH_CELLS)
    # One draw for all: each call of the generator costs half a second to compile.
    draws = jax.random.uniform(key, (*batch_shape, few + many + 1, channels))
    shape, grids = (*batch_shape, height, width, channels), (draws[..., :few, :], draws[..., few:-1, :])
    coarse, fine = (
        jax.image.resize(grid.reshape(*batch_shape, cells, cells, channels), shape, "cubic")
        for grid, cells in zip(grids, SMOOTH_CELLS, strict=True)
    )
    share = draws[..., -1:, None, :1]
    return jnp.clip(share * coarse + (1 - share) * fine, 0.0, 1.0)


def solid_background(
    key: PRNGKeyArray, batch_shape: Sequence[int], height: int, width: int
) -> Float[Array, "*b h w 3"]:
    """Return one random colour an image."""
    colours = jax.random.uniform(key, (*batch_shape, 1, 1, 3))
    return jnp.broadcast_to(colours, (*batch_shape, height, width, 3))


def noise_background(
    key: PRNGKeyArray, batch_shape: Sequence[int], height: int, width: int
) -> Float[Array, "*b h w 3"]:
    """Return independent noise in every pixel, of random strength about a random colour."""
    image_key, pixel_key = jax.random.split(key)
    draws = jax.random.uniform(image_key, (*batch_shape, 1, 1, 4))
    mean, strength = draws[..., :3], 0.05 + 0.95 * draws[..., 3:]
    noise = byte_noise(pixel_key, batch_shape, height, width)
    return mean + strength * (noise - mean)


def checker_background(
    key: PRNGKeyArray, batch_shape: Sequence[int], height: int, width: int
) -> Float[Array, "*b h w 3"]:
    """Return checkerboards of two random colours with 2 to 16 squares a side, shifted at random."""
    draws = jax.random.uniform(key, (3, *batch_shape, 1, 1, 3))
    first, second = draws[0], draws[1]
    size, shift_x, shift_y = (draws[2, ..., 0, :, i] for i in range(3))
    squares = 2.0 + 14.0 * size
    column = jnp.floor(_lift(jnp.arange(width) / width, batch_shape) * squares + shift_x)
    row = jnp.floor(_lift(jnp.arange(height) / height, batch_shape) * squares + shift_y)
    odd = jnp.mod(row[..., :, None, None] + column[..., None, :, None], 2.0)
    return first + odd * (second - first)


def smooth_background(
    key: PRNGKeyArray, batch_shape: Sequence[int], height: int, width: int
) -> Float[Array, "*b h w 3"]:
    """Return smooth colours that run into each other across the image."""
    return smooth_noise(key, batch_shape, height, width)


def random_background(
    key: PRNGKeyArray, batch_shape: Sequence[int], height: int, width: int
) -> Float[Array, "*b h w 3"]:
    """Return backgrounds of a random kind for each image: noise, checker, smooth or solid, equally likely.

    Args:
        key: all randomness.
        batch_shape: leading axes of the result; each image draws its own kind and colours.
        height: rows.
        width: columns.

    Returns:
        Images `[*batch_shape, height, width, 3]` in [0, 1].
    """
    makers = (noise_background, checker_background, smooth_background, solid_background)
    pick_key, *keys = jax.random.split(key, 1 + len(makers))
    pick = jax.random.randint(pick_key, (*batch_shape, 1, 1, 1), 0, len(makers))
    images = [make(k, batch_shape, height, width) for make, k in zip(makers, keys, strict=True)]
    return jnp.select([pick == i for i in range(len(makers))], images)


def _lift(values: Shaped[Array, "*n"], batch_shape: Sequence[int]) -> Shaped[Array, "..."]:
    """Put singleton batch axes before the values, so that no rank is promoted silently."""
    return values.reshape((1,) * len(batch_shape) + values.shape)


def window_matrix(
    start: Float[Array, "*b"], stop: Float[Array, "*b"], size: int, target: int, *, blur: Float[Array, "*b"]
) -> Float[Array, "*b target size"]:
    """Return weights that resample the window [start, stop] of an axis to `target` samples.

    The kernel is a triangle, widened to the spacing of the new samples so that shrinking does not alias, and
    by `blur` beyond that. Rows sum to one: beyond the image its edge is repeated.

    Args:
        start: where the window begins, in fractions of the axis.
        stop: where it ends.
        size: samples on the axis.
        target: samples to make.
        blur: kernel half-width in samples of the result, at least 1 for none.
    """
    step = (stop - start)[..., None] / target
    centres = (start[..., None] + (jnp.arange(target) + 0.5).reshape((1,) * start.ndim + (-1,)) * step) * size
    centres = jnp.clip(centres, 0.5, size - 0.5)
    width = jnp.maximum(step * size, 1.0) * blur[..., None]
    samples = (jnp.arange(size) + 0.5).reshape((1,) * (start.ndim + 1) + (-1,))
    weights = jnp.maximum(1 - jnp.abs(samples - centres[..., None]) / width[..., None], 0)
    return weights / weights.sum(-1, keepdims=True)


def random_views(
    key: PRNGKeyArray,
    images: Float[Array, "*b height width 3"],
    *,
    size: tuple[int, int],
    zoom: tuple[float, float] = (0.9, 1.1),
    shift: float = 0.05,
    blur: tuple[float, float] = (1.0, 2.0),
    noise: float = 0.03,
) -> Float[Array, "*b rows columns 3"]:
    """Cut a random window out of every image, resample it, blur and add noise; differentiable in the images.

    Args:
        key: random key.
        images: any leading axes, [0, 1].
        size: (height, width) of the result.
        zoom: range of the window's side as a fraction of the image's, above 1 to look beyond it.
        shift: largest displacement of the window's centre, as a fraction of the side.
        blur: range of the kernel's half-width in pixels of the result; 1 is none, 2 halves the resolution.
        noise: largest standard deviation of the added noise; each image draws its own up to it.
    """
    zoom_key, shift_key, blur_key, level_key, noise_key = jax.random.split(key, 5)
    batch, (height, width) = images.shape[:-3], images.shape[-3:-1]
    half = jax.random.uniform(zoom_key, batch, minval=zoom[0], maxval=zoom[1]) / 2
    centre = 0.5 + jax.random.uniform(shift_key, (2, *batch), minval=-shift, maxval=shift)
    widths = jax.random.uniform(blur_key, batch, minval=blur[0], maxval=blur[1])
    rows = window_matrix(centre[0] - half, centre[0] + half, height, size[0], blur=widths)
    columns = window_matrix(centre[1] - half, centre[1] + half, width, size[1], blur=widths)
    views = jnp.einsum("...jw,...iwc->...ijc", columns, jnp.einsum("...ih,...hwc->...iwc", rows, images))
    level = noise * jax.random.uniform(level_key, (*batch, 1, 1, 1))
    return views + level * jnp.sqrt(12.0) * (_byte_noise(noise_key, views.shape) - 0.5)


def _byte_noise(key: PRNGKeyArray, shape: Sequence[int]) -> Float[Array, "..."]:
    """Return uniform noise in [0, 1] with 256 levels, four to a random word: cheaper to draw than floats."""
    count = math.prod(shape)
    words = jax.random.bits(key, (-(-count // 4),), jnp.uint32)
    levels = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1)[:count]
    return levels.reshape(tuple(shape)).astype(jnp.float32) / 255
