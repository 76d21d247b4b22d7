"""Volume rendering: from densities along a ray to colour, depth and opacity.

The quadrature of the emission-absorption model (Max 1995, "Optical models for direct volume rendering"; NeRF,
arXiv 2003.08934, eq. 3): sample i has weight `T_i * (1 - exp(-sigma_i * delta_i))`, where the transmittance
`T_i = exp(-sum of sigma_j * delta_j over j < i)`.

The sum of optical depths is kept and exponentiated once (log-space transmittance). The running product of
`1 - alpha` has the gradient `T / (1 - alpha)`, which is 0 / 0 behind a fully opaque sample.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from wordlight.typing import Scalars, Vectors

# Beyond this optical depth float32 transmittance is zero; the bound keeps sums finite for any float32
# density.
_OPAQUE = 1e4
# The gradient in the length of a segment is its density; this leaves room to multiply it by a cotangent.
_DENSEST = 1e30


class Composite(NamedTuple):
    """What a ray sees.

    Attributes:
        colour: `[..., 3]`, premultiplied by opacity.
        depth: `[...]`, expected distance in scene units.
        opacity: `[...]`, in [0, 1].
    """

    colour: Vectors
    depth: Scalars
    opacity: Scalars


def volume_weights(
    densities: Float[Array, "*b samples"], deltas: Float[Array, "*b samples"]
) -> Float[Array, "*b samples"]:
    """Return the share of the ray's light that each sample gives, `[..., samples]`; they sum to the opacity.

    Args:
        densities: extinction per unit length, at least 0; beyond 1e30 it counts as 1e30, without gradient.
        deltas: lengths of the segments, at least 0, in scene units.
    """
    optical = jnp.minimum(jnp.minimum(densities, _DENSEST) * deltas, _OPAQUE)
    return jnp.exp(-exclusive_sum(optical)) * -jnp.expm1(-optical)


def exclusive_sum(values: Float[Array, "*b samples"]) -> Float[Array, "*b samples"]:
    """Return the sum of all values before each, along the last axis; the first is 0.

    A product with a triangular matrix: for the tens of samples of a ray it is many times faster than a scan.
    """
    samples = values.shape[-1]
    before = jnp.triu(jnp.ones((samples, samples), values.dtype), k=1)
    return jnp.matmul(values, before, precision="highest")


def composite(
    weights: Float[Array, "*b samples"],
    colours: Float[Array, "*b samples 3"],
    distances: Float[Array, "*b samples"],
    far: Scalars,
) -> Composite:
    """Return colour, depth and opacity of each ray from the weights of its samples.

    The light that passes all samples counts as stopped at `far`, so the depth of an empty ray is `far`: no
    division by the opacity, hence finite with a finite gradient.
    """
    opacity = jnp.minimum(jnp.sum(weights, axis=-1), 1.0)
    colour = jnp.sum(weights[..., None] * colours, axis=-2)
    depth = jnp.sum(weights * distances, axis=-1) + (1 - opacity) * far
    return Composite(colour, depth, opacity)
