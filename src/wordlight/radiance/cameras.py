"""Pinhole cameras and where to put them.

Conventions: OpenGL cameras (x right, y up, z backwards), world +Z up, angles in radians, pixel centres at
    half integers. Azimuth 0 looks at the scene from +X and grows towards +Y; elevation 0 is level, pi/2
    straight above.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from wordlight.numerics import safe_normalize
from wordlight.radiance.checks import check_size
from wordlight.typing import Scalars, Vectors


@partial(jax.tree_util.register_dataclass, data_fields=["pose", "focal"], meta_fields=["height", "width"])
@dataclass(frozen=True)
class Camera:
    """One camera or a batch of them; a pytree whose image size is static.

    Attributes:
        pose: camera to world, `[..., 3, 4]`: rotation columns (right, up, backwards), then the position.
        focal: focal length in pixels, `[...]`, the same along both axes; the principal point is the image
            centre.
        height: rows of the image.
        width: columns of the image.
    """

    pose: Float[Array, "*b 3 4"]
    focal: Scalars
    height: int
    width: int

    def resized(self, height: int, width: int) -> "Camera":
        """Return the same view at another resolution; the vertical field of view stays."""
        return replace(self, focal=self.focal * height / self.height, height=height, width=width)


def look_at(position: Vectors, target: Float[Array, "*#b 3"]) -> Float[Array, "*b 3 4"]:
    """Return the pose of a camera at `position` that looks at `target` with world +Z up.

    Straight above or below the target the up direction is undefined; +X then serves as the image's up.
    """
    backwards = safe_normalize(position - jnp.broadcast_to(target, position.shape))
    overhead = jnp.abs(backwards[..., 2]) > 1 - 1e-6
    up = jax.nn.one_hot(jnp.where(overhead, 0, 2), 3, dtype=backwards.dtype)
    right = safe_normalize(jnp.cross(up, backwards))
    return jnp.stack([right, jnp.cross(backwards, right), backwards, position], axis=-1)


def orbit(
    azimuth: ArrayLike,
    elevation: ArrayLike,
    *,
    radius: ArrayLike = 3.2,
    field_of_view: float = 0.7,
    height: int = 64,
    width: int = 64,
) -> Camera:
    """Return cameras on a sphere about the origin, looking at it.

    Args:
        azimuth: angle about +Z in radians, `[...]`.
        elevation: angle above the horizon in radians, broadcast against `azimuth`.
        radius: distance from the origin in scene units, broadcast likewise.
        field_of_view: vertical opening angle in radians.
        height: rows of the image.
        width: columns of the image.

    Raises:
        ValueError: the image has no pixels.
    """
    check_size(height, width)
    angles = (jnp.asarray(value, jnp.float32) for value in (azimuth, elevation, radius))
    azimuth, elevation, radius = jnp.broadcast_arrays(*angles)
    level = jnp.cos(elevation)
    direction = jnp.stack([level * jnp.cos(azimuth), level * jnp.sin(azimuth), jnp.sin(elevation)], axis=-1)
    position = radius[..., None] * direction
    focal = jnp.full(azimuth.shape, height / 2) / jnp.tan(field_of_view / 2)
    return Camera(look_at(position, jnp.zeros(3)), focal, height, width)


def orbit_angles(camera: Camera) -> tuple[Float[Array, "*b"], Float[Array, "*b"]]:
    """Return the azimuth and the elevation of cameras that look at the origin, as `orbit` takes them."""
    x, y, z = (camera.pose[..., i, 3] for i in range(3))
    return jnp.arctan2(y, x), jnp.arctan2(z, jnp.hypot(x, y))
