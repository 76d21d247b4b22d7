"""Stored batch-norm statistics, measured after training over many batches (arXiv 2105.07576, section 3)."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from wordlight.clip.config import ClipConfig, ResNetConfig
from wordlight.clip.layers import Params
from wordlight.clip.resnet import batch_norm, batch_statistics, resnet_features

Statistics = dict[str, tuple[Float[Array, "c"], Float[Array, "c"]]]


def with_statistics(
    params: Params, config: ClipConfig, batches: Sequence[Float[Array, "b height width 3"]]
) -> Params:
    """Return the weights with every batch norm's mean and variance averaged over the batches.

    A model without batch norm is returned as it is.
    """
    if not isinstance(config.vision, ResNetConfig):
        return params
    vision = config.vision
    measure = jax.jit(lambda p, pixels: _measure(p, pixels, vision))
    measured = [measure(params["vision"], pixels) for pixels in batches]
    mean = jax.tree.map(lambda *s: jnp.mean(jnp.stack(s), 0), *measured)
    return params | {"vision": _replace(params["vision"], mean, "")}


def _measure(params: Params, pixels: Float[Array, "b height width 3"], config: ResNetConfig) -> Statistics:
    places = {id(norm): path for path, norm in _norms(params, "")}
    statistics: Statistics = {}

    def recording_norm(norm: Params, x: Array, epsilon: float) -> Array:
        statistics[places[id(norm)]] = batch_statistics(x)
        return batch_norm(norm, x, epsilon)

    resnet_features(params, pixels, config, norm=recording_norm)
    return statistics


def _children(node: Params | list) -> list[tuple[str, Params | list]]:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    return [(str(name), child) for name, child in items if isinstance(child, dict | list)]


def _norms(node: Params | list, path: str) -> list[tuple[str, Params]]:
    if isinstance(node, dict) and "variance" in node:
        return [(path, node)]
    return [found for name, child in _children(node) for found in _norms(child, f"{path}/{name}")]


def _replace(node: Any, statistics: Statistics, path: str) -> Any:
    if path in statistics:
        mean, variance = statistics[path]
        return node | {"mean": mean, "variance": variance}
    if isinstance(node, dict):
        return {name: _replace(child, statistics, f"{path}/{name}") for name, child in node.items()}
    if isinstance(node, list):
        return [_replace(child, statistics, f"{path}/{i}") for i, child in enumerate(node)]
    return node
