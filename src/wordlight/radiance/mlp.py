"""Fully connected layers as plain arrays: the decoders of the fields."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


class Linear(NamedTuple):
    """One layer: `weight` `[inputs, outputs]`, `bias` `[outputs]`."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"]

    def __call__(self, x: Float[Array, "*b inputs"]) -> Float[Array, "*b outputs"]:
        """Return the affine map of the last axis."""
        product = x @ self.weight
        return product + jnp.expand_dims(self.bias, range(product.ndim - 1))


def init_linear(key: Key[Array, ""], inputs: int, outputs: int, *, gain: float = 2.0) -> Linear:
    """Return a layer with zero bias and weights of variance `gain / inputs` (2: He et al. 2015, for ReLU)."""
    weight = jax.random.normal(key, (inputs, outputs)) * math.sqrt(gain / inputs)
    return Linear(weight, jnp.zeros(outputs))


def init_mlp(
    key: Key[Array, ""], inputs: int, hidden: tuple[int, ...], outputs: int, *, skip: int | None = None
) -> tuple[Linear, ...]:
    """Return the layers of `apply_mlp`; layer `skip` also takes the input, and the last starts small."""
    widths = (inputs, *hidden)
    keys = jax.random.split(key, len(widths))
    extra = [inputs if layer == skip else 0 for layer in range(len(hidden))]
    layers = [init_linear(keys[i], widths[i] + extra[i], widths[i + 1]) for i in range(len(hidden))]
    return (*layers, init_linear(keys[-1], widths[-1], outputs, gain=0.1))


def apply_mlp(
    layers: tuple[Linear, ...], x: Float[Array, "*b inputs"], *, skip: int | None = None
) -> Float[Array, "*b outputs"]:
    """Return the network's output: ReLU between layers, none after the last, the input again at layer
    `skip`."""
    hidden = x
    for index, layer in enumerate(layers[:-1]):
        joined = jnp.concatenate([hidden, x], axis=-1) if index == skip else hidden
        hidden = jax.nn.relu(layer(joined))
    return layers[-1](hidden)
