"""A voxel grid held as a sum of grids from coarse to fine, so that one optimiser moves large shapes first.

With an optimiser that normalises each parameter's step, as Adam does, a coarse vertex moves as fast as a
fine one and
carries hundreds of them along: the object's mass settles before its details, without changing any array's
shape.
"""

from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from wordlight.radiance.fields import DensityConfig
from wordlight.radiance.grids import VoxelConfig, VoxelField


@dataclass(frozen=True)
class PyramidConfig:
    """Grids whose sum is a voxel field.

    Attributes:
        resolutions: vertices along each axis of every level, coarse to fine, each at least 2; the last is the
            field's.
        noise: standard deviation of the coarsest level's raw numbers at the start; finer levels start at
            zero.
        mirror: whether the left half (+Y) is the mirror image of the right; true of most things that have a
            name, and half as much to find.
        density: how raw density becomes density.
    """

    resolutions: tuple[int, ...] = (10, 20, 40)
    noise: float = 0.1
    mirror: bool = True
    density: DensityConfig = field(default_factory=DensityConfig)


@partial(jax.tree_util.register_dataclass, data_fields=["levels"], meta_fields=["config"])
@dataclass(frozen=True)
class PyramidField:
    """The levels of a voxel field; `voxels` adds them up.

    Attributes:
        levels: per level `[resolution, resolution, resolution, 4]`, raw density and raw colour.
        config: static.
    """

    levels: tuple[Float[Array, "x y z 4"], ...]
    config: PyramidConfig

    @classmethod
    def init(cls, key: PRNGKeyArray, config: PyramidConfig = PyramidConfig()) -> "PyramidField":
        """Return a grey field with a little coarse noise."""
        first, *rest = ((r, r, r, 4) for r in config.resolutions)
        return cls((config.noise * jax.random.normal(key, first), *(jnp.zeros(s) for s in rest)), config)

    def voxels(self) -> VoxelField:
        """Return the sum of the levels at the finest resolution."""
        config = VoxelConfig(self.config.resolutions[0], self.config.noise, self.config.density)
        total = VoxelField(self.levels[0], config)
        for level, resolution in zip(self.levels[1:], self.config.resolutions[1:], strict=True):
            total = total.resampled(resolution)
            total = replace(total, values=total.values + level)
        if not self.config.mirror:
            return total
        return replace(total, values=(total.values + jnp.flip(total.values, axis=1)) / 2)
