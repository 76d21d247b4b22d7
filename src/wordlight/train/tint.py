"""The colour a run starts from: the one of a coarse palette that the guide likes best on the first shape.

A guide's similarity need not rise all the way from grey to the prompt's colour, so a field that starts grey
can stay grey.
"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from wordlight.guidance import members
from wordlight.radiance.cameras import orbit
from wordlight.radiance.pyramid import PyramidField
from wordlight.radiance.rays import camera_rays
from wordlight.radiance.render import render_rays
from wordlight.train.config import RunConfig
from wordlight.train.guide import Guide

LEVELS = (0.05, 0.5, 0.95)
SIZE = 32
BACKGROUND = 0.5


@partial(jax.jit, static_argnames="config")
def tinted(field: PyramidField, guide: Guide, *, config: RunConfig) -> PyramidField:
    """Return the field with its coarsest raw colours moved to the palette's best colour."""
    palette = jnp.asarray(list(itertools.product(LEVELS, repeat=3)), jnp.float32)
    scores = tint_scores(field, guide, palette, config)
    best = palette[jnp.argmax(scores)]
    offset = jnp.concatenate([jnp.zeros(1), jnp.log(best) - jnp.log1p(-best)])
    first, *rest = field.levels
    return PyramidField((first + offset[None, None, None, :], *rest), field.config)


def tint_scores(
    field: PyramidField, guide: Guide, palette: Float[Array, "n 3"], config: RunConfig
) -> Float[Array, "n"]:
    """Return the cosine with the prompts of the first shape, painted in each colour of the palette."""
    cameras = config.cameras
    camera = orbit(
        0.6,
        float(np.deg2rad(sum(cameras.elevation) / 2)),
        radius=sum(cameras.radius) / 2,
        field_of_view=float(np.deg2rad(cameras.field_of_view)),
        height=SIZE,
        width=SIZE,
    )
    opacity = render_rays(field.voxels(), camera_rays(camera), None, samples=cameras.samples).opacity[
        None, ..., None
    ]
    images = opacity * palette[:, None, None, :] + (1 - opacity) * BACKGROUND
    scores = [
        share * (member.model.encode_image(images) @ member.text_embeds.T @ member.weights)
        for member, share in members(guide)
    ]
    return jnp.sum(jnp.stack(scores), axis=0)
