"""Radiance fields: functions from points and view directions to density and colour.

A field is any callable of the shape of `Field`; the renderer asks for no more. The ones here are registered
dataclasses: their arrays are leaves, their configuration is static.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from wordlight.numerics import safe_normalize, truncated_exp
from wordlight.radiance.encodings import frequency_encoding, spherical_harmonics
from wordlight.radiance.mlp import Linear, apply_mlp, init_mlp
from wordlight.typing import Scalars, Vectors


class FieldSample(NamedTuple):
    """What a field holds at points.

    Attributes:
        densities: extinction per scene unit, `[...]`, at least 0.
        colours: `[..., 3]`, in [0, 1].
    """

    densities: Scalars
    colours: Vectors


@runtime_checkable
class Field(Protocol):
    """A callable from points and unit view directions, both `[..., 3]`, to densities and colours."""

    def __call__(self, points: Vectors, directions: Vectors, /) -> tuple[Scalars, Vectors]:
        """Return densities `[...]`, at least 0, and colours `[..., 3]`; a `FieldSample` is such a pair."""
        ...


@dataclass(frozen=True)
class DensityConfig:
    """How a raw number becomes a density: `scale * activation(raw + bias + blob)`.

    Neither activation has a zero slope, so that empty space can always fill again, and the blob puts
    something at the centre for the first views to see.

    Attributes:
        activation: "softplus", or "exp", which continues as its tangent beyond 10.
        scale: density per unit of activation.
        bias: added everywhere; negative values start with empty space.
        blob_strength: added at the origin, falling off as a Gaussian (DreamFusion, arXiv 2209.14988, appendix
            A.2).
        blob_radius: standard deviation of that Gaussian in scene units.
        bound: distance from the origin beyond which nothing is, whatever the raw number; None leaves it to
            the cube.
    """

    activation: Literal["softplus", "exp"] = "softplus"
    scale: float = 10.0
    bias: float = -3.0
    blob_strength: float = 3.0
    blob_radius: float = 0.4
    bound: float | None = None

    def __post_init__(self) -> None:
        if self.activation not in ("softplus", "exp"):
            raise ValueError(
                f"The density activation is {self.activation!r}. It is usually a misspelt name; one with a "
                "flat part such as ReLU is not offered, because a field that starts there never moves. Use "
                '"softplus" or "exp".'
            )
        if self.scale <= 0 or self.blob_radius <= 0 or (self.bound is not None and self.bound <= 0):
            raise ValueError(
                f"The density scale is {self.scale}, the blob radius {self.blob_radius} and the bound "
                f"{self.bound}. With one of them at zero or below the field is empty or undefined. Pass "
                "positive numbers; blob_strength=0 turns the blob off."
            )


def density(raw: Scalars, points: Vectors, config: DensityConfig) -> Scalars:
    """Return densities from raw numbers at `points`, zero outside the cube `|x| <= 1` and beyond the
    bound."""
    activate = jax.nn.softplus if config.activation == "softplus" else truncated_exp
    inside = jnp.all(jnp.abs(points) <= 1.0, axis=-1)
    if config.bound is not None:
        inside &= jnp.sum(points**2, axis=-1) <= config.bound**2
    return jnp.where(inside, config.scale * activate(raw + config.bias + blob(points, config)), 0.0)


def blob(points: Vectors, config: DensityConfig) -> Scalars:
    """Return what is added to the raw density about the origin; beyond the cube the value at its border."""
    square = jnp.sum(jnp.clip(points, -1.0, 1.0) ** 2, axis=-1)
    return config.blob_strength * jnp.exp(-square / (2 * config.blob_radius**2))


def density_normals(field: Field, points: Vectors, directions: Vectors) -> Vectors:
    """Return unit normals, the directions in which density falls fastest; zero where it is constant.

    The negative normalised gradient of the density (Ref-NeRF, arXiv 2112.03907, eq. 3), by differentiating
    the field.
    """
    densities, pull = jax.vjp(lambda points: field(points, directions)[0], points)
    return safe_normalize(-pull(jnp.ones_like(densities))[0])


@dataclass(frozen=True)
class MlpConfig:
    """An MLP on frequency-encoded points (NeRF, arXiv 2003.08934).

    Attributes:
        frequencies: octaves of the encoding.
        hidden: widths of the hidden layers.
        skip: index of the hidden layer that takes the encoded points again, or None.
        direction_degree: of the spherical harmonics that the colour depends on; 0 for none.
        density: how the raw output becomes a density.
    """

    frequencies: int = 6
    hidden: tuple[int, ...] = (64, 64, 64, 64)
    skip: int | None = 2
    direction_degree: int = 0
    density: DensityConfig = field(default_factory=DensityConfig)


@partial(jax.tree_util.register_dataclass, data_fields=["layers", "head"], meta_fields=["config"])
@dataclass(frozen=True)
class MlpField:
    """A field held in the weights of an MLP; smooth, compact, slow.

    Attributes:
        layers: from encoded points to raw density and `MlpConfig.hidden[-1]` features.
        head: from features and direction to raw colour.
        config: static.
    """

    layers: tuple[Linear, ...]
    head: tuple[Linear, ...]
    config: MlpConfig

    @classmethod
    def init(cls, key: Key[Array, ""], config: MlpConfig = MlpConfig()) -> "MlpField":
        """Return a field with random weights: grey, of nearly uniform raw density around zero."""
        trunk, head = jax.random.split(key)
        width = config.hidden[-1]
        layers = init_mlp(trunk, 3 + 6 * config.frequencies, config.hidden, 1 + width, skip=config.skip)
        seen = direction_channels(config.direction_degree)
        return cls(layers, init_mlp(head, width + seen, (width // 2,), 3), config)

    def __call__(self, points: Vectors, directions: Vectors) -> FieldSample:
        """Return densities and colours at `points`, seen along `directions`."""
        encoded = frequency_encoding(points, self.config.frequencies)
        raw = apply_mlp(self.layers, encoded, skip=self.config.skip)
        features = with_directions(jax.nn.relu(raw[..., 1:]), directions, self.config.direction_degree)
        colours = jax.nn.sigmoid(apply_mlp(self.head, features))
        return FieldSample(density(raw[..., 0], points, self.config.density), colours)


def direction_channels(degree: int) -> int:
    """Return how many channels `with_directions` adds."""
    return (degree + 1) ** 2 if degree else 0


def with_directions(
    features: Float[Array, "*b features"], directions: Vectors, degree: int
) -> Float[Array, "*b joined"]:
    """Return features followed by the spherical harmonics of the view direction; unchanged for degree 0."""
    if not degree:
        return features
    return jnp.concatenate([features, spherical_harmonics(directions, degree)], axis=-1)
