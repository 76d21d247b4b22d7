"""Fields held in grids: fast where an MLP is slow, because a point touches eight vertices and few weights."""

from dataclasses import dataclass, field, replace
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from wordlight.radiance.encodings import grid_entries, grid_lookup
from wordlight.radiance.fields import (
    DensityConfig,
    FieldSample,
    density,
    direction_channels,
    with_directions,
)
from wordlight.radiance.mlp import Linear, apply_mlp, init_mlp
from wordlight.typing import Vectors


@dataclass(frozen=True)
class VoxelConfig:
    """One dense grid that stores the field itself.

    Attributes:
        resolution: vertices along each axis of the cube, at least 2.
        noise: standard deviation of the raw numbers at the start.
        density: how raw density becomes density.
    """

    resolution: int = 20
    noise: float = 0.1
    density: DensityConfig = field(default_factory=DensityConfig)

    def __post_init__(self) -> None:
        if self.resolution < 2:
            raise ValueError(
                f"A voxel grid of resolution {self.resolution} was asked for. Its vertices lie on the faces "
                "of the cube, so each axis needs two. Pass a resolution of at least 2; 20 to 128 are usual."
            )


@partial(jax.tree_util.register_dataclass, data_fields=["values"], meta_fields=["config"])
@dataclass(frozen=True)
class VoxelField:
    """Raw density and raw colour at the vertices of a dense grid, interpolated, then activated.

    Attributes:
        values: `[resolution, resolution, resolution, 4]` over x, y, z; channel 0 is raw density, 1 to 3 raw
            colour.
        config: static.
    """

    values: Float[Array, "resolution resolution resolution 4"]
    config: VoxelConfig

    @classmethod
    def init(cls, key: Key[Array, ""], config: VoxelConfig = VoxelConfig()) -> "VoxelField":
        """Return a grey field with a little noise."""
        return cls(config.noise * jax.random.normal(key, (*[config.resolution] * 3, 4)), config)

    def __call__(self, points: Vectors, directions: Vectors) -> FieldSample:
        """Return densities and colours at `points`; the colour is the same from all sides."""
        raw = stored(grid_lookup(self.values.reshape(-1, 4), points, self.config.resolution))
        return FieldSample(density(raw[..., 0], points, self.config.density), jax.nn.sigmoid(raw[..., 1:]))

    def vertices(self) -> Float[Array, "resolution resolution resolution 3"]:
        """Return where the grid's vertices lie."""
        axis = jnp.linspace(-1.0, 1.0, self.config.resolution)
        return jnp.stack(jnp.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)

    def resampled(self, resolution: int) -> "VoxelField":
        """Return the field on a grid of another resolution, by trilinear interpolation of the raw numbers."""
        matrix = _interpolation(self.config.resolution, resolution)
        values = jnp.einsum("xa,yb,zc,abcf->xyzf", matrix, matrix, matrix, self.values, precision="highest")
        return VoxelField(values, replace(self.config, resolution=resolution))


def stored(values: Float[Array, "*b channels"]) -> Float[Array, "*b channels"]:
    """Return `values` as a product with the identity, which XLA keeps in memory.

    Otherwise it merges the lookup into every later use and repeats it for each of their channels, which takes
    three times as long on a CPU; `optimization_barrier` does not keep it from doing so there.
    """
    return jnp.matmul(values, jnp.eye(values.shape[-1], dtype=values.dtype), precision="highest")


def _interpolation(old: int, new: int) -> Float[Array, "new old"]:
    """Return the matrix of linear interpolation between vertices that share their end points."""
    position = jnp.linspace(0, old - 1, new)
    return jnp.maximum(0, 1 - jnp.abs(position[:, None] - jnp.arange(old)[None, :]))


@dataclass(frozen=True)
class GridConfig:
    """Grids of features at several resolutions and a small decoder (Instant-NGP, arXiv 2201.05989).

    Attributes:
        resolutions: vertices along each axis of every level, each at least 2.
        features: channels of every level.
        table_size: most rows of a level; finer levels are hashed into as many.
        hidden: widths of the decoder's hidden layers.
        direction_degree: of the spherical harmonics that the colour depends on; 0 for none.
        noise: bound of the uniform noise that the features start with.
        density: how the raw output becomes a density.
    """

    resolutions: tuple[int, ...] = (16, 48)
    features: int = 4
    table_size: int = 2**17
    hidden: tuple[int, ...] = (16,)
    direction_degree: int = 0
    noise: float = 0.1
    density: DensityConfig = field(default_factory=DensityConfig)

    def __post_init__(self) -> None:
        if not self.resolutions or min(self.resolutions) < 2:
            raise ValueError(
                f"Grid levels of resolutions {self.resolutions} were asked for. Each level needs two "
                "vertices along an axis, and there must be a level. Pass at least one resolution, each 2 or "
                "more."
            )


@partial(jax.tree_util.register_dataclass, data_fields=["tables", "decoder"], meta_fields=["config"])
@dataclass(frozen=True)
class GridField:
    """Features of several grids, concatenated and decoded by a small MLP.

    Attributes:
        tables: per level `[entries, features]`; dense where `resolution**3` fits `GridConfig.table_size`,
            else hashed.
        decoder: from features (and direction) to raw density and raw colour.
        config: static.
    """

    tables: tuple[Float[Array, "entries features"], ...]
    decoder: tuple[Linear, ...]
    config: GridConfig

    @classmethod
    def init(cls, key: Key[Array, ""], config: GridConfig = GridConfig()) -> "GridField":
        """Return a field of small random features and a random decoder."""
        last, *keys = jax.random.split(key, len(config.resolutions) + 1)
        entries = [grid_entries(resolution, config.table_size) for resolution in config.resolutions]
        shapes = [(count, config.features) for count in entries]
        bound = config.noise
        tables = [
            jax.random.uniform(k, s, minval=-bound, maxval=bound) for k, s in zip(keys, shapes, strict=True)
        ]
        inputs = config.features * len(tables) + direction_channels(config.direction_degree)
        return cls(tuple(tables), init_mlp(last, inputs, config.hidden, 4), config)

    def __call__(self, points: Vectors, directions: Vectors) -> FieldSample:
        """Return densities and colours at `points`, seen along `directions`.

        With a `direction_degree` the density depends on the direction as well.
        """
        levels = zip(self.tables, self.config.resolutions, strict=True)
        features = jnp.concatenate([grid_lookup(t, points, r) for t, r in levels], axis=-1)
        raw = apply_mlp(self.decoder, with_directions(features, directions, self.config.direction_degree))
        return FieldSample(density(raw[..., 0], points, self.config.density), jax.nn.sigmoid(raw[..., 1:]))
