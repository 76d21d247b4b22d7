"""Cameras that look at a result, and what they see. Angles in degrees, as in `CameraConfig`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from wordlight.numerics import safe_normalize
from wordlight.radiance.cameras import Camera, orbit
from wordlight.radiance.lighting import LitField
from wordlight.radiance.pyramid import PyramidField
from wordlight.radiance.render import Rendering, render_image
from wordlight.train.config import CameraConfig
from wordlight.train.sharding import gather

HELD_OUT_VIEWS = 8
# Plain, and neither white nor black: an object of either colour would vanish before itself.
GREY = 0.5


# Training moves the lamp about; results are shown under this one, high and to the front.
LAMP, AMBIENT = (0.3, 0.2, 0.93), 0.6


def finished(field: PyramidField) -> LitField:
    """Return the field on one device, under a lamp, ready to be looked at."""
    return _lit(gather(field))


@jax.jit
def _lit(field: PyramidField) -> LitField:
    return LitField(field.voxels(), safe_normalize(jnp.array(LAMP)), jnp.float32(AMBIENT))


def ring(config: CameraConfig, *, count: int, elevation: float, size: int, turn: float = 0.0) -> Camera:
    """Return `count` cameras evenly round the object, the first at azimuth `turn`, at the middle distance."""
    azimuth = np.deg2rad(turn + np.arange(count) * 360.0 / count)
    return orbit(
        azimuth,
        float(np.deg2rad(elevation)),
        radius=sum(config.radius) / 2,
        field_of_view=float(np.deg2rad(config.field_of_view)),
        height=size,
        width=size,
    )


def held_out_cameras(config: CameraConfig, *, size: int) -> Camera:
    """Return eight cameras in the band of elevations that training never draws from."""
    return ring(config, count=HELD_OUT_VIEWS, elevation=sum(config.held_out) / 2, size=size, turn=22.5)


@partial(jax.jit, static_argnames=("samples", "normals"))
def render_views(
    field: LitField,
    cameras: Camera,
    *,
    samples: int,
    background: Float[Array, ""] | float = GREY,
    normals: bool = False,
) -> Rendering:
    """Return images of all cameras, `[n, height, width, ...]`, over a plain background of that grey level."""
    behind = jnp.full(3, background, jnp.float32)
    return render_image(field, cameras, chunk=16384, samples=samples, background=behind, normals=normals)
