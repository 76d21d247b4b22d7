"""A voxel field under a lamp: colours times Lambertian shading, so that a shape cannot hide behind painted
shadows.
"""

from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from wordlight.numerics import safe_normalize
from wordlight.radiance.encodings import grid_lookup
from wordlight.radiance.fields import FieldSample, blob, density
from wordlight.radiance.grids import VoxelField, stored
from wordlight.typing import Vectors

# Passes over the raw density before its slope is taken: light shows shapes, not the grid's grain.
SMOOTHING = 2
PLAIN = 0.8  # grey of an object without its colours


@partial(
    jax.tree_util.register_dataclass, data_fields=["voxels", "lamp", "ambient", "texture"], meta_fields=[]
)
@dataclass(frozen=True)
class LitField:
    """A voxel field seen in the light of one distant lamp (DreamFusion, arXiv 2209.14988, eq. 4 with white
    light).

    Attributes:
        voxels: density and albedo.
        lamp: unit direction towards the lamp, `[3]`, world axes.
        ambient: light that comes from everywhere, in [0, 1]; 1 is no shading.
        texture: 1 for the field's own colours, 0 for plain light grey, under which only the shape shows.
    """

    voxels: VoxelField
    lamp: Float[Array, "3"]
    ambient: Float[Array, ""]
    texture: Float[Array, ""] = field(default_factory=lambda: jnp.ones(()))

    def __call__(self, points: Vectors, directions: Vectors) -> FieldSample:
        """Return densities and lit colours; shading is found at the vertices and interpolated."""
        config, values = self.voxels.config, self.voxels.values
        grid = jnp.concatenate([values, self.vertex_light()[..., None]], axis=-1)
        raw = stored(grid_lookup(grid.reshape(-1, 5), points, config.resolution))
        albedo = PLAIN + self.texture * (jax.nn.sigmoid(raw[..., 1:4]) - PLAIN)
        return FieldSample(density(raw[..., 0], points, config.density), albedo * raw[..., 4:])

    def vertex_light(self) -> Float[Array, "x y z"]:
        """Return the light on every vertex, in [0, 1]."""
        facing = jnp.maximum(vertex_normals(self.voxels) @ self.lamp, 0.0)
        return self.ambient + (1 - self.ambient) * facing


def vertex_normals(voxels: VoxelField) -> Float[Array, "x y z 3"]:
    """Return unit directions in which raw density, blob included, falls fastest, smoothed, by central
    differences."""
    config = voxels.config
    raw = voxels.values[..., 0] + blob(voxels.vertices(), config.density)
    for _ in range(SMOOTHING):
        raw = _smoothed(raw)
    slopes = jnp.stack(jnp.gradient(raw), axis=-1)
    return safe_normalize(-slopes, epsilon=1e-6)


def _smoothed(grid: Float[Array, "x y z"]) -> Float[Array, "x y z"]:
    """Average every vertex with its neighbours, weights 1 2 1, along each axis."""
    for axis in range(3):
        padded = jnp.pad(grid, [(1, 1) if a == axis else (0, 0) for a in range(3)], mode="edge")
        before, here, after = (
            jax.lax.slice_in_dim(padded, start, start + grid.shape[axis], axis=axis) for start in range(3)
        )
        grid = (before + 2 * here + after) / 4
    return grid


def random_lamp(
    key: PRNGKeyArray, towards_camera: Float[Array, "3"], *, ambient: tuple[ArrayLike, ArrayLike] = (0.4, 0.9)
) -> tuple[Float[Array, "3"], Float[Array, ""]]:
    """Draw a lamp between the camera and a random direction, rather above than below, and an ambient
    share."""
    side_key, pull_key, ambient_key = jax.random.split(key, 3)
    side = safe_normalize(jax.random.normal(side_key, (3,)) + jnp.array([0.0, 0.0, 0.7]))
    pull = jax.random.uniform(pull_key, maxval=2.5)
    share = jax.random.uniform(ambient_key, minval=ambient[0], maxval=ambient[1])
    return safe_normalize(side + pull * safe_normalize(towards_camera)), share
