"""Penalties that keep a radiance field an object: neither dissolved, nor fog, nor dust, nor inside out."""

import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from wordlight.numerics import safe_log
from wordlight.radiance.volume import exclusive_sum
from wordlight.typing import Scalars, Vectors


def opacity_target(opacity: Float[Array, "*b height width"], transmittance: Float[ArrayLike, ""]) -> Scalars:
    """Return minus the mean transmittance of each image, as long as it is below the target `transmittance`.

    `-min(target, mean(1 - opacity))` (Dream Fields, arXiv 2112.01455, eq. 5): minimising it empties the view
    until the target is reached and has no gradient from there on. Not differentiable at the target.
    """
    mean = 1 - jnp.mean(opacity, axis=(-2, -1))
    return -jnp.minimum(jnp.asarray(transmittance, mean.dtype), mean)


def annealed(step: ArrayLike, *, start: float = 0.5, end: float = 0.9, steps: int = 500) -> Float[Array, ""]:
    """Return a value that goes linearly from `start` to `end` over `steps` steps and stays.

    The defaults are the transmittance targets of Dream Fields' published configuration (arXiv 2112.01455,
    appendix C).
    """
    fraction = jnp.clip(jnp.asarray(step) / max(steps, 1), 0.0, 1.0)
    return start + (end - start) * fraction


def distortion(weights: Float[Array, "*b samples"], edges: Float[Array, "*b edges"]) -> Scalars:
    """Return how far the weights of each ray are spread (mip-NeRF 360, arXiv 2111.12077, eq. 15).

    `sum_ij w_i w_j |m_i - m_j| + 1/3 sum_i w_i**2 d_i`, with segment middles m and lengths d in scene units.
    Zero for a single thin surface and for an empty ray. The double sum is computed as twice its half with j <
    i.
    """
    middles = (edges[..., 1:] + edges[..., :-1]) / 2
    # Distances from the ray's first sample, so that the difference of sums loses no precision far from the
    # camera.
    middles = middles - middles[..., :1]
    before = middles * exclusive_sum(weights) - exclusive_sum(weights * middles)
    between = 2 * jnp.sum(weights * before, axis=-1)
    return between + jnp.sum(weights**2 * jnp.diff(edges, axis=-1), axis=-1) / 3


def total_variation(grid: Float[Array, "x y z channels"], *, smooth: float = 1e-3) -> Float[Array, ""]:
    """Return the mean length of the difference between a vertex and its next neighbours along x, y and z.

    `mean(sqrt(smooth**2 + dx**2 + dy**2 + dz**2)) - smooth` over vertices and channels (Plenoxels, arXiv
    2112.05131, eq. 3). `smooth` rounds the corner at zero, where the plain square root has no gradient. Zero
    for a constant grid.
    """
    steps = [
        jnp.diff(grid, axis=axis, append=jnp.take(grid, jnp.array([-1]), axis=axis)) for axis in range(3)
    ]
    square = sum(step**2 for step in steps)
    return jnp.mean(jnp.sqrt(smooth**2 + square) - smooth)


def roughness(grid: Float[Array, "x y z channels"]) -> Float[Array, ""]:
    """Return the mean square of the differences between neighbouring vertices, averaged over x, y and z.

    The quadratic form of total variation: it blurs edges rather than keeping them, and calms noise faster.
    """
    return sum(jnp.mean(jnp.diff(grid, axis=axis) ** 2) for axis in range(3)) / jnp.float32(3)


def orientation(
    weights: Float[Array, "*b samples"],
    normals: Float[Array, "*b samples 3"],
    directions: Vectors,
) -> Scalars:
    """Return how much visible surface faces away from the camera (Ref-NeRF, arXiv 2112.03907, eq. 11).

    `sum_i w_i max(0, n_i . d)**2` with the ray's direction d, pointing away from the camera.
    """
    facing_away = jnp.maximum(0.0, jnp.sum(normals * directions[..., None, :], axis=-1))
    return jnp.sum(weights * facing_away**2, axis=-1)


def half_opacity(opacity: Scalars) -> Scalars:
    """Return the binary entropy of each opacity in bits: 0 where clear or solid, 1 where half opaque.

    `-o log2(o) - (1 - o) log2(1 - o)`; logarithms are cut at 1e-6, so the gradient is at most about 20.
    """
    through = 1 - opacity
    return -(opacity * safe_log(opacity) + through * safe_log(through)) / jnp.log(2.0)
